//! What a person said of a decision of another run.

use capsule_core::journal::FeedbackGiven;

use crate::payloads::{PayloadLookup, payload_json};

/// What a person said of a decision.
#[derive(Clone, Debug)]
pub struct FeedbackView {
    /// What was written.
    pub given: FeedbackGiven,
    /// Why, in their words.
    pub why: Option<String>,
}

impl FeedbackView {
    /// What was written, with the words that were kept.
    pub(crate) fn from_record(given: &FeedbackGiven, payloads: &PayloadLookup<'_>) -> Self {
        Self { given: given.clone(), why: payload_json(payloads, given.why.as_ref()) }
    }
}
