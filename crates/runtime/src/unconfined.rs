//! Which programs a policy lets run where there is no sandbox.

use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::{CommandRule, Constraint, Policy, Profile, ProgramRule};

/// Whether a program may run there: every text that decides lets it, and the rule of one names the power
/// to.
#[must_use]
pub fn allows_unconfined(policy: &Policy) -> bool {
    let denies =
        |profile: &Profile| profile.verdict_for(Capability::ProcUnconfined) == Verdict::Deny;
    policy.sandbox_in_force().optional
        && !policy.profiles_in_force().any(denies)
        && program_rules(policy).any(names_unconfined)
}

fn program_rules(policy: &Policy) -> impl Iterator<Item = &ProgramRule> {
    let programs = policy.tools.values().filter_map(|rule| match &rule.constraint {
        Constraint::Exec(exec) => Some(&exec.programs),
        _ => None,
    });
    programs.flatten()
}

/// Whether the rule of a program, or that of a subcommand, names the power.
pub(crate) fn names_unconfined(program: &ProgramRule) -> bool {
    fn named(rule: &CommandRule) -> bool {
        rule.is_unconfined() || rule.subcommands.iter().any(|(_, inner)| named(inner))
    }
    named(&program.command)
}
