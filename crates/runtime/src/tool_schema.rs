//! The arguments of tools as JSON Schema, for models.

use capsule_core::tool::{ArgumentKind, ToolSignature};
use serde_json::{Map, Value, json};

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTool {
    /// The name that the model calls it by.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The schema of its arguments (draft 2020-12).
    pub parameters: Value,
}

impl From<&ToolSignature> for ModelTool {
    fn from(tool: &ToolSignature) -> Self {
        let property = |argument: &capsule_core::tool::ToolArgument| {
            let mut schema = value_schema(argument.kind);
            if let Some(map) = schema.as_object_mut() {
                map.insert("description".into(), argument.about.into());
            }
            (argument.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = tool.arguments.iter().map(property).collect();
        let required = tool.arguments.iter().filter(|argument| argument.required);
        let required: Vec<&str> = required.map(|argument| argument.name).collect();
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        });
        Self { name: tool.model_name, about: tool.about, parameters }
    }
}

/// The schema of a value that [`ToolSignature::check`] takes for an argument.
pub(crate) fn value_schema(kind: ArgumentKind) -> Value {
    match kind {
        ArgumentKind::Number => json!({ "type": "integer", "minimum": 0 }),
        ArgumentKind::Flag => json!({ "type": "boolean" }),
        ArgumentKind::Size => json!({ "type": ["integer", "string"] }),
        ArgumentKind::OneOf(words) => json!({ "type": "string", "enum": words }),
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
        | ArgumentKind::Time => json!({ "type": "string" }),
    }
}
