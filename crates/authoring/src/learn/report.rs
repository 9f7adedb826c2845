//! The result of learning: the proposed rules, and the calls that stay refused.

use std::collections::BTreeSet;

use capsule_base::diagnostic::Diagnostics;
use capsule_core::decision::{Decision, Verdict};

/// The result of learning from recorded calls.
#[derive(Clone, Debug, Default)]
pub struct LearnReport {
    /// The rules that are proposed.
    pub proposals: Vec<RuleProposal>,
    /// Calls that stay refused, each with the reason.
    pub still_refused: Vec<RefusedCall>,
    /// Calls that were refused, and that the policy as it is now allows.
    pub allowed: Vec<String>,
    /// The calls that the proposals together change.
    pub changed: Vec<ChangedDecision>,
    /// The text of the policy with the proposals and tests for them; none where there is none.
    pub text: Option<String>,
}

/// A rule that is proposed.
#[derive(Clone, Debug)]
pub struct RuleProposal {
    /// Its name, as decisions show it.
    pub rule: String,
    /// Its word.
    pub decision: Verdict,
    /// The calls that wished for it.
    pub calls: Vec<String>,
    /// How many of them a person approved.
    pub approvals: usize,
    /// The rules that open it: the narrowest, which is proposed, then wider ones.
    pub steps: Vec<ProposalStep>,
}

/// One form of a proposed rule, from narrow to wide.
#[derive(Clone, Debug)]
pub struct ProposalStep {
    /// Paths, addresses, a program with its subcommand, or a tool.
    pub allows: Vec<String>,
    /// The recorded calls that it would have changed, beside those that the other proposals change.
    pub calls: Vec<String>,
}

/// A call that stays refused.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    /// The call.
    pub call: String,
    /// What is decided about it.
    pub decision: Decision,
    /// Why no rule is proposed.
    pub reason: String,
}

/// A call that is decided otherwise with the proposals.
#[derive(Clone, Debug)]
pub struct ChangedDecision {
    /// The call.
    pub call: String,
    /// As it is decided now.
    pub before: Decision,
    /// As it would be.
    pub after: Decision,
}

/// Why nothing is proposed at all.
#[derive(Clone, Debug)]
pub enum LearnError {
    /// The policy is not what it says of itself, so that nothing can be built on it.
    InvalidPolicy(Diagnostics),
    /// What was proposed is no policy, or not what it says of itself. It is not shown.
    Refused(String),
}

/// Labels of calls.
pub(super) type CallLabels = BTreeSet<String>;
