//! Going on with a run that was suspended for an answer: another run, which has the first as its
//! subject and begins with what that one came to.

use std::path::Path;

use capsule_core::approval::{AnswerKind, GrantLifetime, Person};
use capsule_core::change::ChangeSet;
use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::journal::{Document, Event, RunResumed};
use capsule_core::outcome::CodedError;
use capsule_store::{Claim, Store, StoreError};
use serde_json::{Map, Value};

use crate::approval::{Answered, Pending, Reply, Said, Stored, claim, not_waiting};
use crate::aside::AsideError;
use crate::changes::{ChangesError, Subject};
use crate::law::Law;
use crate::observe::Silent;
use crate::plan::Progress;
use crate::replay::{ReplayError, come_to};
use crate::run::tools_digest;

/// A suspended run that is gone on with now. Nobody else can while this is held.
#[derive(Debug)]
pub struct Resumption {
    /// The question that was answered.
    pub pending: Pending,
    /// The inputs of the plan, as they are recorded.
    pub inputs: Map<String, Value>,
    /// How far the run came.
    pub progress: Progress,
    /// The tool and the arguments, where it was a single call and no plan.
    pub call: Option<(String, Value)>,
    answer: Answered,
    changes: Option<ChangeSet>,
    _claim: Claim,
}

/// Why a run is not gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The store cannot be read, or the run cannot be gone on with.
    #[error(transparent)]
    Aside(#[from] AsideError),
    /// What it changed cannot be told.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// Its record does not lead to where it was suspended.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl From<CodedError> for ResumeError {
    fn from(problem: CodedError) -> Self {
        Self::Aside(problem.into())
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Aside(error.into())
    }
}

/// Something that a run began with is another by now.
fn changed(what: &str) -> CodedError {
    CodedError::new(
        Code::ResumeChanged,
        format!("{what} is not what it was when the run was suspended"),
    )
    .with_suggestion("put it back as it was, or run the plan anew")
}

impl Resumption {
    /// Takes a suspended run up at a time, in microseconds since 1970: its record is walked to where it
    /// waits, and executes nothing.
    ///
    /// # Errors
    /// When it does not wait, was not answered, was gone on with before, or its record does not hold
    /// what is needed.
    pub fn take(path: &Path, run: &str, now: u64) -> Result<Self, ResumeError> {
        let store = Store::open(path)?;
        let held = claim(&store, run)?;
        let pending = Pending::read(&store, run)?.ok_or_else(|| not_waiting(run))?;
        pending.can_go_on(path, now)?;
        if pending.opened.tools != tools_digest() {
            return Err(changed("what the tools are").into());
        }
        let answer = pending.answer.clone().ok_or_else(|| unanswered(&pending))?;
        let first = store.event(run, 1)?.ok_or_else(|| not_waiting(run))?;
        let kept = store.payloads(first.leaf, &first.entry.event)?;
        let inputs = kept.into_iter().find(|(own, _)| *own == pending.opened.inputs);
        let inputs = inputs.and_then(|(_, own)| serde_json::from_slice(&own.bytes?).ok());
        let Some(Value::Object(inputs)) = inputs else {
            return Err(ReplayError::Incomplete("the inputs were not kept".into()).into());
        };
        let call = match pending.opened.plan {
            Some(_) => None,
            None => Some(asked(&store, run, pending.call)?),
        };
        let changes = taken_up(&store, path, run)?;
        let progress = come_to(store, run, &mut Silent)?;
        let progress = progress.ok_or_else(|| not_waiting(run))?;
        Ok(Self { pending, inputs, progress, call, answer, changes, _claim: held })
    }

    /// Whether a text is the plan that the run began with.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where it is not.
    pub fn is_plan(&self, text: &str) -> Result<(), CodedError> {
        let own = self.pending.opened.plan.as_ref();
        let same = own.is_some_and(|own| is_same(own, text));
        same.then_some(()).ok_or_else(|| changed("the plan"))
    }

