//! A rule that a refused call would need.

use capsule_base::path::WorkspacePath;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::tool::ToolName;

/// What a rule would have to open, and with which word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MissingRule {
    pub(super) subject: RuleSubject,
    /// What was asked becomes allowed; what was denied becomes a question, unless it only looks.
    pub(super) verdict: Verdict,
}

/// What a rule would have to open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleSubject {
    /// A path, for a tool.
    Path(ToolName, WorkspacePath),
    /// A page: its origin, and its path.
    Page(String, String),
    /// A program, with its subcommands.
    Program(Vec<String>),
    /// A tool as a whole, of those that only look.
    Tool(ToolName),
}

/// A rule that denies by name is meant.
pub(super) fn named_denial(said: &Decision) -> String {
    let rule = said.rule.as_deref().unwrap_or("a rule");
    format!("the rule `{rule}` denies it by name, which is meant: {}", said.reason)
}
