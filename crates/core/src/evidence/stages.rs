//! From a call to a clearance.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{Action, Facts, Fingerprint};
use crate::call::ToolCall;
use crate::code::Code;
use crate::confinement::Confinement;
use crate::decision::{Decision, Verdict};
use crate::evidence::Prepared;
use crate::journal::{
    CallDecided, CallProposed, Durability, Event, Journal, PayloadClass, PayloadRef,
};
use crate::json;
use crate::outcome::Problem;
use crate::policy::{Bounds, Case, Judgement, Policy, Usage, decide};
use crate::redact::Redactor;

/// A call that was written down. Nothing is known about it yet.
#[derive(Debug)]
pub struct Proposed {
    call: ToolCall,
    number: u64,
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
    let args_mac = journal.seal_arguments(&json::canonical(&call.args))?;
    let mut masked = 0;
    let clean = redactor.value(call.args.clone(), &mut masked);
    let args = journal.keep(PayloadClass::Arguments, &json::canonical(&clean))?;
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
    journal.append(Event::CallProposed(event), Durability::Process)?;
    Ok(Proposed { call, number })
}

/// What a tool makes of a call: what it means, what was found out, and the hands that could do it.
pub struct Understanding {
    /// What the call means exactly.
    pub action: Action,
    /// What was found out about it.
    pub facts: Facts,
    /// What could carry it out, given a permit.
    pub prepared: Box<dyn Prepared>,
}

impl Proposed {
    /// The call.
    #[must_use]
    pub const fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The call was understood.
    #[must_use]
    pub fn understood(self, understanding: Understanding) -> Preflight {
        Preflight { proposed: self, understanding }
    }

    /// The call was not understood, so it is denied: an error while judging is a denial.
    ///
    /// # Errors
    /// When the decision cannot be written.
    pub fn misunderstood<J: Journal>(
        self,
        problem: Problem,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        let decision = Decision::misunderstood(problem);
        write_decision(self.number, &decision, None, redactor, journal)?;
        Ok(Denied { decision })
    }
}

/// A call that is understood and not yet judged.
pub struct Preflight {
    proposed: Proposed,
    understanding: Understanding,
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
        let Self { proposed, understanding } = self;
        let Understanding { action, facts, prepared } = understanding;
        let tool = &proposed.call.tool;
        let case = Case { tool, action: &action, facts: &facts, usage };
        let Judgement { decision, bounds } = decide(policy, &case);
        let Some(clean) = Considered { action, facts }.masked(redactor) else {
            let problem = Problem::new(Code::ArgsInvalid, UNRECORDABLE).suggest(WITHOUT_SECRET);
            return proposed.misunderstood(problem, redactor, journal).map(Judged::Denied);
        };
        let kept = journal.keep(PayloadClass::Action, &json::canonical(&clean))?;
        // Where the record holds a mask, the policy cannot be asked again: what it said of the
        // secret is in the record, and only a replay, whose hands touch nothing, remembers it.
        let (decision, confinement) = match journal.recall() {
            Some(recalled) => (recalled.decision, recalled.confinement),
            None => (decision, bounds.confinement()),
        };
        let fingerprint = Fingerprint::of(tool, &clean.action, &clean.facts, policy.digest());
        write_decision(proposed.number, &decision, Some((kept, fingerprint)), redactor, journal)?;
        let cleared = Cleared {
            number: proposed.number,
            bounds,
            confinement,
            decision: decision.clone(),
            prepared,
        };
        Ok(match decision.verdict {
            Verdict::Allow => Judged::Allowed(Allowed { cleared: Box::new(cleared) }),
            Verdict::Ask | Verdict::AskEach => Judged::Asking(Asking { decision }),
            Verdict::Deny => Judged::Denied(Denied { decision }),
        })
    }
}

/// Why a call is denied whose meaning falls apart once its secrets are masked.
const UNRECORDABLE: &str = "what it means cannot be recorded: a secret stands in it where no mask can, \
                            such as in the name of a host";
