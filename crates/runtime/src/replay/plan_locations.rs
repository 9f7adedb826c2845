//! Where the steps of a plan stand, in the text that was recorded and in the one that is compared.

use std::collections::BTreeMap;

use capsule_base::diagnostic::Position;
use capsule_core::journal::Event;
use capsule_policy::SourceText;
use capsule_tools::CATALOGUE;

use super::divergence::{Divergence, DivergenceCause};
use super::recording::Recording;
use crate::plan::Plan;

/// The places of steps by their id: in the other plan, and in the recorded one if it can be read.
#[derive(Debug, Default)]
pub(super) struct StepLocations {
    now: BTreeMap<String, String>,
    then: Option<BTreeMap<String, String>>,
}

impl StepLocations {
    /// The places in both plans.
    pub(super) fn read(recording: &Recording, text: &SourceText, plan: &Plan) -> Self {
        let then = recorded_plan_text(recording).and_then(|text| {
            let plan = Plan::parse(&text.text, "", CATALOGUE).ok()?;
            Some(step_locations(&text, &plan))
        });
        Self { now: step_locations(text, plan), then }
    }

    /// Says where the step of a divergence stands.
    pub(super) fn add_location(&self, divergence: &mut Divergence) {
        let Some(step) =
            divergence.step.as_ref().filter(|_| divergence.cause == DivergenceCause::PlanChanged)
        else {
            return;
        };
        let differs =
            divergence.differences.first().map(|difference| format!(" ({})", difference.name));
        let differs = differs.unwrap_or_default();
        let then = self.then.as_ref().and_then(|then| then.get(step));
        divergence.location = match (self.now.get(step), then) {
            (Some(now), Some(then)) => Some(format!("{now}{differs}, was {then}")),
            // Whether it is new, only the recorded plan could say.
            (Some(now), None) if self.then.is_none() => Some(format!("{now}{differs}")),
            (Some(now), None) => Some(format!("{now}, which is new")),
            (None, Some(then)) => Some(format!("it was {then}")),
            (None, None) => None,
        };
    }
}

fn recorded_plan_text(recording: &Recording) -> Option<SourceText> {
    let Some(Event::RunOpened(opened)) = recording.peek(1) else { return None };
    recording.peek_text(opened.plan.as_ref()?)
}

fn step_locations(text: &SourceText, plan: &Plan) -> BTreeMap<String, String> {
    let steps = plan.steps.iter();
    let place = |start| format!("{}:{}", text.name, Position::of(&text.text, start).line);
    steps.map(|step| (step.id.clone(), place(step.span.start))).collect()
}
