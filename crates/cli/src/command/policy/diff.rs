//! `policy diff`: the rules in which two policies differ, and the calls that they decide otherwise.

use std::path::Path;

use capsule_core::decision::Decision;
use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_report::{RuleChange, RuleChanges, RuleLine, policy_rules};
use capsule_runtime::{Law, explain};
use capsule_store::Store;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{PolicyArg, PolicyDiff};
use crate::command::open_store;
use crate::command::policy::batch::each_call;
use crate::command::policy::past::Calls;
use crate::command::policy::{judging_hands, texts};
use crate::failure::Failure;
use crate::screen::{BAD, CARE, GOOD, Screen};
use crate::surroundings::Surroundings;

/// A call that the two policies decide otherwise.
#[derive(Debug, Serialize)]
struct Difference {
    id: Value,
    tool: String,
    before: Decision,
    after: Decision,
}

/// What came of deciding calls by both.
#[derive(Debug, Default)]
struct Compared {
    calls: u64,
    /// Calls that could not be decided again.
    left_out: u64,
    /// Whether a line of the batch was no call.
    is_wrong: bool,
    differences: Vec<Difference>,
}

impl Compared {
    fn add(&mut self, id: Value, tool: &str, before: Decision, after: Decision) {
        self.calls += 1;
        // A rule that only stands elsewhere, or is called otherwise, decides the same.
        if (before.verdict, before.code) != (after.verdict, after.code) {
            self.differences.push(Difference { id, tool: tool.to_owned(), before, after });
        }
    }
}

pub(crate) fn run(
    args: &PolicyDiff,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = |policy: &str| {
        around.law(&PolicyArg { policy: Some(policy.into()), profile: args.profile.clone() }, None)
    };
    let (before, after) = (law(&args.before)?, law(&args.after)?);
    let rules = |law: &Law| {
        let rules = policy_rules(&law.policy, &texts(law));
        // The runtime's own files are those of this machine, and not the authors'.
        let own = |rule: &RuleLine| rule.at.as_deref() == Some("builtin:base");
        rules.into_iter().filter(|rule| !own(rule)).collect::<Vec<_>>()
    };
    let changes = RuleChanges::between(&rules(&before), &rules(&after));
    let mut compared = Compared::default();
    if let Some(batch) = &args.batch {
        of_batch(batch, (&before, &after), around, screen, &mut compared)?;
    }
    for run in &args.runs {
        let store = open_store(around, screen)?;
        of_run(run, (&before, &after), &store, &mut compared)?;
    }
    let exit = if compared.is_wrong { Exit::BadUsage } else { Exit::Ok };
    let asked = args.batch.is_some() || !args.runs.is_empty();
    if screen.json {
        let side = |law: &Law| {
            json!({
                "policy": law.policy.name,
                "file": law.text.name,
                "digest": law.policy.digest(),
                "profile": law.policy.profile.name,
            })
        };
        screen.say_json(&json!({
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

fn of_batch(
    path: &Path,
    (before, after): (&Law, &Law),
    around: &Surroundings,
    screen: &Screen,
    compared: &mut Compared,
) -> Result<(), Failure> {
    let mut first = judging_hands(before, around);
    let mut second = judging_hands(after, around);
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
                screen.complain(&format!("{BAD}error{BAD:#}: {}", escape::line(&error)));
            }
        }
        Ok(())
    })
}

/// The calls of a recorded run, as they were understood then.
fn of_run(
    run: &str,
    (before, after): (&Law, &Law),
    store: &Store,
    compared: &mut Compared,
) -> Result<(), Failure> {
    let mut calls = Calls::default();
    calls.add(store, &store.find(run)?)?;
    compared.left_out += calls.left_out;
    for call in &calls.past {
        let decide = |law: &Law| call.decide(&law.policy);
        compared.add(json!(call.label), call.tool.as_str(), decide(before), decide(after));
    }
    Ok(())
}

fn show_rules(changes: &RuleChanges, screen: &Screen) -> Result<(), Failure> {
    let RuleChanges { added, removed, changed } = changes;
    screen.say(&format!(
        "rules      {} added · {} removed · {} changed",
        added.len(),
        removed.len(),
        changed.len()
    ))?;
    for rule in removed {
        screen.say(&format!("  {BAD}-{BAD:#} {}", named(rule)))?;
    }
    for rule in added {
        screen.say(&format!("  {GOOD}+{GOOD:#} {}", named(rule)))?;
    }
    for RuleChange { before, after } in changed {
        screen.say(&format!("  {CARE}~{CARE:#} {}", named(after)))?;
        if before.decision != after.decision {
            screen.say(&format!("      {} -> {}", word(before), word(after)))?;
        }
        for name in sayings(before, after) {
            let (old, new) = (values(before, name), values(after, name));
            for gone in old.iter().filter(|own| !new.contains(own)) {
                screen.say(&format!("      {BAD}-{BAD:#} {name} {}", escape::line(gone)))?;
            }
            for more in new.iter().filter(|own| !old.contains(own)) {
                screen.say(&format!("      {GOOD}+{GOOD:#} {name} {}", escape::line(more)))?;
            }
        }
    }
    Ok(())
}

fn named(rule: &RuleLine) -> String {
    let at = rule.at.as_deref().map(|at| format!("  {at}")).unwrap_or_default();
    let named = format!("{} {} {}{at}", rule.section, rule.rule, word(rule));
    escape::line(&named).into_owned()
}

fn word(rule: &RuleLine) -> &'static str {
    rule.decision.map_or("(by the profile)", |verdict| verdict.keyword())
}

/// What either of the two says anything about.
fn sayings(before: &RuleLine, after: &RuleLine) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for saying in before.says.iter().chain(&after.says) {
        if !names.contains(&saying.name) {
            names.push(saying.name);
        }
    }
    names
}

fn values<'r>(rule: &'r RuleLine, name: &str) -> &'r [String] {
    rule.says.iter().find(|own| own.name == name).map_or(&[], |own| own.values.as_slice())
}

fn show_calls(compared: &Compared, screen: &Screen) -> Result<(), Failure> {
    let left_out = match compared.left_out {
        0 => String::new(),
        number => format!(" · {number} left out"),
    };
    screen.say(&format!(
        "decisions  {} of {} calls differ{left_out}",
        compared.differences.len(),
        compared.calls
    ))?;
    for Difference { id, tool, before, after } in &compared.differences {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let head = format!("{id} {tool}  {} -> {}", before.verdict, after.verdict);
        screen.say(&format!("  {}", escape::line(&head)))?;
        for (sign, own) in [("-", before), ("+", after)] {
            let rule = own.rule.as_deref().unwrap_or("(no rule matches)");
            let at = own.at.as_deref().unwrap_or("");
            let line = format!("{} {rule} {at}", own.code);
            screen.say(&format!("      {sign} {}", escape::line(line.trim_end())))?;
        }
    }
    Ok(())
}
