//! How much a call could cost, and whether that is too much.

use alloc::format;
use alloc::vec::Vec;

use crate::action::Action;
use crate::capability::{Capabilities, Capability};
use crate::decision::Verdict;
use crate::policy::decide::check::{Finding, PolicyInput, verdict_text};
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::risk_policy::Hazard;
use crate::risk::Risk;
use capsule_base::code::Code;
use capsule_command::specs::{CommandLine, Effect, Effects, MatchedEffect, PathAccess};

/// How much a call could cost, whatever is decided about it, and what raises that.
pub(super) fn assess(
    policy: &Policy,
    rule: Option<&ToolRule>,
    input: &PolicyInput<'_>,
    line: Option<&CommandLine<'_>>,
    capabilities: Capabilities,
) -> (Risk, Vec<Hazard>) {
    let mut risk = match line {
        Some(line) => line_risk(line),
        // What the tests do is whatever the project's files say.
        None if matches!(input.action, Action::Test { .. }) => Risk::Medium,
        None if capabilities.have_side_effects() => Risk::Medium,
        None => Risk::Low,
    };
    risk = risk.max(policy.risk_policy.floor(capabilities));
    if input.action.is_unconfined() {
        risk = Risk::High;
    }
    let mut hazards = Vec::new();
    let is_lost = line.is_some_and(|line| is_irreversible(line) || changes_outside(input, line));
    if is_lost || input.action.changes_outside() || input.facts.no_undo.is_some() {
        hazards.push(Hazard::Irreversible);
    }
    if rule.is_some_and(|rule| is_executable_changed(rule, line)) {
        hazards.push(Hazard::ExecutableChanged);
    }
    if !input.tainted.is_empty() {
        hazards.push(Hazard::TaintedArgument);
    }
    for hazard in &hazards {
        risk = risk.max(policy.risk_policy.raised_by(*hazard).unwrap_or(Risk::Low));
    }
    (risk, hazards)
}

/// What is known of the program says how much it could cost; an unknown one could do anything that
/// the walls let it.
fn line_risk(line: &CommandLine<'_>) -> Risk {
    let effects = line.effects();
    match effects.is_subset_of(Effects::of(Effect::Reads)) && line.nested.is_empty() {
        true => Risk::Low,
        false => Risk::Medium,
    }
}

/// Whether what it does cannot be brought back.
fn is_irreversible(line: &CommandLine<'_>) -> bool {
    line.effects().intersects(IRREVERSIBLE)
}

/// Whether it names something outside of the workspace to change or to remove, of which nothing is kept.
fn changes_outside(case: &PolicyInput<'_>, line: &CommandLine<'_>) -> bool {
    let lines = line.with_nested();
    let mut words =
        lines.iter().flat_map(|line| line.parsed_argvs()).flat_map(|reading| &reading.paths);
    words.any(|used| {
        !used.guessed
            && matches!(used.access, PathAccess::Write | PathAccess::Change | PathAccess::Delete)
            && case.action.resolve_path_argument(used, case.facts).is_err()
    })
}

/// What cannot be brought back: by no undo record, and by nobody on this machine. What is sent to a host that the words
/// name cannot either, as its card says; but it has a word of its own in policies, which is not to be lost in that of risk.
const IRREVERSIBLE: Effects = Effects::of(Effect::Publishes)
    .with(Effect::System)
    .with(Effect::Destroys)
    .with(Effect::Secrets);

/// Whether the program is another one than the policy pins. One that was not found does not run.
fn is_executable_changed(rule: &ToolRule, line: Option<&CommandLine<'_>>) -> bool {
    let (Constraint::Exec(exec), Some(line)) = (&rule.constraint, line) else { return false };
    let pinned = exec.program(line.argv).and_then(|program| program.sha256);
    let found = line.program.map(|fact| fact.sha256);
    pinned.zip(found).is_some_and(|(pinned, found)| pinned != found)
}

