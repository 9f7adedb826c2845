//! The calls that a policy names: its examples, and the arguments of a tool.

use capsule_core::tool::{ArgumentKind, ToolArgument, ToolShape, ToolSignature};
use serde_json::{Map, Value, json};

use super::parts::with_description;

/// Every name that a tool goes by.
pub(super) fn names(tool: &'static ToolSignature) -> Vec<&'static str> {
    [tool.id, tool.model_name].into_iter().chain(tool.aliases.iter().copied()).collect()
}

/// The arguments of a tool.
pub(super) fn argument_map(tool: &ToolSignature) -> Value {
    let properties: Map<String, Value> =
        tool.arguments.iter().map(|own| (own.name.to_owned(), argument(own))).collect();
    let required: Vec<&str> = tool
        .arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

pub(super) fn call(tool: &ToolSignature) -> Value {
    let long = argument_map(tool);
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
        ToolShape::Files
        | ToolShape::Fetch
        | ToolShape::Repository
        | ToolShape::Test
        | ToolShape::User => long,
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
    with_description(argument.about, schema)
}
