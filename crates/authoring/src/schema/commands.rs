//! What a policy can say about programs.

use capsule_base::limits;
use capsule_command::specs::Effect;
use capsule_core::capability::Capability;
use capsule_core::tool::ToolSignature;
use serde_json::{Map, Value, json};

use super::calls::examples;
use super::parts::{
    definition_ref, enum_schema, integer_schema_from, list, object, text, with_description,
};

/// The keys that a tool has that runs programs.
pub(super) fn command_keys(tool: &ToolSignature, put: &mut impl FnMut(&str, Value)) {
    put(
        "form",
        with_description(
            "Lists of words, or also command lines as text.",
            enum_schema(["argv", "command"]),
        ),
    );
    put("executables", executables(tool));
    let effects: Map<String, Value> = Effect::ALL
        .into_iter()
        .map(|effect| {
            let says = format!("A command that {}.", effect.description());
            (effect.name().to_owned(), with_description(&says, definition_ref("word")))
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
        with_description(
            "Words that no command line may hold.",
            list(json!({ "anyOf": [text("The whole word."), definition_ref("regex")] })),
        ),
    );
    put(
        "cwd",
        with_description(
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
    put("command", with_description("The command of the tests, as a list of words.", words(1)));
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
const VARIABLE_PATTERN: &str = "^[A-Za-z0-9_]+$";

fn environment() -> Value {
    let variables = |pattern: &str| {
        let kinds = ["string", "number", "boolean"];
        list(json!({ "type": kinds, "pattern": pattern }))
    };
    with_description(
        "What programs find in their environment.",
        object(
            &[],
            [
                (
                    "pass",
                    with_description(
                        "Variables of the user's own that are passed on.",
                        variables(VARIABLE_PATTERN),
                    ),
                ),
                (
                    "set",
                    json!({
                        "description": "Variables with their values.",
                        "type": "object",
                        "propertyNames": { "pattern": VARIABLE_PATTERN },
                        "additionalProperties": text("The value.")
                    }),
                ),
                (
                    "accept",
                    with_description(
                        "Variables that a command line may set: `NAME`, or `NAME=VALUE` for this value alone, where a `*` at the end stands for letters, digits, `.`, `_` and `-`.",
                        variables("^[A-Za-z0-9_]+(=[^*]*\\*?)?$"),
                    ),
                ),
            ],
        ),
    )
}

/// A program goes by its plain name.
const PROGRAM_NAME_PATTERN: &str = "^[^-/* ][^/* ]*$";

/// A list alone is short for a map with empty bodies.
fn executables(tool: &ToolSignature) -> Value {
    let name = json!({ "type": ["string", "number", "boolean"], "pattern": PROGRAM_NAME_PATTERN });
    json!({
        "description": "The programs that may run.",
        "anyOf": [
            list(name),
            {
                "type": "object",
                "propertyNames": { "pattern": PROGRAM_NAME_PATTERN },
                "additionalProperties": { "anyOf": [definition_ref("word"), program(tool)] }
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
            (
                "global_flags",
                with_description("Options before a subcommand.", definition_ref("flags")),
            ),
            ("limits", definition_ref("processLimits")),
            ("decision", definition_ref("word")),
            ("flags", definition_ref("flags")),
            ("subcommands", definition_ref("subcommands")),
            ("because", definition_ref("because")),
            ("suggest", definition_ref("suggest")),
            ("examples", examples(tool)),
            ("capabilities", definition_ref("powers")),
            ("reads", definition_ref("reads")),
            ("writes", definition_ref("writes")),
        ],
    )
}

/// The schema of the options of a command.
fn flags() -> Value {
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
    with_description(
        "Options that may be used.",
        object(
            &[],
            [
                ("allow", with_description("Only these.", flag())),
                ("deny", with_description("None of these.", flag())),
            ],
        ),
    )
}

/// The schema of the subcommands of a command.
fn subcommands() -> Value {
    let command = object(
        &[],
        [
            ("decision", definition_ref("word")),
            ("flags", definition_ref("flags")),
            ("subcommands", definition_ref("subcommands")),
            ("because", definition_ref("because")),
            ("suggest", definition_ref("suggest")),
            ("capabilities", definition_ref("powers")),
            ("reads", definition_ref("reads")),
            ("writes", definition_ref("writes")),
        ],
    );
    json!({
        "description": "Subcommands by name; `*` is any other.",
        "type": "object",
        "additionalProperties": { "anyOf": [definition_ref("word"), command] }
    })
}

pub(super) fn definitions() -> Map<String, Value> {
    let item = [
        ("flags", flags()),
        ("subcommands", subcommands()),
        (
            "powers",
            with_description(
                "What it needs besides what its words show; it gives nothing, but with `proc.unconfined` it may run where there is no sandbox.",
                list(enum_schema(Capability::WORDS)),
            ),
        ),
        (
            "reads",
            with_description("What the program sees of the workspace.", definition_ref("globs")),
        ),
        ("writes", with_description("What the program may change.", definition_ref("globs"))),
        ("processLimits", process_limits()),
    ];
    item.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn process_limits() -> Value {
    with_description(
        "The bounds of a command.",
        object(
            &[],
            [
                (
                    "timeout",
                    with_description("Where a call names none.", definition_ref("duration")),
                ),
                (
                    "timeout_max",
                    with_description(
                        "The longest that a call may ask for.",
                        definition_ref("duration"),
                    ),
                ),
                (
                    "stdout_max",
                    with_description("Standard output that is kept.", definition_ref("size")),
                ),
                (
                    "stderr_max",
                    with_description("Standard error that is kept.", definition_ref("size")),
                ),
                (
                    "processes_max",
                    integer_schema_from(
                        1,
                        "Processes and threads of the whole tree.",
                        Some(limits::PROCESSES_MAX),
                    ),
                ),
                (
                    "cpu",
                    with_description(
                        "Processor time of the whole tree, rounded up to seconds.",
                        definition_ref("duration"),
                    ),
                ),
                (
                    "memory",
                    with_description(
                        "Memory of the whole tree, 1 MB or more.",
                        definition_ref("size"),
                    ),
                ),
                (
                    "tmp",
                    with_description("The size of the private `/tmp`.", definition_ref("size")),
                ),
                (
                    "file",
                    with_description("The largest file that it may write.", definition_ref("size")),
                ),
            ],
        ),
    )
}
