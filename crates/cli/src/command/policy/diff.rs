//! `policy diff`: the rules in which two policies differ, and the calls that they decide otherwise.

use std::path::Path;

use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_core::decision::Decision;
use capsule_report::{RuleChange, RuleChanges, RuleLine, policy_rules};
use capsule_runtime::{BoundPolicy, explain};
use capsule_store::Store;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{PolicyArg, PolicyDiffArgs};
use crate::command::open_store;
use crate::command::policy::batch::each_call;
use crate::command::policy::recorded_calls::RecordedCalls;
use crate::command::policy::{judging_backend, policy_texts};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{ERROR, SUCCESS, Screen, WARNING};

/// A call that the two policies decide otherwise.
#[derive(Debug, Serialize)]
struct DecisionDifference {
    id: Value,
    tool: String,
    before: Decision,
    after: Decision,
}

/// What came of deciding calls by both.
#[derive(Debug, Default)]
struct PolicyComparison {
    calls: u64,
    /// Calls that could not be decided again.
    left_out: u64,
    /// Whether a line of the batch was no call.
    is_wrong: bool,
    differences: Vec<DecisionDifference>,
}

impl PolicyComparison {
    fn add(&mut self, id: Value, tool: &str, before: Decision, after: Decision) {
        self.calls += 1;
        // A rule that only stands elsewhere, or is called otherwise, decides the same.
        if (before.verdict, before.code) != (after.verdict, after.code) {
            self.differences.push(DecisionDifference { id, tool: tool.to_owned(), before, after });
        }
    }
}

pub(crate) fn run(args: &PolicyDiffArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let bound = |policy: &str| {
        ctx.load_policy(
            &PolicyArg { policy: Some(policy.into()), profile: args.profile.clone() },
            None,
        )
    };
    let (before, after) = (bound(&args.before)?, bound(&args.after)?);
    let rules = |bound: &BoundPolicy| {
        let rules = policy_rules(&bound.policy, &policy_texts(bound));
        // The runtime's own files are those of this machine, and not the authors'.
        let item = |rule: &RuleLine| rule.at.as_deref() == Some("builtin:base");
        rules.into_iter().filter(|rule| !item(rule)).collect::<Vec<_>>()
    };
    let changes = RuleChanges::between(&rules(&before), &rules(&after));
    let mut compared = PolicyComparison::default();
    if let Some(batch) = &args.batch {
        compare_batch(batch, (&before, &after), ctx, screen, &mut compared)?;
    }
    for run in &args.runs {
        let store = open_store(ctx, screen)?;
        compare_run(run, (&before, &after), &store, &mut compared)?;
    }
    let exit = if compared.is_wrong { Exit::BadUsage } else { Exit::Ok };
    let asked = args.batch.is_some() || !args.runs.is_empty();
    if screen.json {
        let side = |bound: &BoundPolicy| {
            json!({
                "policy": bound.policy.name,
                "file": bound.text.name,
                "digest": bound.policy.digest(),
                "profile": bound.policy.profile.name,
            })
        };
        screen.print_json(&json!({
            "schema": 1,
            "before": side(&before),
            "after": side(&after),
            "rules": changes,
            "calls": compared.calls,
            "left_out": compared.left_out,
            "differences": compared.differences,
        }))?;
        return Ok(exit.status());
    }
    show_rules(&changes, screen)?;
    if asked {
        show_calls(&compared, screen)?;
    }
    Ok(exit.status())
}

fn compare_batch(
    path: &Path,
    (before, after): (&BoundPolicy, &BoundPolicy),
    ctx: &CliContext,
    screen: &Screen,
    compared: &mut PolicyComparison,
) -> Result<(), Failure> {
    let mut first = judging_backend(before, ctx);
    let mut second = judging_backend(after, ctx);
    each_call(path, |line| {
        match line {
            Ok(call) => {
                let old = explain(&before.policy, &mut first, &call.tool, call.args.clone());
                let new = explain(&after.policy, &mut second, &call.tool, call.args);
                compared.add(call.id, &call.tool, old, new);
            }
            Err(error) => {
                compared.is_wrong = true;
                compared.left_out += 1;
                screen.eprint(&format!("{ERROR}error{ERROR:#}: {}", escape::line(&error)));
            }
        }
        Ok(())
    })
}

