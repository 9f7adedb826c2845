//! The parts of a JSON schema.

use serde_json::{Map, Value, json};

/// An object with these keys and no other.
pub(super) fn object<const N: usize>(required: &[&str], keys: [(&str, Value); N]) -> Value {
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
pub(super) fn with_description(text: &str, mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".into(), text.into());
    }
    schema
}

/// What another part of the schema describes.
pub(super) fn definition_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

pub(super) fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn enum_schema<'w>(words: impl IntoIterator<Item = &'w str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

pub(super) fn text(about: &str) -> Value {
    json!({ "type": ["string", "number", "boolean"], "description": about })
}

pub(super) fn integer_schema(about: &str, most: Option<u64>) -> Value {
    integer_schema_from(0, about, most)
}

pub(super) fn integer_schema_from(least: u64, about: &str, most: Option<u64>) -> Value {
    let mut schema = json!({ "type": "integer", "minimum": least, "description": about });
    if let (Some(map), Some(most)) = (schema.as_object_mut(), most) {
        map.insert("maximum".into(), most.into());
    }
    schema
}
