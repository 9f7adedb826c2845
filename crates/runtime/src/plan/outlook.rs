//! What a plan will come to, as far as it can be told before it begins.

use std::sync::Arc;

use capsule_core::lifecycle::PlannedCall;
use capsule_core::outcome::CodedError;
use capsule_core::policy::{Policy, Usage};
use capsule_redact::Redactor;

use crate::hands::Hands;
use crate::plan::execute::call;
use crate::plan::{OnError, Plan, Scope, Step};

/// What a step will come to.
pub enum Outlook {
    /// What its call is and what the policy says is known.
    Known(Box<PlannedCall>),
    /// Its call is not understood, or cannot be recorded, which is a denial.
    Refused(CodedError),
    /// It depends on what other steps give.
    Later,
}

/// Looks ahead at every step of a plan, in order. Nothing runs and nothing is written.
pub fn outlook<H: Hands>(
    policy: &Arc<Policy>,
    hands: &mut H,
    plan: &Plan,
    scope: &Scope,
    redactor: &Redactor,
) -> Vec<Outlook> {
    let usage = Usage::default();
    let look = |step: &Step| {
        let Ok(call) = call(step, scope, 1) else { return Outlook::Later };
        match hands.foresee(&call) {
            None => Outlook::Later,
            Some(Err(problem)) => Outlook::Refused(problem),
            Some(Ok(found)) => {
                match PlannedCall::judge((call, tries(step)), found, policy, &usage, redactor) {
                    Ok(known) => Outlook::Known(Box::new(known)),
                    Err(problem) => Outlook::Refused(problem),
                }
            }
        }
    };
    plan.steps.iter().map(look).collect()
}

/// How often a step is tried at most.
const fn tries(step: &Step) -> u64 {
    match step.on_error {
        OnError::Retry { times, .. } => times.saturating_add(1),
        OnError::Stop | OnError::Continue => 1,
    }
}