/// The calls of a recorded run, as they were understood then.
fn compare_run(
    run: &str,
    (before, after): (&BoundPolicy, &BoundPolicy),
    store: &Store,
    compared: &mut PolicyComparison,
) -> Result<(), Failure> {
    let mut calls = RecordedCalls::default();
    calls.add(store, &store.find(run)?)?;
    compared.left_out += calls.left_out;
    for call in &calls.calls {
        let decide = |bound: &BoundPolicy| call.decide(&bound.policy);
        compared.add(json!(call.label), call.tool.as_str(), decide(before), decide(after));
    }
    Ok(())
}

fn show_rules(changes: &RuleChanges, screen: &Screen) -> Result<(), Failure> {
    let RuleChanges { added, removed, changed } = changes;
    screen.print_line(&format!(
        "rules      {} added · {} removed · {} changed",
        added.len(),
        removed.len(),
        changed.len()
    ))?;
    for rule in removed {
        screen.print_line(&format!("  {ERROR}-{ERROR:#} {}", rule_name(rule)))?;
    }
    for rule in added {
        screen.print_line(&format!("  {SUCCESS}+{SUCCESS:#} {}", rule_name(rule)))?;
    }
    for RuleChange { before, after } in changed {
        screen.print_line(&format!("  {WARNING}~{WARNING:#} {}", rule_name(after)))?;
        if before.decision != after.decision {
            screen.print_line(&format!(
                "      {} -> {}",
                decision_word(before),
                decision_word(after)
            ))?;
        }
        for name in property_names(before, after) {
            let (old, new) = (property_values(before, name), property_values(after, name));
            for gone in old.iter().filter(|old| !new.contains(old)) {
                screen.print_line(&format!(
                    "      {ERROR}-{ERROR:#} {name} {}",
                    escape::line(gone)
                ))?;
            }
            for more in new.iter().filter(|new| !old.contains(new)) {
                screen.print_line(&format!(
                    "      {SUCCESS}+{SUCCESS:#} {name} {}",
                    escape::line(more)
                ))?;
            }
        }
    }
    Ok(())
}

fn rule_name(rule: &RuleLine) -> String {
    let at = rule.at.as_deref().map(|at| format!("  {at}")).unwrap_or_default();
    let named = format!("{} {} {}{at}", rule.section, rule.rule, decision_word(rule));
    escape::line(&named).into_owned()
}

fn decision_word(rule: &RuleLine) -> &'static str {
    rule.decision.map_or("(by the profile)", |verdict| verdict.keyword())
}

/// What either of the two says anything about.
fn property_names(before: &RuleLine, after: &RuleLine) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for saying in before.says.iter().chain(&after.says) {
        if !names.contains(&saying.name) {
            names.push(saying.name);
        }
    }
    names
}

fn property_values<'r>(rule: &'r RuleLine, name: &str) -> &'r [String] {
    rule.says.iter().find(|say| say.name == name).map_or(&[], |say| say.values.as_slice())
}

fn show_calls(compared: &PolicyComparison, screen: &Screen) -> Result<(), Failure> {
    let left_out = match compared.left_out {
        0 => String::new(),
        number => format!(" · {number} left out"),
    };
    screen.print_line(&format!(
        "decisions  {} of {} calls differ{left_out}",
        compared.differences.len(),
        compared.calls
    ))?;
    for DecisionDifference { id, tool, before, after } in &compared.differences {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let head = format!("{id} {tool}  {} -> {}", before.verdict, after.verdict);
        screen.print_line(&format!("  {}", escape::line(&head)))?;
        for (sign, decision) in [("-", before), ("+", after)] {
            let rule = decision.rule.as_deref().unwrap_or("(no rule matches)");
            let at = decision.at.as_deref().unwrap_or("");
            let line = format!("{} {rule} {at}", decision.code);
            screen.print_line(&format!("      {sign} {}", escape::line(line.trim_end())))?;
        }
    }
    Ok(())
}
