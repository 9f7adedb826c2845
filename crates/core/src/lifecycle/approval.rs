//! From a question to a clearance: by a grant, within what was approved already, or by an answer. Each
//! way is written down before it leads on.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, CommandStep, Expansion, Facts, Fingerprint, protect_leading_dash};
use crate::approval::{
    ApprovalAnswer, ApprovalRoute, Approver, Card, Grant, GrantUse, ReceivedAnswer,
};
use crate::call::ToolCall;
use crate::capability::Capabilities;
use crate::decision::Decision;
use crate::journal::{
    ApprovalAnswered, ApprovalShown, ApprovalWaiting, Durability, Event, GrantGiven, GrantUsed,
    Journal, PayloadClass, PayloadRef,
};
use crate::lifecycle::redacted::RedactedCall;
use crate::lifecycle::run::EndWriter;
use crate::lifecycle::{Cleared, Denied, PreflightReport};
use crate::outcome::{CodedError, Outcome};
use crate::policy::Policy;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::json;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_command::program::ProgramFact;
use capsule_command::shell_syntax::ShellWord;
use capsule_redact::Redactor;

/// A call that waits for a person. It leads nowhere by itself.
pub struct AwaitingApproval {
    /// What it becomes.
    pub(super) cleared: Box<Cleared>,
    /// The call, as it was asked for.
    pub(super) call: ToolCall,
    pub(super) redacted: RedactedCall,
}

/// The outcome of a question that was not shown.
pub enum RoutedApproval {
    /// The call may run.
    Cleared(Box<Cleared>),
    /// It is shown now.
    Shown(AwaitingAnswer),
    /// Nobody is there, so it does not run.
    Denied(Denied),
}

/// A call of which a person sees a card.
pub struct AwaitingAnswer {
    awaiting: Box<AwaitingApproval>,
    card: Box<Card>,
}

/// What a card came to.
pub enum AnsweredCall {
    /// A person said yes. What is there has to be looked at again.
    Approved(Approved),
    /// The call does not run.
    Denied(Denied),
    /// Another call is to be made instead.
    Changed(ToolCall),
}

/// A call to which a person said yes.
pub struct Approved {
    awaiting: Box<AwaitingApproval>,
    /// The lines that were shown to differ.
    diff: Option<String>,
}

/// What was approved with a list: what its parts may need without another question.
#[derive(Clone, Debug)]
pub struct BatchApproval {
    call: u64,
    capabilities: Capabilities,
    expansions: Vec<Expansion>,
    programs: Vec<(String, ProgramFact)>,
    /// Its parts, in every directory and with all values that they were judged with.
    steps: Vec<CommandStep>,
    /// Whether a person said yes, and not a grant.
    is_by_person: bool,
}

impl BatchApproval {
    /// Whether a part needs no more than was seen when the whole was approved.
    fn covers(&self, decision: &Decision, action: &Action, facts: &Facts) -> bool {
        let powers =
            decision.capabilities.iter().all(|capability| self.capabilities.contains(capability));
        let names = facts.expansions.iter().all(|expansion| {
            let same = |seen: &&Expansion| {
                (&seen.cwd, &seen.pattern) == (&expansion.cwd, &expansion.pattern)
            };
            let seen = self.expansions.iter().find(same);
            seen.is_some_and(|seen| expansion.names.iter().all(|name| seen.names.contains(name)))
        });
        let here = steps(action).iter().all(|step| {
            self.steps.iter().any(|seen| {
                (seen.number, &seen.cwd.location) == (step.number, &step.cwd.location)
                    && self.covers_words(seen, step)
            })
        });
        powers
            && names
            && here
            && facts.programs.iter().all(|program| self.programs.contains(program))
    }
}

/// The parts of a list.
fn steps(action: &Action) -> &[CommandStep] {
    if let Action::Command { steps, .. } = action { steps } else { &[] }
}

