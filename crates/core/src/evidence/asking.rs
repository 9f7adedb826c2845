//! From a question to a clearance: by a grant, within what was approved already, or by an answer. Each
//! way is written down before it leads on.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, Expansion, Facts, Fingerprint, PathTarget, ProgramFact};
use crate::approval::{Answer, Approver, Card, Given, Grant, Lift, Used};
use crate::call::ToolCall;
use crate::capability::Capabilities;
use crate::code::Code;
use crate::decision::Decision;
use crate::digest::Digest;
use crate::evidence::run::End;
use crate::evidence::seen::Seen;
use crate::evidence::{Cleared, Denied, Preview, Understanding};
use crate::journal::{
    ApprovalAnswered, ApprovalShown, ApprovalWaiting, Durability, Event, GrantGiven, GrantUsed,
    Journal, PayloadClass, PayloadRef,
};
use crate::json;
use crate::limits;
use crate::outcome::{Outcome, Problem};
use crate::policy::Policy;
use capsule_redact::Redactor;

/// A call that waits for a person. It leads nowhere by itself.
pub struct Asking {
    /// What it becomes.
    pub(super) cleared: Box<Cleared>,
    /// The call, as it was asked for.
    pub(super) call: ToolCall,
    pub(super) seen: Seen,
}

/// What a question came to without being shown.
pub enum Lifted {
    /// The call may run.
    Cleared(Box<Cleared>),
    /// It is shown now.
    Shown(Shown),
    /// Nobody is there, so it does not run.
    Denied(Denied),
}

/// A call of which a person sees a card.
pub struct Shown {
    asking: Box<Asking>,
    card: Box<Card>,
}

/// What a card came to.
pub enum Answered {
    /// A person said yes. What is there has to be looked at again.
    Approved(Approved),
    /// The call does not run.
    Denied(Denied),
    /// Another call is to be made instead.
    Changed(ToolCall),
}

/// A call to which a person said yes.
pub struct Approved {
    asking: Box<Asking>,
    /// The lines that were shown to differ.
    diff: Option<String>,
}

/// What was approved with a list: what its parts may need without another question.
#[derive(Clone, Debug)]
pub struct Union {
    call: u64,
    capabilities: Capabilities,
    expansions: Vec<Expansion>,
    programs: Vec<(String, ProgramFact)>,
    /// The folders in which each of its parts was judged.
    folders: Vec<(usize, PathTarget)>,
}

impl Union {
    /// Whether a part needs no more than was seen when the whole was approved.
    fn covers(&self, decision: &Decision, action: &Action, facts: &Facts) -> bool {
        let powers = decision.capabilities.iter().all(|own| self.capabilities.contains(own));
        let names = facts.expansions.iter().all(|own| {
            let same = |seen: &&Expansion| (&seen.cwd, &seen.pattern) == (&own.cwd, &own.pattern);
            let seen = self.expansions.iter().find(same);
            seen.is_some_and(|seen| own.names.iter().all(|name| seen.names.contains(name)))
        });
        let here = folders(action).iter().all(|(number, own)| {
            self.folders.iter().any(|(seen, cwd)| seen == number && cwd.place == own.place)
        });
        powers && names && here && facts.programs.iter().all(|own| self.programs.contains(own))
    }
}

/// The folders in which the parts of a list may run.
fn folders(action: &Action) -> Vec<(usize, PathTarget)> {
    let Action::Command { steps, .. } = action else { return Vec::new() };
    steps.iter().map(|step| (step.number, step.cwd.clone())).collect()
}

impl Asking {
    /// Looks for a way: what was approved for the list that it is a part of, a grant, somebody to
    /// ask.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lift<J: Journal>(
        mut self: Box<Self>,
        union: Option<&Union>,
        approver: &mut dyn Approver,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Lifted, J::Error> {
        let call = self.cleared.number;
        if let Some(union) = union
            .filter(|own| own.covers(&self.cleared.decision, self.seen.action(), self.seen.facts()))
        {
            let event = Event::ApprovalCovered { call, by: union.call };
            journal.append(event, Durability::Next)?;
            return Ok(Lifted::Cleared(self.cleared));
        }
        let args = redactor.value(self.call.args.clone(), &mut 0);
        let bound = journal.seal_arguments(&json::canonical(&self.seen.bound))?;
        let said = (&self.cleared.decision, self.cleared.confinement);
        let diff = self.cleared.prepared.preview().masked(redactor);
        let question = (&args, bound, diff.lines());
        let question = self.seen.question((call, &self.call), question, said);
        match approver.lift(&question) {
            Lift::Nobody => {
                Ok(Lifted::Denied(Denied { decision: self.cleared.decision.unattended() }))
            }
            Lift::Granted(used) => self.granted(&used, journal).map(Lifted::Cleared),
            Lift::Show(card) => match previewed(card, &diff, redactor) {
                Some(card) => self.shown(card, journal).map(Lifted::Shown),
                None => self.refuse(changed_since(), redactor, journal).map(Lifted::Denied),
            },
            Lift::Wait(card, until) => {
                let Some(card) = previewed(card, &diff, redactor) else {
                    return self.refuse(changed_since(), redactor, journal).map(Lifted::Denied);
                };
                self.waits((&card, until), bound, journal).map(Lifted::Denied)
            }
            Lift::Changed => self.refuse(changed_since(), redactor, journal).map(Lifted::Denied),
        }
    }

