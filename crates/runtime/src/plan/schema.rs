//! The plan language as JSON Schema, for editors.
//!
//! It is made of the same tables that the parser reads by, so the two cannot drift apart.

use capsule_base::yaml::KeySpec;
use capsule_core::capability::Capability;
use capsule_core::tool::{ArgumentKind, Catalogue, ToolArgument, ToolSignature};
use serde_json::{Map, Value, json};

use crate::plan::expect::VALUE_KINDS;
use crate::plan::parse::{
    DEFAULTS, EXPECT, FUNCTIONS, INPUT, INPUT_KINDS, MATCHER, ON_ERROR, RETRY, STEP, TOP,
};
use crate::tool_schema::value_schema;

/// The schema (draft 2020-12) of plans over these tools.
#[must_use]
pub fn plan_schema(tools: Catalogue) -> Value {
    let steps = json!({ "type": "array", "items": { "$ref": "#/$defs/step" } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Capsule plan, version 1",
        "description": "Steps that call tools, in order.",
        "oneOf": [steps, { "$ref": "#/$defs/plan" }],
        "$defs": {
            "plan": plan(),
            "step": step(tools),
            "input": input(),
            "onError": on_error(),
            "expect": expect(tools),
            "matcher": matcher(),
            "function": function(),
            "any": {
                "description": "A value, or a function that makes one.",
                "anyOf": [
                    { "$ref": "#/$defs/function" },
                    { "type": ["string", "number", "boolean", "null"] },
                    { "type": "array", "items": { "$ref": "#/$defs/any" } },
                    {
                        "type": "object",
                        "propertyNames": { "not": { "pattern": "^\\$" } },
                        "additionalProperties": { "$ref": "#/$defs/any" }
                    }
                ]
            },
            "duration": {
                "type": "string",
                "pattern": "^[0-9]+(ms|s|m|h|d)$",
                "description": "A number with its unit: 500ms, 10s, 5m."
            }
        }
    })
}

/// An object with these keys and no other.
fn object(keys: &[KeySpec], required: &[&str], property: impl Fn(&str) -> Value) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key.name))).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn plan() -> Value {
    object(TOP, &["steps"], |key| match key {
        "version" => json!({ "const": 1, "description": "The version of the language." }),
        "name" => text("What the plan is called."),
        "description" => text("What the plan is for."),
        "inputs" => json!({
            "type": "object",
            "description": "What the plan must be given, by name.",
            "additionalProperties": { "$ref": "#/$defs/input" }
        }),
        "defaults" => object(DEFAULTS, &[], |key| match key {
            "on_error" => json!({ "$ref": "#/$defs/onError" }),
            _ => json!({ "$ref": "#/$defs/duration" }),
        }),
        "outputs" => json!({
            "type": "object",
            "description": "What the plan gives, by name.",
            "additionalProperties": { "$ref": "#/$defs/any" }
        }),
        _ => json!({
            "type": "array",
            "description": "The steps, in the order in which they run.",
            "items": { "$ref": "#/$defs/step" }
        }),
    })
}

fn input() -> Value {
    object(INPUT, &[], |key| match key {
        "type" => json!({ "enum": INPUT_KINDS }),
        "pattern" => text("What the input must match as a whole."),
        "description" => text("What the input is for."),
        _ => json!({ "type": ["string", "integer", "boolean"] }),
    })
}

fn on_error() -> Value {
    json!({
        "description": "What to do when a step goes wrong.",
        "oneOf": [
            { "enum": ON_ERROR },
            object(RETRY, &["retry"], |key| match key {
                "retry" => json!({
                    "type": "integer",
                    "minimum": 0,
                    "maximum": capsule_base::limits::PLAN_RETRIES
                }),
                _ => json!({ "$ref": "#/$defs/duration" }),
            })
        ]
    })
}

fn step(tools: Catalogue) -> Value {
    let names: Vec<&str> = tools
        .0
        .iter()
        .flat_map(|tool| [tool.id, tool.model_name].into_iter().chain(tool.aliases.iter().copied()))
        .collect();
    let mut step = object(STEP, &["tool"], |key| match key {
        "id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        "name" => text("What the step is for."),
        "tool" => json!({ "enum": names, "description": "The tool to call." }),
        "expect" => json!({ "$ref": "#/$defs/expect" }),
        "on_error" => json!({ "$ref": "#/$defs/onError" }),
        "needs" => json!({ "type": "array", "items": { "type": "string" } }),
        "when" => json!({ "$ref": "#/$defs/any" }),
        "timeout" => json!({ "$ref": "#/$defs/duration" }),
        _ => json!({ "type": "object", "description": "The tool's arguments." }),
    });
    let per_tool: Vec<Value> = tools.0.iter().map(|tool| tool_step(tool)).collect();
    if let Some(map) = step.as_object_mut() {
        map.insert("allOf".into(), per_tool.into());
    }
    step
}

