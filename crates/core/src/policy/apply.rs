//! Applying staged changes and undoing calls are a person's own commands. No policy can name them, so
//! that no model and no plan can ask for them; their calls take the one path like all others, under the
//! policy of the run that made the changes.

use alloc::string::String;
use alloc::sync::Arc;

use crate::decision::Verdict;
use crate::limits;
use crate::policy::budget::Budgets;
use crate::policy::model::{Constraint, Policy, Quota, Source, ToolRule};
use crate::policy::profile::Profile;
use crate::policy::stakes::Stakes;
use crate::tool::ToolName;
use crate::units;

/// The tool behind `capsule apply`.
pub const APPLY: &str = "changes.apply";
/// The tool behind `capsule undo`.
pub const UNDO: &str = "changes.undo";

impl Policy {
    /// The same policy for a run whose one call applies staged changes. Its invariants hold for
    /// every one of them.
    #[must_use]
    pub fn applying(self) -> Self {
        self.by_person(APPLY, "a person applies the changes")
    }

    /// The same policy for a run whose one call undoes calls of another run, in the same way.
    #[must_use]
    pub fn undoing(self) -> Self {
        self.by_person(UNDO, "a person undoes what was done")
    }

    fn by_person(mut self, tool: &str, because: &str) -> Self {
        let rule = ToolRule {
            source: Source { at: String::from("the command line"), span: 0..0 },
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
        self.stakes = Stakes::default();
        self.budgets = Budgets::default();
        self.tools.clear();
        self.tools.insert(ToolName::asked(tool), rule);
        for layer in &mut self.layers {
            layer.policy = Arc::new(Self::clone(&layer.policy).by_person(tool, because));
        }
        self
    }
}
