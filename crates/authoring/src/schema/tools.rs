//! What a policy can say about each tool, by what the tool works on.

use capsule_base::limits;
use capsule_core::action::WriteMode;
use capsule_core::capability::Capability;
use capsule_core::tool::{Catalogue, ToolShape, ToolSignature};
use serde_json::{Map, Value, json};

use super::calls::{examples, names};
use super::commands::{command_keys, test_keys};
use super::parts::{
    definition_ref, enum_schema, integer_schema, list, object, text, with_description,
};

/// The tools, and what each shape of tool adds.
pub(super) fn definitions(tools: Catalogue) -> Map<String, Value> {
    let mut map = Map::new();
    let mut properties = Map::new();
    for tool in tools.0 {
        map.insert(format!("tool.{}", tool.id), tool_schema(tool));
        for name in names(tool) {
            properties.insert(name.to_owned(), definition_ref(&format!("tool.{}", tool.id)));
        }
    }
    let all = json!({
        "description": "What may be called at all; a tool that is not named is denied.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false
    });
    map.insert("tools".into(), all);
    map.insert("paths".into(), paths());
    map.insert("urlRule".into(), url_rule());
    map.insert("redirects".into(), redirects());
    map.insert("privateIps".into(), private_ips());
    map
}

/// A word alone is short for `{ decision: .. }`.
fn tool_schema(tool: &ToolSignature) -> Value {
    let mut keys = Map::new();
    let mut put = |key: &str, schema: Value| drop(keys.insert(key.to_owned(), schema));
    put("decision", definition_ref("word"));
    put("because", definition_ref("because"));
    put("suggest", definition_ref("suggest"));
    put("quota", quota(tool));
    put("output", output());
    put("examples", examples(tool));
    match tool.shape {
        ToolShape::Files => file_keys(tool, &mut put),
        ToolShape::Fetch => {
            put("limits", fetch_limits());
            put("urls", urls());
            put(
                "domains",
                with_description("Hosts that are open over https.", list(text("A host."))),
            );
            put("private_ips", definition_ref("privateIps"));
            put("redirects", definition_ref("redirects"));
        }
        ToolShape::Exec => {
            put("limits", definition_ref("processLimits"));
            command_keys(tool, &mut put);
        }
        ToolShape::Repository => put("limits", git_limits(tool)),
        ToolShape::User => {}
        ToolShape::Test => {
            put("limits", definition_ref("processLimits"));
            test_keys(&mut put);
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
            with_description(tool.about, long)
        }
        _ => json!({ "description": tool.about, "anyOf": [definition_ref("word"), long] }),
    }
}

/// Puts the keys of a tool that works on files.
fn file_keys(tool: &ToolSignature, put: &mut impl FnMut(&str, Value)) {
    put("limits", file_limits(tool));
    put("paths", definition_ref("paths"));
    put("hidden", hidden());
    put("symlinks", symlinks());
    put("rules", list(path_rule(tool)));
    if tool.id == "fs.write" {
        let each = WriteMode::ALL.map(|mode| (mode.keyword(), definition_ref("word")));
        put("modes", with_description("A word for each way of writing.", object(&[], each)));
    }
    put("undo", with_description("There is always an undo record.", enum_schema(["always"])));
}

fn git_limits(tool: &ToolSignature) -> Value {
    let takes = tool.argument("limit").is_some();
    let mut keys = Map::new();
    keys.insert("timeout".into(), definition_ref("duration"));
    if tool.results.iter().any(|result| result.name == "text") {
        keys.insert(
            "bytes".into(),
            with_description("The most bytes of a call.", definition_ref("size")),
        );
    } else {
        keys.insert("results".into(), integer_schema("Where a call names no limit.", None));
    }
    if takes {
        keys.insert("results_max".into(), integer_schema("The most of any call.", None));
    }
    json!({ "type": "object", "properties": keys, "additionalProperties": false })
}

fn quota(tool: &ToolSignature) -> Value {
    let mut quota = object(
        &[],
        [
            ("calls", integer_schema("Calls.", None)),
            ("bytes", definition_ref("size")),
            ("wall", definition_ref("duration")),
        ],
    );
    if let (ToolShape::Fetch | ToolShape::Exec, Some(properties)) =
        (tool.shape, quota.pointer_mut("/properties").and_then(Value::as_object_mut))
    {
        properties.insert(
            "per_host".into(),
            integer_schema("Calls, or connections of commands, to one host.", None),
        );
    }
    with_description("How much one run may use the tool.", quota)
}

