//! Applying staged changes and undoing calls are a person's own commands. No policy can name them, so
//! that no model and no plan can ask for them; their calls take the one path like all others, under the
//! policy of the run that made the changes.

use alloc::string::String;
use alloc::sync::Arc;

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
/// The tool behind `capsule undo`.
pub const UNDO_TOOL: &str = "changes.undo";

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

    fn with_person_tool(mut self, tool: &str, because: &str) -> Self {
        let rule = ToolRule {
            source: SourceLocation { at: String::from("the command line"), span: 0..0 },
            decision: Some(Verdict::Allow),
            because: Some(String::from(because)),
            suggest: None,
            quota: Quota::default(),
            timeout_ms: units::millis(limits::APPLY_TIME),
            untrusted: false,
            constraint: Constraint::Apply,
            examples: alloc::vec::Vec::new(),
        };
        // A person's own command: what holds a run back holds no person back. Invariants do.
        self.profile = Profile::supervised();
        self.risk_policy = RiskPolicy::default();
        self.budgets = Budgets::default();
        self.tools.clear();
        self.tools.insert(ToolName::unchecked(tool), rule);
        for layer in &mut self.layers {
            layer.policy = Arc::new(Self::clone(&layer.policy).with_person_tool(tool, because));
        }
        self
    }
}
