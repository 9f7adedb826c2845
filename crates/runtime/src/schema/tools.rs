//! What a policy can say about each tool, by what the tool works on.

use capsule_core::action::WriteMode;
use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::limits;
use capsule_core::tool::{ArgumentKind, Catalogue, ToolArgument, ToolShape, ToolSignature};
use serde_json::{Map, Value, json};

use crate::schema::{about, list, object, of, text, whole, words};

/// Every name that a tool goes by.
pub(super) fn names(tool: &'static ToolSignature) -> Vec<&'static str> {
    [tool.id, tool.model_name].into_iter().chain(tool.aliases.iter().copied()).collect()
}

/// The tools, and what each shape of tool adds.
pub(super) fn definitions(tools: Catalogue) -> Map<String, Value> {
    let mut own = Map::new();
    let mut properties = Map::new();
    for tool in tools.0 {
        own.insert(format!("tool.{}", tool.id), one(tool));
        for name in names(tool) {
            properties.insert(name.to_owned(), of(&format!("tool.{}", tool.id)));
        }
    }
    let all = json!({
        "description": "What may be called at all; a tool that is not named is denied.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false
    });
    own.insert("tools".into(), all);
    own.insert("paths".into(), paths());
    own.insert("urlRule".into(), url_rule());
    own.insert("redirects".into(), redirects());
    own.insert("privateIps".into(), private_ips());
    own
}

/// A word alone is short for `{ decision: .. }`.
fn one(tool: &ToolSignature) -> Value {
    let mut keys = Map::new();
    let mut put = |key: &str, schema: Value| drop(keys.insert(key.to_owned(), schema));
    put("decision", of("word"));
    put("because", of("because"));
    put("suggest", of("suggest"));
    put("quota", quota(tool));
    put("output", output());
    put("examples", examples(tool));
    match tool.shape {
        ToolShape::Files => {
            put("limits", file_limits(tool));
            put("paths", of("paths"));
            put("hidden", hidden());
            put("symlinks", symlinks());
            put("rules", list(path_rule(tool)));
            if tool.id == "fs.write" {
                let each = WriteMode::ALL.map(|mode| (mode.keyword(), of("word")));
                put("modes", about("A word for each way of writing.", object(&[], each)));
            }
            put("undo", about("There is always an undo record.", words(["always"])));
        }
        ToolShape::Fetch => {
            put("limits", fetch_limits());
            put("urls", urls());
            put("domains", about("Hosts that are open over https.", list(text("A host."))));
            put("private_ips", of("privateIps"));
            put("redirects", of("redirects"));
        }
        ToolShape::Exec => {
            put("limits", of("processLimits"));
            super::commands::keys(tool, &mut put);
        }
        ToolShape::Repository => put("limits", git_limits(tool)),
        ToolShape::Test => {
            put("limits", of("processLimits"));
            super::commands::test_keys(&mut put);
        }
    }
    let long = json!({ "type": "object", "properties": keys, "additionalProperties": false });
    match tool.shape {
        // Without the command there is nothing to run.
        ToolShape::Test => {
            let mut long = long;
            if let Some(map) = long.as_object_mut() {
                map.insert("required".into(), json!(["command"]));
            }
            about(tool.about, long)
        }
        _ => json!({ "description": tool.about, "anyOf": [of("word"), long] }),
    }
}

fn git_limits(tool: &ToolSignature) -> Value {
    let takes = tool.argument("limit").is_some();
    let mut keys = Map::new();
    keys.insert("timeout".into(), of("duration"));
    if tool.results.iter().any(|own| own.name == "text") {
        keys.insert("bytes".into(), about("The most bytes of a call.", of("size")));
    } else {
        keys.insert("results".into(), whole("Where a call names no limit.", None));
    }
    if takes {
        keys.insert("results_max".into(), whole("The most of any call.", None));
    }
    json!({ "type": "object", "properties": keys, "additionalProperties": false })
}

fn quota(tool: &ToolSignature) -> Value {
    let mut quota = object(
        &[],
        [("calls", whole("Calls.", None)), ("bytes", of("size")), ("wall", of("duration"))],
    );
    if let (ToolShape::Fetch, Some(properties)) =
        (tool.shape, quota.pointer_mut("/properties").and_then(Value::as_object_mut))
    {
        properties.insert("per_host".into(), whole("Calls to one host.", None));
    }
    about("How much one run may use the tool.", quota)
}

fn hidden() -> Value {
    about("Names that begin with a dot.", words(["deny", "allow"]))
}

fn symlinks() -> Value {
    about("Links: those that stay inside, or none.", words(["inside", "deny"]))
}

/// A list alone is short for `{ allow: [..] }`.
fn paths() -> Value {
    let long = object(
        &[],
        [
            ("allow", about("What is open; everything if left out.", of("globs"))),
            ("deny", about("What is not.", of("globs"))),
            ("hidden", hidden()),
            ("symlinks", symlinks()),
        ],
    );
    json!({ "description": "The paths that are open.", "anyOf": [of("globs"), long] })
}

fn path_rule(tool: &ToolSignature) -> Value {
    about(
        "A rule for some of the paths, with a word of its own.",
        object(
            &["id", "paths"],
            [
                ("id", of("id")),
                ("paths", of("globs")),
                ("decision", of("word")),
                ("because", of("because")),
                ("suggest", of("suggest")),
                ("examples", examples(tool)),
            ],
        ),
    )
}

fn file_limits(tool: &ToolSignature) -> Value {
    let has = |capability| tool.capabilities.contains(&capability);
    let mut keys = Map::new();
    let mut put = |key: &str, schema: Value| drop(keys.insert(key.to_owned(), schema));
    put("timeout", of("duration"));
    match () {
        () if has(Capability::FsWrite) => {
            put("bytes_max", about("The most of any call.", of("size")));
        }
        () if has(Capability::FsRead) => {
            put("bytes", about("Where a call names no limit.", of("size")));
            put("bytes_max", about("The most of any call.", of("size")));
            put("binary", about("Binary files come as a preview.", words(["preview"])));
        }
        () if has(Capability::FsMeta) => {
            put("results", whole("Where a call names no limit.", None));
            put("results_max", whole("The most of any call.", None));
        }
        () => {}
    }
    json!({ "type": "object", "properties": keys, "additionalProperties": false })
}

fn fetch_limits() -> Value {
    object(
        &[],
        [
            ("bytes_max", about("The most bytes over the wire.", of("size"))),
            ("inflated_max", about("The most bytes after decompression.", of("size"))),
            ("timeout", of("duration")),
        ],
    )
}

/// A list alone is short for `{ allow: [..] }`.
fn urls() -> Value {
    let rules = || list(of("urlRule"));
    let long = object(
        &[],
        [
            ("allow", about("The addresses that are open.", rules())),
            ("deny", about("Those that are not.", rules())),
            ("private_ips", of("privateIps")),
            ("redirects", of("redirects")),
        ],
    );
    json!({ "description": "The addresses that are open.", "anyOf": [rules(), long] })
}

fn url_rule() -> Value {
    let url = "An address: `https://*.example.org/docs/**`.";
    let long = object(
        &["url"],
        [
            ("id", of("id")),
            ("url", text(url)),
            ("output", output()),
            ("decision", of("word")),
            ("because", of("because")),
            ("suggest", of("suggest")),
        ],
    );
    json!({ "anyOf": [text(url), long] })
}

fn output() -> Value {
    about(
        "Nobody vouches for the results: arguments made of them are tainted. What came from elsewhere always is.",
        words(["untrusted"]),
    )
}

fn redirects() -> Value {
    object(
        &[],
        [
            ("max", whole("How many are followed.", Some(limits::REDIRECTS_MAX))),
            ("cross_origin", about("To another origin that is open.", of("word"))),
        ],
    )
}

fn private_ips() -> Value {
    let open = list(text("An address or a range: `10.0.0.0/8`."));
    json!({
        "description": "Private addresses: none, or these.",
        "anyOf": [words(["deny"]), object(&[], [("allow", open)])]
    })
}

/// What the author says is decided on which calls.
pub(super) fn examples(tool: &ToolSignature) -> Value {
    let calls = || list(call(tool));
    let [allow, ask, ask_each, deny] = Verdict::KEYWORDS;
    about(
        "Calls with what is decided on them; `capsule policy check` asks for each.",
        object(
            &[],
            [
                (allow, calls()),
                (ask, calls()),
                (ask_each, calls()),
                (deny, calls()),
                ("no_match", about("Calls that this rule is not asked about.", calls())),
            ],
        ),
    )
}

/// The arguments of a tool.
pub(super) fn arguments(tool: &ToolSignature) -> Value {
    let properties: Map<String, Value> =
        tool.arguments.iter().map(|own| (own.name.to_owned(), argument(own))).collect();
    let required: Vec<&str> =
        tool.arguments.iter().filter(|own| own.required).map(|own| own.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn call(tool: &ToolSignature) -> Value {
    let long = arguments(tool);
    match tool.shape {
        ToolShape::Exec => json!({ "anyOf": [
            {
                "type": ["string", "number", "boolean"],
                "pattern": "^[^'\"\\\\]*$",
                "description": "A command line."
            },
            { "type": "array", "items": { "type": "string" }, "description": "Its words." },
            long
        ] }),
        ToolShape::Files | ToolShape::Fetch | ToolShape::Repository | ToolShape::Test => long,
    }
}

fn argument(argument: &ToolArgument) -> Value {
    let schema = match argument.kind {
        ArgumentKind::Number => json!({ "type": "integer", "minimum": 0 }),
        ArgumentKind::Size => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] })
        }
        ArgumentKind::OneOf(words) => json!({ "enum": words }),
        ArgumentKind::Flag => json!({ "type": "boolean" }),
        ArgumentKind::Argv | ArgumentKind::Paths => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        ArgumentKind::Headers => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        ArgumentKind::Path
        | ArgumentKind::Url
        | ArgumentKind::Text
        | ArgumentKind::Name
        | ArgumentKind::Duration
        | ArgumentKind::Time => {
            json!({ "type": "string" })
        }
    };
    about(argument.about, schema)
}
