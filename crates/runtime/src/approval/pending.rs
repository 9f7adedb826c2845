//! Questions that wait in the store: what was asked, whether somebody answered, and the answering.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::approval::{AnswerKind, AnswerSurface, Card, GrantLifetime, Person};
use capsule_core::id::RunId;
use capsule_core::journal::{AnswerGiven, ApprovalWaiting, Event, PayloadRef, RunKind, RunOpened};
use capsule_core::outcome::CodedError;
use capsule_store::{RUN_KEY_BYTES, RunClaim, Store, StoreError, StoredEvent, StoredPayload};
use serde::de::DeserializeOwned;

use crate::annotation::{Annotation, AnnotationError};
use crate::approval::broker::{PromptAnswer, PromptReply, StoredReply};

/// A question that waited when its run ended.
#[derive(Clone, Debug)]
pub struct PendingQuestion {
    /// The run.
    pub run: RunId,
    /// The run's label.
    pub label: String,
    /// The call.
    pub call: u64,
    /// Later calls of a session that asked the same.
    repeats: Vec<u64>,
    /// The plan's step.
    pub step: Option<String>,
    /// When it was asked, in microseconds since 1970.
    pub asked_at: u64,
    /// Until when it can be answered.
    pub expires_at: u64,
    /// What a person sees.
    pub card: Card,
    /// The answer, if somebody gave one and nobody took it back.
    pub answer: Option<StoredAnswer>,
    /// The label of the run, or the name of the call in the same session, that went on with it.
    pub resumed_by: Option<String>,
    /// How the run began.
    pub opened: Box<RunOpened>,
    /// Whether its run is a session, which goes on without an answer; the same call, made again, uses it.
    pub is_in_session: bool,
    /// What an answer is bound to.
    pub(crate) binding: Digest,
    /// The run's key.
    pub(crate) key: [u8; RUN_KEY_BYTES],
}

/// What somebody answered.
#[derive(Clone, Debug)]
pub struct StoredAnswer {
    /// The run that holds it.
    pub run: RunId,
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What was written.
    pub given: AnswerGiven,
    /// The person's own words.
    pub why: Option<String>,
}

/// What a person says to a question that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// The call may run, and as much as the scope says.
    Allow(GrantLifetime),
    /// It may not.
    Deny(Option<String>),
    /// It may not, and nothing after it.
    Stop(Option<String>),
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionState {
    /// It waits for an answer.
    Waiting,
    /// It was answered, and its run waits to be gone on with.
    Answered,
    /// Nobody answered, or went on, in time.
    Expired,
    /// Its run was gone on with.
    Resumed,
}

impl QuestionState {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Resumed => "resumed",
        }
    }
}

fn read_payload<T: DeserializeOwned>(
    payloads: &[(PayloadRef, StoredPayload)],
    item: &PayloadRef,
) -> Option<T> {
    let (_, payload) = payloads.iter().find(|(reference, _)| reference == item)?;
    serde_json::from_slice(payload.bytes.as_ref()?).ok()
}

impl PendingQuestion {
    /// The questions of a run: the one that it was suspended for, or those that wait, or waited, in an open
    /// session.
    ///
    /// # Errors
    /// When the store cannot be read, or is not what was written.
    pub fn of_run(store: &Store, run: &str) -> Result<Vec<Self>, StoreError> {
        let mut record = QuestionRecord::default();
        store.visit::<StoreError>(run, |stored| record.add_event(store, stored))?;
        let QuestionRecord { began, key, mut waiting, suspended, .. } = record;
        let (Some((Some(id), opened)), Some(key)) = (began, key) else { return Ok(Vec::new()) };
        let is_open_session = opened.origin == RunKind::Session && suspended.is_none();
        waiting.retain(|asked| is_open_session || suspended == Some(Some(asked.event.call)));
        let resumed = store.runs_about(run, RunKind::Resume)?;
        let label = store.label(run);
        let questions = waiting.into_iter().map(|asked| {
            let repeated_by = asked.used_by.map(|call| format!("{label}:{call}"));
            Ok(Self {
                run: id,
                label: label.clone(),
                call: asked.event.call,
                repeats: asked.repeats,
                step: asked.step,
                asked_at: asked.at,
                expires_at: asked.event.until,
                answer: find_answer(store, run, &asked.event)?,
                resumed_by: repeated_by.or_else(|| Some(store.label(resumed.first()?))),
                card: asked.card,
                opened: opened.clone(),
                is_in_session: is_open_session,
                binding: asked.event.bound,
                key,
            })
        });
        questions.collect()
    }