fn hidden() -> Value {
    with_description("Names that begin with a dot.", enum_schema(["deny", "allow"]))
}

fn symlinks() -> Value {
    with_description("Links: those that stay inside, or none.", enum_schema(["inside", "deny"]))
}

/// A list alone is short for `{ allow: [..] }`.
fn paths() -> Value {
    let long = object(
        &[],
        [
            (
                "allow",
                with_description("What is open; everything if left out.", definition_ref("globs")),
            ),
            ("deny", with_description("What is not.", definition_ref("globs"))),
            ("hidden", hidden()),
            ("symlinks", symlinks()),
        ],
    );
    json!({ "description": "The paths that are open.", "anyOf": [definition_ref("globs"), long] })
}

fn path_rule(tool: &ToolSignature) -> Value {
    with_description(
        "A rule for some of the paths, with a word of its own.",
        object(
            &["id", "paths"],
            [
                ("id", definition_ref("id")),
                ("paths", definition_ref("globs")),
                ("decision", definition_ref("word")),
                ("because", definition_ref("because")),
                ("suggest", definition_ref("suggest")),
                ("examples", examples(tool)),
            ],
        ),
    )
}

fn file_limits(tool: &ToolSignature) -> Value {
    let has = |capability| tool.capabilities.contains(&capability);
    let mut keys = Map::new();
    let mut put = |key: &str, schema: Value| drop(keys.insert(key.to_owned(), schema));
    put("timeout", definition_ref("duration"));
    match () {
        () if has(Capability::FsWrite) => {
            put("bytes_max", with_description("The most of any call.", definition_ref("size")));
        }
        () if tool.gives_list() => {
            put("results", integer_schema("Where a call names no limit.", None));
            put("results_max", integer_schema("The most of any call.", None));
        }
        () if has(Capability::FsRead) => {
            put("bytes", with_description("Where a call names no limit.", definition_ref("size")));
            put("bytes_max", with_description("The most of any call.", definition_ref("size")));
            put(
                "binary",
                with_description("Binary files come as a preview.", enum_schema(["preview"])),
            );
        }
        () => {}
    }
    json!({ "type": "object", "properties": keys, "additionalProperties": false })
}

fn fetch_limits() -> Value {
    object(
        &[],
        [
            (
                "bytes_max",
                with_description("The most bytes over the wire.", definition_ref("size")),
            ),
            (
                "inflated_max",
                with_description("The most bytes after decompression.", definition_ref("size")),
            ),
            ("timeout", definition_ref("duration")),
        ],
    )
}

/// A list alone is short for `{ allow: [..] }`.
fn urls() -> Value {
    let rules = || list(definition_ref("urlRule"));
    let long = object(
        &[],
        [
            ("allow", with_description("The addresses that are open.", rules())),
            ("deny", with_description("Those that are not.", rules())),
            ("private_ips", definition_ref("privateIps")),
            ("redirects", definition_ref("redirects")),
        ],
    );
    json!({ "description": "The addresses that are open.", "anyOf": [rules(), long] })
}

fn url_rule() -> Value {
    let url = "An address: `https://*.example.org/docs/**`.";
    let long = object(
        &["url"],
        [
            ("id", definition_ref("id")),
            ("url", text(url)),
            ("output", output()),
            ("decision", definition_ref("word")),
            ("because", definition_ref("because")),
            ("suggest", definition_ref("suggest")),
        ],
    );
    json!({ "anyOf": [text(url), long] })
}

fn output() -> Value {
    with_description(
        "Nobody vouches for the results: arguments made of them are tainted. What came from elsewhere always is.",
        enum_schema(["untrusted"]),
    )
}

fn redirects() -> Value {
    object(
        &[],
        [
            ("max", integer_schema("How many are followed.", Some(limits::REDIRECTS_MAX))),
            (
                "cross_origin",
                with_description("To another origin that is open.", definition_ref("word")),
            ),
        ],
    )
}

fn private_ips() -> Value {
    let open = list(text("An address or a range: `10.0.0.0/8`."));
    json!({
        "description": "Private addresses: none, or these.",
        "anyOf": [enum_schema(["deny"]), object(&[], [("allow", open)])]
    })
}
