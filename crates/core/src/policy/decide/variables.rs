//! The variables that a command line sets for its programs.

use alloc::format;

use crate::decision::Verdict;
use crate::policy::commands::ExecRule;
use crate::policy::decide::check::Finding;
use capsule_base::code::Code;
use capsule_command::specs::{Effect, Effects};
use capsule_command::variables::{VariableKind, variable_kind_with_value};

/// Whether a command line may not set a variable to a value: because the policy does not list it and the
/// program is not the project's own code, or because of what the value starts, which no list of names can have
/// meant.
pub(super) fn is_refused(
    exec: Option<&ExecRule>,
    effects: Effects,
    (name, value): (&str, &str),
) -> bool {
    match variable_kind_with_value(name, value) {
        VariableKind::Code | VariableKind::StartsProgram | VariableKind::AlwaysDenied => true,
        VariableKind::Location => exec.is_none_or(|exec| !exec.env.accepts(name, value)),
        VariableKind::Plain => exec.is_none_or(|exec| {
            let is_given = !leads_out(value) && runs_project_code(exec, effects);
            !exec.env.accepts(name, value) && !is_given
        }),
    }
}

/// Whether a value may name a place outside of the workspace.
fn leads_out(value: &str) -> bool {
    value.starts_with(['/', '~']) || value.split(['/', ':']).any(|part| part == "..")
}

/// Whether a command runs the project's own code, and nothing else about it is asked or denied: that code could set
/// any such variable by itself.
fn runs_project_code(exec: &ExecRule, effects: Effects) -> bool {
    let allowed = |effect: Effect| {
        exec.effects.as_ref().is_some_and(|rule| rule.verdict(effect).0 == Verdict::Allow)
    };
    effects.contains(Effect::Runs) && effects.iter().all(allowed)
}

/// A variable that the policy does not list: one that decides which code runs is as strange as a
/// program text, another one as an option that nobody knows; some are never set, but to a value that
/// starts nothing.
pub(super) fn variable_finding(exec: Option<&ExecRule>, name: &str, value: &str) -> Finding {
    let word =
        |effect| exec.and_then(|exec| exec.effects.as_ref()).map(|rule| rule.verdict(effect).0);
    let kind = variable_kind_with_value(name, value);
    let verdict = match kind {
        VariableKind::Plain => word(Effect::Unknown),
        VariableKind::Code => word(Effect::Code),
        VariableKind::StartsProgram => word(Effect::Starts),
        VariableKind::Location | VariableKind::AlwaysDenied => None,
    };
    let reason = match kind {
        VariableKind::StartsProgram => {
            format!("the value of `{name}` names what is loaded or started")
        }
        _ => format!("the policy does not list the variable `{name}` for commands to set"),
    };
    let hint = format!("leave `{name}` out, or let the user list it in `env.accept`");
    match verdict {
        Some(verdict @ (Verdict::Ask | Verdict::AskEach)) => Finding::with_verdict(verdict, reason),
        _ => Finding::deny(Code::ExecVariable, reason),
    }
    .with_suggestion(Some(hint))
}
