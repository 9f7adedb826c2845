//! `policy test --coverage`: which rules decide an example or a test.

use capsule_core::escape;
use capsule_runtime::{Authored, Law, RuleUse, check, claims};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::screen::{CARE, GOOD, HINT, Screen};

/// Shows the rules, and gives them for programs.
pub(super) fn run(authored: &Authored<'_>, law: &Law, screen: &Screen) -> Result<Value, Failure> {
    let claims = claims(&law.policy);
    let rules = authored.use_of_rules(|policy| {
        check(policy, claims.clone()).into_iter().map(|own| own.decision).collect()
    });
    let of = rules.iter().filter(|rule| rule.decides.is_some()).count();
    let covered = rules.iter().filter(|rule| rule.decides.is_some_and(|own| own > 0)).count();
    if !screen.json {
        screen.say(&format!("rules      {covered} of {of} decide an example or a test"))?;
        for rule in &rules {
            show(rule, screen)?;
        }
    }
    let rows = rules.iter().map(|RuleUse { rule, place, decides, .. }| {
        json!({ "rule": rule, "at": place.at, "decided": decides.map(|own| own > 0), "by": decides })
    });
    Ok(json!({ "rules": of, "decided": covered, "rows": rows.collect::<Vec<_>>() }))
}

fn show(rule: &RuleUse, screen: &Screen) -> Result<(), Failure> {
    let (style, sign, said) = match rule.decides {
        Some(0) => (CARE, "-", "decides none".into()),
        Some(1) => (GOOD, "✔", "1 decision".into()),
        Some(number) => (GOOD, "✔", format!("{number} decisions")),
        None => (HINT, "·", "hangs on what a run has used, which no test has".into()),
    };
    let line = format!("{}  {}", rule.rule, rule.place.at);
    screen.say(&format!("  {style}{sign}{style:#} {}  {said}", escape::line(&line)))
}
