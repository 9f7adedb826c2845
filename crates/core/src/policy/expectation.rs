//! The expectations of a policy's author: the examples of its rules, and its tests.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde_json::Value;

use crate::capability::Capabilities;
use crate::decision::Verdict;
use crate::policy::source_location::SourceLocation;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;

/// What a policy's author says that a rule decides.
#[derive(Clone, Debug)]
pub struct PolicyExample {
    /// Where it stands.
    pub source: SourceLocation,
    /// What is decided.
    pub expect: ExampleExpectation,
    /// The arguments of the call.
    pub args: Value,
    /// The rule that it is an example of.
    pub rule: String,
}

/// What a policy's author says that it decides on a call.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    /// Where it stands.
    pub source: SourceLocation,
    /// What it is called.
    pub name: String,
    /// The profiles that it is asked under; the policy's own if none is named.
    pub profiles: Vec<String>,
    /// The tool.
    pub tool: ToolName,
    /// The arguments of the call.
    pub args: Value,
    /// What the host resolves to.
    pub resolves: Vec<IpAddr>,
    /// What is decided.
    pub expect: DecisionExpectation,
}

/// What a decision has to be, as far as it is said.
#[derive(Clone, Debug, Default)]
pub struct DecisionExpectation {
    /// The word.
    pub decision: Option<Verdict>,
    /// The rule that decides.
    pub rule: Option<String>,
    /// The code.
    pub code: Option<Code>,
    /// The risk.
    pub risk: Option<Risk>,
    /// What the call needs.
    pub capabilities: Option<Capabilities>,
}

/// What an example says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleExpectation {
    /// The call is decided so.
    Verdict(Verdict),
    /// The rule is not the one that decides.
    NoMatch,
}
