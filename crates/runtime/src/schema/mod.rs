//! The policy language as JSON Schema, for editors.
//!
//! Words, capabilities, effects and tools come from the tables that the parser reads by. The keys of
//! every section are compared with what the parser says that it knows, by a test over the binary.

mod commands;
mod secrets;
mod stakes;
mod tools;

use capsule_core::capability::Capability;
use capsule_core::command_specs::Effect;
use capsule_core::decision::Verdict;
use capsule_core::limits;
use capsule_core::policy::{CheckpointRule, LayerKind, builtin_names};
use capsule_core::tool::Catalogue;
use serde_json::{Map, Value, json};

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

/// An object with these keys and no other.
fn object<const N: usize>(required: &[&str], keys: [(&str, Value); N]) -> Value {
    let properties: Map<String, Value> =
        keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// A schema with what it is for.
fn about(text: &str, mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".into(), text.into());
    }
    schema
}

/// What another part of the schema describes.
fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

fn text(about: &str) -> Value {
    json!({ "type": ["string", "number", "boolean"], "description": about })
}

fn whole(about: &str, most: Option<u64>) -> Value {
    whole_from(0, about, most)
}

fn whole_from(least: u64, about: &str, most: Option<u64>) -> Value {
    let mut schema = json!({ "type": "integer", "minimum": least, "description": about });
    if let (Some(map), Some(most)) = (schema.as_object_mut(), most) {
        map.insert("maximum".into(), most.into());
    }
    schema
}

fn policy(tools: Catalogue) -> Value {
    let names: Vec<String> = builtin_names()
        .flat_map(|name| [format!("builtin:{name}"), format!("builtin:{name}@1")])
        .collect();
    let extends = names.iter().map(String::as_str);
    object(
        &["version"],
        [
            ("version", json!({ "enum": [1, "1"], "description": "The version of the language." })),
            ("name", text("What the policy is called.")),
            ("description", text("What the policy is for.")),
            (
                "extends",
                about(
                    "The policy that this one is laid over; `builtin:base` always applies.",
                    words(extends),
                ),
            ),
            (
                "layer",
                about(
                    "Whose layer it is, where it is no policy and tightens others.",
                    words(LayerKind::ALL.map(LayerKind::keyword)),
                ),
            ),
            (
                "workspace",
                about(
                    "The folder that tools work in.",
                    object(
                        &["root"],
                        [("root", text("The folder, relative to the policy's own place."))],
                    ),
                ),
            ),
            ("default", about("What is not named is denied.", words(["deny"]))),
            ("never", about("What no profile, grant, flag or approval lifts.", list(of("never")))),
            ("lift", about("Rules of the base policy that are dropped.", list(lift()))),
            ("tools", of("tools")),
            (
                "profile",
                text(
                    "The profile where none is chosen: supervised, autonomous, readonly, or one of `profiles`.",
                ),
            ),
            ("profiles", stakes::profiles()),
            ("capabilities", stakes::capabilities()),
            ("risk", stakes::risk()),
            ("budgets", stakes::budgets()),
            ("grants", stakes::grants()),
            ("composites", stakes::composites()),
            ("tests", stakes::tests(tools)),
            ("sandbox", sandbox()),
            ("secrets", secrets::secrets()),
            ("redaction", secrets::redaction()),
            ("audit", audit()),
        ],
    )
}

fn lift() -> Value {
    object(
        &["id", "because"],
        [("id", of("id")), ("because", text("Why the rule does not hold here."))],
    )
}

fn sandbox() -> Value {
    let network = object(&[], [("shell.run", words(["none"]))]);
    about(
        "What commands are confined to.",
        object(
            &[],
            [
                (
                    "require",
                    about(
                        "No sandbox, no run; with `false`, rules that name `proc.unconfined` are asked.",
                        json!({ "enum": [true, "true", false, "false"] }),
                    ),
                ),
                (
                    "floor",
                    about("The weakest sandbox that will do.", words(["namespaces", "landlock"])),
                ),
                (
                    "level",
                    about(
                        "What commands may change that no rule bounds: nothing, or the workspace.",
                        words(["strict", "workspace-write"]),
                    ),
                ),
                (
                    "network",
                    json!({
                        "description": "What commands may reach.",
                        "anyOf": [words(["none"]), network]
                    }),
                ),
                ("tmp", about("Where `/tmp` is.", words(["private"]))),
                (
                    "workspace",
                    about(
                        "What becomes of changes that commands make; `read-only` binds them alone, and not `fs.write`, \
                         `fs.edit` and `fs.delete`.",
                        words(["staged", "read-only", "direct"]),
                    ),
                ),
            ],
        ),
    )
}

fn audit() -> Value {
    about(
        "What is kept.",
        object(
            &[],
            [
                (
                    "payloads",
                    about(
                        "All, or only digests: such a run cannot be replayed.",
                        words(["full", "digest"]),
                    ),
                ),
                ("checkpoint", checkpoint()),
                (
                    "anchors",
                    about(
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
                    about(
                        "When payloads are erased: so long after their run ended, when a later run ends \
                         or somebody asks. Events and hashes stay.",
                        json!({ "anyOf": [words(["never"]), of("duration")] }),
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
    let on = about("And at these moments.", list(words(CheckpointRule::MOMENTS)));
    about("When the record is signed.", object(&[], [("every", every), ("on", on)]))
}

fn never() -> Value {
    let effects = || list(words(Effect::ALL.map(Effect::name)));
    let command_line = json!({
        "type": "array",
        "minItems": 1,
        "items": { "anyOf": [
            text("A word; `...` stands for any words, and an option may stand anywhere."),
            of("wordPattern")
        ] }
    });
    object(
        &["id"],
        [
            ("id", of("id")),
            (
                "capabilities",
                about(
                    "The powers that are forbidden on the paths; all of them if left out.",
                    list(words(Capability::ALL.map(Capability::name))),
                ),
            ),
            ("paths", about("The paths that are protected.", of("globs"))),
            ("except", about("Carve-outs from this rule's own paths.", of("globs"))),
            ("tool", about("The tool that the rule is about.", of("tool"))),
            (
                "argv",
                about(
                    "Command lines that are forbidden, by their program and words.",
                    list(command_line),
                ),
            ),
            ("effects", about("What no command may do.", effects())),
            (
                "into",
                about("What a program does that may not be fed by such a command.", effects()),
            ),
            ("because", of("because")),
            ("suggest", of("suggest")),
        ],
    )
}

fn word_pattern(required: &str) -> Value {
    object(
        &[required],
        [
            ("any", about("One of these words.", list(text("A word.")))),
            ("regex", text("An expression that must match a word as a whole.")),
        ],
    )
}

fn definitions(tools: Catalogue) -> Value {
    let units = limits::UNIT_DIGITS;
    let mut own = json!({
        "word": {
            "description": "allow: it may run · ask: a person is asked, and a grant may answer · ask-each: a person is asked every time · deny: it may not run",
            "enum": Verdict::KEYWORDS
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
        "tool": words(tools.0.iter().flat_map(|tool| tools::names(tool))),
    });
    if let Some(map) = own.as_object_mut() {
        map.extend(tools::definitions(tools));
        map.extend(commands::definitions());
    }
    own
}
