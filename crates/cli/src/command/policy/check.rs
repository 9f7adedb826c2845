//! `capsule policy check` and `capsule policy schema`.

use std::sync::Arc;

use capsule_authoring::{EditablePolicy, assertion_diagnostics, lint, policy_schema};
use capsule_base::diagnostic::{Diagnostics, Severity};
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::units::counted;
use capsule_core::policy::Policy;
use capsule_runtime::{BoundPolicy, CATALOGUE, TOOL_SET};
use serde_json::{Value, json};

use crate::args::PolicyCheckArgs;
use crate::command::open_store;
use crate::command::policy::recorded_calls::RecordedCalls;
use crate::context::CliContext;
use crate::diagnostic;
use crate::failure::Failure;
use crate::screen::{ERROR, HINT, SUCCESS, Screen};

/// What is wrong with a text, or probably not meant, of what it says itself.
fn policy_notes(policy: &Arc<Policy>, text: &str, warnings: &Diagnostics) -> Diagnostics {
    let mut problems = assertion_diagnostics(policy, &TOOL_SET);
    problems.extend(warnings.iter().cloned());
    problems.extend(lint(policy, &TOOL_SET));
    // What another text hands on is not this author's to change.
    problems.retain(|note| note.span.start <= text.len());
    problems
}

/// `policy check`.
pub(crate) fn check(
    args: &PolicyCheckArgs,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = match ctx.load_policy(&args.named(), None) {
        Err(Failure::InvalidText(text, problems)) if screen.json => {
            screen.print_json(&json!({
                "ok": false,
                "problems": diagnostic::to_json(&text, &problems),
            }))?;
            return Ok(2);
        }
        other => other?,
    };
    let mut all =
        vec![(&law.text, policy_notes(&law.without_layers(), &law.text.text, &law.warnings))];
    for (layer, bound) in law.layers.iter().zip(law.policy.layers()) {
        all.push((&layer.text, policy_notes(&bound.policy, &layer.text.text, &layer.warnings)));
    }
    if let Some((_, item)) = all.first_mut() {
        item.extend(unused_rules(args, &law, ctx, screen)?);
    }
    all.iter_mut().for_each(|(_, notes)| notes.sort_by_key(|note| note.span.start));
    let problems = || all.iter().flat_map(|(_, notes)| notes);
    let wrong = problems().any(|problem| problem.severity == Severity::Error);
    if screen.json {
        let listed = all.iter().flat_map(|(text, notes)| match diagnostic::to_json(text, notes) {
            Value::Array(listed) => listed,
            _ => Vec::new(),
        });
        let files: Vec<&str> = law.layers.iter().map(|layer| layer.text.name.as_str()).collect();
        let listed: Vec<Value> = listed.collect();
        screen.print_json(&json!({ "ok": !wrong, "layers": files, "problems": listed }))?;
        return Ok(if wrong { 2 } else { 0 });
    }
    for (text, notes) in all.iter().filter(|(_, notes)| !notes.is_empty()) {
        screen.eprint(&diagnostic::render(text, notes, screen));
    }
    let policies = || law.policy.self_and_layers();
    let rules = policies().flat_map(|policy| policy.tools.values());
    let examples: usize = rules.map(|rule| rule.examples.len()).sum();
    let tests: usize = policies().map(|policy| policy.tests.len()).sum();
    let (style, word) = if wrong { (ERROR, "✖ wrong") } else { (SUCCESS, "✔ ok") };
    screen.print_line(&format!(
        "{style}{word}{style:#} {} · {} · {} · {} · {}",
        escape::line(&law.policy.name),
        counted(law.policy.tools.len(), "tool"),
        counted(examples, "example"),
        counted(tests, "test"),
        counted(problems().count(), "note")
    ))?;
    for layer in &law.layers {
        let (word, name) = (layer.kind.keyword(), escape::line(&layer.text.name).into_owned());
        screen.print_line(&format!("  {HINT}layer{HINT:#} {word} · {name}"))?;
    }
    Ok(if wrong { 2 } else { 0 })
}

/// What the last runs under this policy did not need. The policy works as written, so a store that
/// cannot be read is no reason to say that it is wrong.
fn unused_rules(
    args: &PolicyCheckArgs,
    bound: &BoundPolicy,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<Diagnostics, Failure> {
    if bound.file.is_none() || !ctx.store.exists() {
        return Ok(Diagnostics::new());
    }
    let gathered = || -> Result<(usize, RecordedCalls), Failure> {
        let store = open_store(ctx, screen)?;
        let runs =
            store.runs_under_policy((&bound.place(), &bound.policy.name), limits::POLICY_RUNS)?;
        let mut calls = RecordedCalls::default();
        for run in &runs {
            calls.add(&store, run)?;
        }
        Ok((runs.len(), calls))
    };
    let (runs, calls) = match gathered() {
        Ok(gathered) => gathered,
        Err(why) => {
            why.show(screen);
            screen.eprint("what the last runs needed is not looked at");
            return Ok(Diagnostics::new());
        }
    };
    if runs < limits::POLICY_RUNS_MIN {
        return Ok(Diagnostics::new());
    }
    let loaded = bound.loaded();
    let authored = EditablePolicy::parse(&loaded, &TOOL_SET, args.policy.profile.as_deref())
        .map_err(|problems| Failure::InvalidText(bound.text.clone(), problems))?;
    let told = format!("the {} of the last {runs} runs", counted(calls.calls.len(), "call"));
    Ok(authored.unused_rules(&calls.calls, &told))
}

/// `policy schema`.
pub(crate) fn print_schema(screen: &Screen) -> Result<u8, Failure> {
    screen.print_json(&policy_schema(CATALOGUE))?;
    Ok(0)
}