impl BatchApproval {
    /// Whether a part is what was seen of it, with each pattern that a loop goes through in place of one of the names
    /// that it stood for. What a program printed since was not seen.
    fn covers_words(&self, seen: &CommandStep, reached: &CommandStep) -> bool {
        let names = |pattern: &str| {
            let here = seen.cwd.inside().map_or("", WorkspacePath::as_str);
            let mut all = self.expansions.iter();
            all.find(|item| item.pattern == pattern && item.cwd == here).map(|item| &item.names)
        };
        let is_name = |(seen, reached): (&ShellWord, &ShellWord)| {
            let known = seen.as_glob().and_then(|_| names(&seen.unexpanded()));
            (seen.pieces == reached.pieces && !reached.is_opaque)
                || reached.literal().zip(known).is_some_and(|(text, known)| {
                    known.iter().any(|name| text == protect_leading_dash(name))
                })
        };
        seen.stages.len() == reached.stages.len()
            && seen.stages.iter().zip(&reached.stages).all(|(seen, reached)| {
                seen.variables == reached.variables
                    && seen.redirects == reached.redirects
                    && seen.words.len() == reached.words.len()
                    && seen.words.iter().zip(&reached.words).all(is_name)
            })
    }
}

impl AwaitingApproval {
    /// Looks for a way: what was approved for the list that it is a part of, a grant, somebody to
    /// ask.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn resolve<J: Journal>(
        mut self: Box<Self>,
        batch: Option<&BatchApproval>,
        approver: &mut dyn Approver,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<RoutedApproval, J::Error> {
        let call = self.cleared.number;
        if let Some(union) = batch.filter(|approval| {
            approval.covers(&self.cleared.decision, self.redacted.action(), self.redacted.facts())
        }) {
            let event = Event::ApprovalCovered { call, by: union.call };
            journal.append(event, Durability::Deferred)?;
            if union.is_by_person {
                self.cleared.restrictions.approve_hosts();
            }
            return Ok(RoutedApproval::Cleared(self.cleared));
        }
        let args = redactor.value(self.call.args.clone(), &mut 0);
        let diff = self.cleared.operation.preview().masked(redactor);
        let bound = journal.seal_arguments(&self.redacted.binding(diff.lines()))?;
        let judgement = (&self.cleared.decision, self.cleared.confinement);
        let question = (&args, bound, diff.lines());
        let question = self.redacted.approval_request((call, &self.call), question, judgement);
        let shown = match approver.resolve(&question) {
            ApprovalRoute::NoApprover => {
                let decision = self.cleared.decision.unattended();
                return Ok(RoutedApproval::Denied(Denied { decision }));
            }
            ApprovalRoute::Granted(used) => {
                return self.clear_by_grant(&used, journal).map(RoutedApproval::Cleared);
            }
            ApprovalRoute::Show(card) => Some((card, None)),
            ApprovalRoute::Wait(card, until) => Some((card, Some(until))),
            ApprovalRoute::Outdated => None,
        };
        let current = shown.and_then(|(card, until)| {
            card.mask_secrets(redactor).map(|card| (Box::new(card), until))
        });
        match current {
            None => self.refuse(stale_approval(), redactor, journal).map(RoutedApproval::Denied),
            Some((card, None)) => self.show(card, journal).map(RoutedApproval::Shown),
            Some((card, Some(until))) => {
                self.suspend((&card, until), bound, journal).map(RoutedApproval::Denied)
            }
        }
    }

    /// Lays the question down for later. It is written together with the end of the run: there is no
    /// waiting question in a run that goes on.
    fn suspend<J: Journal>(
        self: Box<Self>,
        (card, until): (&Card, u64),
        bound: Digest,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        let kept = journal.put_payload(PayloadClass::Text, &json::canonical(card))?;
        let event = ApprovalWaiting {
            call: self.cleared.number,
            card: kept,
            sha256: card.digest(),
            bound,
            until,
        };
        journal.append(Event::ApprovalWaiting(event), Durability::Deferred)?;
        Ok(Denied { decision: self.cleared.decision.pending() })
    }

    fn clear_by_grant<J: Journal>(
        self: Box<Self>,
        used: &GrantUse,
        journal: &mut J,
    ) -> Result<Box<Cleared>, J::Error> {
        let call = self.cleared.number;
        let event = GrantUsed { call, grant: used.id().into(), left: used.remaining() };
        journal.append(Event::GrantUsed(event), Durability::Deferred)?;
        Ok(self.clear())
    }

