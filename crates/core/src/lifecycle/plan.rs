//! A plan as one question: what its steps need is shown before any of them runs, as far as it is known
//! then. A yes is leave for exactly these calls; each is judged again when it is reached, and what has
//! become another call since is asked about by itself.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::Value;

use crate::action::{Action, Facts};
use crate::approval::{ApprovalAnswer, Approver, PlannedRequest};
use crate::call::ToolCall;
use crate::confinement::Confinement;
use crate::decision::{Decision, Verdict};
use crate::journal::{Durability, Event, Journal};
use crate::lifecycle::approval::{answer_event, refusal_problem, shown_event};
use crate::lifecycle::redacted::RedactedCall;
use crate::lifecycle::{PreflightReport, Preview};
use crate::outcome::CodedError;
use crate::policy::{Judgement, Policy, PolicyInput, Usage, decide};
use capsule_base::digest::Digest;
use capsule_redact::Redactor;

/// A call that a plan will come to, as it is found before the plan begins. Nothing can run from it.
pub struct PlannedCall {
    call: ToolCall,
    redacted: RedactedCall,
    decision: Decision,
    confinement: Option<Confinement>,
    /// The lines that would change, masked, where a person is asked about them.
    diff: Preview,
    max_attempts: u64,
}

impl PlannedCall {
    /// Judges a call that is tried up to so many times.
    ///
    /// # Errors
    /// When it cannot be recorded what it is, as which it will be denied.
    pub fn judge(
        (call, tries): (ToolCall, u64),
        report: PreflightReport,
        policy: &Arc<Policy>,
        usage: &Usage,
        redactor: &Redactor,
    ) -> Result<Self, CodedError> {
        let PreflightReport { action, facts, operation: mut prepared } = report;
        let (tool, tainted) = (&call.tool, call.tainted.as_slice());
        let input =
            PolicyInput { tool, action: &action, facts: &facts, usage, tainted, args_digest: None };
        let Judgement { decision, restrictions: bounds, .. } = decide(policy, &input);
        let seen = RedactedCall::of(tool, (action, facts), policy.digest(), redactor)?;
        let asked = decision.verdict == Verdict::Ask;
        let diff = if asked { prepared.preview() } else { Preview::Unavailable };
        let diff = diff.masked(redactor);
        Ok(Self {
            call,
            redacted: seen,
            decision,
            confinement: bounds.confinement(),
            diff,
            max_attempts: tries,
        })
    }

    /// What the policy says now.
    #[must_use]
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What it means, masked.
    #[must_use]
    pub const fn action(&self) -> &Action {
        self.redacted.action()
    }

    /// What was found, masked.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        self.redacted.facts()
    }

    /// How often it is tried at most.
    #[must_use]
    pub const fn max_attempts(&self) -> u64 {
        self.max_attempts
    }

    /// Whether a person is asked about it, and may be asked together with other steps.
    #[must_use]
    pub fn needs_approval(&self) -> bool {
        self.decision.verdict == Verdict::Ask
    }

    fn request<'q>(&'q self, args: &'q Value, bound: Digest) -> PlannedRequest<'q> {
        let judgement = (&self.decision, self.confinement);
        let shown = (args, bound, self.diff.lines());
        PlannedRequest {
            request: self.redacted.approval_request((0, &self.call), shown, judgement),
            max_attempts: self.max_attempts,
        }
    }
}

/// What became of the question about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanApproval {
    /// Its steps are taken one by one, within what was allowed, if anything was.
    Proceed,
    /// None of it runs, for this reason.
    Denied(CodedError),
}

/// Asks about what a plan will come to. `open` is the number of steps of which nothing is known yet.
///
/// # Errors
/// When it cannot be written.
pub fn request_plan_approval<J: Journal>(
    steps: &[PlannedCall],
    open: u64,
    approver: &mut dyn Approver,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<PlanApproval, J::Error> {
    let mut ready = Vec::new();
    for step in steps.iter().filter(|step| step.needs_approval()) {
        let bound = journal.seal_arguments(&step.redacted.binding(step.diff.lines()))?;
        ready.push((step, redactor.value(step.call.args.clone(), &mut 0), bound));
    }
    let requests: Vec<PlannedRequest<'_>> =
        ready.iter().map(|(step, args, bound)| step.request(args, *bound)).collect();
    let card = approver.plan_card(&requests, open).and_then(|card| card.mask_secrets(redactor));
    let Some(card) = card else { return Ok(PlanApproval::Proceed) };
    let shown = shown_event(0, &card, journal)?;
    journal.append(Event::PlanShown(shown), Durability::CrashSafe)?;
    let given = approver.ask(&card);
    let event = answer_event(0, &given, redactor, journal)?;
    journal.append(Event::PlanAnswered(event), Durability::CrashSafe)?;
    Ok(match given.answer {
        answer @ (ApprovalAnswer::Denied(..) | ApprovalAnswer::Stopped(..)) => {
            PlanApproval::Denied(refusal_problem(answer))
        }
        // What was not answered is asked step by step; so is what nobody can change as a whole.
        ApprovalAnswer::Approved(..)
        | ApprovalAnswer::Changed(..)
        | ApprovalAnswer::Deferred(_)
        | ApprovalAnswer::Expired
        | ApprovalAnswer::Withdrawn => PlanApproval::Proceed,
    })
}
