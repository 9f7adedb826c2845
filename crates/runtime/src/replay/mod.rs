//! Replay: the one path with a recorded backend.
//!
//! Every event that the replay writes is compared, byte for byte, with the recorded one at that
//! place. What a call needs is served from the record; a need that is not recorded stops the replay
//! and never falls through to the world.

mod divergence;
mod plan_locations;
mod recording;
mod session;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::diagnostic::Diagnostics;
use capsule_base::exit::Exit;
use capsule_core::call::{Origin, ToolCall};
use capsule_core::journal::{CallProposed, Event, Journal, PayloadClass, RunKind, RunOpened};
use capsule_core::policy::{Policy, SourceText};
use capsule_store::{Store, StoreError};
use serde_json::Value;

use crate::backend::ReplayBackend;
use crate::bound_policy::{BoundPolicy, PolicyTexts};
use crate::lifecycle::submit;
use crate::observer::{ObservedJournal, Observer};
use crate::plan::{Plan, PlanProgress, PlanResult, execute, resume_plan};
use crate::run::{Run, engine_version, seal_run, tools_digest};
pub use divergence::{Difference, Divergence, DivergenceCause};
use plan_locations::StepLocations;
pub(crate) use recording::Recording;
use recording::SharedRecording;
pub(crate) use session::replay_session;

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It met something that is not in its recording; more than one thing if it was to go on.
    #[error("the replay differs from its recording")]
    Diverged(Vec<Divergence>),
    /// The recording does not hold everything that is needed.
    #[error("the recording is not complete: {0}")]
    Incomplete(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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

/// How the recorded run began.
fn read_opening(recording: &Rc<RefCell<Recording>>) -> Result<Box<RunOpened>, ReplayError> {
    let opened = match recording.borrow_mut().peek(1) {
        Some(Event::RunOpened(opened)) => opened,
        _ => return Err(ReplayError::Incomplete("the run's beginning is missing".into())),
    };
    recording.borrow_mut().same_engine =
        opened.engine == engine_version() && opened.tools == tools_digest();
    Ok(opened)
}

/// The recorded run at its beginning, with a recorded backend.
fn open_replay<'o>(
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
            session::replay_calls(&mut run, recording)?;
            let sealed = recording.borrow().peek(1);
            let exit = match sealed {
                Some(Event::RunSealed(sealed)) => sealed.exit,
                _ => Exit::Ok,
            };
            (PlanResult::ended(exit, None), exit.status())
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

type ReplayRun<'o> = Run<ObservedJournal<'o, SharedRecording>, ReplayBackend>;

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

fn recorded_plan(
    recording: &Rc<RefCell<Recording>>,
    opened: &RunOpened,
) -> Result<Plan, ReplayError> {
    let text = opened.plan.as_ref().and_then(|plan| recording.borrow().peek_text(plan));
    let text = text.ok_or_else(|| ReplayError::Incomplete("the plan was not kept".into()))?;
    Plan::parse(&text.text, &opened.name, capsule_tools::CATALOGUE)
        .map_err(|problems| unreadable_error("plan", &problems))
}

fn unreadable_error(what: &str, problems: &Diagnostics) -> ReplayError {
    let first = problems.first().map_or("", |problem| &problem.message);
    ReplayError::Incomplete(format!("this build does not read the recorded {what}: {first}"))
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

/// The call that the next event proposes.
fn proposed_call(
    recording: &Rc<RefCell<Recording>>,
    proposed: CallProposed,
) -> Result<ToolCall, ReplayError> {
    let args = recording
        .borrow_mut()
        .payload(1, &proposed.args)
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| ReplayError::Incomplete("the call's arguments were not kept".into()))?;
    Ok(ToolCall {
        tool: proposed.tool,
        args,
        origin: Origin::Person,
        step: None,
        attempt: 1,
        tainted: Vec::new(),
    })
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
    let status = match origin {
        RunKind::Exec => delivered.command_status(exit),
        RunKind::Plan
        | RunKind::Call
        | RunKind::Apply
        | RunKind::Feedback
        | RunKind::Undo
        | RunKind::Answer
        | RunKind::Session
        | RunKind::Resume => exit.status(),
    };
    let progress = run.waiting().map(|_| Box::default());
    Ok((PlanResult { progress, ..PlanResult::ended(exit, None) }, status))
}
