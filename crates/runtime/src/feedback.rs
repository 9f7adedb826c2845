//! What a person says of a decision: a run of its own that is about the one with the decision, and
//! changes nothing.

use capsule_core::journal::{DecisionFault, Event, FeedbackGiven, RunKind};
use capsule_store::Store;

use crate::aside::{Aside, AsideError};

/// What a person says of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'f> {
    /// The full id of the run.
    pub run: &'f str,
    /// The call that was decided so.
    pub call: u64,
    /// How it was wrong.
    pub fault: DecisionFault,
    /// Why.
    pub why: Option<&'f str>,
}

impl Feedback<'_> {
    /// Writes it down; gives the label of its run.
    ///
    /// # Errors
    /// When the run that it is about is not there, or the store cannot be written.
    pub fn give(self, store: Store) -> Result<String, AsideError> {
        let Self { run: subject, call, fault, why } = self;
        let aside = Aside { subject, origin: RunKind::Feedback, name: "feedback", why };
        aside.write(store, |why| Event::FeedbackGiven(FeedbackGiven { call, fault, why }))
    }
}
