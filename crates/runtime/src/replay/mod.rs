//! Replay: the one path with a recorded backend.
//!
//! Every event that the replay writes is compared, byte for byte, with the recorded one at that
//! place. What a call needs is served from the record; a need that is not recorded stops the replay
//! and never falls through to the world.

mod comparison;
mod divergence;
mod error;
mod journal;
mod opening;
mod plan_locations;
mod recording;
mod session;

use std::cell::RefCell;
use std::rc::Rc;

use capsule_base::exit::Exit;
use capsule_core::journal::{Event, Journal as _, PayloadClass, RunKind, RunOpened};
use capsule_policy::SourceText;
use capsule_store::Store;
use serde_json::Value;

use crate::lifecycle::submit;
use crate::observer::Observer;
use crate::plan::{Plan, PlanProgress, PlanResult, execute, resume_plan};
use crate::run::seal_run;
pub use divergence::{Difference, Divergence, DivergenceCause};
pub use error::ReplayError;
use opening::{ReplayRun, open_replay, proposed_call, read_opening, unreadable_error};
use plan_locations::StepLocations;
pub(crate) use recording::Recording;
pub(crate) use session::{replay_session, replay_unsent_calls};

/// What a replay came to.
#[derive(Debug)]
pub struct ReplayResult {
    /// The exit status of the run's process, then and now. For a command that stood for itself it
    /// is the command's own.
    pub status: u8,
    /// Calls whose results were served.
    pub calls: u64,
}

/// What a replay starts from.
pub struct ReplaySource<'s> {
    /// The store that holds the run.
    pub store: Store,
    /// The run's full id.
    pub run: &'s str,
    /// The plan to compare with; the recorded one if none is given.
    pub plan: Option<(SourceText, Plan)>,
    /// Whether to go on behind a difference, with the recorded event as what happened, as long as
    /// the two can be laid side by side.
    pub keep_going: bool,
}

/// Replays a run and shows it to an observer as if it happened now.
///
/// # Errors
/// [`ReplayError::Diverged`] at the first difference, or with all that were met; nothing is executed
/// in any case.
pub fn replay(
    source: ReplaySource<'_>,
    observer: &mut dyn Observer,
) -> Result<ReplayResult, ReplayError> {
    let ReplaySource { store, run: id, plan, keep_going } = source;
    let (text, plan) = plan.map_or((None, None), |(text, plan)| (Some(text), Some(plan)));
    let mut recording = Recording::open(store, id, plan.is_some())?;
    recording.keep_going = keep_going;
    let places = match (&text, &plan) {
        (Some(text), Some(plan)) => StepLocations::read(&recording, text, plan),
        _ => StepLocations::default(),
    };
    let recording = Rc::new(RefCell::new(recording));
    let replayed = run_replay(&recording, plan, observer).map(|(replayed, _)| replayed);
    let mut met = std::mem::take(&mut recording.borrow_mut().divergences);
    match replayed {
        Ok(replayed) if met.is_empty() => return Ok(replayed),
        Ok(_) => {}
        Err(ReplayError::Diverged(last)) => met.extend(last),
        Err(error) if met.is_empty() => return Err(error),
        // What cannot be served behind a difference says nothing that the difference did not.
        Err(_) => {}
    }
    met.iter_mut().for_each(|divergence| places.add_location(divergence));
    Err(ReplayError::Diverged(met))
}

/// Replays a suspended run to where it waits; gives how far it came.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_to_suspension(
    store: Store,
    run: &str,
    observer: &mut dyn Observer,
) -> Result<Option<PlanProgress>, ReplayError> {
    let recording = Rc::new(RefCell::new(Recording::open(store, run, false)?));
    let (_, executed) = run_replay(&recording, None, observer)?;
    Ok(executed.progress.map(|progress| *progress))
}

