//! Making values out of expressions, with what is known when a step is reached.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_redact::holds_mask;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::{Expression, ListItem, Reference, ValueSegment};

/// The result of a step, for those that refer to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    /// The fields; none if the step was skipped, denied or failed without a result.
    pub value: Option<Value>,
    /// Whether it was derived from content that nobody vouches for.
    pub tainted: bool,
    /// Whether it went as expected.
    #[serde(rename = "good")]
    pub succeeded: bool,
}

/// What is known when a step is reached.
#[derive(Clone, Debug, Default)]
pub struct EvalScope {
    /// The inputs.
    pub inputs: Map<String, Value>,
    /// The results of the steps so far.
    pub steps: BTreeMap<String, StepResult>,
}

/// A value, and whether it derives from content that nobody vouches for.
pub type TaintedValue = (Value, bool);

/// The fields that hold what may have been cut.
const TRUNCATABLE_FIELDS: &[&str] =
    &["text", "base64", "stdout", "stdout_tail", "stderr", "stderr_tail", "entries", "json"];

fn evaluation_problem(message: impl Into<String>) -> CodedError {
    CodedError::new(Code::PlanEvaluation, message)
}

impl EvalScope {
    /// Makes the value of an expression.
    ///
    /// # Errors
    /// [`Code::PlanRef`], [`Code::PlanRefTruncated`] or [`Code::PlanEvaluation`].
    pub fn evaluate(&self, expression: &Expression) -> Result<TaintedValue, CodedError> {
        match expression {
            Expression::Value(value) => Ok((value.clone(), false)),
            Expression::List(items) => self.evaluate_list(items),
            Expression::Map(entries) => self.evaluate_map(entries),
            Expression::Ref(reference) => self.resolve(reference),
            Expression::Concat(parts) => {
                let mut text = String::new();
                let mut tainted = false;
                for part in parts {
                    let (value, part_tainted) = self.evaluate(part)?;
                    tainted |= part_tainted;
                    text.push_str(&as_text(&value, "$concat")?);
                    if text.len() > limits::PLAN_TEXT_BYTES {
                        break;
                    }
                }
                bounded_text(text, tainted)
            }
            Expression::Url { base, query } => self.evaluate_url(base, query),
            Expression::Template { text, vars } => self.evaluate_template(text, vars),
            Expression::Lines(inner) => {
                let (value, tainted) = self.evaluate(inner)?;
                let text = as_text(&value, "$lines")?;
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                Ok((lines.map(Value::from).collect(), tainted))
            }
            Expression::Default(choices) => self.first_available(choices),
            Expression::NotEmpty(inner) => {
                let (value, tainted) = match self.evaluate(inner) {
                    Err(problem) if problem.code == Code::PlanRef => (Value::Null, false),
                    other => other?,
                };
                Ok((Value::Bool(!is_empty(&value)), tainted))
            }
        }
    }

    fn evaluate_list(&self, items: &[ListItem]) -> Result<TaintedValue, CodedError> {
        let mut list = Vec::new();
        let mut tainted = false;
        let mut room = EvalBudget::default();
        for item in items {
            match item {
                ListItem::Single(inner) => {
                    let (value, inner_tainted) = self.evaluate(inner)?;
                    tainted |= inner_tainted;
                    list.push(room.take(value)?);
                }
                ListItem::Spread(inner) => {
                    let (value, inner_tainted) = self.evaluate(inner)?;
                    tainted |= inner_tainted;
                    match room.take(value)? {
                        Value::Array(items) => list.extend(items),
                        _ => return Err(evaluation_problem("`$spread` needs a list")),
                    }
                }
            }
        }
        Ok((Value::Array(list), tainted))
    }

    fn evaluate_map(&self, entries: &[(String, Expression)]) -> Result<TaintedValue, CodedError> {
        let mut map = Map::new();
        let mut tainted = false;
        let mut room = EvalBudget::default();
        for (key, inner) in entries {
            let (value, inner_tainted) = self.evaluate(inner)?;
            tainted |= inner_tainted;
            map.insert(key.clone(), room.take(value)?);
        }
        Ok((Value::Object(map), tainted))
    }

    fn resolve(&self, reference: &Reference) -> Result<TaintedValue, CodedError> {
        let nothing = || CodedError::new(Code::PlanRef, format!("`{reference}` leads to nothing"));
        match reference {
            Reference::Input(name) => {
                let value = self.inputs.get(name).ok_or_else(nothing)?;
                Ok((value.clone(), false))
            }
            Reference::Step { id, path: way } => {
                let step = self.steps.get(id).ok_or_else(nothing)?;
                let result = step.value.as_ref().ok_or_else(nothing)?;
                if let Some(ValueSegment::Key(field)) = way.first()
                    && TRUNCATABLE_FIELDS.contains(&field.as_str())
                    && result.get("truncated") == Some(&Value::Bool(true))
                {
                    let message = format!("`{reference}` leads to what was cut");
                    return Err(CodedError::new(Code::PlanRefTruncated, message)
                        .with_suggestion("raise the tool's limit, or ask for less"));
                }
                let value = way.iter().try_fold(result, |value, segment| match segment {
                    ValueSegment::Key(key) => value.get(key),
                    ValueSegment::Index(index) => value.get(index),
                });
                Ok((value.ok_or_else(nothing)?.clone(), step.tainted))
            }
        }
    }