    fn show<J: Journal>(
        self: Box<Self>,
        card: Box<Card>,
        journal: &mut J,
    ) -> Result<AwaitingAnswer, J::Error> {
        let event = shown_event(self.cleared.number, &card, journal)?;
        journal.append(Event::ApprovalShown(event), Durability::CrashSafe)?;
        Ok(AwaitingAnswer { awaiting: self, card })
    }

    /// It may run, and if it is a list, what its parts need was approved with it.
    fn clear(self: Box<Self>) -> Box<Cleared> {
        let Self { mut cleared, redacted: seen, call } = *self;
        if matches!(seen.action(), Action::Command { .. }) && call.args.get("part").is_none() {
            let steps = steps(seen.action()).to_vec();
            cleared.batch = Some(BatchApproval {
                call: cleared.number,
                capabilities: cleared.decision.capabilities,
                expansions: seen.record.facts.expansions,
                programs: seen.record.facts.programs,
                steps,
                is_by_person: false,
            });
        }
        cleared
    }

    /// Writes that it does not run.
    fn refuse<J: Journal>(
        self: Box<Self>,
        problem: CodedError,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        write_refusal(*self.cleared, problem, redactor, journal)
    }
}

/// Writes that a call does not run which nothing else stands in the way of.
pub(super) fn write_refusal<J: Journal>(
    cleared: Cleared,
    problem: CodedError,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<Denied, J::Error> {
    let Cleared { number, decision, .. } = cleared;
    let end = EndWriter { number, redactor, journal, durability: Durability::CrashSafe };
    let done = end.write(Outcome::failed(problem.clone()), None)?;
    let CodedError { code, message, suggestion } = done.problem.unwrap_or(problem);
    let decision = Decision { code, reason: message, suggestion, approvable: false, ..decision };
    Ok(Denied { decision })
}

/// Why a call does not run that is not the one any more that somebody answered for.
pub(super) fn stale_approval() -> CodedError {
    CodedError::new(Code::ApprovalChangedAfter, "what was answered is no longer what is asked")
}

impl AwaitingAnswer {
    /// What the person sees.
    #[must_use]
    pub const fn card(&self) -> &Card {
        &self.card
    }

    /// Lays the question down, which waits from here on.
    fn suspend<J: Journal>(self, until: u64, journal: &mut J) -> Result<Denied, J::Error> {
        let Self { awaiting: asking, card } = self;
        let bound = journal.seal_arguments(&asking.redacted.binding(card.diff.as_deref()))?;
        asking.suspend((&card, until), bound, journal)
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn accept_answer<J: Journal>(
        self,
        given: ReceivedAnswer,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<AnsweredCall, J::Error> {
        if let ApprovalAnswer::Deferred(until) = given.answer {
            return self.suspend(until, journal).map(AnsweredCall::Denied);
        }
        let event = answer_event(self.awaiting.cleared.number, &given, redactor, journal)?;
        journal.append(Event::ApprovalAnswered(event), Durability::CrashSafe)?;
        let Self { awaiting: asking, card } = self;
        let problem = match given.answer {
            ApprovalAnswer::Approved(..) => {
                return Ok(AnsweredCall::Approved(Approved { awaiting: asking, diff: card.diff }));
            }
            ApprovalAnswer::Changed(_, args) => {
                let call = ToolCall { args, ..asking.call.clone() };
                let problem = CodedError::new(Code::ApprovalWithdrawn, ARGS_CHANGED_MESSAGE);
                asking.refuse(problem, redactor, journal)?;
                return Ok(AnsweredCall::Changed(call));
            }
            other => refusal_problem(other),
        };
        asking.refuse(problem, redactor, journal).map(AnsweredCall::Denied)
    }
}

/// What is written of an answer.
pub(super) fn answer_event<J: Journal>(
    call: u64,
    given: &ReceivedAnswer,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<ApprovalAnswered, J::Error> {
    let ReceivedAnswer { answer, latency_ms, surface } = given;
    let (why, grant) = match answer {
        ApprovalAnswer::Denied(_, why) | ApprovalAnswer::Stopped(_, why) => (why.as_deref(), None),
        ApprovalAnswer::Approved(_, grant) => (None, grant.as_ref()),
        _ => (None, None),
    };
    let why = why.map(|why| json::canonical(&redactor.text(why, &mut 0)));
    let why = why.map(|why| journal.put_payload(PayloadClass::Text, &why)).transpose()?;
    Ok(ApprovalAnswered {
        call,
        outcome: answer.kind(),
        stops: matches!(answer, ApprovalAnswer::Stopped(..)),
        changed: matches!(answer, ApprovalAnswer::Changed(..)),
        latency_ms: *latency_ms,
        surface: *surface,
        why,
        grant: grant.map(|grant| grant_event(grant, journal)).transpose()?,
    })
}

const ARGS_CHANGED_MESSAGE: &str =
    "a person changed the arguments; the call is made again with them";
const WITHDRAWN_MESSAGE: &str = "the question was put off or taken back, so the call did not run";

/// What is written of a card that is shown.
pub(super) fn shown_event<J: Journal>(
    call: u64,
    card: &Card,
    journal: &mut J,
) -> Result<ApprovalShown, J::Error> {
    Ok(ApprovalShown {
        call,
        card: journal.put_payload(PayloadClass::Text, &json::canonical(card))?,
        sha256: card.digest(),
        offers: u64::try_from(card.offers.len()).unwrap_or(u64::MAX),
    })
}

/// The problem of an answer that is no yes.
pub(super) fn refusal_problem(answer: ApprovalAnswer) -> CodedError {
    match answer {
        ApprovalAnswer::Denied(_, why) => denial_problem(Code::ApprovalDenied, why),
        ApprovalAnswer::Stopped(_, why) => denial_problem(Code::ApprovalStopped, why),
        ApprovalAnswer::Expired => {
            CodedError::new(Code::ApprovalExpired, "nobody answered in time")
        }
        _ => CodedError::new(Code::ApprovalWithdrawn, WITHDRAWN_MESSAGE),
    }
}

/// A refusal in the person's own words, where they gave any.
fn denial_problem(code: Code, why: Option<String>) -> CodedError {
    let mut why = why.filter(|why| !why.trim().is_empty());
    if let Some(why) = &mut why {
        let most = limits::REASON_BYTES.min(why.len());
        let end = (0..=most).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
        why.truncate(end);
    }
    CodedError::new(code, why.unwrap_or_else(|| "a person said no".into()))
}

fn grant_event<J: Journal>(grant: &Grant, journal: &mut J) -> Result<GrantGiven, J::Error> {
    let reach: PayloadRef =
        journal.put_payload(PayloadClass::Text, &json::canonical(&grant.pattern))?;
    Ok(GrantGiven {
        id: grant.id.clone(),
        scope: grant.lifetime,
        reach,
        uses: grant.uses,
        until: grant.expires_at,
        policy: grant.policy,
    })
}

impl Approved {
    /// The call, which is looked at again: time has passed.
    #[must_use]
    pub const fn call(&self) -> &ToolCall {
        &self.awaiting.call
    }

    /// Compares what is there now with what was approved. Only if it is the same, the call may run.
    ///
    /// # Errors
    /// When a refusal cannot be written.
    pub fn recheck<J: Journal>(
        self,
        now: Result<PreflightReport, CodedError>,
        policy: &Arc<Policy>,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Result<Box<Cleared>, Denied>, J::Error> {
        let Self { awaiting: mut asking, diff } = self;
        let changed = match now {
            Ok(PreflightReport { action, facts, operation: mut prepared }) => {
                let found = Fingerprint::of(&asking.call.tool, &action, &facts, policy.digest());
                let now = prepared.preview().masked(redactor);
                if found == asking.redacted.raw_fingerprint && now.matches(diff.as_deref()) {
                    asking.cleared.operation = prepared;
                    asking.cleared.restrictions.approve_hosts();
                    let mut cleared = asking.clear();
                    cleared.batch.iter_mut().for_each(|batch| batch.is_by_person = true);
                    return Ok(Ok(cleared));
                }
                "what was approved is no longer what is there".into()
            }
            // A replay is told what was said then.
            Err(CodedError { code: Code::ApprovalChangedAfter, message, .. }) => message,
            Err(CodedError { message, .. }) => {
                alloc::format!("what was approved cannot be done any more: {message}")
            }
        };
        let problem = CodedError::new(Code::ApprovalChangedAfter, changed);
        asking.refuse(problem, redactor, journal).map(Err)
    }
}
