//! From a call to a clearance.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{Action, Facts, Fingerprint};
use crate::call::ToolCall;
use crate::confinement::Confinement;
use crate::decision::{Decision, Verdict};
use crate::journal::{
    CallDecided, CallProposed, Durability, Event, Journal, PayloadClass, PayloadRef,
};
use crate::lifecycle::Operation;
use crate::lifecycle::approval::{AwaitingApproval, BatchApproval, stale_approval, write_refusal};
use crate::lifecycle::redacted::RedactedCall;
use crate::outcome::CodedError;
use crate::policy::{Judgement, Policy, PolicyInput, Restrictions, Usage, decide};
use capsule_base::digest::Digest;
use capsule_base::json;
use capsule_redact::Redactor;

/// A call that was written down. Nothing is known about it yet.
#[derive(Debug)]
pub struct Proposed {
    call: ToolCall,
    number: u64,
    args_mac: Digest,
}

/// Writes down that a call was asked for.
///
/// # Errors
/// When it cannot be written.
pub fn propose<J: Journal>(
    call: ToolCall,
    number: u64,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<Proposed, J::Error> {
    let args_mac = journal.seal_arguments(&json::canonical_value(&call.args))?;
    let mut masked = 0;
    let clean = redactor.value(call.args.clone(), &mut masked);
    let args = journal.put_payload(PayloadClass::Arguments, &json::canonical_value(&clean))?;
    let event = CallProposed {
        call: number,
        step: call.step.clone(),
        attempt: call.attempt,
        tool: call.tool.clone(),
        origin: call.origin,
        args,
        args_mac,
        tainted: call.tainted.clone(),
    };
    journal.append(Event::CallProposed(event), Durability::CrashSafe)?;
    Ok(Proposed { call, number, args_mac })
}

/// What a tool makes of a call: what it means, what was found out, and the operation that could do it.
pub struct PreflightReport {
    /// What the call means exactly.
    pub action: Action,
    /// What was found out about it.
    pub facts: Facts,
    /// What could carry it out, given a permit.
    pub operation: Box<dyn Operation>,
}

impl Proposed {
    /// The call.
    #[must_use]
    pub const fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The digest of its raw arguments, under the run's key.
    #[must_use]
    pub const fn args_mac(&self) -> Digest {
        self.args_mac
    }

    /// The call was understood.
    #[must_use]
    pub fn into_preflight(self, report: PreflightReport) -> Preflight {
        Preflight { proposed: self, report }
    }

    /// The call was not understood, so it is denied: an error while judging is a denial.
    ///
    /// # Errors
    /// When the decision cannot be written.
    pub fn reject_invalid<J: Journal>(
        self,
        problem: CodedError,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        let decision = Decision::reject_invalid(problem);
        let decision = write_decision(self.number, decision, None, redactor, journal)?;
        Ok(Denied { decision })
    }
}

/// A call that is understood and not yet judged.
pub struct Preflight {
    proposed: Proposed,
    report: PreflightReport,
}

impl Preflight {
    /// Judges the call and writes down the decision.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn judge<J: Journal>(
        self,
        policy: &Arc<Policy>,
        usage: &Usage,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Judged, J::Error> {
        let Self { proposed, report: understanding } = self;
        let PreflightReport { action, facts, operation: mut prepared } = understanding;
        let tool = &proposed.call.tool;
        let (tainted, call) = (proposed.call.tainted.as_slice(), Some(proposed.args_mac));
        let input =
            PolicyInput { tool, action: &action, facts: &facts, usage, tainted, args_digest: call };
        let Judgement { decision, restrictions: bounds, .. } = decide(policy, &input);
        let is_ready = decision.verdict == Verdict::Allow;
        if is_ready {
            prepared.prepare(&bounds);
        }
        let redacted = match RedactedCall::of(tool, (action, facts), policy.digest(), redactor) {
            Ok(seen) => seen,
            Err(problem) => {
                return proposed.reject_invalid(problem, redactor, journal).map(Judged::Denied);
            }
        };
        let kept = journal.put_payload(PayloadClass::Action, &redacted.bytes)?;
        // Where the record holds a mask, the policy cannot be asked again: what it said of the
        // secret is in the record, and only a replay, whose backend touches nothing, remembers it.
        let (decision, confinement) = match journal.recorded_decision() {
            Some(recalled) => (recalled.decision, recalled.confinement),
            None => (decision, bounds.confinement()),
        };
        let considered = Some((kept, redacted.fingerprint));
        let decision = write_decision(proposed.number, decision, considered, redactor, journal)?;
        let cleared = Cleared {
            number: proposed.number,
            restrictions: bounds,
            confinement,
            decision: decision.clone(),
            operation: prepared,
            is_prepared: is_ready,
            batch: None,
        };
        Ok(match decision.verdict {
            Verdict::Allow => Judged::Allowed(AllowedCall { cleared: Box::new(cleared) }),
            Verdict::Ask | Verdict::AskEach => Judged::NeedsApproval(Box::new(AwaitingApproval {
                cleared: Box::new(cleared),
                call: proposed.call,
                redacted,
            })),
            Verdict::Deny => Judged::Denied(Denied { decision }),
        })
    }
}

/// What a decision says in words that may quote the call; kept apart so that it can be erased.
#[derive(Serialize, Deserialize)]
struct DecisionText {
    reason: String,
    suggestion: Option<String>,
}

/// Writes a decision; gives it as it is written, which is all that anybody is told of it.
fn write_decision<J: Journal>(
    call: u64,
    decision: Decision,
    record: Option<(PayloadRef, Fingerprint)>,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<Decision, J::Error> {
    // Text by text: a key that was cut off is masked to the end of its own text, not of the record.
    let clean = |text: String| redactor.text(&text, &mut 0).into_owned();
    let Decision { reason, suggestion, .. } = decision;
    let words = DecisionText { reason: clean(reason), suggestion: suggestion.map(clean) };
    let text = journal.put_payload(PayloadClass::Text, &json::canonical(&words))?;
    let decision = Decision { reason: words.reason, suggestion: words.suggestion, ..decision };
    let event = CallDecided {
        call,
        decision: decision.verdict,
        code: decision.code,
        rule: decision.rule.clone(),
        at: decision.at.clone(),
        risk: decision.risk,
        capabilities: decision.capabilities,
        approvable: decision.approvable,
        text,
        action: record.map(|(action, _)| action),
        fingerprint: record.map(|(_, fingerprint)| fingerprint),
    };
    // What is allowed leads to nothing before its intent is written.
    let allowed = decision.verdict == Verdict::Allow;
    let durability = if allowed { Durability::Deferred } else { Durability::CrashSafe };
    journal.append(Event::CallDecided(event), durability)?;
    Ok(decision)
}

/// Puts a decision together again from its event and the words beside it.
#[must_use]
pub fn recorded_decision(event: &CallDecided, text: &[u8]) -> Option<Decision> {
    let DecisionText { reason, suggestion } = serde_json::from_slice(text).ok()?;
    Some(Decision {
        verdict: event.decision,
        code: event.code,
        rule: event.rule.clone(),
        at: event.at.clone(),
        risk: event.risk,
        capabilities: event.capabilities,
        reason,
        suggestion,
        approvable: event.approvable,
    })
}

/// A call that was judged.
pub enum Judged {
    /// The policy allows it.
    Allowed(AllowedCall),
    /// The policy wants a person to approve it.
    NeedsApproval(Box<AwaitingApproval>),
    /// The policy denies it.
    Denied(Denied),
}

/// A call that the policy allows.
pub struct AllowedCall {
    cleared: Box<Cleared>,
}

impl AllowedCall {
    /// Nothing stands in its way.
    #[must_use]
    pub fn clear(self) -> Cleared {
        *self.cleared
    }

    /// It was asked about when somebody answered, and is not asked about now: another call than the
    /// one that they saw, whose answer may have been no.
    ///
    /// # Errors
    /// When the refusal cannot be written.
    pub fn refuse_unasked<J: Journal>(
        self,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        write_refusal(*self.cleared, stale_approval(), redactor, journal)
    }
}

/// A call that will not run. It holds no operation and leads nowhere.
#[derive(Debug)]
pub struct Denied {
    pub(super) decision: Decision,
}

impl Denied {
    /// The decision.
    #[must_use]
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }
}

/// A call that may run once its intent is written.
pub struct Cleared {
    pub(super) number: u64,
    pub(super) restrictions: Restrictions,
    pub(super) confinement: Option<Confinement>,
    pub(super) decision: Decision,
    pub(super) operation: Box<dyn Operation>,
    /// Whether that was made ready.
    pub(super) is_prepared: bool,
    /// What a person approved with it, if it is a list.
    pub(super) batch: Option<BatchApproval>,
}

impl Cleared {
    /// What a person approved with it, if it is a list: its parts run within that.
    pub const fn take_batch_approval(&mut self) -> Option<BatchApproval> {
        self.batch.take()
    }

    /// The decision that cleared it.
    #[must_use]
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }
}
