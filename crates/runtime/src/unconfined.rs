//! Which programs a policy lets run where there is no sandbox.

use capsule_core::capability::Capability;
use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, Policy, Profile, ProgramRule};

/// Whether a program may run there: every text that decides lets it, and the rule of one names the power
/// to.
#[must_use]
pub fn allows_unconfined(policy: &Policy) -> bool {
    let denies =
        |profile: &Profile| profile.verdict_for(Capability::ProcUnconfined) == Verdict::Deny;
    policy.sandbox_in_force().optional
        && !policy.profiles_in_force().any(denies)
        && program_rules(policy).any(|program| program.command.names_unconfined())
}

fn program_rules(policy: &Policy) -> impl Iterator<Item = &ProgramRule> {
    let programs = policy.tools.values().filter_map(|rule| match &rule.constraint {
        Constraint::Exec(exec) => Some(&exec.programs),
        _ => None,
    });
    programs.flatten()
}
