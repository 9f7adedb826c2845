//! Calls of recorded runs, to be decided again.

use std::sync::Arc;

use capsule_base::digest::Digest;
use capsule_core::action::{Action, Facts};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{Policy, PolicyInput, Usage, decide};
use capsule_core::tool::ToolName;

/// A call of a recorded run, as it was understood then.
#[derive(Clone, Debug)]
pub struct PastCall {
    /// How a person names it: `r-7Q3K:4`.
    pub label: String,
    /// The tool.
    pub tool: ToolName,
    /// What it means.
    pub action: Action,
    /// What was found out about it.
    pub facts: Facts,
    /// What the run had used before it.
    pub usage: Usage,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: Vec<String>,
    /// The digest of its raw arguments, by which an equal call is known.
    pub args_digest: Digest,
    /// What was decided.
    pub verdict: Verdict,
    /// What a person said, where the policy asked.
    pub answer: RecordedAnswer,
    /// Whether the plan expected it to be denied.
    pub expected: bool,
}

/// What a person said to a question of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedAnswer {
    /// Nobody was asked, or nobody answered.
    #[default]
    None,
    /// Yes, to this call or to others like it.
    Yes,
    /// No, or not like this.
    No,
}

impl PastCall {
    /// Whether it was refused or asked about, and nobody meant it to be.
    #[must_use]
    pub fn is_unmet_request(&self) -> bool {
        self.verdict != Verdict::Allow && !self.expected
    }

    /// What a policy decides on it.
    #[must_use]
    pub fn decide(&self, policy: &Arc<Policy>) -> Decision {
        let Self { tool, action, facts, usage, tainted, args_digest: call, .. } = self;
        let args_digest = Some(*call);
        decide(policy, &PolicyInput { tool, action, facts, usage, tainted, args_digest }).decision
    }
}
