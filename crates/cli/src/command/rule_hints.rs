//! Rules of what people allowed: which command makes them. They are kept nowhere but in the policy file.

use std::path::Path;

use capsule_core::approval::AnswerKind;
use capsule_core::decision::Verdict;
use capsule_report::{AnsweredBy, CallView, RunView};
use capsule_runtime::BoundPolicy;
use capsule_store::Store;

use crate::card::RulePatchLookup;
use crate::command::policy::learn;
use crate::command::read_run;
use crate::context::CliContext;
use crate::screen::{HINT, Screen};

/// The most calls that are named in one line.
const MAX_NAMED_CALLS: usize = 4;

/// What a card shows of the rule that an earlier yes would make.
pub(super) fn rule_patch_lookup(bound: &BoundPolicy, ctx: &CliContext) -> Box<RulePatchLookup> {
    learn::rule_patch_lookup(bound, ctx)
}

/// Says which command makes a rule of a call that a person allowed, where there is one.
pub(super) fn show_rule_command_of(
    run: &str,
    label: &str,
    call: u64,
    ctx: &CliContext,
    screen: &Screen,
) {
    let view = Store::open_read_only(&ctx.store).and_then(|store| read_run(&store, run));
    let Ok(mut view) = view else { return };
    view.calls.retain(|item| item.call == call);
    show_rule_commands(&view, label, ctx, screen);
}

/// Says which command makes rules of what a person allowed in a run, where its policy is a file and would be another by
/// them.
pub(super) fn show_rule_commands(view: &RunView, label: &str, ctx: &CliContext, screen: &Screen) {
    let policy = view.header.as_ref().map(|header| header.opened.policy.path.as_str());
    if !policy.is_some_and(|path| Path::new(path).is_absolute()) {
        return;
    }
    let allowed: Vec<u64> =
        view.calls.iter().filter(|call| was_allowed(call)).map(|call| call.call).collect();
    let calls: Vec<String> = allowed.iter().map(|call| format!("{label}:{call}")).collect();
    let named = match calls.len() {
        0 => return,
        1..=MAX_NAMED_CALLS => calls,
        _ => vec![label.to_owned()],
    };
    if !learn::proposes(named.clone(), ctx) {
        return;
    }
    let named = named.join(" ");
    screen.eprint(&format!(
        "{HINT}always{HINT:#}: capsule policy learn {named} · a patch of the policy for what was allowed"
    ));
}

/// Whether a person said yes to it. What is asked each time becomes no rule, and where a grant answered, it was said
/// before.
fn was_allowed(call: &CallView) -> bool {
    let is_asked = call.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Ask);
    let by = call.approval.as_ref().map(|view| &view.answered_by);
    let is_yes = match by {
        Some(AnsweredBy::Person { outcome, .. }) => *outcome == AnswerKind::Approved,
        _ => false,
    };
    is_asked && is_yes
}
