//! Rules of what people allowed: which command makes them. They are kept nowhere but in the policy file.

use std::path::Path;

use capsule_core::approval::AnswerKind;
use capsule_core::decision::Verdict;
use capsule_report::{AnsweredBy, CallView, RunView};
use capsule_runtime::BoundPolicy;

use crate::card::RulePatchLookup;
use crate::command::policy::learn;
use crate::context::CliContext;
use crate::screen::{HINT, Screen};

/// The most calls that are named in one line.
const MAX_NAMED_CALLS: usize = 4;

/// What a card shows of the rule that an earlier yes would make.
pub(super) fn rule_patch_lookup(bound: &BoundPolicy, ctx: &CliContext) -> Box<RulePatchLookup> {
    learn::rule_patch_lookup(bound, ctx)
}

/// Says which command makes rules of what a person allowed in a run, where its policy is a file.
pub(super) fn show_rule_commands(view: &RunView, label: &str, screen: &Screen) {
    let policy = view.header.as_ref().map(|header| header.opened.policy.path.as_str());
    if !policy.is_some_and(|path| Path::new(path).is_absolute()) {
        return;
    }
    let allowed: Vec<u64> =
        view.calls.iter().filter(|call| was_allowed(call)).map(|call| call.call).collect();
    show_learn_command(label, &allowed, screen);
}

/// The same for calls of a run by their numbers.
pub(super) fn show_learn_command(label: &str, calls: &[u64], screen: &Screen) {
    let named = match calls {
        [] => return,
        few if few.len() <= MAX_NAMED_CALLS => {
            few.iter().map(|call| format!("{label}:{call}")).collect::<Vec<_>>().join(" ")
        }
        _ => label.to_owned(),
    };
    screen.eprint(&format!(
        "{HINT}always{HINT:#}: capsule policy learn {named} · a patch of the policy for what was allowed"
    ));
}

/// Whether a person said yes to it, or to calls like it. What is asked each time becomes no rule.
fn was_allowed(call: &CallView) -> bool {
    let is_asked = call.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Ask);
    let by = call.approval.as_ref().map(|view| &view.answered_by);
    let is_yes = match by {
        Some(AnsweredBy::Person { outcome, .. }) => *outcome == AnswerKind::Approved,
        Some(AnsweredBy::Grant { .. }) => true,
        None | Some(AnsweredBy::Card | AnsweredBy::Waiting { .. } | AnsweredBy::List { .. }) => {
            false
        }
    };
    is_asked && is_yes
}
