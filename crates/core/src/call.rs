//! What was asked. A call is untrusted, and nothing can run from it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::ToolName;

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A step of a plan.
    Plan,
    /// A person at the command line.
    Person,
    /// A model.
    Model,
    /// A client of the MCP server, for a model.
    Mcp,
}

/// A request to use a tool, as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool that was asked for, in the words of whoever asked.
    pub tool: ToolName,
    /// The arguments, as JSON with one reading.
    pub args: Value,
    /// Who asked.
    pub origin: Origin,
    /// The id of the plan's step, if there is one.
    pub step: Option<String>,
    /// Which attempt at the step this is, from 1 on.
    pub attempt: u32,
    /// The arguments that were derived from content that nobody vouches for.
    pub tainted: Vec<String>,
}

impl ToolCall {
    /// A call that a person makes at the command line.
    #[must_use]
    pub fn by_person(tool: &str, args: Value) -> Self {
        Self::by(Origin::Person, tool, args)
    }

    /// A call that stands for itself, not for a step of a plan.
    #[must_use]
    pub fn by(origin: Origin, tool: &str, args: Value) -> Self {
        let tool = ToolName::unchecked(tool);
        Self { tool, args, origin, step: None, attempt: 1, tainted: Vec::new() }
    }
}
