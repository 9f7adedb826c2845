//! The input of a decision.

use alloc::string::String;

use crate::action::{Action, Facts};
use crate::capability::{Capabilities, Capability};
use crate::policy::usage::Usage;
use crate::tool::ToolName;
use capsule_base::digest::Digest;

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'c> {
    /// The tool's id.
    pub tool: &'c ToolName,
    /// What the call means.
    pub action: &'c Action,
    /// What was found out about it.
    pub facts: &'c Facts,
    /// What the run has used so far.
    pub usage: &'c Usage,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: &'c [String],
    /// The digest of its arguments, by which an equal call is known.
    pub args_digest: Option<Digest>,
}

impl PolicyInput<'_> {
    /// The powers that the call needs by what it means. Having masks put back into what a file holds
    /// tells what that is.
    pub(super) fn capabilities(&self) -> Capabilities {
        let capabilities = self.action.capabilities();
        match self.action {
            Action::Write { .. } if self.facts.masks > 0 => capabilities.with(Capability::FsRead),
            _ => capabilities,
        }
    }
}
