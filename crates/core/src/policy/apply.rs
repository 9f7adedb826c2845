//! Applying staged changes is a person's own command. No policy can name it, so that no model and
//! no plan can ask for it; its calls take the one path like all others, under the policy of the run
//! that made the changes.

use alloc::string::String;

use crate::decision::Verdict;
use crate::limits;
use crate::policy::model::{Constraint, Policy, Quota, Source, ToolRule};
use crate::tool::ToolName;
use crate::units;

/// The tool behind `capsule apply`.
pub const APPLY: &str = "changes.apply";

impl Policy {
    /// The same policy for a run whose one call applies staged changes. Its invariants hold for
    /// every one of them.
    #[must_use]
    pub fn applying(mut self) -> Self {
        let rule = ToolRule {
            source: Source { at: String::from("the command line"), span: 0..0 },
            decision: Some(Verdict::Allow),
            because: Some(String::from("a person applies the changes")),
            suggest: None,
            quota: Quota::default(),
            timeout_ms: units::millis(limits::APPLY_TIME),
            constraint: Constraint::Apply,
            examples: alloc::vec::Vec::new(),
        };
        self.tools.clear();
        self.tools.insert(ToolName::asked(APPLY), rule);
        self
    }
}
