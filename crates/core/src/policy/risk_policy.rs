//! What a policy says about risk: the least that each capability carries, what raises it, and from
//! where on a call is refused.

use alloc::string::String;
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::decision::Verdict;
use crate::policy::source_location::SourceLocation;
use crate::risk::Risk;

/// What a policy says about risk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskPolicy {
    /// Where it stands; none where the policy does not say.
    pub source: Option<SourceLocation>,
    /// The least risk that a capability carries.
    pub floors: Vec<(Capability, Risk)>,
    /// The author's words for a capability.
    pub labels: Vec<(Capability, String)>,
    /// What raises the risk of a call.
    pub escalate: Vec<(Hazard, Risk)>,
    /// From this on a call is refused; with none, what is of high risk is asked every time.
    pub block_at: Option<Risk>,
    /// What becomes at least of a command of which nobody knows what it does; none where its rule, or
    /// the words for effects, say that alone.
    pub unknown: Option<Verdict>,
}

/// What raises the risk of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// What it does no undo record can bring back.
    Irreversible,
    /// The program is not the one whose digest the policy names.
    ExecutableChanged,
    /// An argument derives from content that nobody vouches for.
    TaintedArgument,
}

capsule_base::words! {
    Hazard::keyword:
    Irreversible = "irreversible", ExecutableChanged = "executable-changed",
    TaintedArgument = "tainted-argument",
}

capsule_base::words! {
    Hazard::description(..):
    Irreversible = "what it does cannot be brought back",
    ExecutableChanged = "the program is not the one that the policy pins",
    TaintedArgument = "an argument derives from content that nobody vouches for",
}

impl Default for RiskPolicy {
    fn default() -> Self {
        Self {
            source: None,
            floors: Vec::new(),
            labels: Vec::new(),
            escalate: alloc::vec![
                (Hazard::Irreversible, Risk::High),
                (Hazard::ExecutableChanged, Risk::High),
                (Hazard::TaintedArgument, Risk::Medium),
            ],
            block_at: Some(Risk::High),
            unknown: None,
        }
    }
}

impl RiskPolicy {
    /// The least risk of a call that needs these capabilities.
    #[must_use]
    pub fn floor(&self, capabilities: Capabilities) -> Risk {
        let carried =
            self.floors.iter().filter(|(capability, _)| capabilities.contains(*capability));
        carried.map(|(_, risk)| *risk).max().unwrap_or(Risk::Low)
    }

    /// What a hazard raises the risk to.
    #[must_use]
    pub fn raised_by(&self, hazard: Hazard) -> Option<Risk> {
        self.escalate.iter().find(|(candidate, _)| *candidate == hazard).map(|(_, risk)| *risk)
    }

    /// The author's words for a capability.
    #[must_use]
    pub fn label(&self, capability: Capability) -> Option<&str> {
        self.labels
            .iter()
            .find(|(candidate, _)| *candidate == capability)
            .map(|(_, label)| label.as_str())
    }
}
