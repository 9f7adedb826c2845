//! The judgement of a call: the decision, its bounds, and the trace of the checks on the way to it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::capability::Capabilities;
use crate::decision::{Decision, Verdict};
use crate::policy::decide::check::Finding;
use crate::policy::restrictions::Restrictions;
use crate::risk::Risk;
use capsule_base::code::Code;

/// A decision, and the bounds that come with it where it allows.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The bounds.
    pub restrictions: Restrictions,
    /// What was asked on the way.
    pub trace: DecisionTrace,
    /// What rules say that the call needs besides what it means; the decision counts it in.
    pub named_capabilities: Capabilities,
}

/// What is asked of every call, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyCheck {
    /// Whether the run has used up what it may do in all.
    Budgets,
    /// Whether an invariant or a rule of the base policy forbids it.
    HardDeny,
    /// What the tool's rule says.
    Rule,
    /// Whether the run has used up the tool.
    Quota,
    /// Whether the profile denies something that it needs.
    Profile,
    /// Whether it could cost too much.
    Risk,
    /// What only a command as a whole can say.
    Command,
}

/// What was asked on the way to a decision.
#[derive(Clone, Debug, Default)]
pub struct DecisionTrace {
    /// The part of a command that it is about; empty for the whole.
    pub subject: String,
    /// Each check with what it said; nothing is an answer, too.
    pub checks: Vec<(PolicyCheck, Vec<Decision>)>,
    /// The parts of a command.
    pub parts: Vec<Self>,
    /// What the layers were asked, each behind its place.
    pub layers: Vec<Self>,
}

/// Weighs what the checks found: the strictest decides, the first of several that are equally strict.
pub(super) fn strictest(
    found: Vec<(PolicyCheck, Vec<Finding>)>,
    capabilities: Capabilities,
    risk: Risk,
) -> (Decision, DecisionTrace) {
    let say = |finding: Finding| finding.decision(capabilities, risk);
    let checks: Vec<(PolicyCheck, Vec<Decision>)> = found
        .into_iter()
        .map(|(check, findings)| (check, findings.into_iter().map(say).collect()))
        .collect();
    let all = || checks.iter().flat_map(|(_, said)| said);
    let strictest = all().map(|decision| decision.verdict).max().unwrap_or(Verdict::Deny);
    let decision = all().find(|decision| decision.verdict == strictest).cloned();
    let decision = decision
        .unwrap_or_else(|| say(Finding::deny(Code::NoRule, "no rule of the policy matches")));
    (decision, DecisionTrace { checks, ..DecisionTrace::default() })
}
