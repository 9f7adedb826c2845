//! Events of a person's judgement of decisions.

use serde::{Deserialize, Serialize};

use crate::journal::PayloadRef;

/// How a decision was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionFault {
    /// The decision should have been to allow.
    WrongDenial,
    /// The decision should have been to deny.
    WrongAllow,
}

/// A person said that a decision of the run's subject was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackGiven {
    /// The call of the subject that was decided so.
    pub call: u64,
    /// How it was wrong.
    pub fault: DecisionFault,
    /// Why, in the person's words, masked.
    pub why: Option<PayloadRef>,
}
