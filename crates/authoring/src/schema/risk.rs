//! What a policy can say besides its rules: profiles, risk, budgets, and tests of itself.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::approval::GrantLifetime;
use capsule_core::capability::Capability;
use capsule_core::policy::{Hazard, Profile};
use capsule_core::risk::Risk;
use capsule_core::tool::{Catalogue, ToolSignature};
use serde_json::{Map, Value, json};

use super::calls::{arguments, names};
use super::parts::{
    definition_ref, enum_schema, integer_schema, list, object, text, with_description,
};

fn level() -> Value {
    enum_schema(Risk::WORDS)
}

/// A value for each capability, and for more names where there are any.
fn by_capability(more: &[&str], value: &Value) -> Value {
    let names = Capability::WORDS;
    let properties: Map<String, Value> = names
        .into_iter()
        .chain(more.iter().copied())
        .map(|name| (name.to_owned(), value.clone()))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The profiles that a policy defines.
pub(super) fn profiles() -> Value {
    let requires = object(
        &[],
        [
            ("sandbox", enum_schema(["enforced"])),
            ("workspace", enum_schema(["disposable"])),
            ("isolated", enum_schema(["yes"])),
        ],
    );
    let profile = object(
        &["decide"],
        [
            (
                "decide",
                with_description(
                    "A word for each capability; `*` stands for all others.",
                    by_capability(&[Profile::WILDCARD], &definition_ref("word")),
                ),
            ),
            (
                "unattended",
                with_description(
                    "What a question becomes with nobody there.",
                    enum_schema(["deny", "fail", "wait"]),
                ),
            ),
            ("requires", with_description("Without this, the run does not start.", requires)),
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
    let value = object(
        &[],
        [
            ("risk", with_description("The least risk of what needs it.", level())),
            ("label", text("What it is, for people.")),
        ],
    );
    with_description(
        "The wording and the least risk of each capability.",
        by_capability(&[], &value),
    )
}

/// What raises the risk, and where it ends.
pub(super) fn risk() -> Value {
    let escalation =
        object(&["when", "to"], [("when", enum_schema(Hazard::WORDS)), ("to", level())]);
    with_description(
        "How much a call could cost, and how much is too much.",
        object(
            &[],
            [
                ("escalate", with_description("What raises the risk.", list(escalation))),
                (
                    "block_at",
                    with_description(
                        "What is refused instead of asked.",
                        enum_schema(["high", "medium", "none"]),
                    ),
                ),
                (
                    "unknown",
                    with_description(
                        "What becomes at least of a command of which nobody knows what it does.",
                        enum_schema(["ask", "ask-each", "deny"]),
                    ),
                ),
            ],
        ),
    )
}

/// How much one run may do in all.
pub(super) fn budgets() -> Value {
    let least_one = |says| {
        let mut schema = integer_schema(says, None);
        if let Some(map) = schema.as_object_mut() {
            map.insert("minimum".into(), 1.into());
        }
        schema
    };
    let run = object(
        &[],
        [
            ("calls", integer_schema("Calls.", None)),
            ("wall", definition_ref("duration")),
            ("written", with_description("Bytes that it writes.", definition_ref("size"))),
            ("fetched", with_description("Bytes that it fetches.", definition_ref("size"))),
            ("llm_tokens", integer_schema("Tokens that models read and write.", None)),
            ("llm_cost_usd", dollars_schema()),
        ],
    );
    let loops = object(
        &[],
        [
            ("same_call", least_one("The same call.")),
            ("denied_in_a_row", least_one("Refusals in a row.")),
            ("denied_total", least_one("Refusals in all.")),
            ("then", enum_schema(["stop", "pause"])),
        ],
    );
    let attention = object(
        &["prompts", "per"],
        [
            ("prompts", integer_schema("How many prompts a person may be shown.", None)),
            ("per", definition_ref("duration")),
            ("then", enum_schema(["pause"])),
        ],
    );
    let all = [("run", run), ("loops", loops), ("attention", attention)];
    with_description("How much one run may do in all.", object(&[], all))
}

/// The most that models may cost.
fn dollars_schema() -> Value {
    json!({
        "description": "What models may cost, in US dollars with at most six decimals.",
        "type": ["number", "string"],
        "minimum": 0,
        "pattern": r"^[0-9]{1,6}(\.[0-9]{1,6})?$",
    })
}

/// What a prompt may offer beyond the call that it is about.
pub(super) fn grants() -> Value {
    let expire = object(
        &[],
        [
            ("uses", range_schema("How often a grant answers.", limits::GRANT_USES_MAX)),
            ("after", with_description("How long it lives.", definition_ref("duration"))),
        ],
    );
    with_description(
        "What a prompt may offer beyond the call that it is about.",
        object(
            &[],
            [
                ("offer", with_description("The scopes.", list(enum_schema(GrantLifetime::WORDS)))),
                ("default", with_description("What is chosen first.", enum_schema(["once"]))),
                ("expire", with_description("When a grant ends, whichever comes first.", expire)),
                (
                    "always",
                    with_description("What `always` writes.", enum_schema(["policy-patch"])),
                ),
            ],
        ),
    )
}

/// How calls of several parts are decided.
pub(super) fn composites() -> Value {
    let says = "How calls of several parts are decided. Pipelines and lists are always judged as a \
                whole before any of it runs.";
    let preflight = with_description(
        "Asks once for what is known of a plan, before its first step.",
        enum_schema(["union"]),
    );
    let overflow = with_description("What becomes of a call beyond that.", enum_schema(["ask"]));
    with_description(says, object(&[], [("preflight", preflight), ("overflow", overflow)]))
}

fn range_schema(says: &str, most: u64) -> Value {
    let mut schema = integer_schema(says, Some(most));
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
            ("decision", definition_ref("word")),
            ("rule", text("The rule that decides.")),
            ("code", with_description("The kind of decision.", enum_schema(codes))),
            ("risk", level()),
            ("capabilities", list(enum_schema(Capability::WORDS))),
        ],
    );
    if let Some(map) = expect.as_object_mut() {
        map.insert("minProperties".into(), 1.into());
    }
    let test = object(
        &["name", "call", "expect"],
        [
            ("name", text("What the test shows.")),
            (
                "profiles",
                with_description("The profiles that it holds under.", list(text("A profile."))),
            ),
            ("call", json!({ "anyOf": calls })),
            ("expect", with_description("What is decided.", expect)),
        ],
    );
    with_description(
        "Calls with what is decided on them; `capsule policy test` asks for each.",
        list(test),
    )
}

fn call(tool: &'static ToolSignature) -> Value {
    let names = names(tool);
    let needs_none = tool.arguments.iter().all(|argument| !argument.required);
    let required: &[&str] = if needs_none { &["tool"] } else { &["tool", "args"] };
    object(
        required,
        [
            ("tool", with_description("The tool.", enum_schema(names))),
            ("args", with_description(tool.about, arguments(tool))),
            (
                "resolves",
                with_description("What the host's name resolves to.", list(text("An address."))),
            ),
        ],
    )
}
