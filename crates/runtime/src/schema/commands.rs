//! What a policy can say about programs.

use capsule_core::capability::Capability;
use capsule_core::command_specs::Effect;
use capsule_core::limits;
use capsule_core::tool::ToolSignature;
use serde_json::{Map, Value, json};

use crate::schema::{about, list, object, of, text, whole_from, words};

/// The keys that a tool has that runs programs.
pub(super) fn keys(tool: &ToolSignature, put: &mut impl FnMut(&str, Value)) {
    put(
        "form",
        about("Lists of words, or also command lines as text.", words(["argv", "command"])),
    );
    put("executables", executables(tool));
    let effects: Map<String, Value> = Effect::ALL
        .into_iter()
        .map(|effect| {
            let says = format!("A command that {}.", effect.description());
            (effect.name().to_owned(), about(&says, of("word")))
        })
        .collect();
    put(
        "effects",
        json!({
            "description": "Words for what programs do that no rule names; what has none is denied.",
            "type": "object",
            "properties": effects,
            "additionalProperties": false
        }),
    );
    put(
        "denied_tokens",
        about(
            "Words that no command line may hold.",
            list(json!({ "anyOf": [text("The whole word."), of("regex")] })),
        ),
    );
    put(
        "cwd",
        about(
            "The folders that commands may run in: `.`, and patterns for those beneath.",
            list(text("A folder.")),
        ),
    );
    put("env", environment());
}

/// The keys of the tool that runs the project's tests.
pub(super) fn test_keys(put: &mut impl FnMut(&str, Value)) {
    let words =
        |least: u64| json!({ "type": "array", "minItems": least, "items": text("A word.") });
    put("command", about("The command of the tests, as a list of words.", words(1)));
    put("cwd", text("The folder of the workspace to run in."));
    let truth = json!({ "enum": [true, false, "true", "false"] });
    // One of the two is enough.
    let not = || json!({ "not": {} });
    put(
        "filter",
        json!({
            "description": "Whether a call may name the tests to run, and how that is said.",
            "anyOf": [
                object(&["append"], [("append", truth), ("args", not())]),
                object(&["args"], [("append", not()), ("args", words(1))])
            ]
        }),
    );
    put("env", environment());
}

/// The name of a variable.
const VARIABLE: &str = "^[A-Za-z0-9_]+$";

fn environment() -> Value {
    let variables = |pattern: &str| {
        let kinds = ["string", "number", "boolean"];
        list(json!({ "type": kinds, "pattern": pattern }))
    };
    about(
        "What programs find in their environment.",
        object(
            &[],
            [
                (
                    "pass",
                    about("Variables of the user's own that are passed on.", variables(VARIABLE)),
                ),
                (
                    "set",
                    json!({
                        "description": "Variables with their values.",
                        "type": "object",
                        "propertyNames": { "pattern": VARIABLE },
                        "additionalProperties": text("The value.")
                    }),
                ),
                (
                    "accept",
                    about(
                        "Variables that a command line may set: `NAME`, or `NAME=VALUE` for this value alone, where a `*` at the end stands for letters, digits, `.`, `_` and `-`.",
                        variables("^[A-Za-z0-9_]+(=[^*]*\\*?)?$"),
                    ),
                ),
            ],
        ),
    )
}

/// A program goes by its plain name.
const NAME: &str = "^[^-/* ][^/* ]*$";

/// A list alone is short for a map with empty bodies.
fn executables(tool: &ToolSignature) -> Value {
    let name = json!({ "type": ["string", "number", "boolean"], "pattern": NAME });
    json!({
        "description": "The programs that may run.",
        "anyOf": [
            list(name),
            {
                "type": "object",
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "anyOf": [of("word"), program(tool)] }
            }
        ]
    })
}

fn program(tool: &ToolSignature) -> Value {
    object(
        &[],
        [
            (
                "path",
                json!({
                    "description": "Where the program must be.",
                    "type": "string",
                    "pattern": "^/"
                }),
            ),
            (
                "sha256",
                json!({
                    "description": "The digest that the program must have.",
                    "type": "string",
                    "pattern": "^[0-9a-f]{64}$"
                }),
            ),
            ("global_flags", about("Options before a subcommand.", of("flags"))),
            ("limits", of("processLimits")),
            ("decision", of("word")),
            ("flags", of("flags")),
            ("subcommands", of("subcommands")),
            ("because", of("because")),
            ("suggest", of("suggest")),
            ("examples", super::tools::examples(tool)),
            ("capabilities", of("powers")),
            ("reads", of("reads")),
            ("writes", of("writes")),
        ],
    )
}

pub(super) fn definitions() -> Map<String, Value> {
    // YAML reads `-1` as a number.
    let flag = || {
        list(json!({
            "description": "An option without its value.",
            "anyOf": [
                { "type": "string", "pattern": "^-[^= ]*$" },
                { "type": "integer", "maximum": 0 }
            ]
        }))
    };
    let command = object(
        &[],
        [
            ("decision", of("word")),
            ("flags", of("flags")),
            ("subcommands", of("subcommands")),
            ("because", of("because")),
            ("suggest", of("suggest")),
            ("capabilities", of("powers")),
            ("reads", of("reads")),
            ("writes", of("writes")),
        ],
    );
    let own = [
        (
            "flags",
            about(
                "Options that may be used.",
                object(
                    &[],
                    [
                        ("allow", about("Only these.", flag())),
                        ("deny", about("None of these.", flag())),
                    ],
                ),
            ),
        ),
        (
            "subcommands",
            json!({
                "description": "Subcommands by name; `*` is any other.",
                "type": "object",
                "additionalProperties": { "anyOf": [of("word"), command] }
            }),
        ),
        (
            "powers",
            about(
                "What it needs besides what its words show; it gives nothing, but with `proc.unconfined` it may run where there is no sandbox.",
                list(words(Capability::ALL.map(Capability::name))),
            ),
        ),
        ("reads", about("What the program sees of the workspace.", of("globs"))),
        ("writes", about("What the program may change.", of("globs"))),
        ("processLimits", process_limits()),
    ];
    own.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn process_limits() -> Value {
    about(
        "The bounds of a command.",
        object(
            &[],
            [
                ("timeout", about("Where a call names none.", of("duration"))),
                ("timeout_max", about("The longest that a call may ask for.", of("duration"))),
                ("stdout_max", about("Standard output that is kept.", of("size"))),
                ("stderr_max", about("Standard error that is kept.", of("size"))),
                (
                    "processes_max",
                    whole_from(
                        1,
                        "Processes and threads of the whole tree.",
                        Some(limits::PROCESSES_MAX),
                    ),
                ),
                (
                    "cpu",
                    about(
                        "Processor time of the whole tree, rounded up to seconds.",
                        of("duration"),
                    ),
                ),
                ("memory", about("Memory of the whole tree, 1 MB or more.", of("size"))),
            ],
        ),
    )
}
