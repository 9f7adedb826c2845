//! A list of pipelines: the call for the whole only tells its parts, and each of those is a call of its
//! own when it is reached.

use capsule_core::action::Step;
use capsule_core::evidence::{Permit, Prepared as Hands};
use capsule_core::outcome::{Outcome, Output};
use serde_json::{Value, json};

/// The parts of a list.
pub(super) struct Parts(Vec<Value>);

impl Parts {
    pub(super) fn of(steps: &[Step]) -> Self {
        let part = |step: &Step| json!({ "number": step.number, "join": step.join, "runs": !step.stages.is_empty() });
        Self(steps.iter().map(part).collect())
    }
}

impl Hands for Parts {
    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::done(Output::default().with("parts", self.0))
    }
}
