//! What a step must give: results and decisions, so that a plan is also a test of its policy.

use std::fmt;

use capsule_base::code::Code;
use capsule_core::capability::Capabilities;
use serde_json::Value;

/// What a step must give.
#[derive(Clone, Debug, Default)]
pub struct StepExpectation {
    /// It must be denied.
    pub denied: Option<ExpectedDenial>,
    /// It must fail, with this code or any.
    pub failed: Option<Option<Code>>,
    /// What the call must need.
    pub capabilities: Option<Capabilities>,
    /// What the fields of the result must be.
    pub fields: Vec<(String, FieldMatcher)>,
}

/// How a step must be denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedDenial {
    /// In any way.
    Any,
    /// By this rule, or with this code.
    By(String),
}

impl ExpectedDenial {
    /// Whether a denial is the one that is meant.
    #[must_use]
    pub fn matches(&self, rule: Option<&str>, code: Code) -> bool {
        match self {
            Self::Any => true,
            Self::By(name) => rule == Some(name) || code.slug() == name,
        }
    }
}

impl fmt::Display for ExpectedDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any denial"),
            Self::By(name) => write!(f, "`{name}`"),
        }
    }
}

/// What a field must be. Every part that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct FieldMatcher {
    /// Exactly this.
    pub equals: Option<Value>,
    /// At most so long (text in bytes, lists in items) or so large.
    pub max: Option<u64>,
    /// At least so long or so large.
    pub min: Option<u64>,
    /// Whether it holds anything.
    pub not_empty: Option<bool>,
    /// What kind of value it is.
    pub kind: Option<&'static str>,
    /// Text that is in it, or an item.
    pub contains: Option<Value>,
    /// What its text matches somewhere.
    pub matches: Option<regex::Regex>,
}

/// The kinds that a value can be expected to be.
pub(crate) const VALUE_KINDS: &[&str] = &["string", "number", "boolean", "array", "object", "null"];

impl FieldMatcher {
    /// Says what does not hold; none if everything does.
    #[must_use]
    pub fn mismatch(&self, value: &Value) -> Option<String> {
        if let Some(wanted) = self.equals.as_ref().filter(|wanted| *wanted != value) {
            return Some(format!("is {}, not {}", short_text(value), short_text(wanted)));
        }
        if let Some(kind) = self.kind.filter(|kind| *kind != kind_of(value)) {
            return Some(format!("is a value of kind {}, not {kind}", kind_of(value)));
        }
        if self.not_empty == Some(true) && super::evaluate::is_empty(value) {
            return Some("is empty".into());
        }
        if self.not_empty == Some(false) && !super::evaluate::is_empty(value) {
            return Some("is not empty".into());
        }
        let extent = extent(value);
        if let Some(most) = self.max
            && extent.is_none_or(|extent| extent > most)
        {
            return Some(format!("is more than {most}: {}", extent_text(extent)));
        }
        if let Some(least) = self.min
            && extent.is_none_or(|extent| extent < least)
        {
            return Some(format!("is less than {least}: {}", extent_text(extent)));
        }
        if let Some(part) = self.contains.as_ref().filter(|part| !holds_part(value, part)) {
            return Some(format!("does not contain {}", short_text(part)));
        }
        if let Some(regex) = &self.matches
            && !value.as_str().is_some_and(|text| regex.is_match(text))
        {
            return Some(format!("does not match `{regex}`"));
        }
        None
    }
}

fn extent_text(extent: Option<u64>) -> String {
    extent.map_or_else(|| "it has no size".into(), |extent| extent.to_string())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn extent(value: &Value) -> Option<u64> {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        Value::Number(number) => return number.as_u64(),
        Value::Null | Value::Bool(_) => return None,
    };
    u64::try_from(length).ok()
}

fn holds_part(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(items), part) => items.contains(part),
        _ => false,
    }
}

/// A value short enough for a message.
fn short_text(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matchers_say_what_does_not_hold() {
        let check = |matcher: FieldMatcher, value: Value, good: bool| {
            assert_eq!(matcher.mismatch(&value).is_none(), good, "{matcher:?} {value}");
        };
        let default = FieldMatcher::default;
        check(FieldMatcher { equals: Some(json!(0)), ..default() }, json!(0), true);
        check(FieldMatcher { equals: Some(json!(0)), ..default() }, json!(1), false);
        check(FieldMatcher { max: Some(3), ..default() }, json!("abcd"), false);
        check(FieldMatcher { max: Some(4), min: Some(4), ..default() }, json!("abcd"), true);
        check(FieldMatcher { max: Some(4), ..default() }, json!(null), false);
        check(FieldMatcher { not_empty: Some(true), ..default() }, json!(" \n"), false);
        check(FieldMatcher { kind: Some("array"), ..default() }, json!([]), true);
        check(FieldMatcher { kind: Some("array"), ..default() }, json!({}), false);
        check(FieldMatcher { contains: Some(json!("b")), ..default() }, json!("abc"), true);
        check(FieldMatcher { contains: Some(json!("b")), ..default() }, json!(["b"]), true);
        check(FieldMatcher { contains: Some(json!("d")), ..default() }, json!("abc"), false);
        let regex = regex::Regex::new("^a.c$").ok();
        check(FieldMatcher { matches: regex, ..default() }, json!("abc"), true);
    }
}
