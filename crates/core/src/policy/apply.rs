//! Tools that a person is behind. Applying staged changes and undoing calls are a person's own commands, and so is attaching
//! a file. No policy can name them, so that no model and no plan can ask for them; their calls take the one path like all
//! others, changes under the policy of the run that made them. A question to the user needs no rule either.

use alloc::string::String;
use alloc::sync::Arc;

use crate::action::Action;
use crate::confinement::{NetworkAccess, WorkspaceAccess};
use crate::decision::Verdict;
use crate::policy::budget::Budgets;
use crate::policy::model::{Constraint, Policy, Quota, ToolRule};
use crate::policy::profile::Profile;
use crate::policy::risk_policy::RiskPolicy;
use crate::policy::source_location::SourceLocation;
use crate::tool::ToolName;
use capsule_base::limits;
use capsule_base::units;

/// The tool behind `capsule apply`.
pub const APPLY_TOOL: &str = "changes.apply";
/// The tool behind `capsule sandbox` with a policy.
pub const AGENT_TOOL: &str = "agent.run";
/// The tool behind `/attach`.
pub const ATTACH_TOOL: &str = "user.attach";
/// The tool behind `capsule undo`.
pub const UNDO_TOOL: &str = "changes.undo";

/// Whether an action is one of the user, which needs no rule in a policy.
pub(super) const fn is_user_action(action: &Action) -> bool {
    matches!(action, Action::AskUser { .. } | Action::Attach { .. } | Action::Agent { .. })
}

impl ToolRule {
    /// The rule of a tool that a person is behind.
    pub(super) fn of_person(because: &str) -> Self {
        Self {
            source: SourceLocation { at: String::from("the command line"), span: 0..0 },
            decision: Some(Verdict::Allow),
            because: Some(String::from(because)),
            suggest: None,
            quota: Quota::default(),
            timeout_ms: units::millis(limits::APPLY_TIME),
            untrusted: false,
            constraint: Constraint::Person,
            examples: alloc::vec::Vec::new(),
        }
    }

    /// The rule of an action that needs none in a policy, because the user acts: a file is attached, or a question answered,
    /// unless the policy names no tool at all.
    pub(super) fn of_user_action(policy: &Policy, action: &Action) -> Option<Self> {
        match action {
            Action::AskUser { .. } if policy.tools.is_empty() => None,
            Action::AskUser { .. } => Some(Self::of_person("the user answers")),
            Action::Attach { .. } => Some(Self::of_person("the user attached the file")),
            Action::Agent { .. } => Some(Self::of_person("the user started the agent")),
            _ => None,
        }
    }
}

impl Policy {
    /// The same policy for a run whose one call applies staged changes. Its invariants hold for
    /// every one of them.
    #[must_use]
    pub fn for_apply(self) -> Self {
        self.with_person_tool(APPLY_TOOL, "a person applies the changes")
    }

    /// The same policy for a run whose one call undoes calls of another run, in the same way.
    #[must_use]
    pub fn for_undo(self) -> Self {
        self.with_person_tool(UNDO_TOOL, "a person undoes what was done")
    }

    /// The same policy for a run whose one call is a whole agent: what it does to its workspace, and whether it has
    /// the proxy that the policy opens, is the choice of the person who starts it.
    #[must_use]
    pub fn for_agent(mut self, is_staged: bool, network: NetworkAccess) -> Self {
        self.rules.sandbox.workspace =
            if is_staged { WorkspaceAccess::Staged } else { WorkspaceAccess::Direct };
        self.rules.sandbox.network = self.sandbox.network.min(network);
        for layer in &mut self.layers {
            layer.policy = Arc::new(Self::clone(&layer.policy).for_agent(is_staged, network));
        }
        self
    }

    fn with_person_tool(mut self, tool: &str, because: &str) -> Self {
        // A person's own command: what holds a run back holds no person back. Invariants do.
        self.rules.profile = Profile::supervised();
        self.rules.risk_policy = RiskPolicy::default();
        self.rules.budgets = Budgets::default();
        self.rules.tools.clear();
        self.rules.tools.insert(ToolName::unchecked(tool), ToolRule::of_person(because));
        for layer in &mut self.layers {
            layer.policy = Arc::new(Self::clone(&layer.policy).with_person_tool(tool, because));
        }
        self
    }
}