/// What is too risky is refused; where the policy refuses nothing for that, it is asked every time.
pub(super) fn check(
    policy: &Policy,
    input: &PolicyInput<'_>,
    risk: Risk,
    hazards: &[Hazard],
) -> Option<Finding> {
    let stakes = &policy.risk_policy;
    let raised = |hazard: &&Hazard| stakes.raised_by(**hazard) == Some(risk);
    let hazard = hazards.iter().find(raised);
    let why = match hazard {
        _ if input.action.is_unconfined() => "this machine has no sandbox, so nothing confines it",
        Some(hazard) => hazard.description(),
        None => "by what it needs",
    };
    let reason = match input.facts.no_undo.filter(|_| hazard == Some(&Hazard::Irreversible)) {
        Some(unkept) => format!("the risk is {risk}: {why}; {}", unkept.reason()),
        None => format!("the risk is {risk}: {why}"),
    };
    let finding = match stakes.block_at {
        Some(level) if risk >= level => {
            let hint = "tell the user what shall be done and what it could cost; they do it";
            Finding::deny(Code::RiskBlocked, reason).with_suggestion(Some(hint))
        }
        None if risk == Risk::High => Finding::with_verdict(Verdict::AskEach, reason),
        _ => return None,
    };
    Some(finding.under("risk", stakes.source.as_ref()))
}

/// What nobody knows is decided no milder than the policy says for that.
pub(super) fn check_unknown(policy: &Policy, line: Option<&CommandLine<'_>>) -> Option<Finding> {
    let (verdict, line) = policy.risk_policy.unknown.zip(line)?;
    let is_unknown = line.with_nested().iter().any(|line| line.effects().contains(Effect::Unknown));
    let reason = format!("nobody knows what `{}` does", line.display_name());
    let finding = is_unknown.then(|| Finding::with_verdict(verdict, reason))?;
    let finding = finding.with_suggestion(Some("use a program and options that are known"));
    Some(finding.under("risk/unknown", policy.risk_policy.source.as_ref()))
}

/// What a model sends after it has read what is the user's and seen content from elsewhere is asked about each time: that
/// content may be why it sends. A query of an address carries what is put into it, and so does what has no effect but to go
/// along with a request, such as a header.
pub(super) fn check_exfiltration(
    input: &PolicyInput<'_>,
    line: Option<&CommandLine<'_>>,
) -> Option<Finding> {
    let (read, saw) = input.usage.read_private.zip(input.usage.saw_untrusted)?;
    let lines = line.map(CommandLine::with_nested).unwrap_or_default();
    let mut named = lines.iter().flat_map(|line| line.parsed_argvs());
    let sends = |MatchedEffect { effects: does, argument, .. }: &MatchedEffect| {
        let carries = does.is_empty() || does.contains(Effect::Network) && argument.contains('?');
        carries || does.intersects(Effects::of(Effect::Sends).with(Effect::Publishes))
    };
    let sends = match input.action {
        Action::Fetch { url, .. } => url.asked.contains('?'),
        _ => named.any(|argv| argv.matched_effects().any(sends)),
    };
    let reason = format!(
        "it sends something, after call {read} read what is yours and call {saw} brought content from elsewhere"
    );
    let finding = sends.then(|| Finding::with_verdict(Verdict::AskEach, reason))?;
    Some(finding.under("session/exfiltration", None))
}

/// What the profile denies it denies over every rule's own word.
pub(super) fn check_ceiling(policy: &Policy, capabilities: Capabilities) -> Option<Finding> {
    let profile = &policy.profile;
    let denied = profile.first_denied(capabilities)?;
    let label = capability_label(policy, denied);
    let subject = format!("{label} under the profile `{}`", profile.name);
    let finding = Finding::deny(Code::ProfileDenied, verdict_text(Verdict::Deny, &subject));
    Some(finding.under(format!("profile/{}", profile.name), profile.source.as_ref()))
}

/// A capability by its name, with the author's words for it.
pub(super) fn capability_label(policy: &Policy, capability: Capability) -> alloc::string::String {
    match policy.risk_policy.label(capability) {
        Some(label) => format!("`{capability}` ({label})"),
        None => format!("`{capability}`"),
    }
}