    /// Whether a policy is the one that the run began with, in the same workspace.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where it is not.
    pub fn is_law(&self, law: &Law) -> Result<(), CodedError> {
        let opened = &self.pending.opened;
        let extended = match (&opened.extends, &law.extended) {
            (None, None) => true,
            (Some(then), Some(now)) => is_same(then, &now.text),
            _ => false,
        };
        let layers = opened.layers.len() == law.layers.len()
            && opened.layers.iter().zip(&law.layers).all(|(then, now)| {
                then.layer == now.kind && is_same(&then.document, &now.text.text)
            });
        if !is_same(&opened.policy, &law.text.text) || !extended || !layers {
            return Err(changed("the policy"));
        }
        if law.policy.profile.name != opened.profile {
            return Err(changed("the profile"));
        }
        let (own, here) = (&opened.workspace, &law.workspace);
        let place = (here.device().to_string(), here.inode().to_string());
        if place != (own.device.clone(), own.inode.clone()) || law.home != opened.home {
            return Err(changed("the workspace"));
        }
        Ok(())
    }

    /// Whether the run staged changes that this one begins with.
    pub(crate) const fn changes(&self) -> Option<&ChangeSet> {
        self.changes.as_ref()
    }

    /// Whether what the run collects is there even where it changes nothing more.
    pub(crate) const fn keeps(&self) -> bool {
        self.changes.is_some()
    }

    /// What the person did with the card, as the desk takes it.
    pub(crate) fn stored(&self) -> Stored {
        let Pending { card, bound, .. } = &self.pending;
        let Answered { given, why, .. } = &self.answer;
        // The record of what somebody said at a user interface.
        let by = Person::present();
        let said = match (given.outcome, given.scope) {
            (AnswerKind::Approved, None | Some(GrantLifetime::Once)) => Said::Allow(by, None),
            (AnswerKind::Approved, Some(scope)) => {
                match card.offers.iter().position(|offer| offer.scope == scope) {
                    Some(place) => Said::Allow(by, Some(place)),
                    None => Said::Withdrawn,
                }
            }
            (AnswerKind::Denied, _) if given.stops => Said::Stop(by, why.clone()),
            (AnswerKind::Denied, _) => Said::Deny(by, why.clone()),
            (AnswerKind::Expired | AnswerKind::Withdrawn, _) => Said::Withdrawn,
        };
        let reply = Reply { said, latency_ms: given.latency_ms, surface: given.surface };
        Stored { bound: *bound, card: card.clone(), reply }
    }

    /// What is written of it, with the progress beside it.
    pub(crate) fn event(&self, progress: capsule_core::journal::PayloadRef) -> Event {
        let Self { pending, answer, .. } = self;
        Event::RunResumed(RunResumed { call: pending.call, answer: answer.run, progress })
    }
}

fn is_same(document: &Document, text: &str) -> bool {
    document.sha256 == Digest::of(text.as_bytes())
}

fn unanswered(pending: &Pending) -> CodedError {
    let name = pending.name();
    CodedError::new(Code::ApprovalWaiting, format!("nobody has answered {name} yet"))
        .with_suggestion(format!(
            "`capsule approvals show {name}`, then `capsule approvals answer {name}`"
        ))
}

/// The call that waits, as it was asked for.
fn asked(store: &Store, run: &str, call: u64) -> Result<(String, Value), ResumeError> {
    let mut found = None;
    store.visit::<StoreError>(run, |stored| {
        if let Event::CallProposed(own) = &stored.entry.event
            && own.call == call
        {
            let kept = store.payloads(stored.leaf, &stored.entry.event)?;
            let args = kept.into_iter().find(|(reference, _)| *reference == own.args);
            let args = args.and_then(|(_, own)| serde_json::from_slice(&own.bytes?).ok());
            found = args.map(|args| (own.tool.as_str().to_owned(), args));
        }
        Ok(())
    })?;
    let missing = || ReplayError::Incomplete("the call's arguments were not kept".into());
    found.ok_or_else(|| missing().into())
}

/// What the run changed and is staged still; none if it changed nothing.
fn taken_up(store: &Store, path: &Path, run: &str) -> Result<Option<ChangeSet>, ResumeError> {
    let subject = Subject::read(store, path, run)?;
    if subject.changes.0.is_empty() {
        return Ok(None);
    }
    if !subject.is_staged && !subject.is_direct() && subject.stages() {
        let what = "what the run had staged was applied or dropped, so the workspace";
        return Err(changed(what).into());
    }
    Ok(subject.is_staged.then_some(subject.changes))
}
