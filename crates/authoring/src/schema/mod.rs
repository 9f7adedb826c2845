//! The policy language as JSON Schema, for editors.
//!
//! Made of the table of keys that the parser reads by. What follows from the tools of this build is put in here.

mod calls;
mod parts;
mod special;

use capsule_core::tool::{Catalogue, ToolShape, ToolSignature};
use capsule_policy::language::{
    DEFINITIONS, LanguageKey, LanguageSection, POLICY, ValueShape, tool_keys,
};
use serde_json::{Map, Value, json};

use calls::names;
use parts::{closed_object, definition_ref, with, with_description};

/// The schema (draft 2020-12) of policies over these tools.
#[must_use]
pub fn policy_schema(tools: Catalogue) -> Value {
    let writer = SchemaWriter { tools, tool: None };
    let mut schema = writer.section(&POLICY);
    let about = "What may be called, by whom it is carried out, and with which arguments. What is \
                 not named is denied.";
    if let Some(map) = schema.as_object_mut() {
        map.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        map.insert("title".into(), "Capsule policy, version 1".into());
        map.insert("description".into(), about.into());
        map.insert("$defs".into(), writer.definitions());
    }
    schema
}

/// Writes schemas of values, as they are for all tools or for one.
#[derive(Clone, Copy)]
struct SchemaWriter {
    tools: Catalogue,
    tool: Option<&'static ToolSignature>,
}

impl SchemaWriter {
    /// The forms that other parts name, and what each tool has.
    fn definitions(self) -> Value {
        let mut map = self.properties(DEFINITIONS.keys);
        let mut named = Map::new();
        for tool in self.tools.0 {
            let id = format!("tool.{}", tool.id);
            named
                .extend(names(tool).into_iter().map(|name| (name.to_owned(), definition_ref(&id))));
            map.insert(id, Self { tool: Some(tool), ..self }.tool_schema(tool));
        }
        let about = "What may be called at all; a tool that is not named is denied.";
        map.insert("tools".into(), with_description(about, closed_object(named)));
        Value::Object(map)
    }

    /// A word alone is short for `{ decision: .. }`.
    fn tool_schema(self, tool: &ToolSignature) -> Value {
        let long = closed_object(self.properties(&tool_keys(tool)));
        // Without the command there is nothing to run.
        let schema = match tool.shape {
            ToolShape::Test => with("required", json!(["command"]), long),
            _ => json!({ "anyOf": [definition_ref("word"), long] }),
        };
        with_description(tool.about, schema)
    }

    /// A map with the keys of a section and no other.
    fn section(self, section: &LanguageSection) -> Value {
        let object = closed_object(self.properties(section.keys));
        match section.required {
            [] => object,
            required => with("required", json!(required), object),
        }
    }

    /// The values of keys, without those that no policy of a user may have.
    fn properties(self, keys: &[LanguageKey]) -> Map<String, Value> {
        let schema = |key: &LanguageKey| {
            let value = self.value(&key.value)?;
            Some((key.name.to_owned(), with_description(key.about, value)))
        };
        keys.iter().filter_map(schema).collect()
    }

    /// The schema of a value; none of a key that no policy of a user may have.
    fn value(self, shape: &ValueShape) -> Option<Value> {
        let kinds = ["string", "number", "boolean"];
        Some(match *shape {
            ValueShape::Internal | ValueShape::Unsupported => return None,
            ValueShape::Text(about) => with_description(about, json!({ "type": kinds })),
            ValueShape::Matching(pattern) => json!({ "type": kinds, "pattern": pattern }),
            ValueShape::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
            ValueShape::Words(words) => json!({ "enum": words }),
            ValueShape::Truth => json!({ "enum": [true, "true", false, "false"] }),
            ValueShape::Number(least, most) => {
                let schema = json!({ "type": "integer", "minimum": least });
                most.map_or(schema.clone(), |most| with("maximum", most.into(), schema))
            }
            ValueShape::List(item, about) => self.list(item, about)?,
            ValueShape::ListBetween(item, about, least, most) => {
                let list = self.list(item, about)?;
                let list = if least > 0 { with("minItems", least.into(), list) } else { list };
                most.map_or(list.clone(), |most| with("maxItems", most.into(), list))
            }
            ValueShape::Section(section) => self.section(section),
            ValueShape::Each(names, value) => {
                let value = self.value(value)?;
                let names = names.iter().copied().flatten();
                closed_object(names.map(|name| ((*name).to_owned(), value.clone())).collect())
            }
            ValueShape::Map(names, most, value) => {
                let map = json!({ "type": "object", "additionalProperties": self.value(value)? });
                let names = names.map(|names| json!({ "pattern": names }));
                let map = names.map_or(map.clone(), |names| with("propertyNames", names, map));
                most.map_or(map.clone(), |most| with("maxProperties", most.into(), map))
            }
            ValueShape::Either(short, long) => {
                json!({ "anyOf": [self.value(short)?, self.value(long)?] })
            }
            ValueShape::Named(name) => definition_ref(name),
            ValueShape::Special(name) => return self.special(name),
        })
    }

    fn list(self, item: &ValueShape, about: &str) -> Option<Value> {
        let item = with_description(about, self.value(item)?);
        Some(json!({ "type": "array", "items": item }))
    }
}