    /// The run that a person means: whoever names the run of an answer means the one that was
    /// answered.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn resolve_run(store: &Store, run: String) -> Result<String, StoreError> {
        let first = store.event(&run, 1)?.map(|first| first.entry.event);
        Ok(match first {
            Some(Event::RunOpened(opened)) if opened.origin == RunKind::Answer => {
                opened.subject.map_or(run, |subject| subject.to_string())
            }
            _ => run,
        })
    }

    /// All questions, those of the run that asked first before those of later ones.
    ///
    /// # Errors
    /// When the store cannot be read, or is not what was written.
    pub fn all(store: &Store) -> Result<Vec<Self>, StoreError> {
        let runs = store.runs_with_approvals()?;
        let mut all = Vec::new();
        for run in &runs {
            all.extend(Self::of_run(store, run)?);
        }
        Ok(all)
    }

    /// Whether it is the question of this call.
    #[must_use]
    pub fn is_of_call(&self, call: u64) -> bool {
        self.call == call || self.repeats.contains(&call)
    }

    /// The next step once it is answered.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self.is_in_session {
            true => format!("make the call again in the session {}", self.label),
            false => format!("`capsule resume {}`", self.label),
        }
    }

    /// How a person names it, and what they allow with it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.label, self.call)
    }

    /// Where it stands at a time, in microseconds since 1970.
    #[must_use]
    pub const fn state(&self, now: u64) -> QuestionState {
        match (&self.resumed_by, &self.answer) {
            (Some(_), _) => QuestionState::Resumed,
            _ if self.is_expired(now) => QuestionState::Expired,
            (None, Some(_)) => QuestionState::Answered,
            (None, None) => QuestionState::Waiting,
        }
    }

    /// The person's answer to the card, as the broker of a run takes it; none where there is no answer.
    pub(crate) fn stored_reply(&self) -> Option<StoredReply> {
        let StoredAnswer { given, why, .. } = self.answer.as_ref()?;
        // The record of what somebody said at a user interface.
        let by = Person::present();
        let answer = match (given.outcome, given.scope) {
            (AnswerKind::Approved, None | Some(GrantLifetime::Once)) => {
                PromptAnswer::Allow(by, None)
            }
            (AnswerKind::Approved, Some(scope)) => {
                match self.card.offers.iter().position(|offer| offer.scope == scope) {
                    Some(place) => PromptAnswer::Allow(by, Some(place)),
                    None => PromptAnswer::Withdrawn,
                }
            }
            (AnswerKind::Denied, _) if given.stops => PromptAnswer::Stop(by, why.clone()),
            (AnswerKind::Denied, _) => PromptAnswer::Deny(by, why.clone()),
            (AnswerKind::Expired | AnswerKind::Withdrawn, _) => PromptAnswer::Withdrawn,
        };
        let reply = PromptReply { answer, latency_ms: given.latency_ms, surface: given.surface };
        Some(StoredReply { binding: self.binding, card: self.card.clone(), reply })
    }

    /// Whether it waits for an answer, or for a call that uses the answer, at a time in microseconds since 1970.
    #[must_use]
    pub const fn is_open(&self, now: u64) -> bool {
        matches!(self.state(now), QuestionState::Waiting | QuestionState::Answered)
    }

    /// Whether its time is over, or was when somebody came too late before: no clock brings it back.
    const fn is_expired(&self, now: u64) -> bool {
        now >= self.expires_at || self.is_expiry_recorded()
    }

    /// Whether it is written down that its time is over.
    const fn is_expiry_recorded(&self) -> bool {
        matches!(&self.answer, Some(own) if matches!(own.given.outcome, AnswerKind::Expired))
    }

    /// Writes down that its time was over before anybody answered, or went on; once.
    fn expire(&self, store: Store, now: u64) -> Result<(), AnnotationError> {
        if self.resumed_by.is_some() || !self.is_expired(now) || self.is_expiry_recorded() {
            return Ok(());
        }
        let run = self.run.to_string();
        let aside = Annotation { subject: &run, kind: RunKind::Answer, name: "answer", why: None };
        aside
            .write(store, |why| self.answer_event((AnswerKind::Expired, None, false), why, now))
            .map(drop)
    }

    /// An answer to it, as it is written.
    fn answer_event(
        &self,
        (outcome, scope, stops): (AnswerKind, Option<GrantLifetime>, bool),
        why: Option<PayloadRef>,
        now: u64,
    ) -> Event {
        Event::AnswerGiven(AnswerGiven {
            call: self.call,
            card: self.card.digest(),
            outcome,
            scope,
            stops,
            latency_ms: now.saturating_sub(self.asked_at) / 1_000,
            surface: AnswerSurface::Command,
            why,
        })
    }

    /// Why nothing can be done with it at this time. That nobody did in time is an event of its own.
    pub(crate) fn require_resumable(&self, path: &Path, now: u64) -> Result<(), AnnotationError> {
        if let Some(label) = &self.resumed_by {
            let message = format!("{} was already resumed as {label}", self.label);
            return Err(CodedError::new(Code::ResumeAgain, message)
                .with_suggestion(format!("`capsule show-run {label}`"))
                .into());
        }
        if self.is_expired(now) {
            self.expire(Store::open(path)?, now)?;
            let message = format!("the question {} has waited too long", self.name());
            return Err(CodedError::new(Code::ApprovalExpired, message)
                .with_suggestion("ask anew: run it again")
                .into());
        }
        Ok(())
    }

    /// Answers the question of a call at a time, in microseconds since 1970; gives the label of the run that holds the
    /// answer. Only a user interface calls this: the store is out of reach of every tool.
    ///
    /// # Errors
    /// When it is over, was answered before, or this is not offered; when the store cannot be
    /// written.
    pub fn answer(
        store: Store,
        (run, call): (&str, u64),
        say: &QuestionAnswer,
        now: u64,
    ) -> Result<String, AnnotationError> {
        let _claim = lock_run(&store, run)?;
        // What stands there now: somebody may have been quicker.
        let mut questions = Self::of_run(&store, run)?.into_iter();
        let question = questions.rfind(|question| question.is_of_call(call));
        let question = question.ok_or_else(|| not_waiting(run))?;
        question.require_resumable(store.path(), now)?;
        if question.answer.is_some() {
            let message = format!("{} was answered before", question.name());
            return Err(CodedError::new(Code::ApprovalAnswered, message)
                .with_suggestion(format!("go on: {}", question.next_step()))
                .into());
        }
        let (outcome, scope, why) = match say {
            QuestionAnswer::Allow(scope) => {
                (AnswerKind::Approved, Some(question.offered_scope(*scope)?), None)
            }
            QuestionAnswer::Deny(why) | QuestionAnswer::Stop(why) => {
                (AnswerKind::Denied, None, why.as_deref())
            }
        };
        let aside = Annotation { subject: run, kind: RunKind::Answer, name: "answer", why };
        let stops = matches!(say, QuestionAnswer::Stop(_));
        aside.write(store, |why| question.answer_event((outcome, scope, stops), why, now))
    }

    /// The scope, if the card offers it.
    fn offered_scope(&self, scope: GrantLifetime) -> Result<GrantLifetime, CodedError> {
        if scope == GrantLifetime::Once || self.card.offers.iter().any(|offer| offer.scope == scope)
        {
            return Ok(scope);
        }
        let message = format!("{} cannot be allowed for the {}", self.name(), scope.keyword());
        Err(CodedError::new(Code::ApprovalNotOffered, message).with_suggestion("allow it `once`"))
    }
}