const WITHOUT_SECRET: &str = "leave the secret out of host names and paths";

/// What was judged, as it is recorded.
#[derive(Serialize, Deserialize)]
struct Considered {
    action: Action,
    facts: Facts,
}

impl Considered {
    /// The same without its secrets, in the form in which it reads back: a mask inside of a URL is
    /// encoded like every other character there. None where it would not read back at all.
    fn masked(self, redactor: &Redactor) -> Option<Self> {
        let mut masked = 0;
        let clean = redactor.value(serde_json::to_value(&self).ok()?, &mut masked);
        if masked == 0 {
            return Some(self);
        }
        serde_json::from_value(clean).ok()
    }
}

/// What a decision says in words that may quote the call; kept apart so that it can be erased.
#[derive(Serialize, Deserialize)]
struct Words {
    reason: String,
    suggestion: Option<String>,
}

fn write_decision<J: Journal>(
    call: u64,
    decision: &Decision,
    considered: Option<(PayloadRef, Fingerprint)>,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<(), J::Error> {
    let words = Words { reason: decision.reason.clone(), suggestion: decision.suggestion.clone() };
    let mut masked = 0;
    // Text by text: a key that was cut off is masked to the end of its own text, not of the record.
    let words = redactor.value(serde_json::json!(words), &mut masked);
    let text = journal.keep(PayloadClass::Text, &json::canonical(&words))?;
    let event = CallDecided {
        call,
        decision: decision.verdict,
        code: decision.code,
        rule: decision.rule.clone(),
        at: decision.at.clone(),
        risk: decision.risk,
        capabilities: decision.capabilities,
        liftable: decision.liftable,
        text,
        action: considered.map(|(action, _)| action),
        fingerprint: considered.map(|(_, fingerprint)| fingerprint),
    };
    // What is allowed leads to nothing before its intent is written.
    let allowed = decision.verdict == Verdict::Allow;
    let durability = if allowed { Durability::Next } else { Durability::Process };
    journal.append(Event::CallDecided(event), durability)?;
    Ok(())
}

/// Puts a decision together again from its event and the words beside it.
#[must_use]
pub fn recorded_decision(event: &CallDecided, words: &[u8]) -> Option<Decision> {
    let Words { reason, suggestion } = serde_json::from_slice(words).ok()?;
    Some(Decision {
        verdict: event.decision,
        code: event.code,
        rule: event.rule.clone(),
        at: event.at.clone(),
        risk: event.risk,
        capabilities: event.capabilities,
        reason,
        suggestion,
        liftable: event.liftable,
    })
}

/// The action and the facts that were judged, from their recorded bytes.
#[must_use]
pub fn recorded_action(bytes: &[u8]) -> Option<(Action, Facts)> {
    let Considered { action, facts } = serde_json::from_slice(bytes).ok()?;
    Some((action, facts))
}

/// A call that was judged.
pub enum Judged {
    /// The policy allows it.
    Allowed(Allowed),
    /// The policy wants a person to approve it.
    Asking(Asking),
    /// The policy denies it.
    Denied(Denied),
}

/// A call that the policy allows.
pub struct Allowed {
    cleared: Box<Cleared>,
}

impl Allowed {
    /// Nothing stands in its way.
    #[must_use]
    pub fn clear(self) -> Cleared {
        *self.cleared
    }
}

/// A call that waits for a person.
#[derive(Debug)]
pub struct Asking {
    decision: Decision,
}

impl Asking {
    /// Nobody is there to ask, so it does not run.
    #[must_use]
    pub fn unattended(self) -> Denied {
        Denied { decision: self.decision.unattended() }
    }
}

/// A call that will not run. It holds no hands and leads nowhere.
#[derive(Debug)]
pub struct Denied {
    decision: Decision,
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
    pub(super) bounds: Bounds,
    pub(super) confinement: Option<Confinement>,
    pub(super) decision: Decision,
    pub(super) prepared: Box<dyn Prepared>,
}

impl Cleared {
    /// The decision that cleared it.
    #[must_use]
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }
}
