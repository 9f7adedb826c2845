//! What a person said of a decision of another run.

use capsule_core::journal::FeedbackGiven;

use crate::story::{Payloads, json};

/// What a person said of a decision.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// What was written.
    pub given: FeedbackGiven,
    /// Why, in their words.
    pub why: Option<String>,
}

impl Feedback {
    /// What was written, with the words that were kept.
    pub(crate) fn of(given: &FeedbackGiven, payloads: &Payloads<'_>) -> Self {
        Self { given: given.clone(), why: json(payloads, given.why.as_ref()) }
    }
}