    /// The first choice that leads to a value.
    fn first_available(&self, choices: &[Expression]) -> Result<TaintedValue, CodedError> {
        for choice in choices {
            match self.evaluate(choice) {
                Ok((Value::Null, _)) => {}
                Err(problem) if problem.code == Code::PlanRef => {}
                other => return other,
            }
        }
        Ok((Value::Null, false))
    }

    fn evaluate_url(
        &self,
        base: &Expression,
        query: &[(String, Expression)],
    ) -> Result<TaintedValue, CodedError> {
        let (base, mut tainted) = self.evaluate(base)?;
        let base = as_text(&base, "`base` of `$url`")?;
        let mut url = url::Url::parse(&base).map_err(|error| {
            evaluation_problem(format!("`$url`: `{base}` is not a URL: {error}"))
        })?;
        if !query.is_empty() {
            let mut room = EvalBudget::default();
            let mut pairs = url.query_pairs_mut();
            for (name, inner) in query {
                let (value, inner_tainted) = self.evaluate(inner)?;
                tainted |= inner_tainted;
                pairs.append_pair(name, &as_text(&room.take(value)?, "`query` of `$url`")?);
            }
        }
        bounded_text(unescape_masks(url.as_str()), tainted)
    }

    fn evaluate_template(
        &self,
        text: &Expression,
        vars: &[(String, Expression)],
    ) -> Result<TaintedValue, CodedError> {
        let (text, mut tainted) = self.evaluate(text)?;
        let text = as_text(&text, "`text` of `$template`")?;
        let mut values = BTreeMap::new();
        let mut room = EvalBudget::default();
        for (name, inner) in vars {
            let (value, inner_tainted) = self.evaluate(inner)?;
            tainted |= inner_tainted;
            values.insert(name.as_str(), value_text(&room.take(value)?));
        }
        let mut made = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            made.push_str(before);
            let Some((name, behind)) = after.split_once("}}") else {
                return Err(evaluation_problem("`$template`: a `{{` has no `}}`"));
            };
            let name = name.trim();
            let value = values.get(name).ok_or_else(|| {
                evaluation_problem(format!(
                    "`$template`: the text wants `{name}`, which is not in `vars`"
                ))
            })?;
            made.push_str(value);
            rest = behind;
            if made.len() > limits::PLAN_TEXT_BYTES {
                break;
            }
        }
        made.push_str(rest);
        bounded_text(made, tainted)
    }
}

/// How much something that is made of many values has taken so far. A few words of a plan can name the same large result
/// ten thousand times.
#[derive(Default)]
pub(crate) struct EvalBudget {
    taken: usize,
}

impl EvalBudget {
    /// Takes one value more.
    ///
    /// # Errors
    /// [`Code::PlanEvaluation`] beyond [`limits::PLAN_VALUE_BYTES`].
    pub(crate) fn take(&mut self, value: Value) -> Result<Value, CodedError> {
        self.taken = self.taken.saturating_add(size_estimate(&value));
        let most = limits::PLAN_VALUE_BYTES;
        match self.taken > most {
            true => Err(evaluation_problem(format!("the value would have more than {most} bytes"))),
            false => Ok(value),
        }
    }
}

/// About how many bytes a value has.
fn size_estimate(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_estimate).sum(),
        Value::Object(map) => map.iter().map(|(key, item)| key.len() + size_estimate(item)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inner + size_of::<Value>()
}

fn bounded_text(text: String, tainted: bool) -> Result<TaintedValue, CodedError> {
    if text.len() > limits::PLAN_TEXT_BYTES {
        let most = limits::PLAN_TEXT_BYTES;
        return Err(evaluation_problem(format!("the text would have more than {most} bytes")));
    }
    Ok((Value::String(text), tainted))
}

/// A value that is text, or a number or truth value written as one.
fn as_text(value: &Value, place: &str) -> Result<String, CodedError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(evaluation_problem(format!("{place} needs text"))),
    }
}

/// A value in a text: lists of text stand one item a line, anything else as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            lines.join("\n")
        }
        other => other.to_string(),
    }
}

/// Whether a value holds nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    }
}

