//! What a policy can say besides its rules: profiles, risk, budgets, and tests of itself.

use capsule_core::approval::GrantLifetime;
use capsule_core::capability::Capability;
use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::policy::{Hazard, Profile};
use capsule_core::risk::Risk;
use capsule_core::tool::{Catalogue, ToolSignature};
use serde_json::{Map, Value, json};

use crate::schema::tools::arguments;
use crate::schema::{about, list, object, of, text, whole, words};

fn level() -> Value {
    words([Risk::Low, Risk::Medium, Risk::High].map(Risk::name))
}

/// A value for each capability, and for more names where there are any.
fn by_capability(more: &[&str], value: &Value) -> Value {
    let names = Capability::ALL.map(Capability::name);
    let properties: Map<String, Value> = names
        .into_iter()
        .chain(more.iter().copied())
        .map(|name| (name.to_owned(), value.clone()))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The profiles that a policy defines.
pub(super) fn profiles() -> Value {
    let requires =
        object(&[], [("sandbox", words(["enforced"])), ("workspace", words(["disposable"]))]);
    let profile = object(
        &["decide"],
        [
            (
                "decide",
                about(
                    "A word for each capability; `*` stands for all others.",
                    by_capability(&[Profile::WILDCARD], &of("word")),
                ),
            ),
            (
                "unattended",
                about(
                    "What a question becomes with nobody there.",
                    words(["deny", "fail", "wait"]),
                ),
            ),
            ("requires", about("Without this, the run does not start.", requires)),
        ],
    );
    json!({
        "description": "What decides where a rule has no word of its own, and a ceiling for all.",
        "type": "object",
        "propertyNames": { "pattern": "^[A-Za-z0-9._-]+$" },
        "additionalProperties": profile
    })
}

/// What each capability carries.
pub(super) fn capabilities() -> Value {
    let own = object(
        &[],
        [
            ("risk", about("The least risk of what needs it.", level())),
            ("label", text("What it is, for people.")),
        ],
    );
    about("The wording and the least risk of each capability.", by_capability(&[], &own))
}

/// What raises the risk, and where it ends.
pub(super) fn risk() -> Value {
    let escalation = object(
        &["when", "to"],
        [("when", words(Hazard::ALL.map(Hazard::keyword))), ("to", level())],
    );
    about(
        "How much a call could cost, and how much is too much.",
        object(
            &[],
            [
                ("escalate", about("What raises the risk.", list(escalation))),
                (
                    "block_at",
                    about("What is refused instead of asked.", words(["high", "medium", "none"])),
                ),
                (
                    "unknown",
                    about(
                        "What becomes at least of a command of which nobody knows what it does.",
                        words(["ask", "ask-each", "deny"]),
                    ),
                ),
            ],
        ),
    )
}

/// How much one run may do in all.
pub(super) fn budgets() -> Value {
    let least_one = |says| {
        let mut schema = whole(says, None);
        if let Some(map) = schema.as_object_mut() {
            map.insert("minimum".into(), 1.into());
        }
        schema
    };
    let run = object(
        &[],
        [
            ("calls", whole("Calls.", None)),
            ("wall", of("duration")),
            ("written", about("Bytes that it writes.", of("size"))),
            ("fetched", about("Bytes that it fetches.", of("size"))),
        ],
    );
    let loops = object(
        &[],
        [
            ("same_call", least_one("The same call.")),
            ("denied_in_a_row", least_one("Refusals in a row.")),
            ("denied_total", least_one("Refusals in all.")),
            ("then", words(["stop", "pause"])),
        ],
    );
    let attention = object(
        &["prompts", "per"],
        [
            ("prompts", whole("How many prompts a person may be shown.", None)),
            ("per", of("duration")),
            ("then", words(["pause"])),
        ],
    );
    let all = [("run", run), ("loops", loops), ("attention", attention)];
    about("How much one run may do in all.", object(&[], all))
}

/// What a prompt may offer beyond the call that it is about.
pub(super) fn grants() -> Value {
    let expire = object(
        &[],
        [
            ("uses", between("How often a grant answers.", limits::GRANT_USES_MAX)),
            ("after", about("How long it lives.", of("duration"))),
        ],
    );
    about(
        "What a prompt may offer beyond the call that it is about.",
        object(
            &[],
            [
                ("offer", about("The scopes.", list(words(GrantLifetime::KEYWORDS)))),
                ("default", about("What is chosen first.", words(["once"]))),
                ("expire", about("When a grant ends, whichever comes first.", expire)),
                ("always", about("What `always` writes.", words(["policy-patch"]))),
            ],
        ),
    )
}

/// How calls of several parts are decided.
pub(super) fn composites() -> Value {
    let says = "How calls of several parts are decided. Pipelines and lists are always judged as a \
                whole before any of it runs.";
    let preflight =
        about("Asks once for what is known of a plan, before its first step.", words(["union"]));
    let overflow = about("What becomes of a call beyond that.", words(["ask"]));
    about(says, object(&[], [("preflight", preflight), ("overflow", overflow)]))
}

fn between(says: &str, most: u64) -> Value {
    let mut schema = whole(says, Some(most));
    if let Some(map) = schema.as_object_mut() {
        map.insert("minimum".into(), 1.into());
    }
    schema
}

/// What the author says is decided on which calls.
pub(super) fn tests(tools: Catalogue) -> Value {
    let calls: Vec<Value> = tools.0.iter().map(|tool| call(tool)).collect();
    let codes = Code::ALL.iter().map(|code| code.slug());
    let mut expect = object(
        &[],
        [
            ("decision", of("word")),
            ("rule", text("The rule that decides.")),
            ("code", about("The kind of decision.", words(codes))),
            ("risk", level()),
            ("capabilities", list(words(Capability::ALL.map(Capability::name)))),
        ],
    );
    if let Some(map) = expect.as_object_mut() {
        map.insert("minProperties".into(), 1.into());
    }
    let test = object(
        &["name", "call", "expect"],
        [
            ("name", text("What the test shows.")),
            ("profiles", about("The profiles that it holds under.", list(text("A profile.")))),
            ("call", json!({ "anyOf": calls })),
            ("expect", about("What is decided.", expect)),
        ],
    );
    about("Calls with what is decided on them; `capsule policy test` asks for each.", list(test))
}

fn call(tool: &'static ToolSignature) -> Value {
    let names = super::tools::names(tool);
    let needs_none = tool.arguments.iter().all(|own| !own.required);
    let required: &[&str] = if needs_none { &["tool"] } else { &["tool", "args"] };
    object(
        required,
        [
            ("tool", about("The tool.", words(names))),
            ("args", about(tool.about, arguments(tool))),
            ("resolves", about("What the host's name resolves to.", list(text("An address.")))),
        ],
    )
}