/// Takes the recorded run again, with a recorded backend.
fn run_replay(
    recording: &Rc<RefCell<Recording>>,
    plan: Option<Plan>,
    observer: &mut dyn Observer,
) -> Result<(ReplayResult, PlanResult), ReplayError> {
    let opened = read_opening(recording)?;
    let inputs = recorded_inputs(recording, &opened)?;
    let plan = match (opened.origin, plan) {
        (RunKind::Plan, None) => Some(recorded_plan(recording, &opened)?),
        // What goes on with a single call has none.
        (RunKind::Resume, None) if opened.plan.is_some() => {
            Some(recorded_plan(recording, &opened)?)
        }
        (_, given) => given,
    };
    let mut run = open_replay(recording, &opened, observer)?;
    let (outcome, status) = match plan {
        Some(plan) => {
            let mut executed = match resumed_progress(&mut run, recording)? {
                Some(from) => resume_plan(&mut run, &plan, inputs, from)?,
                None => execute(&mut run, &plan, inputs)?,
            };
            if recording.borrow().was_interrupted() {
                executed.exit = Exit::Interrupted;
            }
            let status = executed.exit.status();
            (executed, status)
        }
        None if opened.origin == RunKind::Session => {
            session::replay_calls(&mut run, recording, &mut |_| ())?;
            let sealed = recording.borrow().peek(1);
            let (exit, suspended) = match sealed {
                Some(Event::RunSealed(sealed)) => (sealed.exit, sealed.suspended),
                _ => (Exit::Ok, None),
            };
            // Only one that ended with its process was suspended for its question.
            run.waiting = run.waiting.filter(|_| suspended.is_some());
            let progress = run.waiting().map(|_| Box::default());
            (PlanResult { progress, ..PlanResult::ended(exit, None) }, exit.status())
        }
        None => replay_single_call(&mut run, recording, opened.origin)?,
    };
    seal_run(&mut run, outcome.exit, outcome.outputs.as_ref())?;
    let calls = run.calls;
    recording.borrow().require_consumed()?;
    Ok((ReplayResult { status, calls }, outcome))
}

/// How far the run had come that this one goes on with; none where it goes on with none.
fn resumed_progress(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
) -> Result<Option<PlanProgress>, ReplayError> {
    let ahead = recording.borrow().peek(1);
    let Some(Event::RunResumed(resumed)) = ahead else { return Ok(None) };
    let kept = recording.borrow().payload(1, &resumed.progress);
    let missing = || ReplayError::Incomplete("how far the run came was not kept".into());
    let kept = kept.ok_or_else(missing)?;
    let progress = serde_json::from_slice(&kept).map_err(|_| missing())?;
    run.journal.put_payload(PayloadClass::Output, &kept)?;
    run.write(Event::RunResumed(resumed))?;
    run.next_is_answered = true;
    Ok(Some(progress))
}

fn recorded_plan(
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
) -> Result<Plan, ReplayError> {
    let text = opened.plan.as_ref().and_then(|plan| recording.borrow().peek_text(plan));
    let text = text.ok_or_else(|| ReplayError::Incomplete("the plan was not kept".into()))?;
    Plan::parse(&text.text, &opened.name, capsule_tools::CATALOGUE)
        .map_err(|problems| unreadable_error("plan", &problems))
}

fn recorded_inputs(
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
) -> Result<serde_json::Map<String, Value>, ReplayError> {
    let bytes = recording.borrow_mut().payload(1, &opened.inputs);
    match bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        Some(Value::Object(inputs)) => Ok(inputs),
        _ => Err(ReplayError::Incomplete("the inputs were not kept".into())),
    }
}

/// A run that says what a person thinks of another one: it is said again.
fn replay_annotation(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
    event: Event,
) -> Result<(PlanResult, u8), ReplayError> {
    for (why, _) in event.payloads() {
        let kept = recording.borrow_mut().payload(1, &why);
        let kept = kept.ok_or_else(|| ReplayError::Incomplete("the reason was not kept".into()))?;
        run.journal.put_payload(PayloadClass::Text, &kept)?;
    }
    run.write(event)?;
    Ok((PlanResult::ended(Exit::Ok, None), Exit::Ok.status()))
}

/// A run of one call: what was proposed is proposed again. Gives the status of its process too.
fn replay_single_call(
    run: &mut ReplayRun<'_>,
    recording: &Rc<RefCell<Recording>>,
    origin: RunKind,
) -> Result<(PlanResult, u8), ReplayError> {
    // A single call goes on from nothing but its question.
    resumed_progress(run, recording)?;
    let ahead = recording.borrow().peek(1);
    let proposed = match ahead {
        Some(Event::CallProposed(proposed)) => proposed,
        Some(said @ (Event::FeedbackGiven(_) | Event::AnswerGiven(_))) => {
            return replay_annotation(run, recording, said);
        }
        Some(Event::RunSealed(sealed)) => {
            return Ok((PlanResult::ended(sealed.exit, None), sealed.exit.status()));
        }
        _ => return Err(ReplayError::Incomplete("the call is missing".into())),
    };
    let call = proposed_call(recording, proposed)?;
    let delivered = submit(run, call)?;
    let interrupted = recording.borrow().was_interrupted();
    let exit = if interrupted { Exit::Interrupted } else { delivered.exit() };
    let status = match origin.is_program() {
        true => delivered.command_status(exit),
        false => exit.status(),
    };
    let progress = run.waiting().map(|_| Box::default());
    Ok((PlanResult { progress, ..PlanResult::ended(exit, None) }, status))
}
