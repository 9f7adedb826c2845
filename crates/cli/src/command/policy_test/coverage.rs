//! `policy test --coverage`: which rules decide an example or a test.

use capsule_authoring::{EditablePolicy, RuleUsage, assertions, check_assertions};
use capsule_base::escape;
use capsule_runtime::{BoundPolicy, TOOL_SET};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::screen::{HINT, SUCCESS, Screen, WARNING};

/// Shows the rules, and gives them for programs.
pub(super) fn run(
    authored: &EditablePolicy<'_>,
    bound: &BoundPolicy,
    screen: &Screen,
) -> Result<Value, Failure> {
    let assertions = assertions(&bound.policy);
    let rules = authored.rule_usage(|policy| {
        check_assertions(policy, assertions.clone(), &TOOL_SET)
            .into_iter()
            .map(|assertion| assertion.decision)
            .collect()
    });
    let of = rules.iter().filter(|rule| rule.decisions.is_some()).count();
    let covered =
        rules.iter().filter(|rule| rule.decisions.is_some_and(|decision| decision > 0)).count();
    if !screen.json {
        screen.print_line(&format!("rules      {covered} of {of} decide an example or a test"))?;
        for rule in &rules {
            show(rule, screen)?;
        }
    }
    let rows = rules.iter().map(|RuleUsage { rule, location: place, decisions: decides, .. }| {
        json!({ "rule": rule, "at": place.shown, "decided": decides.map(|own| own > 0), "by": decides })
    });
    Ok(json!({ "rules": of, "decided": covered, "rows": rows.collect::<Vec<_>>() }))
}

fn show(rule: &RuleUsage, screen: &Screen) -> Result<(), Failure> {
    let (style, sign, said) = match rule.decisions {
        Some(0) => (WARNING, "-", "decides none".into()),
        Some(1) => (SUCCESS, "✔", "1 decision".into()),
        Some(number) => (SUCCESS, "✔", format!("{number} decisions")),
        None => (HINT, "·", "hangs on what a run has used, which no test has".into()),
    };
    let line = format!("{}  {}", rule.rule, rule.location.shown);
    screen.print_line(&format!("  {style}{sign}{style:#} {}  {said}", escape::line(&line)))
}
