//! Questions that wait in the store: what was asked, whether somebody answered, and the answering.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::approval::{AnswerKind, AnswerSurface, Card, GrantLifetime};
use capsule_core::id::RunId;
use capsule_core::journal::{AnswerGiven, Event, PayloadRef, RunKind, RunOpened};
use capsule_core::outcome::CodedError;
use capsule_store::{RUN_KEY_BYTES, RunClaim, Store, StoreError, StoredPayload};
use serde::de::DeserializeOwned;

use crate::annotation::{Annotation, AnnotationError};

/// A question that waited when its run ended.
#[derive(Clone, Debug)]
pub struct PendingQuestion {
    /// The run.
    pub run: RunId,
    /// The run's label.
    pub label: String,
    /// The call.
    pub call: u64,
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
    /// The label of the run that went on with it.
    pub resumed_by: Option<String>,
    /// How the run began.
    pub opened: Box<RunOpened>,
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
    /// The question that a run was suspended for; none where it was not.
    ///
    /// # Errors
    /// When the store cannot be read, or is not what was written.
    pub fn read(store: &Store, run: &str) -> Result<Option<Self>, StoreError> {
        let (mut began, mut key, mut step) = (None, None, None);
        let (mut asked, mut suspended) = (None, None);
        store.visit::<StoreError>(run, |stored| {
            let payloads = |event: &Event| store.payloads(stored.leaf, event);
            match &stored.entry.event {
                Event::RunOpened(opened) => {
                    let all = payloads(&stored.entry.event)?;
                    let item = all.iter().find(|(item, _)| *item == opened.key);
                    let bytes = item.and_then(|(_, payload)| payload.bytes.as_deref());
                    key = bytes.and_then(|bytes| bytes.try_into().ok());
                    began = Some((stored.entry.run, opened.clone()));
                }
                Event::CallProposed(proposed) => step.clone_from(&proposed.step),
                Event::ApprovalWaiting(waiting) => {
                    let card: Option<Card> =
                        read_payload(&payloads(&stored.entry.event)?, &waiting.card);
                    asked = card.map(|card| (stored.entry.at, waiting.clone(), card));
                }
                Event::RunSealed(sealed) => suspended = sealed.suspended,
                _ => {}
            }
            Ok(())
        })?;
        let (Some((Some(id), opened)), Some(key)) = (began, key) else { return Ok(None) };
        let Some((asked_at, waiting, card)) = asked else { return Ok(None) };
        if suspended != Some(waiting.call) {
            return Ok(None);
        }
        let resumed = store.runs_about(run, RunKind::Resume)?;
        Ok(Some(Self {
            run: id,
            label: store.label(run),
            call: waiting.call,
            step,
            asked_at,
            expires_at: waiting.until,
            answer: find_answer(store, run, &waiting.sha256)?,
            resumed_by: resumed.first().map(|run| store.label(run)),
            card,
            opened,
            binding: waiting.bound,
            key,
        }))
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

    /// All questions for which runs were suspended, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read, or is not what was written.
    pub fn all(store: &Store) -> Result<Vec<Self>, StoreError> {
        let runs = store.runs_with_approvals()?;
        let read = runs.iter().map(|run| Self::read(store, run));
        read.filter_map(Result::transpose).collect()
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

    /// Answers it at a time, in microseconds since 1970; gives the label of the run that holds the
    /// answer. Only a user interface calls this: the store is out of reach of every tool.
    ///
    /// # Errors
    /// When it is over, was answered before, or this is not offered; when the store cannot be
    /// written.
    pub fn answer(
        store: Store,
        run: &str,
        say: &QuestionAnswer,
        now: u64,
    ) -> Result<String, AnnotationError> {
        let _claim = lock_run(&store, run)?;
        // What stands there now: somebody may have been quicker.
        let question = Self::read(&store, run)?.ok_or_else(|| not_waiting(run))?;
        question.require_resumable(store.path(), now)?;
        if question.answer.is_some() {
            let message = format!("{} was answered before", question.name());
            return Err(CodedError::new(Code::ApprovalAnswered, message)
                .with_suggestion(format!("go on with `capsule resume {}`", question.label))
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

/// The last answer to this card, unless somebody took it back.
fn find_answer(
    store: &Store,
    run: &str,
    card: &Digest,
) -> Result<Option<StoredAnswer>, StoreError> {
    let mut last = None;
    for text in store.runs_about(run, RunKind::Answer)? {
        store.visit::<StoreError>(&text, |stored| {
            if let (Event::AnswerGiven(given), Some(id)) = (&stored.entry.event, stored.entry.run)
                && given.card == *card
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
