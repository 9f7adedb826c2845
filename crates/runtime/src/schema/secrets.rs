//! What a policy can say about secrets.

use capsule_core::policy::ReturnedMasks;
use capsule_redact::limits;
use serde_json::{Value, json};

use crate::schema::{about, list, object, of, text, words};

/// What is masked, and what becomes of masks.
pub(super) fn redaction() -> Value {
    let pattern = object(
        &["id", "regex"],
        [
            ("id", of("id")),
            (
                "regex",
                text("What it looks like, with a bound on its length: `acme_[A-Za-z0-9]{32}`."),
            ),
        ],
    );
    let patterns = json!({
        "description": "What is masked besides what this build knows.",
        "type": "array",
        "maxItems": limits::PATTERNS,
        "items": pattern
    });
    let shown = words(["executable", "flag", "path", "host"]);
    let previews = object(
        &[],
        [("never_mask", about("What a person has to see; all four are needed.", list(shown)))],
    );
    about(
        "What is masked, and what becomes of masks.",
        object(
            &[],
            [
                ("at", about("Before the record, the model and the screen.", words(["boundary"]))),
                ("detectors", about("The rules of this build.", list(words(["builtin"])))),
                ("patterns", patterns),
                ("previews", about("What is shown to whoever is asked.", previews)),
                (
                    "returned_masks",
                    about(
                        "A mask in what is to be written: refused, or put back into what the same line of the file held.",
                        words(ReturnedMasks::KEYWORDS),
                    ),
                ),
            ],
        ),
    )
}

/// The handles.
pub(super) fn secrets() -> Value {
    let shape = object(
        &["header"],
        [
            ("header", text("The header that it is sent in.")),
            ("format", text("The value of the header, with `{}` where the secret goes.")),
        ],
    );
    let secret = object(
        &["from", "only_for", "as"],
        [
            ("from", about("Where its value is: a variable of that name.", words(["env"]))),
            (
                "only_for",
                about("The rules under which it is sent.", list(text("A rule: `http.get/ID`."))),
            ),
            ("as", about("How it is sent.", shape)),
        ],
    );
    json!({
        "description": "Values that are sent without being known to anybody here.",
        "type": "object",
        "maxProperties": limits::SECRETS,
        "propertyNames": { "pattern": "^[A-Z0-9_]+$" },
        "additionalProperties": secret
    })
}
