//! Replay of a session: the calls of its processes, one after another.

use std::cell::RefCell;
use std::rc::Rc;

use capsule_core::call::ToolCall;
use capsule_core::journal::{Event, Journal as _};
use capsule_core::policy::Usage;
use capsule_store::Store;

use super::error::ReplayError;
use super::opening::{ReplayRun, open_replay, proposed_call, read_opening};
use super::recording::Recording;
use crate::call_result::CallResult;
use crate::lifecycle::submit;
use crate::observer::NullObserver;

/// What an open session has used, and how many calls it made, as its record says. `unfinished` is the call that
/// its last process did not end.
///
/// # Errors
/// When the record does not hold everything that is needed.
pub(crate) fn replay_session(
    store: Store,
    run: &str,
    unfinished: Option<u64>,
) -> Result<(Usage, u64), ReplayError> {
    let mut recording = Recording::open_unsealed(store, run, false)?;
    recording.unfinished = unfinished;
    let recording = Rc::new(RefCell::new(recording));
    let opened = read_opening(&recording)?;
    let mut observer = NullObserver;
    let mut run = open_replay(&recording, &opened, &mut observer)?;
    replay_calls(&mut run, &recording, &mut |_| ())?;
    Ok((run.usage, run.calls))
}

/// The calls of an open session since the last request to a model and its answer, each with what came of it.
///
/// # Errors
/// When the record does not hold everything that is needed.
pub(crate) fn replay_unsent_calls(
    store: Store,
    run: &str,
) -> Result<Vec<(ToolCall, CallResult)>, ReplayError> {
    let recording = Rc::new(RefCell::new(Recording::open_unsealed(store, run, false)?));
    let opened = read_opening(&recording)?;
    let mut observer = NullObserver;
    let mut run = open_replay(&recording, &opened, &mut observer)?;
    let mut unsent = Vec::new();
    replay_calls(&mut run, &recording, &mut |part| match part {
        SessionPart::ModelEvent => unsent.clear(),
        SessionPart::Call(made) => unsent.push(*made),
    })?;
    Ok(unsent)
}

/// A part of a session that was replayed.
pub(super) enum SessionPart {
    /// A request to a model, or an answer.
    ModelEvent,
    /// A call, with what came of it.
    Call(Box<(ToolCall, CallResult)>),
}

/// Makes the calls of a session again, up to its end or the end of its record.
pub(super) fn replay_calls(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
    on_part: &mut dyn FnMut(SessionPart),
) -> Result<(), ReplayError> {
    loop {
        let next = recording.borrow().peek(1);
        if let Some(Event::ModelRequested(_) | Event::ModelAnswered(_)) = next {
            on_part(SessionPart::ModelEvent);
        }
        match next {
            None | Some(Event::RunSealed(_)) => return Ok(()),
            // A replay asks no model and no person: their messages are taken from the record.
            Some(
                event @ (Event::SessionJoined(_)
                | Event::ChangesApplied { .. }
                | Event::UserMessage { .. }
                | Event::UserAnswered { .. }
                | Event::ModelRequested(_)
                | Event::ModelAnswered(_)),
            ) => {
                copy_event(run, recording, event)?;
            }
            Some(Event::CallProposed(proposed)) => {
                if recording.borrow().is_unfinished(proposed.call)? {
                    copy_unfinished_call(run, recording)?;
                } else {
                    let call = proposed_call(recording, proposed)?;
                    let result = submit(run, call.clone())?;
                    on_part(SessionPart::Call(Box::new((call, result))));
                }
            }
            Some(_) => {
                let what = "an event of a call is between the calls of the session";
                return Err(ReplayError::Incomplete(what.into()));
            }
        }
    }
}

/// Takes over what is recorded of a call whose process was killed. It counts as made, and as nothing more.
fn copy_unfinished_call(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
) -> Result<(), ReplayError> {
    loop {
        let next = recording.borrow().peek(1);
        match next {
            None | Some(Event::SessionJoined(_) | Event::RunSealed(_)) => return Ok(()),
            Some(event) => {
                if let Event::CallProposed(proposed) = &event {
                    run.calls = proposed.call;
                    run.usage.count_call(&proposed.tool, proposed.args_mac);
                }
                copy_event(run, recording, event)?;
            }
        }
    }
}

/// Writes a recorded event as it is.
fn copy_event(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
    event: Event,
) -> Result<(), ReplayError> {
    for (reference, class) in event.payloads() {
        let kept = recording.borrow().payload(1, &reference);
        if let Some(kept) = kept.filter(|_| !class.is_private()) {
            run.journal.put_payload(class, &kept)?;
        }
    }
    run.write(event)
}