/// The questions of a run, as its record has them.
#[derive(Default)]
struct QuestionRecord {
    began: Option<(Option<RunId>, Box<RunOpened>)>,
    key: Option<[u8; RUN_KEY_BYTES]>,
    /// The step of the call at hand.
    step: Option<String>,
    waiting: Vec<RecordedQuestion>,
    /// The call that the run was suspended for, once it is sealed.
    suspended: Option<Option<u64>>,
}

/// A question that waits, as the record has it.
struct RecordedQuestion {
    at: u64,
    event: ApprovalWaiting,
    card: Card,
    step: Option<String>,
    /// Later calls that asked the same while it waited.
    repeats: Vec<u64>,
    /// The call that was shown its answer.
    used_by: Option<u64>,
}

impl QuestionRecord {
    fn add_event(&mut self, store: &Store, stored: StoredEvent) -> Result<(), StoreError> {
        let payloads = |event: &Event| store.payloads(stored.leaf, event);
        let at = stored.entry.at;
        match &stored.entry.event {
            Event::RunOpened(opened) => {
                let all = payloads(&stored.entry.event)?;
                let item = all.iter().find(|(item, _)| *item == opened.key);
                let bytes = item.and_then(|(_, payload)| payload.bytes.as_deref());
                self.key = bytes.and_then(|bytes| bytes.try_into().ok());
                self.began = Some((stored.entry.run, opened.clone()));
            }
            Event::CallProposed(proposed) => self.step.clone_from(&proposed.step),
            Event::ApprovalWaiting(event) => {
                let same = self.waiting.iter_mut().find(|asked| {
                    asked.event.bound == event.bound
                        && asked.used_by.is_none()
                        && at < asked.event.until
                });
                let Some(same) = same else {
                    let card = read_payload(&payloads(&stored.entry.event)?, &event.card);
                    self.waiting.extend(card.map(|card| RecordedQuestion {
                        at,
                        event: event.clone(),
                        card,
                        step: self.step.clone(),
                        repeats: Vec::new(),
                        used_by: None,
                    }));
                    return Ok(());
                };
                same.repeats.push(event.call);
            }
            Event::ApprovalShown(shown) => {
                let is_shown = |asked: &&mut RecordedQuestion| {
                    asked.event.sha256 == shown.sha256 && asked.used_by.is_none()
                };
                if let Some(asked) = self.waiting.iter_mut().find(is_shown) {
                    asked.used_by = Some(shown.call);
                }
            }
            Event::RunSealed(sealed) => self.suspended = Some(sealed.suspended),
            _ => {}
        }
        Ok(())
    }
}

