//! What the journal says of a plan's steps.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::journal::PayloadRef;
use capsule_base::code::Code;

/// How a step of a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepEnding {
    /// As expected.
    Ok,
    /// Denied, as the plan expects.
    DeniedAsExpected,
    /// It failed, as the plan expects.
    FailedAsExpected,
    /// Denied.
    Denied,
    /// It failed, or did not give what was expected.
    Failed,
    /// Its `when` did not hold.
    Skipped,
    /// The run ended before it.
    NotReached,
}

/// A step of a plan ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnded {
    /// The step.
    pub step: String,
    /// How.
    pub ending: StepEnding,
    /// The code of what went wrong.
    pub code: Option<Code>,
    /// Whether the run goes on although it went wrong.
    pub goes_on: bool,
    /// What was expected and what came, in words.
    pub note: Option<PayloadRef>,
}