    /// Lays the question down for later. It is written together with the end of the run: there is no
    /// waiting question in a run that goes on.
    fn waits<J: Journal>(
        self: Box<Self>,
        (card, until): (&Card, u64),
        bound: Digest,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        let kept = journal.keep(PayloadClass::Text, &json::canonical(card))?;
        let event = ApprovalWaiting {
            call: self.cleared.number,
            card: kept,
            sha256: card.digest(),
            bound,
            until,
        };
        journal.append(Event::ApprovalWaiting(event), Durability::Next)?;
        Ok(Denied { decision: self.cleared.decision.waiting() })
    }

    fn granted<J: Journal>(
        self: Box<Self>,
        used: &Used,
        journal: &mut J,
    ) -> Result<Box<Cleared>, J::Error> {
        let call = self.cleared.number;
        let event = GrantUsed { call, grant: used.id().into(), left: used.left() };
        journal.append(Event::GrantUsed(event), Durability::Next)?;
        Ok(self.clear())
    }

    fn shown<J: Journal>(
        self: Box<Self>,
        card: Box<Card>,
        journal: &mut J,
    ) -> Result<Shown, J::Error> {
        let kept = journal.keep(PayloadClass::Text, &json::canonical(&*card))?;
        let event = ApprovalShown {
            call: self.cleared.number,
            card: kept,
            sha256: card.digest(),
            offers: u64::try_from(card.offers.len()).unwrap_or(u64::MAX),
        };
        journal.append(Event::ApprovalShown(event), Durability::Process)?;
        Ok(Shown { asking: self, card })
    }

    /// It may run, and if it is a list, what its parts need was approved with it.
    fn clear(self: Box<Self>) -> Box<Cleared> {
        let Self { mut cleared, seen, .. } = *self;
        if matches!(seen.action(), Action::Command { steps, .. } if steps.len() > 1) {
            let folders = folders(seen.action());
            cleared.union = Some(Union {
                call: cleared.number,
                capabilities: cleared.decision.capabilities,
                expansions: seen.clean.facts.expansions,
                programs: seen.clean.facts.programs,
                folders,
            });
        }
        cleared
    }

