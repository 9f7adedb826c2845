//! Replay of a session: the calls of its processes, one after another.

use std::cell::RefCell;
use std::rc::Rc;

use capsule_core::journal::{Event, Journal as _};
use capsule_core::policy::Usage;
use capsule_store::Store;

use super::error::ReplayError;
use super::opening::{ReplayRun, open_replay, proposed_call, read_opening};
use super::recording::Recording;
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
    replay_calls(&mut run, &recording)?;
    Ok((run.usage, run.calls))
}

/// Makes the calls of a session again, up to its end or the end of its record.
pub(super) fn replay_calls(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
) -> Result<(), ReplayError> {
    loop {
        let next = recording.borrow().peek(1);
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
                    submit(run, call)?;
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
