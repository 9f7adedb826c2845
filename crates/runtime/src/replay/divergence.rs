//! Where and why a replay differs from its recording.

/// Why a replay differs: a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceCause {
    /// Another plan was given.
    PlanChanged,
    /// The call has other arguments.
    ArgumentsChanged,
    /// The recorded calls come in another order.
    OrderChanged,
    /// There is a call that was not recorded.
    ExtraCall,
    /// There is no call where one was recorded.
    MissingCall,
    /// The policy decides otherwise.
    PolicyChanged,
    /// Another build with other tools replays it.
    ToolVersionChanged,
    /// The same inputs gave other bytes: a fault of ours.
    EngineBug,
}

impl DivergenceCause {
    /// The words that are shown.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::PlanChanged => "the plan changed",
            Self::ArgumentsChanged => "arguments changed",
            Self::OrderChanged => "order changed",
            Self::ExtraCall => "extra call",
            Self::MissingCall => "missing call",
            Self::PolicyChanged => "policy changed",
            Self::ToolVersionChanged => "tool version changed",
            Self::EngineBug => "engine bug (same inputs, other bytes)",
        }
    }
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What: `tool`, `args.path`, `url.query`, `decision`.
    pub name: String,
    /// As it was recorded.
    pub recorded: String,
    /// As it is now.
    pub now: String,
}

/// Where and why a replay differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Why.
    pub cause: DivergenceCause,
    /// The step that it happened in.
    pub step: Option<String>,
    /// Where that step stands, now and then, where another plan was given.
    pub location: Option<String>,
    /// How many calls were served before.
    pub served: u64,
    /// How many calls the recording has.
    pub calls: u64,
    /// What differs.
    pub differences: Vec<Difference>,
    /// The recorded call that comes nearest to one that was not recorded: its number.
    pub nearest: Option<u64>,
}
