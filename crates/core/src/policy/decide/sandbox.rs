//! The walls that a machine can give, against those that a policy wants; and what may run where it can
//! give none.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::confinement::{SandboxFailure, SandboxTier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::policy::commands::ExecRule;
use crate::policy::decide::check::{Finding, PolicyInput};
use crate::policy::decide::command_line::LocatedCommand;
use crate::policy::model::Policy;
use capsule_base::code::Code;
use capsule_command::specs::ParsedArgv;

/// The walls that the machine can give, against those that the policy wants.
pub(super) fn check(policy: &Policy, input: &PolicyInput<'_>) -> Option<Finding> {
    let floor = policy.sandbox.floor;
    let hint = "`capsule doctor` names the missing layer and how to get it";
    let (code, reason) = match input.facts.sandbox.as_ref()? {
        Ok(status) if status.meets(floor) => return None,
        Ok(status) => {
            let gaps: Vec<_> = status.gaps().map(|gap| gap.layer.name()).collect();
            let (tier, gaps) = (status.tier, gaps.join(", "));
            let given = match status.meets(SandboxTier::Basic) {
                true => format!("`{tier}`"),
                false => "none".to_string(),
            };
            let gaps = format!("and this machine gives {given} (missing: {gaps})");
            (Code::SandboxBelowFloor, gaps)
        }
        Err(SandboxFailure::Unsupported { unsupported: why }) => {
            (Code::SandboxUnsupportedPlatform, format!("and there is no sandbox: {why}"))
        }
        Err(SandboxFailure::Failed(why)) => {
            (Code::SandboxBelowFloor, format!("and there is no sandbox: {why}"))
        }
    };
    let hint = if code == Code::SandboxBelowFloor { hint } else { code.next_step() };
    let reason = format!("the policy wants `{floor}` {reason}");
    Some(Finding::deny(code, reason).with_suggestion(Some(hint)))
}

/// The same for a command. Where the machine has no sandbox of any kind, the policy may let it run
/// nevertheless: it says so of sandboxes as such, and the rules of all programs of the command name
/// the power to run unconfined.
pub(super) fn check_command(
    policy: &Policy,
    exec: &ExecRule,
    input: &PolicyInput<'_>,
    command: &LocatedCommand<'_>,
) -> Option<Finding> {
    let missing = check(policy, input)?;
    if !policy.sandbox.optional || !input.action.is_unconfined() {
        return Some(missing);
    }
    let shown =
        |command: &LocatedCommand<'_>| command.line.argv.first().cloned().unwrap_or_default();
    if let Some(other) =
        command.with_nested().into_iter().find(|command| !names_unconfined(exec, command))
    {
        let hint =
            format!("`{}` needs a sandbox: `capsule doctor` names what is missing", shown(other));
        return Some(missing.with_suggestion(Some(hint)));
    }
    if policy.sandbox.workspace == WorkspaceAccess::Staged {
        let hint = "what nothing confines cannot be staged: `capsule doctor` names what is missing";
        return Some(missing.with_suggestion(Some(hint)));
    }
    None
}

/// Whether the rule of a command line names the power, in every way in which the line can be read.
fn names_unconfined(exec: &ExecRule, command: &LocatedCommand<'_>) -> bool {
    let Some(program) = exec.program(command.line.argv) else { return false };
    let reread = program.reread(command.line);
    let names = |reading: &ParsedArgv| {
        let mut rule = &program.command;
        for level in reading.levels.iter().skip(1) {
            let Some(inner) = rule.subcommand(&level.name) else { break };
            rule = inner;
        }
        rule.is_unconfined()
    };
    let mut readings = reread.as_ref().unwrap_or(command.line).parsed_argvs().peekable();
    readings.peek().is_some() && readings.all(names)
}

/// What nothing confines is asked about every time, whatever any rule says.
pub(super) fn check_unconfined(policy: &Policy, capabilities: Capabilities) -> Option<Finding> {
    if !capabilities.contains(Capability::ProcUnconfined) {
        return None;
    }
    let reason = "this machine has no sandbox, so nothing would confine it";
    let hint = "only a sandbox spares the question: `capsule doctor` names what is missing";
    let finding = Finding::with_verdict(Verdict::AskEach, reason).with_suggestion(Some(hint));
    let source = policy.profile.source.as_ref();
    let rule = match source {
        Some(_) => format!("profile/{}", policy.profile.name),
        None => Capability::ProcUnconfined.to_string(),
    };
    Some(finding.under(rule, source))
}
