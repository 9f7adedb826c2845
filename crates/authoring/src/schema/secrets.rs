//! What a policy can say about secrets.

use capsule_core::policy::ReturnedMasks;
use capsule_redact::limits;
use serde_json::{Value, json};

use super::parts::{definition_ref, enum_schema, list, object, text, with_description};

/// What is masked, and what becomes of masks.
pub(super) fn redaction() -> Value {
    let pattern = object(
        &["id", "regex"],
        [
            ("id", definition_ref("id")),
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
    let shown = enum_schema(["executable", "flag", "path", "host"]);
    let previews = object(
        &[],
        [(
            "never_mask",
            with_description("What a person has to see; all four are needed.", list(shown)),
        )],
    );
    with_description(
        "What is masked, and what becomes of masks.",
        object(
            &[],
            [
                (
                    "at",
                    with_description(
                        "Before the record, the model and the screen.",
                        enum_schema(["boundary"]),
                    ),
                ),
                (
                    "detectors",
                    with_description("The rules of this build.", list(enum_schema(["builtin"]))),
                ),
                ("patterns", patterns),
                ("previews", with_description("What is shown to whoever is asked.", previews)),
                (
                    "returned_masks",
                    with_description(
                        "A mask in what is to be written: refused, or put back into what the same line of the file held.",
                        enum_schema(ReturnedMasks::WORDS),
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
            (
                "from",
                with_description(
                    "Where its value is: a variable of that name.",
                    enum_schema(["env"]),
                ),
            ),
            (
                "only_for",
                with_description(
                    "The rules under which it is sent.",
                    list(text("A rule: `http.get/ID`.")),
                ),
            ),
            ("as", with_description("How it is sent.", shape)),
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
