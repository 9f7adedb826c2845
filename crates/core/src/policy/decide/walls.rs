//! The walls that a machine can give, against those that a policy wants; and what may run where it can
//! give none.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::confinement::{Tier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::policy::commands::ExecRule;
use crate::policy::decide::command::Command;
use crate::policy::decide::exec::{anew, program_rule, subcommand};
use crate::policy::decide::{Case, Finding};
use crate::policy::model::Policy;
use crate::programs::Reading;

/// The walls that the machine can give, against those that the policy wants.
pub(super) fn check(policy: &Policy, case: &Case<'_>) -> Option<Finding> {
    let floor = policy.sandbox.floor;
    let hint = "`capsule doctor` names the missing layer and how to get it";
    let reason = match case.facts.walls.as_ref()? {
        Ok(walls) if walls.reach(floor) => return None,
        Ok(walls) => {
            let gaps: Vec<&str> = walls.gaps().map(|gap| gap.layer.name()).collect();
            let (tier, gaps) = (walls.tier, gaps.join(", "));
            let given = match walls.reach(Tier::Landlock) {
                true => format!("`{tier}`"),
                false => "none".to_string(),
            };
            format!("the policy wants `{floor}` and this machine gives {given} (missing: {gaps})")
        }
        Err(why) => format!("the policy wants `{floor}` and there is no sandbox: {why}"),
    };
    Some(Finding::deny(Code::SandboxBelowFloor, reason).suggest(Some(hint)))
}

/// The same for a command. Where the machine has no sandbox of any kind, the policy may let it run
/// nevertheless: it says so of sandboxes as such, and the rules of all programs of the command name
/// the power to run unconfined.
pub(super) fn of_command(
    policy: &Policy,
    exec: &ExecRule,
    case: &Case<'_>,
    own: &Command<'_>,
) -> Option<Finding> {
    let missing = check(policy, case)?;
    if !policy.sandbox.optional || !case.action.is_unconfined() {
        return Some(missing);
    }
    let shown = |own: &Command<'_>| own.line.argv.first().cloned().unwrap_or_default();
    if let Some(other) = own.all().into_iter().find(|own| !is_named(exec, own)) {
        let hint =
            format!("`{}` needs a sandbox: `capsule doctor` names what is missing", shown(other));
        return Some(missing.suggest(Some(hint)));
    }
    if policy.sandbox.workspace == WorkspaceAccess::Staged {
        let hint = "what nothing confines cannot be staged: `capsule doctor` names what is missing";
        return Some(missing.suggest(Some(hint)));
    }
    None
}

/// Whether the rule of a command line names the power, in every way in which the line can be read.
fn is_named(exec: &ExecRule, own: &Command<'_>) -> bool {
    let Some(program) = program_rule(exec, own.line.argv) else { return false };
    let anew = anew(program, own.line);
    let names = |reading: &Reading| {
        let mut rule = &program.command;
        for level in reading.levels.iter().skip(1) {
            let Some(inner) = subcommand(rule, &level.name) else { break };
            rule = inner;
        }
        rule.is_unconfined()
    };
    let mut readings = anew.as_ref().unwrap_or(own.line).readings().peekable();
    readings.peek().is_some() && readings.all(names)
}

/// What nothing confines is asked about every time, whatever any rule says.
pub(super) fn unconfined(policy: &Policy, capabilities: Capabilities) -> Option<Finding> {
    if !capabilities.contains(Capability::ProcUnconfined) {
        return None;
    }
    let reason = "this machine has no sandbox, so nothing would confine it";
    let hint = "only a sandbox spares the question: `capsule doctor` names what is missing";
    let finding = Finding::word(Verdict::AskEach, reason).suggest(Some(hint));
    Some(match &policy.profile.source {
        Some(source) => finding.by(format!("profile/{}", policy.profile.name), source),
        None => Finding { rule: Some(Capability::ProcUnconfined.to_string()), ..finding },
    })
}
