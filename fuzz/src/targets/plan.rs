//! Any text is a plan or is not: reading one never panics, and what is wrong is named within the
//! text. A plan that was read can be walked with any results: references read back, every value is
//! made or refused within its bounds, and a record of what a step asks for reads back.

use capsule_base::limits;
use capsule_runtime::plan::{
    EvalScope, Expression, FieldMatcher, InputKind, Plan, PlanStep, Reference, StepResult,
};
use capsule_runtime::{CATALOGUE, describe};
use serde_json::{Map, Value, json};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let plan = match Plan::parse(text, "plan", CATALOGUE) {
        Ok(plan) => plan,
        Err(problems) => return crate::assert_refused(text, &problems),
    };
    let mut scope = EvalScope::default();
    for input in &plan.inputs {
        let text = match input.kind {
            InputKind::String => "text",
            InputKind::Integer => "7",
            InputKind::Boolean => "true",
        };
        let value = input.default.clone().or_else(|| input.read(text).ok());
        scope.inputs.insert(input.name.clone(), value.unwrap_or_default());
    }
    for step in &plan.steps {
        walk(step, &scope);
        scope.steps.insert(step.id.clone(), result(step));
    }
    for (_, output) in &plan.outputs {
        made(&scope, output);
    }
}

/// Makes everything that a step needs, and asks what its call means.
fn walk(step: &PlanStep, scope: &EvalScope) {
    if let Some(when) = &step.when {
        made(scope, when);
    }
    let args: Option<Map<String, Value>> =
        step.args.iter().map(|(name, arg)| Some((name.clone(), made(scope, arg)?))).collect();
    if let Some(args) = args
        && let Ok(action) = describe(step.tool.id, &Value::Object(args), 0)
    {
        crate::assert_kept(&action);
    }
    for (_, matcher) in &step.expect.fields {
        compare(matcher);
    }
}

/// Makes a value, whose references read back and whose texts are bounded.
fn made(scope: &EvalScope, expression: &Expression) -> Option<Value> {
    expression.visit_references(false, &mut |reference, _| {
        assert_eq!(Reference::parse(&reference.to_string()).as_ref(), Ok(reference));
    });
    let (value, _) = scope.evaluate(expression).ok()?;
    if let (Value::String(text), Expression::Concat(_) | Expression::Template { .. }) =
        (&value, expression)
    {
        assert!(text.len() <= limits::PLAN_TEXT_BYTES);
    }
    Some(value)
}

fn compare(matcher: &FieldMatcher) {
    for value in [json!(null), json!(true), json!(200), json!("text"), json!(["a"]), json!({})] {
        let _ = matcher.mismatch(&value);
    }
    if let Some(wanted) = &matcher.equals {
        let only = FieldMatcher { equals: Some(wanted.clone()), ..FieldMatcher::default() };
        assert_eq!(only.mismatch(wanted), None);
    }
}

/// A result with every field that the tool gives; each is of some kind.
fn result(step: &PlanStep) -> StepResult {
    let kinds = [json!("one\ntwo"), json!(3), json!([{ "title": "é", "n": 1 }]), json!(false)];
    let fields = step.tool.results.iter().zip(kinds.iter().cycle());
    let fields: Map<String, Value> =
        fields.map(|(field, value)| (field.name.into(), value.clone())).collect();
    StepResult {
        value: Some(fields.into()),
        tainted: step.id.len().is_multiple_of(2),
        succeeded: true,
    }
}
