//! How much a call could cost, and whether that is too much.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::action::Action;
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::decision::Verdict;
use crate::policy::decide::{Case, Finding, consequences, exec, words};
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::stakes::Hazard;
use crate::programs::{CommandLine, Effect};
use crate::risk::Risk;

/// How much a call could cost, whatever is decided about it, and what raises that.
pub(super) fn of(
    policy: &Policy,
    rule: Option<&ToolRule>,
    case: &Case<'_>,
    line: Option<&CommandLine<'_>>,
    capabilities: Capabilities,
) -> (Risk, Vec<Hazard>) {
    let mut risk = match line {
        Some(line) => consequences::risk(line),
        // What the tests do is whatever the project's files say.
        None if matches!(case.action, Action::Test { .. }) => Risk::Medium,
        None if capabilities.have_effect() => Risk::Medium,
        None => Risk::Low,
    };
    risk = risk.max(policy.stakes.floor(capabilities));
    if case.action.is_unconfined() {
        risk = Risk::High;
    }
    let mut hazards = Vec::new();
    let is_lost = line.is_some_and(|line| {
        consequences::is_irreversible(line) || consequences::changes_outside(case, line)
    });
    if is_lost || case.action.changes_outside() || case.facts.unkept.is_some() {
        hazards.push(Hazard::Irreversible);
    }
    if rule.is_some_and(|rule| is_changed(rule, line)) {
        hazards.push(Hazard::ExecutableChanged);
    }
    if !case.tainted.is_empty() {
        hazards.push(Hazard::TaintedArgument);
    }
    for hazard in &hazards {
        risk = risk.max(policy.stakes.raised(*hazard).unwrap_or(Risk::Low));
    }
    (risk, hazards)
}

/// Whether the program is another one than the policy pins. One that was not found does not run.
fn is_changed(rule: &ToolRule, line: Option<&CommandLine<'_>>) -> bool {
    let (Constraint::Exec(exec), Some(line)) = (&rule.constraint, line) else { return false };
    let pinned = exec::program_rule(exec, line.argv).and_then(|program| program.sha256);
    let found = line.program.map(|fact| fact.sha256);
    pinned.zip(found).is_some_and(|(pinned, found)| pinned != found)
}

/// What is too risky is refused; where the policy refuses nothing for that, it is asked every time.
pub(super) fn check(
    policy: &Policy,
    case: &Case<'_>,
    risk: Risk,
    hazards: &[Hazard],
) -> Option<Finding> {
    let stakes = &policy.stakes;
    let raised = |hazard: &&Hazard| stakes.raised(**hazard) == Some(risk);
    let hazard = hazards.iter().find(raised);
    let why = match hazard {
        _ if case.action.is_unconfined() => "this machine has no sandbox, so nothing confines it",
        Some(own) => own.says(),
        None => "by what it needs",
    };
    let reason = match case.facts.unkept.filter(|_| hazard == Some(&Hazard::Irreversible)) {
        Some(unkept) => format!("the risk is {risk}: {why}; {}", unkept.reason()),
        None => format!("the risk is {risk}: {why}"),
    };
    let finding = match stakes.block_at {
        Some(level) if risk >= level => {
            let hint = "tell the user what shall be done and what it could cost; they do it";
            Finding::deny(Code::RiskBlocked, reason).suggest(Some(hint))
        }
        None if risk == Risk::High => Finding::word(Verdict::AskEach, reason),
        _ => return None,
    };
    Some(match &stakes.source {
        Some(source) => finding.by("risk", source),
        None => Finding { rule: Some("risk".to_string()), ..finding },
    })
}

/// What nobody knows is decided no milder than the policy says for that.
pub(super) fn unknown(policy: &Policy, line: Option<&CommandLine<'_>>) -> Option<Finding> {
    let (verdict, line) = policy.stakes.unknown.zip(line)?;
    let is_unknown = line.all().iter().any(|own| own.effects().has(Effect::Unknown));
    let reason = format!("nobody knows what `{}` does", line.shown());
    let finding = is_unknown.then(|| Finding::word(verdict, reason))?;
    let hint = "use a program and options that are known";
    let finding = finding.suggest(Some(hint));
    Some(match &policy.stakes.source {
        Some(source) => finding.by("risk/unknown", source),
        None => finding,
    })
}

/// What the profile denies it denies over every rule's own word.
pub(super) fn ceiling(policy: &Policy, capabilities: Capabilities) -> Option<Finding> {
    let profile = &policy.profile;
    let denied = profile.denied(capabilities)?;
    let label = label(policy, denied);
    let subject = format!("{label} under the profile `{}`", profile.name);
    let finding = Finding::deny(Code::ProfileDenied, words(Verdict::Deny, &subject));
    let rule = format!("profile/{}", profile.name);
    Some(match &profile.source {
        Some(source) => finding.by(rule, source),
        None => Finding { rule: Some(rule), ..finding },
    })
}

/// A capability by its name, with the author's words for it.
pub(super) fn label(policy: &Policy, capability: Capability) -> alloc::string::String {
    match policy.stakes.label(capability) {
        Some(label) => format!("`{capability}` ({label})"),
        None => format!("`{capability}`"),
    }
}
