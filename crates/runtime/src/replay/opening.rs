//! The beginning of a recorded run, and the calls that it proposes, as a replay takes them again.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_core::call::ToolCall;
use capsule_core::journal::{CallProposed, Event, Journal as _, RunOpened};
use capsule_core::policy::Policy;

use super::error::ReplayError;
use super::journal::SharedRecording;
use super::recording::Recording;
use crate::backend::ReplayBackend;
use crate::bound_policy::{BoundPolicy, PolicyTexts};
use crate::observer::{ObservedJournal, Observer};
use crate::run::{Run, engine_version, tools_digest};

/// A run whose journal and backend are a recording.
pub(super) type ReplayRun<'o> = Run<ObservedJournal<'o, SharedRecording>, ReplayBackend>;

/// How the recorded run began.
pub(super) fn read_opening(
    recording: &Rc<RefCell<Recording>>,
) -> Result<Box<RunOpened>, ReplayError> {
    let opened = match recording.borrow_mut().peek(1) {
        Some(Event::RunOpened(opened)) => opened,
        _ => return Err(ReplayError::Incomplete("the run's beginning is missing".into())),
    };
    recording.borrow_mut().same_engine =
        opened.engine == engine_version() && opened.tools == tools_digest();
    Ok(opened)
}

/// The recorded run at its beginning, with a recorded backend.
pub(super) fn open_replay<'o>(
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
    observer: &'o mut dyn Observer,
) -> Result<ReplayRun<'o>, ReplayError> {
    let policy = recorded_policy(recording, opened)?;
    let journal = ObservedJournal::new(SharedRecording::new(Rc::clone(recording)), observer);
    let backend = ReplayBackend::new(Rc::clone(recording));
    let mut run = Run::new(policy, journal, backend);
    replay_opening(&mut run, recording, opened)?;
    Ok(run)
}

/// Writes the beginning of the run as it was.
fn replay_opening(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
) -> Result<(), ReplayError> {
    use capsule_core::journal::PayloadClass::{Document, Key};
    let documents = [opened.plan.as_ref().map(|plan| plan.text), Some(opened.policy.text)];
    let extends = opened.extends.as_ref().map(|document| document.text);
    let layers = opened.layers.iter().map(|layer| layer.document.text);
    let behind = [opened.inputs].into_iter().chain(extends).chain(layers);
    for reference in documents.into_iter().flatten().chain(behind) {
        let bytes = recording.borrow_mut().payload(1, &reference).ok_or_else(|| {
            ReplayError::Incomplete("a text that the run began with was not kept".into())
        })?;
        run.journal.put_payload(Document, &bytes)?;
    }
    run.journal.put_payload(Key, &[])?;
    run.write(Event::RunOpened(Box::new(opened.clone())))
}

/// The policy as it was recorded, bound to the workspace as it was recorded.
fn recorded_policy(
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
) -> Result<Arc<Policy>, ReplayError> {
    let texts = PolicyTexts::from_record(opened, |wanted| recording.borrow().payload(1, wanted));
    let texts = texts.ok_or_else(|| ReplayError::Incomplete("the policy was not kept".into()))?;
    recording.borrow_mut().masked_policy = texts.are_masked();
    BoundPolicy::bind_recorded(&texts, opened)
        .map_err(|problems| unreadable_error("policy", &problems))
}

/// Why a recorded text cannot be replayed.
pub(super) fn unreadable_error(what: &str, problems: &Diagnostics) -> ReplayError {
    let first = problems.first().map_or("", |problem| &problem.message);
    ReplayError::Incomplete(format!("this build does not read the recorded {what}: {first}"))
}

/// The call that the next event proposes.
pub(super) fn proposed_call(
    recording: &Rc<RefCell<Recording>>,
    proposed: CallProposed,
) -> Result<ToolCall, ReplayError> {
    let args = recording
        .borrow_mut()
        .payload(1, &proposed.args)
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| ReplayError::Incomplete("the call's arguments were not kept".into()))?;
    let call = ToolCall::by(proposed.origin, proposed.tool.as_str(), args);
    Ok(ToolCall { tainted: proposed.tainted, ..call })
}