    /// Writes that it does not run.
    fn refuse<J: Journal>(
        self: Box<Self>,
        problem: Problem,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Denied, J::Error> {
        refused(*self.cleared, problem, redactor, journal)
    }
}

/// The card, if what it shows is what will differ: one that somebody answered before is none any more where
/// other lines will.
fn previewed(card: Box<Card>, diff: &Preview, redactor: &Redactor) -> Option<Box<Card>> {
    let card = diff.is(card.diff.as_deref()).then_some(card)?;
    card.clean(redactor).map(Box::new)
}

/// Writes that a call does not run which nothing else stands in the way of.
pub(super) fn refused<J: Journal>(
    cleared: Cleared,
    problem: Problem,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<Denied, J::Error> {
    let Cleared { number, decision, .. } = cleared;
    let end = End { number, redactor, journal, durability: Durability::Process };
    let done = end.write(Outcome::failed(problem.clone()), None)?;
    let Problem { code, message, suggestion } = done.problem.unwrap_or(problem);
    let decision = Decision { code, reason: message, suggestion, liftable: false, ..decision };
    Ok(Denied { decision })
}

/// Why a call does not run that is not the one any more that somebody answered for.
pub(super) fn changed_since() -> Problem {
    Problem::new(Code::ApprovalChangedAfter, "what was answered is no longer what is asked")
}

impl Shown {
    /// What the person sees.
    #[must_use]
    pub const fn card(&self) -> &Card {
        &self.card
    }

    /// Lays the question down, which waits from here on.
    fn later<J: Journal>(self, until: u64, journal: &mut J) -> Result<Denied, J::Error> {
        let Self { asking, card } = self;
        let bound = journal.seal_arguments(&json::canonical(&asking.seen.bound))?;
        asking.waits((&card, until), bound, journal)
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn answered<J: Journal>(
        self,
        given: Given,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Answered, J::Error> {
        if let Answer::Later(until) = given.answer {
            return self.later(until, journal).map(Answered::Denied);
        }
        let event = answer_event(self.asking.cleared.number, &given, redactor, journal)?;
        journal.append(Event::ApprovalAnswered(event), Durability::Process)?;
        let Self { asking, card } = self;
        Ok(match given.answer {
            Answer::Approved(..) => Answered::Approved(Approved { asking, diff: card.diff }),
            Answer::Changed(_, args) => {
                let call = ToolCall { args, ..asking.call.clone() };
                let problem = Problem::new(Code::ApprovalWithdrawn, CHANGED);
                asking.refuse(problem, redactor, journal)?;
                Answered::Changed(call)
            }
            Answer::Denied(_, why) => {
                let problem = said(Code::ApprovalDenied, why);
                Answered::Denied(asking.refuse(problem, redactor, journal)?)
            }
            Answer::Stopped(_, why) => {
                let problem = said(Code::ApprovalStopped, why);
                Answered::Denied(asking.refuse(problem, redactor, journal)?)
            }
            Answer::Expired => Answered::Denied(asking.refuse(expired(), redactor, journal)?),
            Answer::Later(_) | Answer::Withdrawn => {
                let problem = Problem::new(Code::ApprovalWithdrawn, WITHDRAWN);
                Answered::Denied(asking.refuse(problem, redactor, journal)?)
            }
        })
    }
}

/// What is written of an answer.
pub(super) fn answer_event<J: Journal>(
    call: u64,
    given: &Given,
    redactor: &Redactor,
    journal: &mut J,
) -> Result<ApprovalAnswered, J::Error> {
    let Given { answer, latency_ms, surface } = given;
    let (why, grant) = match answer {
        Answer::Denied(_, why) | Answer::Stopped(_, why) => (why.as_deref(), None),
        Answer::Approved(_, grant) => (None, grant.as_ref()),
        _ => (None, None),
    };
    let why = match why {
        Some(why) => {
            let clean = redactor.text(why, &mut 0);
            Some(journal.keep(PayloadClass::Text, &json::canonical(&clean))?)
        }
        None => None,
    };
    Ok(ApprovalAnswered {
        call,
        outcome: answer.outcome(),
        stops: matches!(answer, Answer::Stopped(..)),
        changed: matches!(answer, Answer::Changed(..)),
        latency_ms: *latency_ms,
        surface: *surface,
        why,
        grant: grant.map(|grant| given_as(grant, journal)).transpose()?,
    })
}

const CHANGED: &str = "a person changed the arguments; the call is made again with them";
pub(super) const WITHDRAWN: &str = "the question was taken back before anybody answered it";

fn expired() -> Problem {
    Problem::new(Code::ApprovalExpired, "nobody answered in time")
}

/// A refusal in the person's own words, where they gave any.
pub(super) fn said(code: Code, why: Option<String>) -> Problem {
    let mut why = why.filter(|why| !why.trim().is_empty());
    if let Some(why) = &mut why {
        let most = limits::REASON_BYTES.min(why.len());
        let end = (0..=most).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
        why.truncate(end);
    }
    Problem::new(code, why.unwrap_or_else(|| "a person said no".into()))
}

fn given_as<J: Journal>(grant: &Grant, journal: &mut J) -> Result<GrantGiven, J::Error> {
    let reach: PayloadRef = journal.keep(PayloadClass::Text, &json::canonical(&grant.reach))?;
    Ok(GrantGiven {
        id: grant.id.clone(),
        scope: grant.scope,
        reach,
        uses: grant.uses,
        until: grant.until,
        policy: grant.policy,
    })
}

impl Approved {
    /// The call, which is looked at again: time has passed.
    #[must_use]
    pub const fn call(&self) -> &ToolCall {
        &self.asking.call
    }

    /// Compares what is there now with what was approved. Only if it is the same, the call may run.
    ///
    /// # Errors
    /// When a refusal cannot be written.
    pub fn again<J: Journal>(
        self,
        now: Result<Understanding, Problem>,
        policy: &Arc<Policy>,
        redactor: &Redactor,
        journal: &mut J,
    ) -> Result<Result<Box<Cleared>, Denied>, J::Error> {
        let Self { mut asking, diff } = self;
        let changed = match now {
            Ok(Understanding { action, facts, mut prepared }) => {
                let found = Fingerprint::of(&asking.call.tool, &action, &facts, policy.digest());
                let now = prepared.preview().masked(redactor);
                if found == asking.seen.bound && now.is(diff.as_deref()) {
                    asking.cleared.prepared = prepared;
                    return Ok(Ok(asking.clear()));
                }
                Problem::new(
                    Code::ApprovalChangedAfter,
                    "what was approved is no longer what is there",
                )
            }
            // A replay is told what was said then.
            Err(problem) if problem.code == Code::ApprovalChangedAfter => problem,
            Err(problem) => {
                let what = alloc::format!(
                    "what was approved cannot be done any more: {}",
                    problem.message
                );
                Problem::new(Code::ApprovalChangedAfter, what)
            }
        };
        asking.refuse(changed, redactor, journal).map(Err)
    }
}
