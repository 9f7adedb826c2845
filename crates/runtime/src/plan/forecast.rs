//! What a plan will come to, as far as it can be told before it begins.

use std::sync::Arc;

use capsule_core::lifecycle::PlannedCall;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{Policy, Usage};
use capsule_redact::Redactor;

use crate::backend::CallBackend;
use crate::plan::execute::build_call;
use crate::plan::{EvalScope, OnError, Plan, PlanStep};

/// What a step will come to.
pub enum StepForecast {
    /// What its call is and what the policy says is known.
    Known(Box<PlannedCall>),
    /// Its call is not understood, or cannot be recorded, which is a denial.
    Refused(CodedError),
    /// It depends on what other steps give.
    Unknown,
}

/// Looks ahead at every step of a plan, in order. Nothing runs and nothing is written.
pub fn forecast_steps<H: CallBackend>(
    policy: &Arc<Policy>,
    backend: &mut H,
    plan: &Plan,
    scope: &EvalScope,
    redactor: &Redactor,
) -> Vec<StepForecast> {
    let usage = Usage::default();
    let look = |step: &PlanStep| {
        let Ok(call) = build_call(step, scope, 1) else { return StepForecast::Unknown };
        match backend.preflight_ahead(&call) {
            None => StepForecast::Unknown,
            Some(Err(problem)) => StepForecast::Refused(problem),
            Some(Ok(found)) => {
                match PlannedCall::judge((call, max_tries(step)), found, policy, &usage, redactor) {
                    Ok(known) => StepForecast::Known(Box::new(known)),
                    Err(problem) => StepForecast::Refused(problem),
                }
            }
        }
    };
    plan.steps.iter().map(look).collect()
}

/// How often a step is tried at most.
const fn max_tries(step: &PlanStep) -> u64 {
    match step.on_error {
        OnError::Retry { times, .. } => times.saturating_add(1),
        OnError::Stop | OnError::Continue => 1,
    }
}