/// If a step calls this tool, its arguments are these.
fn tool_step(tool: &ToolSignature) -> Value {
    let names: Vec<&str> =
        [tool.id, tool.model_name].into_iter().chain(tool.aliases.iter().copied()).collect();
    let properties: Map<String, Value> = tool
        .arguments
        .iter()
        .map(|argument| (argument.name.to_owned(), argument_schema(argument)))
        .collect();
    let required: Vec<&str> = tool
        .arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name)
        .collect();
    json!({
        "if": { "properties": { "tool": { "enum": names } } },
        "then": { "properties": { "args": {
            "description": tool.about,
            "properties": properties,
            "required": required,
            "additionalProperties": false
        } } }
    })
}

fn argument_schema(argument: &ToolArgument) -> Value {
    let literal = match argument.kind {
        ArgumentKind::Number | ArgumentKind::Flag | ArgumentKind::Size | ArgumentKind::OneOf(_) => {
            value_schema(argument.kind)
        }
        ArgumentKind::Argv | ArgumentKind::Paths => json!({ "type": "array", "items": { "anyOf": [
            { "type": ["string", "number", "boolean"] }, { "$ref": "#/$defs/function" }
        ] } }),
        ArgumentKind::Headers => json!({ "type": "object" }),
        _ => json!({ "type": ["string", "number", "boolean"] }),
    };
    json!({ "description": argument.about, "anyOf": [literal, { "$ref": "#/$defs/function" }] })
}

fn expect(tools: Catalogue) -> Value {
    let mut properties = Map::new();
    let fields = tools.0.iter().flat_map(|tool| tool.results);
    for field in fields {
        properties.insert(
            field.name.to_owned(),
            json!({ "description": field.about, "$ref": "#/$defs/matcher" }),
        );
    }
    for name in EXPECT {
        let schema = match *name {
            "denied" => json!({
                "description": "The rule or code that must deny the step, or true for any.",
                "type": ["string", "boolean"]
            }),
            "failed" => json!({
                "description": "The code that the step must fail with, or true for any.",
                "type": ["string", "boolean"]
            }),
            "capabilities" => json!({
                "type": "array",
                "items": { "enum": Capability::WORDS }
            }),
            _ => json!({ "$ref": "#/$defs/matcher" }),
        };
        properties.insert((*name).to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn matcher() -> Value {
    let constraints = object(MATCHER, &[], |key| match key {
        "max" | "min" => json!({ "type": ["integer", "string"] }),
        "not_empty" => json!({ "type": "boolean" }),
        "type" => json!({ "enum": VALUE_KINDS }),
        "matches" => text("A regular expression."),
        _ => json!({}),
    });
    json!({
        "anyOf": [constraints, { "type": ["string", "number", "boolean", "null", "array"] }]
    })
}

fn function() -> Value {
    let any = || json!({ "$ref": "#/$defs/any" });
    let several = || json!({ "type": "array", "items": any() });
    let named = || json!({ "type": "object", "additionalProperties": any() });
    let one = |name: &str| {
        let inner = match name {
            "$ref" => json!({
                "type": "string",
                "pattern": "^(inputs\\.[A-Za-z0-9_-]+|steps\\.[A-Za-z0-9_-]+(\\.[^.]+)+)$"
            }),
            "$concat" | "$default" => several(),
            "$url" => json!({
                "type": "object",
                "properties": { "base": any(), "query": named() },
                "required": ["base"],
                "additionalProperties": false
            }),
            "$template" => json!({
                "type": "object",
                "properties": { "text": any(), "vars": named() },
                "required": ["text"],
                "additionalProperties": false
            }),
            _ => any(),
        };
        let mut properties = Map::new();
        properties.insert(name.to_owned(), inner);
        json!({
            "type": "object",
            "properties": properties,
            "required": [name],
            "additionalProperties": false
        })
    };
    json!({ "oneOf": FUNCTIONS.iter().map(|name| one(name)).collect::<Vec<Value>>() })
}
