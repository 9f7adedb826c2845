//! Forms that follow from a tool, from another table, or from a rule that one key alone has.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::specs::Effect;
use capsule_core::tool::{ToolShape, ToolSignature};
use capsule_policy::builtin_names;
use capsule_policy::language::{
    ANY_WORD, CALL, EXAMPLES, EXPECT, FILTER, LanguageSection, limit_keys, quota_keys,
};
use serde_json::{Map, Value, json};

use super::SchemaWriter;
use super::calls::{argument_map, call, names};
use super::parts::{closed_object, definition_ref, with, with_description};

impl SchemaWriter {
    /// The form by the name that the table has for it; none where a tool has no such key.
    pub(super) fn special(self, name: &str) -> Option<Value> {
        let units = limits::UNIT_DIGITS;
        Some(match name {
            "version" => json!({ "enum": [1, "1"] }),
            "extends" => {
                let names = builtin_names()
                    .flat_map(|name| [format!("builtin:{name}"), format!("builtin:{name}@1")]);
                json!({ "enum": names.collect::<Vec<_>>() })
            }
            "size" => {
                json!({ "type": "string", "pattern": format!("^[0-9]{{1,{units}}}(B|KB|MB|GB|KiB|MiB|GiB)$") })
            }
            "duration" => {
                json!({ "type": "string", "pattern": format!("^[0-9]{{1,{units}}}(ms|s|m|h|d)$") })
            }
            "dollars" => json!({
                "type": ["number", "string"],
                "minimum": 0,
                "pattern": r"^[0-9]{1,6}(\.[0-9]{1,6})?$",
            }),
            "effect" => json!({ "enum": Effect::ALL.map(Effect::name) }),
            "effects" => effects(),
            "code" => {
                json!({ "enum": Code::ALL.iter().map(|code| code.slug()).collect::<Vec<_>>() })
            }
            "flags" => flags(),
            "regexWord" => self.section(&LanguageSection { required: &["regex"], ..ANY_WORD }),
            "filter" => self.filter(),
            "expect" => with("minProperties", 1.into(), self.section(&EXPECT)),
            "examples" => self.section(&EXAMPLES),
            "call" => {
                let calls =
                    self.tools.0.iter().map(|tool| Self { tool: Some(tool), ..self }.call(tool));
                json!({ "anyOf": calls.collect::<Vec<_>>() })
            }
            "toolNames" => {
                let tools = self.tools.0.iter().copied();
                let tools = tools.filter(|tool| self.tool.is_none_or(|only| only.id == tool.id));
                json!({ "enum": tools.flat_map(names).collect::<Vec<_>>() })
            }
            _ => return self.of_tool(name),
        })
    }

    /// What only a tool has.
    fn of_tool(self, name: &str) -> Option<Value> {
        let tool = self.tool?;
        let limits = limit_keys(tool);
        match (name, tool.shape) {
            ("limits", ToolShape::Exec | ToolShape::Test) => Some(definition_ref("processLimits")),
            ("limits", _) if limits.is_empty() => None,
            ("limits", _) => Some(closed_object(self.properties(&limits))),
            ("quota", _) => Some(closed_object(self.properties(&quota_keys(tool)))),
            ("arguments", _) => Some(with_description(tool.about, argument_map(tool))),
            ("calls", _) => Some(json!({ "type": "array", "items": call(tool) })),
            _ => None,
        }
    }

    /// A call of a tool in a test.
    fn call(self, tool: &ToolSignature) -> Value {
        let needs_none = tool.arguments.iter().all(|argument| !argument.required);
        let required: &[&str] = if needs_none { &["tool"] } else { &["tool", "args"] };
        with("required", json!(required), self.section(&CALL))
    }

    /// One of the two keys is enough.
    fn filter(self) -> Value {
        let only = |name: &str| {
            let mut keys = self.properties(FILTER.keys);
            let others = keys.iter_mut().filter(|(key, _)| *key != name);
            others.for_each(|(_, value)| *value = json!({ "not": {} }));
            with("required", json!([name]), closed_object(keys))
        };
        json!({ "anyOf": [only("append"), only("args")] })
    }
}

/// A word for each of the things that commands can do.
fn effects() -> Value {
    let effect = |effect: Effect| {
        let says = format!("A command that {}.", effect.description());
        (effect.name().to_owned(), with_description(&says, definition_ref("word")))
    };
    closed_object(Effect::ALL.into_iter().map(effect).collect::<Map<_, _>>())
}

/// A list of options. YAML reads `-1` as a number.
fn flags() -> Value {
    let flag = json!({
        "description": "An option without its value.",
        "anyOf": [{ "type": "string", "pattern": "^-[^= ]*$" }, { "type": "integer", "maximum": 0 }]
    });
    json!({ "type": "array", "items": flag })
}
