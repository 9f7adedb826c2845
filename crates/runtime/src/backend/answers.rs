//! What a person said, from the record.

use std::cell::RefCell;
use std::rc::Rc;

use capsule_core::approval::{
    AnswerKind, AnswerSurface, ApprovalAnswer, ApprovalRequest, ApprovalRoute, Approver, Card,
    Grant, GrantPattern, GrantUse, Person, PlannedRequest, ReceivedAnswer,
};
use capsule_core::journal::{ApprovalAnswered, Event, GrantGiven, PayloadRef};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::replay::Recording;

/// Serves what was shown to a person, and what they said. Nobody is asked again.
pub(super) struct RecordedAnswers {
    recording: Rc<RefCell<Recording>>,
}

impl RecordedAnswers {
    pub(super) const fn new(recording: Rc<RefCell<Recording>>) -> Self {
        Self { recording }
    }

    fn read_payload<T: DeserializeOwned>(&self, ahead: u64, wanted: &PayloadRef) -> Option<T> {
        let bytes = self.recording.borrow().payload(ahead, wanted)?;
        serde_json::from_slice(&bytes).ok()
    }

    fn note_missing(&self, what: &str) {
        self.recording.borrow_mut().note_missing(what);
    }

    fn recorded_grant(&self, given: &GrantGiven) -> Option<Grant> {
        let reach: GrantPattern = self.read_payload(1, &given.reach)?;
        Some(Grant {
            id: given.id.clone(),
            lifetime: given.scope,
            pattern: reach,
            uses: given.uses,
            expires_at: given.until,
            policy: given.policy,
            given_by: Person::present(),
        })
    }

    /// The arguments of the call that was made in place of the one at hand: behind the answer and
    /// the end of that one, it is proposed.
    fn changed_arguments(&self) -> Option<Value> {
        match self.recording.borrow().peek(3)? {
            Event::CallProposed(proposed) => self.read_payload(3, &proposed.args),
            _ => None,
        }
    }

    fn recorded_answer(&self, answered: &ApprovalAnswered) -> Option<ApprovalAnswer> {
        let by = Person::present();
        let why = match &answered.why {
            Some(why) => Some(self.read_payload::<String>(1, why)?),
            None => None,
        };
        Some(match answered.outcome {
            AnswerKind::Approved => match &answered.grant {
                Some(given) => ApprovalAnswer::Approved(by, Some(self.recorded_grant(given)?)),
                None => ApprovalAnswer::Approved(by, None),
            },
            AnswerKind::Denied if answered.stops => ApprovalAnswer::Stopped(by, why),
            AnswerKind::Denied => ApprovalAnswer::Denied(by, why),
            AnswerKind::Expired => ApprovalAnswer::Expired,
            AnswerKind::Withdrawn if answered.changed => {
                ApprovalAnswer::Changed(by, self.changed_arguments()?)
            }
            AnswerKind::Withdrawn => ApprovalAnswer::Withdrawn,
        })
    }
}

impl Approver for RecordedAnswers {
    fn plan_card(&mut self, _: &[PlannedRequest<'_>], _: u64) -> Option<Box<Card>> {
        let Some(Event::PlanShown(shown)) = self.recording.borrow().peek(1) else { return None };
        let card = self.read_payload::<Card>(1, &shown.card);
        if card.is_none() {
            self.note_missing("what a person was shown is missing");
        }
        card.map(Box::new)
    }

    fn resolve(&mut self, _: &ApprovalRequest<'_>) -> ApprovalRoute {
        let ahead = self.recording.borrow().peek(1);
        match ahead {
            Some(Event::GrantUsed(used)) => {
                ApprovalRoute::Granted(GrantUse::recorded(Person::present(), used.grant, used.left))
            }
            Some(Event::ApprovalShown(shown) | Event::ConnectionShown(shown)) => {
                match self.read_payload::<Card>(1, &shown.card) {
                    Some(card) => ApprovalRoute::Show(Box::new(card)),
                    None => {
                        self.note_missing("what a person was shown is missing");
                        ApprovalRoute::NoApprover
                    }
                }
            }
            Some(Event::ApprovalWaiting(waiting)) => {
                match self.read_payload::<Card>(1, &waiting.card) {
                    Some(card) => ApprovalRoute::Wait(Box::new(card), waiting.until),
                    None => {
                        self.note_missing("what a person is to be shown is missing");
                        ApprovalRoute::NoApprover
                    }
                }
            }
            // The call ended with its question: it was not the one that was answered.
            Some(Event::CallFinished(_)) => ApprovalRoute::Outdated,
            _ => ApprovalRoute::NoApprover,
        }
    }

    fn ask(&mut self, _: &Card) -> ReceivedAnswer {
        let ahead = self.recording.borrow().peek(1);
        let nothing = ReceivedAnswer {
            answer: ApprovalAnswer::Withdrawn,
            latency_ms: 0,
            surface: AnswerSurface::Command,
        };
        let answered = match ahead {
            Some(
                Event::ApprovalAnswered(answered)
                | Event::PlanAnswered(answered)
                | Event::ConnectionAnswered(answered),
            ) => answered,
            Some(Event::ApprovalWaiting(waiting)) => {
                return ReceivedAnswer {
                    answer: ApprovalAnswer::Deferred(waiting.until),
                    ..nothing
                };
            }
            _ => return nothing,
        };
        let Some(answer) = self.recorded_answer(&answered) else {
            self.note_missing("what a person said is missing");
            return nothing;
        };
        ReceivedAnswer { answer, latency_ms: answered.latency_ms, surface: answered.surface }
    }
}
