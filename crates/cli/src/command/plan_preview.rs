//! A plan before it runs: what the policy says of each step, as far as that can be told.

use anstyle::Style;
use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_core::decision::{Decision, Verdict};
use capsule_runtime::BoundPolicy;
use capsule_runtime::plan::{
    EvalScope, Plan, PlanStep, PredictedEnding, StepForecast, forecast_steps, predict_ending,
};
use serde_json::{Map, Value, json};

use crate::command::policy::probing_backend;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{ERROR, SUCCESS, Screen, WARNING};

/// The steps of a plan, ahead of time.
pub(super) struct PlanPreview<'p> {
    plan: &'p Plan,
    pub(super) steps: Vec<StepForecast>,
}

impl<'p> PlanPreview<'p> {
    /// Looks at every step; nothing runs and nothing is written.
    pub(super) fn new(
        plan: &'p Plan,
        inputs: Map<String, Value>,
        bound: &BoundPolicy,
        ctx: &CliContext,
    ) -> Self {
        let scope = EvalScope { inputs, ..EvalScope::default() };
        let mut backend = probing_backend(bound, ctx);
        let redactor = backend.redactor().clone();
        let steps = forecast_steps(&bound.policy, &mut backend, plan, &scope, &redactor);
        Self { plan, steps }
    }

    fn decided_steps(
        &self,
    ) -> impl Iterator<Item = (&'p PlanStep, Option<Decision>, Option<PredictedEnding>)> {
        self.plan.steps.iter().zip(&self.steps).map(|(step, forecast)| {
            let decision = match forecast {
                StepForecast::Known(step) => Some(step.decision().clone()),
                StepForecast::Refused(problem) => Some(Decision::reject_invalid(problem.clone())),
                StepForecast::Unknown => None,
            };
            let ending = decision.as_ref().and_then(|decision| predict_ending(step, decision));
            (step, decision, ending)
        })
    }

    /// How the run would end by what is known, with nobody there to ask.
    pub(super) fn exit(&self) -> Exit {
        let ends = self.decided_steps().filter_map(|(_, _, ending)| Some(ending?.exit));
        ends.fold(Exit::Ok, Exit::min)
    }

    /// The steps for programs.
    pub(super) fn as_json(&self) -> Value {
        let step = |(step, decision, ending): (&PlanStep, _, Option<PredictedEnding>)| {
            json!({
                "step": step.id,
                "tool": step.tool.id,
                "decision": decision,
                "ending": ending.map(|own| own.ending),
            })
        };
        self.decided_steps().map(step).collect()
    }

    /// The steps for a person, a line each.
    pub(super) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        for (index, (step, decision, ending)) in self.decided_steps().enumerate() {
            let about = format!("{} {}", step.id, step.tool.id);
            let (style, word, says) = match &decision {
                None => (WARNING, "later", String::from("depends on earlier results")),
                Some(decision) => {
                    let (style, note) = decision_text(decision.verdict, ending.as_ref());
                    (style, decision.verdict.keyword(), format!("{}{note}", decision.reason))
                }
            };
            let says = escape::line(&says);
            screen.print_fitted(&format!(
                "{:>2} {style}{word:<9}{style:#} {about}: {says}",
                index + 1
            ))?;
        }
        Ok(())
    }
}

/// How a decision is shown, and what the plan's expectations make of it.
fn decision_text(verdict: Verdict, ending: Option<&PredictedEnding>) -> (Style, String) {
    let style = match verdict {
        Verdict::Allow => SUCCESS,
        Verdict::Ask | Verdict::AskEach => WARNING,
        Verdict::Deny => ERROR,
    };
    match ending {
        Some(ending) if ending.is_expected() => (SUCCESS, " (as expected)".into()),
        // What the policy allows goes wrong only where something else is expected of the decision.
        Some(PredictedEnding { problem: Some(problem), .. }) if verdict == Verdict::Allow => {
            (ERROR, format!(" ({})", problem.message))
        }
        _ => (style, String::new()),
    }
}
