//! What a person says of a decision: a run of its own that is about the one with the decision, and
//! changes nothing.

use capsule_core::journal::{DecisionFault, Event, FeedbackGiven, RunKind};
use capsule_store::Store;

use crate::annotation::{Annotation, AnnotationError};

/// What a person says of a decision.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackRequest<'f> {
    /// The full id of the run.
    pub run: &'f str,
    /// The call that was decided so.
    pub call: u64,
    /// How it was wrong.
    pub fault: DecisionFault,
    /// Why.
    pub why: Option<&'f str>,
}

impl FeedbackRequest<'_> {
    /// Writes it down; gives the label of its run.
    ///
    /// # Errors
    /// When the run that it is about is not there, or the store cannot be written.
    pub fn record(self, store: Store) -> Result<String, AnnotationError> {
        let Self { run: subject, call, fault, why } = self;
        let aside = Annotation { subject, kind: RunKind::Feedback, name: "feedback", why };
        aside.write(store, |why| Event::FeedbackGiven(FeedbackGiven { call, fault, why }))
    }
}
