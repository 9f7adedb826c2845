//! The parts of a JSON schema.

use serde_json::{Map, Value, json};

/// An object with these keys and no other.
pub(super) fn closed_object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// A schema with one word more.
pub(super) fn with(word: &str, value: Value, mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.insert(word.into(), value);
    }
    schema
}

/// A schema with what it is for, if that is said.
pub(super) fn with_description(text: &str, schema: Value) -> Value {
    if text.is_empty() { schema } else { with("description", text.into(), schema) }
}

/// What another part of the schema describes.
pub(super) fn definition_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