/// A URL whose masks stand as they do everywhere else. A replay makes it of masked inputs, and must
/// come to what a run made of the secret itself, and masked then.
fn unescape_masks(url: &str) -> String {
    const BEGIN: &str = "%C2%AB";
    const END: &str = "%C2%BB";
    let mut made = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        made.push_str(before);
        let mask = behind.split_once(END).and_then(|(inner, after)| {
            let inner = inner.replace("%3A", ":");
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
            let mask = format!("«{inner}»");
            (inner.chars().all(plain) && holds_mask(mask.as_bytes())).then_some((mask, after))
        });
        match mask {
            Some((mask, after)) => {
                made.push_str(&mask);
                rest = after;
            }
            None => {
                made.push_str(BEGIN);
                rest = behind;
            }
        }
    }
    made.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> EvalScope {
        let step = |value, tainted| StepResult { value: Some(value), tainted, succeeded: true };
        let mut scope = EvalScope::default();
        scope.inputs.insert("since".into(), "v1".into());
        for (id, result) in [
            ("log", step(json!({ "stdout": "one\n\ntwo\n", "truncated": false }), false)),
            ("cut", step(json!({ "stdout": "x", "exit_code": 0, "truncated": true }), false)),
            ("web", step(json!({ "json": [{ "n": 7 }], "truncated": false }), true)),
            ("none", StepResult { value: None, tainted: false, succeeded: false }),
        ] {
            scope.steps.insert(id.into(), result);
        }
        scope
    }

    fn reference(text: &str) -> Expression {
        Expression::Ref(Reference::parse(text).unwrap())
    }

    #[test]
    fn references_lead_to_values() {
        let scope = scope();
        assert_eq!(scope.evaluate(&reference("steps.web.json.0.n")), Ok((json!(7), true)));
        assert_eq!(scope.evaluate(&reference("steps.cut.exit_code")), Ok((json!(0), false)));
        let code = |text| scope.evaluate(&reference(text)).unwrap_err().code;
        assert_eq!(code("steps.cut.stdout"), Code::PlanRefTruncated);
        assert_eq!(code("steps.none.stdout"), Code::PlanRef);
        assert_eq!(code("steps.log.nothing"), Code::PlanRef);
    }

    #[test]
    fn values_are_made() {
        let scope = scope();
        let concat =
            Expression::Concat(vec![reference("inputs.since"), Expression::Value("..HEAD".into())]);
        assert_eq!(scope.evaluate(&concat), Ok((json!("v1..HEAD"), false)));
        let lines = Expression::Lines(Box::new(reference("steps.log.stdout")));
        assert_eq!(scope.evaluate(&lines), Ok((json!(["one", "two"]), false)));
        let default =
            Expression::Default(vec![reference("steps.none.json"), Expression::Value(json!([]))]);
        assert_eq!(scope.evaluate(&default), Ok((json!([]), false)));
        let empty = Expression::NotEmpty(Box::new(reference("steps.none.stdout")));
        assert_eq!(scope.evaluate(&empty), Ok((json!(false), false)));
        let template = Expression::Template {
            text: Box::new(Expression::Value("a {{ x }} b {{y}}".into())),
            vars: vec![("x".into(), lines), ("y".into(), reference("steps.web.json"))],
        };
        assert_eq!(scope.evaluate(&template), Ok((json!("a one\ntwo b [{\"n\":7}]"), true)));
        let url = Expression::Url {
            base: Box::new(Expression::Value("https://x.org/a".into())),
            query: vec![("q".into(), Expression::Value("a&b=c #".into()))],
        };
        assert_eq!(scope.evaluate(&url), Ok((json!("https://x.org/a?q=a%26b%3Dc+%23"), false)));
    }

    #[test]
    fn values_are_bounded_while_they_are_made() {
        let mut scope = EvalScope::default();
        let large = json!({ "stdout": "x".repeat(1_000_000), "truncated": false });
        let step = StepResult { value: Some(large), tainted: false, succeeded: true };
        scope.steps.insert("log".into(), step);
        let often = || (0..10_000).map(|_| reference("steps.log.stdout"));
        let named = often().enumerate().map(|(number, inner)| (number.to_string(), inner));
        for expression in [
            Expression::Concat(often().collect()),
            Expression::List(often().map(ListItem::Single).collect()),
            Expression::Map(named.collect()),
        ] {
            let problem = scope.evaluate(&expression).unwrap_err();
            assert_eq!(problem.code, Code::PlanEvaluation, "{}", problem.message);
        }
    }

    #[test]
    fn a_value_fills_one_place() {
        let scope = scope();
        let list = Expression::List(vec![
            ListItem::Single(Expression::Value("--".into())),
            ListItem::Single(reference("steps.log.stdout")),
        ]);
        let (value, _) = scope.evaluate(&list).unwrap();
        assert_eq!(value.as_array().map(Vec::len), Some(2));
    }
}
