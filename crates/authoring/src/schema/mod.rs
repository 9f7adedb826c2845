//! The policy language as JSON Schema, for editors.
//!
//! Words, capabilities, effects and tools come from the tables that the parser reads by. The keys of
//! every section are compared with what the parser says that it knows, by a test over the binary.

mod calls;
mod commands;
mod parts;
mod risk;
mod secrets;
mod tools;

use capsule_base::limits;
use capsule_command::specs::Effect;
use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::{CheckpointRule, LayerKind};
use capsule_core::tool::Catalogue;
use capsule_policy::builtin_names;
use serde_json::{Value, json};

use calls::names;
use parts::{
    definition_ref, enum_schema, integer_schema_from, list, object, text, with_description,
};

/// The schema (draft 2020-12) of policies over these tools.
#[must_use]
pub fn policy_schema(tools: Catalogue) -> Value {
    let mut schema = policy(tools);
    let about = "What may be called, by whom it is carried out, and with which arguments. What is \
                 not named is denied.";
    if let Some(map) = schema.as_object_mut() {
        map.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        map.insert("title".into(), "Capsule policy, version 1".into());
        map.insert("description".into(), about.into());
        map.insert("$defs".into(), definitions(tools));
    }
    schema
}

fn policy(tools: Catalogue) -> Value {
    object(
        &["version"],
        [
            ("version", json!({ "enum": [1, "1"], "description": "The version of the language." })),
            ("name", text("What the policy is called.")),
            ("description", text("What the policy is for.")),
            ("extends", extends()),
            (
                "layer",
                with_description(
                    "Whose layer it is, where it is no policy and tightens others.",
                    enum_schema(LayerKind::WORDS),
                ),
            ),
            ("workspace", workspace()),
            ("default", with_description("What is not named is denied.", enum_schema(["deny"]))),
            (
                "never",
                with_description(
                    "What no profile, grant, flag or approval lifts.",
                    list(definition_ref("never")),
                ),
            ),
            ("lift", with_description("Rules of the base policy that are dropped.", list(lift()))),
            ("tools", definition_ref("tools")),
            (
                "profile",
                text(
                    "The profile where none is chosen: supervised, autonomous, readonly, or one of `profiles`.",
                ),
            ),
            ("profiles", risk::profiles()),
            ("capabilities", risk::capabilities()),
            ("risk", risk::risk()),
            ("budgets", risk::budgets()),
            ("grants", risk::grants()),
            ("composites", risk::composites()),
            ("tests", risk::tests(tools)),
            ("sandbox", sandbox()),
            (
                "toolchains",
                with_description(
                    "Toolchains and package caches that commands see read-only: names such as `rustup`, \
                     directories as absolute paths or with `~/`, or `well-known` for all that are there.",
                    list(text("A name, a directory, or `well-known`.")),
                ),
            ),
            ("secrets", secrets::secrets()),
            ("redaction", secrets::redaction()),
            ("audit", audit()),
        ],
    )
}

/// The schema of the policy that a policy extends.
fn extends() -> Value {
    let names: Vec<String> = builtin_names()
        .flat_map(|name| [format!("builtin:{name}"), format!("builtin:{name}@1")])
        .collect();
    let extends = names.iter().map(String::as_str);
    with_description(
        "The policy that this one is laid over; `builtin:base` always applies.",
        enum_schema(extends),
    )
}

/// The schema of the workspace.
fn workspace() -> Value {
    with_description(
        "The folder that tools work in.",
        object(&["root"], [("root", text("The folder, relative to the policy's own place."))]),
    )
}

fn lift() -> Value {
    object(
        &["id", "because"],
        [("id", definition_ref("id")), ("because", text("Why the rule does not hold here."))],
    )
}

fn change_limits() -> Value {
    let most = Some(limits::STAGED_PATHS_MAX);
    let bytes = with_description("The bytes of all changed files.", definition_ref("size"));
    let keys =
        [("paths", integer_schema_from(1, "The number of changed paths.", most)), ("bytes", bytes)];
    with_description("How much a run may change in a staged workspace.", object(&[], keys))
}

/// A list alone is short for `{ allow: [..] }`.
fn hosts() -> Value {
    let rules = || {
        list(text(
            "A host: `registry.example.org`, `*.example.org:8443`; port 443 if none is named.",
        ))
    };
    let others = enum_schema(["ask", "ask-each", "deny"]);
    let others =
        with_description("The word for hosts that no list names; `deny` by default.", others);
    let [allow, ask, ask_each, deny] =
        ["allow", "ask", "ask-each", "deny"].map(|word| (word, rules()));
    let long = object(&[], [allow, ask, ask_each, deny, ("others", others)]);
    json!({
        "description": "The hosts that commands reach through the proxy.",
        "anyOf": [rules(), long]
    })
}

fn loopback() -> Value {
    let port = integer_schema_from(1, "A port.", Some(u64::from(u16::MAX)));
    let ports = json!({ "type": "array", "items": port, "maxItems": limits::LOOPBACK_PORTS });
    let about = "Ports of the host's own loopback that commands reach at the same ports.";
    with_description(about, object(&[], [("connect", ports)]))
}

fn network() -> Value {
    let access = || enum_schema(["none", "proxy"]);
    let long = object(
        &[],
        [
            ("shell.run", access()),
            ("hosts", hosts()),
            ("private_ips", definition_ref("privateIps")),
            ("loopback", loopback()),
        ],
    );
    json!({ "description": "What commands may reach.", "anyOf": [access(), long] })
}