/// Keeps everybody else from answering a question or going on with its run.
pub(crate) fn lock_run(store: &Store, run: &str) -> Result<RunClaim, AnnotationError> {
    let id = RunId::parse(run).ok_or_else(|| not_waiting(run))?;
    let busy = || {
        let message = format!("another process answers or resumes `{run}`");
        AnnotationError::Problem(CodedError::new(Code::ApprovalAnswered, message))
    };
    RunClaim::take(store.path(), id)?.ok_or_else(busy)
}

/// No question waits there.
#[must_use]
pub fn not_waiting(run: &str) -> CodedError {
    CodedError::new(Code::ApprovalNotWaiting, format!("`{run}` does not wait for an answer"))
        .with_suggestion("`capsule approvals list` shows what waits")
}

/// The last answer to this question, unless somebody took it back.
fn find_answer(
    store: &Store,
    run: &str,
    asked: &ApprovalWaiting,
) -> Result<Option<StoredAnswer>, StoreError> {
    let mut last = None;
    for text in store.runs_about(run, RunKind::Answer)? {
        store.visit::<StoreError>(&text, |stored| {
            if let (Event::AnswerGiven(given), Some(id)) = (&stored.entry.event, stored.entry.run)
                && (given.call, given.card) == (asked.call, asked.sha256)
            {
                let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
                let why = given.why.and_then(|why| read_payload(&payloads, &why));
                last = Some((stored.leaf, id, stored.entry.at, given.clone(), why));
            }
            Ok(())
        })?;
    }
    let Some((leaf, id, at, given, why)) = last else { return Ok(None) };
    let (_, gone) = store.grants_revoked_since(Some(leaf))?;
    let name = format!("{}:{}", store.label(run), given.call);
    let is_gone = gone.iter().any(|text| text.as_ref().is_none_or(|text| *text == name));
    Ok((!is_gone).then_some(StoredAnswer { run: id, at, given, why }))
}
