//! A list of pipelines: the call for the whole only tells its parts, and each of those is a call of its
//! own when it is reached.

use capsule_base::root_names::RootNames;
use capsule_core::action::{CommandStep, ListPart};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{Outcome, Output};
use serde_json::json;

/// The parts of a list.
pub(super) struct ListParts {
    parts: Vec<ListPart>,
    /// The workspace, as the parts see it.
    root: String,
}

impl ListParts {
    pub(super) fn from_steps(steps: &[CommandStep], names: &RootNames) -> Self {
        Self { parts: ListPart::of(steps), root: names.mount().into() }
    }
}

impl Operation for ListParts {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::done(Output::default().with("parts", json!(self.parts)).with("root", self.root))
    }
}