fn sandbox() -> Value {
    with_description(
        "What commands are confined to.",
        object(
            &[],
            [
                (
                    "require",
                    with_description(
                        "No sandbox, no run; with `false`, rules that name `proc.unconfined` are asked.",
                        json!({ "enum": [true, "true", false, "false"] }),
                    ),
                ),
                (
                    "floor",
                    with_description(
                        "The weakest sandbox that will do.",
                        enum_schema(["namespaces", "landlock"]),
                    ),
                ),
                (
                    "level",
                    with_description(
                        "What commands may change that no rule bounds: nothing, or the workspace.",
                        enum_schema(["strict", "workspace-write"]),
                    ),
                ),
                ("changes", change_limits()),
                (
                    "mount",
                    with_description(
                        "Where commands see the workspace: at its own path, or at `/workspace`.",
                        enum_schema(["same", "workspace"]),
                    ),
                ),
                ("network", network()),
                ("tmp", with_description("Where `/tmp` is.", enum_schema(["private"]))),
                (
                    "workspace",
                    with_description(
                        "What becomes of changes that commands make; `read-only` binds them alone, and not `fs.write`, \
                         `fs.edit` and `fs.delete`.",
                        enum_schema(["staged", "read-only", "direct"]),
                    ),
                ),
            ],
        ),
    )
}

fn audit() -> Value {
    with_description(
        "What is kept.",
        object(
            &[],
            [
                (
                    "payloads",
                    with_description(
                        "All, or only digests: such a run cannot be replayed.",
                        enum_schema(["full", "digest"]),
                    ),
                ),
                ("checkpoint", checkpoint()),
                (
                    "anchors",
                    with_description(
                        "Files that every checkpoint is added to: `file:` and a path from the root or \
                         the home folder on.",
                        json!({
                            "type": "array",
                            "maxItems": limits::ANCHORS,
                            "items": { "type": "string", "pattern": "^file:(/|~/)" },
                        }),
                    ),
                ),
                (
                    "erase_payloads_after",
                    with_description(
                        "When payloads are erased: so long after their run ended, when a later run ends \
                         or somebody asks. Events and hashes stay.",
                        json!({ "anyOf": [enum_schema(["never"]), definition_ref("duration")] }),
                    ),
                ),
            ],
        ),
    )
}

fn checkpoint() -> Value {
    let every = json!({
        "type": "integer",
        "minimum": 1,
        "maximum": limits::CHECKPOINT_EVERY,
        "description": "Each time that the record has so many events more.",
    });
    let on = with_description("And at these moments.", list(enum_schema(CheckpointRule::MOMENTS)));
    with_description("When the record is signed.", object(&[], [("every", every), ("on", on)]))
}

fn never() -> Value {
    let effects = || list(enum_schema(Effect::ALL.map(Effect::name)));
    let command_line = json!({
        "type": "array",
        "minItems": 1,
        "items": { "anyOf": [
            text("A word; `...` stands for any words, and an option may stand anywhere."),
            definition_ref("wordPattern")
        ] }
    });
    object(
        &["id"],
        [
            ("id", definition_ref("id")),
            (
                "capabilities",
                with_description(
                    "The powers that are forbidden on the paths; all of them if left out.",
                    list(enum_schema(Capability::WORDS)),
                ),
            ),
            ("paths", with_description("The paths that are protected.", definition_ref("globs"))),
            (
                "except",
                with_description("Carve-outs from this rule's own paths.", definition_ref("globs")),
            ),
            ("tool", with_description("The tool that the rule is about.", definition_ref("tool"))),
            (
                "argv",
                with_description(
                    "Command lines that are forbidden, by their program and words.",
                    list(command_line),
                ),
            ),
            ("effects", with_description("What no command may do.", effects())),
            (
                "into",
                with_description(
                    "What a program does that may not be fed by such a command.",
                    effects(),
                ),
            ),
            ("because", definition_ref("because")),
            ("suggest", definition_ref("suggest")),
        ],
    )
}

fn word_pattern(required: &str) -> Value {
    object(
        &[required],
        [
            ("any", with_description("One of these words.", list(text("A word.")))),
            ("regex", text("An expression that must match a word as a whole.")),
        ],
    )
}

fn definitions(tools: Catalogue) -> Value {
    let units = limits::UNIT_DIGITS;
    let mut value = json!({
        "word": {
            "description": "allow: it may run · ask: a person is asked, and a grant may answer · ask-each: a person is asked every time · deny: it may not run",
            "enum": Verdict::WORDS
        },
        "id": {
            "description": "The rule's name: letters, digits, `-`, `_` and `.`",
            "type": ["string", "number", "boolean"],
            "pattern": "^[A-Za-z0-9._-]+$"
        },
        "because": text("Why, for whoever is refused."),
        "suggest": text("What to do instead."),
        "glob": {
            "description": "A pattern for paths, relative to the workspace: `docs/**`, `~/.ssh/**`.",
            "type": ["string", "number", "boolean"]
        },
        "globs": { "type": "array", "items": { "$ref": "#/$defs/glob" } },
        "size": {
            "description": "A size with its unit: 50KB, 256KiB, 1MiB.",
            "type": "string",
            "pattern": format!("^[0-9]{{1,{units}}}(B|KB|MB|GB|KiB|MiB|GiB)$")
        },
        "duration": {
            "description": "A duration with its unit: 500ms, 10s, 5m, 4h.",
            "type": "string",
            "pattern": format!("^[0-9]{{1,{units}}}(ms|s|m|h|d)$")
        },
        "wordPattern": { "anyOf": [word_pattern("any"), word_pattern("regex")] },
        "regex": object(
            &["regex"],
            [("regex", text("An expression that must match a word as a whole."))],
        ),
        "never": never(),
        "tool": enum_schema(tools.0.iter().flat_map(|tool| names(tool))),
    });
    if let Some(map) = value.as_object_mut() {
        map.extend(tools::definitions(tools));
        map.extend(commands::definitions());
    }
    value
}
