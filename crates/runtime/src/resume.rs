//! Going on with a run that was suspended for an answer: another run, which has the first as its
//! subject and begins with what that one came to.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::journal::{Document, Event, RunResumed};
use capsule_core::outcome::CodedError;
use capsule_store::{RunClaim, Store, StoreError};
use capsule_workspace::ChangeSet;
use serde_json::{Map, Value};

use crate::annotation::AnnotationError;
use crate::approval::{PendingQuestion, StoredAnswer, lock_run, not_waiting};
use crate::bound_policy::BoundPolicy;
use crate::changes::StagedRun;
use crate::changes_error::ChangesError;
use crate::observer::NullObserver;
use crate::plan::PlanProgress;
use crate::replay::{ReplayError, replay_to_suspension};
use crate::run::tools_digest;

/// A suspended run that is gone on with now. Nobody else can while this is held.
#[derive(Debug)]
pub struct Resumption {
    /// The question that was answered.
    pub pending: PendingQuestion,
    /// The inputs of the plan, as they are recorded.
    pub inputs: Map<String, Value>,
    /// How far the run came.
    pub progress: PlanProgress,
    /// The tool and the arguments, where it was a single call and no plan.
    pub call: Option<(String, Value)>,
    answer: StoredAnswer,
    changes: Option<ChangeSet>,
    _claim: RunClaim,
}

/// Why a run is not gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The store cannot be read, or the run cannot be gone on with.
    #[error(transparent)]
    Annotation(#[from] AnnotationError),
    /// What it changed cannot be told.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// Its record does not lead to where it was suspended.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl From<CodedError> for ResumeError {
    fn from(problem: CodedError) -> Self {
        Self::Annotation(problem.into())
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Annotation(error.into())
    }
}

/// Something that a run began with is another by now.
fn changed_problem(what: &str) -> CodedError {
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
    pub fn open(path: &Path, run: &str, now: u64) -> Result<Self, ResumeError> {
        let store = Store::open(path)?;
        let held = lock_run(&store, run)?;
        let pending = PendingQuestion::of_run(&store, run)?.pop();
        let pending = pending.ok_or_else(|| not_waiting(run))?;
        if pending.is_in_session {
            let message =
                format!("{} is an open session: nothing in it is suspended", pending.label);
            let problem = CodedError::new(Code::ApprovalNotWaiting, message);
            return Err(problem.with_suggestion(pending.next_step()).into());
        }
        pending.require_resumable(path, now)?;
        if pending.opened.tools != tools_digest() {
            return Err(changed_problem("what the tools are").into());
        }
        let answer = pending.answer.clone().ok_or_else(|| unanswered_problem(&pending))?;
        let first = store.event(run, 1)?.ok_or_else(|| not_waiting(run))?;
        let kept = store.payloads(first.leaf, &first.entry.event)?;
        let inputs = kept.into_iter().find(|(item, _)| *item == pending.opened.inputs);
        let inputs = inputs.and_then(|(_, payload)| serde_json::from_slice(&payload.bytes?).ok());
        let Some(Value::Object(inputs)) = inputs else {
            return Err(ReplayError::Incomplete("the inputs were not kept".into()).into());
        };
        let call = match pending.opened.plan {
            Some(_) => None,
            None => Some(waiting_call(&store, run, pending.call)?),
        };
        let changes = earlier_changes(&store, path, run)?;
        let progress = replay_to_suspension(store, run, &mut NullObserver)?;
        let progress = progress.ok_or_else(|| not_waiting(run))?;
        Ok(Self { pending, inputs, progress, call, answer, changes, _claim: held })
    }

    /// Whether a text is the plan that the run began with.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where it is not.
    pub fn check_plan(&self, text: &str) -> Result<(), CodedError> {
        let document = self.pending.opened.plan.as_ref();
        let same = document.is_some_and(|document| is_same_document(document, text));
        same.then_some(()).ok_or_else(|| changed_problem("the plan"))
    }

    /// Whether a policy is the one that the run began with, in the same workspace.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where it is not.
    pub fn check_policy(&self, bound: &BoundPolicy) -> Result<(), CodedError> {
        let opened = &self.pending.opened;
        let extended = match (&opened.extends, &bound.extended) {
            (None, None) => true,
            (Some(then), Some(now)) => is_same_document(then, &now.text),
            _ => false,
        };
        let layers = opened.layers.len() == bound.layers.len()
            && opened.layers.iter().zip(&bound.layers).all(|(then, now)| {
                then.layer == now.kind && is_same_document(&then.document, &now.text.text)
            });
        if !is_same_document(&opened.policy, &bound.text.text) || !extended || !layers {
            return Err(changed_problem("the policy"));
        }
        if bound.policy.profile.name != opened.profile {
            return Err(changed_problem("the profile"));
        }
        let (identity, here) = (&opened.workspace, &bound.workspace);
        let place = (here.device().to_string(), here.inode().to_string());
        if place != (identity.device.clone(), identity.inode.clone()) || bound.home != opened.home {
            return Err(changed_problem("the workspace"));
        }
        Ok(())
    }

    /// Whether the run staged changes that this one begins with.
    pub(crate) const fn changes(&self) -> Option<&ChangeSet> {
        self.changes.as_ref()
    }

    /// Whether what the run collects is there even where it changes nothing more.
    pub(crate) const fn has_changes(&self) -> bool {
        self.changes.is_some()
    }

    /// What is written of it, with the progress beside it.
    pub(crate) fn resumed_event(&self, progress: capsule_core::journal::PayloadRef) -> Event {
        let Self { pending, answer, .. } = self;
        Event::RunResumed(RunResumed { call: pending.call, answer: answer.run, progress })
    }
}

fn is_same_document(document: &Document, text: &str) -> bool {
    document.sha256 == Digest::of(text.as_bytes())
}

fn unanswered_problem(pending: &PendingQuestion) -> CodedError {
    let name = pending.name();
    CodedError::new(Code::ApprovalWaiting, format!("{name} has not been answered yet"))
        .with_suggestion(format!(
            "`capsule approvals show {name}`, then `capsule approvals answer {name}`"
        ))
}

/// The call that waits, as it was asked for.
fn waiting_call(store: &Store, run: &str, call: u64) -> Result<(String, Value), ResumeError> {
    let mut found = None;
    store.visit::<StoreError>(run, |stored| {
        if let Event::CallProposed(proposed) = &stored.entry.event
            && proposed.call == call
        {
            let kept = store.payloads(stored.leaf, &stored.entry.event)?;
            let args = kept.into_iter().find(|(reference, _)| *reference == proposed.args);
            let args = args.and_then(|(_, payload)| serde_json::from_slice(&payload.bytes?).ok());
            found = args.map(|args| (proposed.tool.as_str().to_owned(), args));
        }
        Ok(())
    })?;
    let missing = || ReplayError::Incomplete("the call's arguments were not kept".into());
    found.ok_or_else(|| missing().into())
}

/// What the run changed and is staged still; none if it changed nothing.
fn earlier_changes(
    store: &Store,
    path: &Path,
    run: &str,
) -> Result<Option<ChangeSet>, ResumeError> {
    let subject = StagedRun::read(store, path, run)?;
    if subject.changes.0.is_empty() {
        return Ok(None);
    }
    if !subject.is_staged && !subject.writes_directly() && subject.is_staging() {
        let what = "what the run had staged was applied or dropped, so the workspace";
        return Err(changed_problem(what).into());
    }
    Ok(subject.is_staged.then_some(subject.changes))
}
