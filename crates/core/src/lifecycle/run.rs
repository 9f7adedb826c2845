//! From a clearance to an end that is written down.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;

use serde_json::Value;

use crate::approval::Approver;
use crate::call::ToolCall;
use crate::confinement::{Confinement, Enforcement, ProcessLimits};
use crate::journal::{
    CallFinished, CallStarted, ConnectionTarget, Durability, EntryPosition, Event, Journal,
    PayloadClass, UndoCoverage,
};
use crate::lifecycle::Cleared;
use crate::outcome::{CodedError, Ending, Outcome, Output, Status};
use crate::policy::{EnvironmentRule, HostQuestion, NetworkUsage, Restrictions};
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::json;
use capsule_redact::Redactor;

/// What was kept for an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedUndo {
    /// The record, for whoever undoes.
    pub record: Vec<u8>,
    /// What it covers; none in runs that were recorded before that was said.
    pub coverage: Option<UndoCoverage>,
}

/// What a tool's preflight prepared: it owns the descriptors, and waits for a permit.
pub trait Operation {
    /// Keeps what an undo of the coming effect needs, durably. Called once, before the intent is
    /// written. Nothing is kept for what changes nothing, and for what was judged to be irreversible.
    ///
    /// # Errors
    /// When it cannot be kept although it was judged so: then the call does not run.
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        Ok(None)
    }

    /// Has made ready what can be made ready without anything happening outside of this program, beside the
    /// writing of what was decided and of the intent. Called once, before that is written, for a call that may
    /// run. It may be that nothing comes of it; what goes wrong with it is told when the action is carried out.
    fn prepare(&mut self, _: &Restrictions) {}

    /// Has what was made ready begin, where it then goes on by itself, so that there is time for what was put
    /// off. Called once, behind the written intent; what is not begun then begins when it is run. What goes
    /// wrong with it is told then, too.
    fn start(&mut self, _: &Permit<'_>) {}

    /// What will differ in a file, for whoever is asked.
    fn preview(&mut self) -> Preview {
        Preview::Unavailable
    }

    /// Carries the action out, within the bounds that the permit states.
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome;
}

/// What will differ in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// These lines.
    Lines(String),
    /// Nothing that could be shown: it changes no one file, or cannot be looked at.
    Unavailable,
    /// What the record says, with which there is nothing to compare.
    Recorded,
}

impl Preview {
    /// The same as it may be shown.
    pub(super) fn masked(self, redactor: &Redactor) -> Self {
        match self {
            Self::Lines(lines) => Self::Lines(redactor.text(&lines, &mut 0).into_owned()),
            other => other,
        }
    }

    /// The lines, if there are any.
    pub(super) fn lines(&self) -> Option<&str> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Unavailable | Self::Recorded => None,
        }
    }

    /// Whether this is what was shown before.
    pub(super) fn matches(&self, shown: Option<&str>) -> bool {
        *self == Self::Recorded || self.lines() == shown
    }
}

/// The intent was written: this call may run now, once.
struct Receipt {
    at: u64,
}

/// Something that happened to a connection of a running command, by its number among those of the call.
#[derive(Clone, Copy, Debug)]
pub enum ConnectionRecord<'r> {
    /// The command wants to reach a host: it is dialled next, or refused for a reason.
    Requested(u64, &'r ConnectionTarget, Option<Code>),
    /// The connection ended, with so many bytes sent and received; with a reason where it was cut off.
    Closed(u64, u64, u64, Option<Code>),
}

/// A running call, and the person who is asked about its connections.
pub struct RunningCall<'a> {
    /// The call, as it was asked for.
    pub call: &'a ToolCall,
    /// The policy that judged it.
    pub policy: Digest,
    /// Who is asked.
    pub approver: &'a mut dyn Approver,
}

/// Who allowed a command to reach a host that the policy asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedBy {
    /// A person, now.
    Person,
    /// A grant that a person gave before, by its name.
    Grant(String),
}

/// Where a running call writes down what its command connects to, and asks about it.
trait ConnectionJournal {
    /// Says whether it was written.
    fn record(&self, record: ConnectionRecord<'_>) -> bool;

    /// Gives the answer; none where something could not be written.
    fn ask(&self, question: &HostQuestion) -> Option<Result<AllowedBy, CodedError>>;
}

/// Leave to run one call, now, within bounds.
///
/// There is no way to make one, to keep one beyond the call, to copy or to serialise one.
pub struct Permit<'p> {
    restrictions: &'p Restrictions,
    journal: &'p dyn ConnectionJournal,
    /// When the intent was written, in microseconds since 1970.
    at: u64,
    // Invariant, so that a permit cannot pass for one with another lifetime.
    once: PhantomData<&'p mut &'p ()>,
}

impl<'p> Permit<'p> {
    /// The bounds within which the call may run.
    #[must_use]
    pub const fn restrictions(&self) -> &'p Restrictions {
        self.restrictions
    }

    /// When the intent was written, in microseconds since 1970.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Writes down what happened to a connection of the command. A request is written before anything is dialled.
    ///
    /// # Errors
    /// When it cannot be written: then nothing may be dialled. The call ends with that error.
    pub fn record(&self, record: ConnectionRecord<'_>) -> Result<(), CodedError> {
        self.journal.record(record).then_some(()).ok_or_else(unwritten)
    }

    /// Asks a person whether the command may reach a host, unless a grant answers; says who allowed it. The command
    /// waits meanwhile.
    ///
    /// # Errors
    /// The reason why it may not be reached: a person said no, or nobody is there; or the question could not be
    /// written, with which the call ends.
    pub fn ask(&self, question: &HostQuestion) -> Result<AllowedBy, CodedError> {
        self.journal.ask(question).unwrap_or_else(|| Err(unwritten()))
    }

    /// Spends it on running a program with nothing around it.
    ///
    /// # Errors
    /// It is no leave to do that, and stays what it was.
    pub fn unconfined(self) -> Result<UnconfinedPermit<'p>, Self> {
        match self.restrictions {
            Restrictions::Unconfined { limits, clamped, environment } => {
                Ok(UnconfinedPermit { limits, clamped: *clamped, environment, once: PhantomData })
            }
            _ => Err(self),
        }
    }
}

/// A connection of which the record cannot tell.
fn unwritten() -> CodedError {
    CodedError::new(Code::EngineFault, "a connection could not be written down")
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("restrictions", self.restrictions).finish_non_exhaustive()
    }
}

/// Leave to run one program with nothing around it. It comes out of a permit that says so, and out of
/// nothing else; what confines asks for no such thing, and what does not cannot do without.
#[derive(Debug)]
pub struct UnconfinedPermit<'p> {
    /// The limits that can be kept without walls.
    pub limits: &'p ProcessLimits,
    /// Whether more time was asked for.
    pub clamped: bool,
    /// What the program finds in its environment.
    pub environment: &'p EnvironmentRule,
    once: PhantomData<&'p mut &'p ()>,
}

/// A call that ended, as it was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedCall {
    /// What the caller is told first.
    pub status: Status,
    /// How it ended.
    pub ending: Ending,
    /// The result, as recorded.
    pub value: Value,
    /// What went wrong.
    pub problem: Option<CodedError>,
    /// From the intent to the end, in microseconds.
    pub micros: u64,
    /// Whether what it changed was kept for an undo.
    pub has_undo: bool,
    /// What it used of the network.
    pub network: NetworkUsage,
}

/// Writes the intent, runs the call, writes its end.
///
/// Where the call changes or sends something, the intent is durable before anything acts: no
/// record, no run. The end is written even when the tool panics; the panic then goes on.
///
/// # Errors
/// When intent or end cannot be written. Without a written intent nothing has run.
pub fn run<'r, J, F>(
    cleared: Cleared,
    running: RunningCall<'r>,
    redactor: &'r Redactor,
    journal: &'r mut J,
    act: F,
) -> Result<FinishedCall, J::Error>
where
    J: Journal,
    F: for<'p> FnOnce(Permit<'p>, Box<dyn Operation>) -> Outcome,
{
    let Cleared {
        number,
        restrictions: bounds,
        confinement,
        decision,
        mut operation,
        is_prepared: is_ready,
        batch: _,
    } = cleared;
    let (undo, covers) = match operation.save_undo() {
        Ok(None) => (None, None),
        Ok(Some(SavedUndo { record, coverage: covers })) => {
            (Some(journal.put_payload(PayloadClass::Undo, &record)?), covers)
        }
        Err(problem) => {
            let end = EndWriter { number, redactor, journal, durability: Durability::CrashSafe };
            return end.write(Outcome::failed(problem), None);
        }
    };
    let (effects, kept) = (decision.capabilities.have_side_effects(), undo.is_some());
    let started = CallStarted { call: number, effects, confinement, undo, covers };
    let durability = if effects { Durability::PowerSafe } else { Durability::CrashSafe };
    if !is_ready {
        operation.prepare(&bounds);
    }
    let EntryPosition { at, .. } = journal.append(Event::CallStarted(started), durability)?;
    let receipt = Receipt { at };
    // Where nothing was changed or sent, a run that breaks off before the next event leaves a question
    // that does nobody harm.
    let durability = if effects { Durability::CrashSafe } else { Durability::Deferred };
    let end = Some(EndWriter { number, redactor, journal, durability });
    let network = NetworkUsage::default();
    let guard = EndGuard { end, at, running, confinement, failure: None, network };
    let guard = RefCell::new(guard);
    let permit =
        Permit { restrictions: &bounds, journal: &guard, at: receipt.at, once: PhantomData };
    operation.start(&permit);
    guard.borrow_mut().run_idle_work();
    let outcome = act(permit, operation);
    guard.into_inner().finish(outcome).map(|done| FinishedCall { has_undo: kept, ..done })
}

/// Writes the end of a call.
pub(super) struct EndWriter<'e, J: Journal> {
    pub(super) number: u64,
    pub(super) redactor: &'e Redactor,
    pub(super) journal: &'e mut J,
    pub(super) durability: Durability,
}

impl<J: Journal> EndWriter<'_, J> {
    pub(super) fn write(
        self,
        outcome: Outcome,
        started: Option<u64>,
    ) -> Result<FinishedCall, J::Error> {
        let status = outcome.status();
        let Outcome { ending, problem, output, enforcement, changes } = outcome;
        let delivered = output.deliver(self.redactor);
        let output = self
            .journal
            .put_payload(PayloadClass::Output, &json::canonical_value(&delivered.value))?;
        let mut masked = delivered.masked;
        let mut clean = |text: String| self.redactor.text(&text, &mut masked).into_owned();
        let problem = problem.map(|problem| CodedError {
            message: clean(problem.message),
            suggestion: problem.suggestion.map(&mut clean),
            ..problem
        });
        let words = match &problem {
            Some(problem) => {
                Some(self.journal.put_payload(PayloadClass::Text, &json::canonical(problem))?)
            }
            None => None,
        };
        let changes = match changes.as_slice() {
            [] => None,
            changes => {
                let clean = self.redactor.value(serde_json::json!(changes), &mut masked);
                Some(
                    self.journal
                        .put_payload(PayloadClass::Changes, &json::canonical_value(&clean))?,
                )
            }
        };
        let finished = CallFinished {
            call: self.number,
            ending,
            status,
            code: problem.as_ref().map(|problem| problem.code),
            output,
            problem: words,
            enforcement,
            masked,
            changes,
        };
        let EntryPosition { at, .. } =
            self.journal.append(Event::CallFinished(finished), self.durability)?;
        let micros = started.map_or(0, |started| at.saturating_sub(started));
        Ok(FinishedCall {
            status,
            ending,
            value: delivered.value,
            problem,
            micros,
            has_undo: false,
            network: NetworkUsage::default(),
        })
    }
}

/// Sees to it that a started call has an end, whatever happens in between.
struct EndGuard<'e, J: Journal> {
    end: Option<EndWriter<'e, J>>,
    at: u64,
    running: RunningCall<'e>,
    confinement: Option<Confinement>,
    /// The reason why a connection was not written down.
    failure: Option<J::Error>,
    /// What was written of connections.
    network: NetworkUsage,
}

impl<J: Journal> ConnectionJournal for RefCell<EndGuard<'_, J>> {
    fn record(&self, record: ConnectionRecord<'_>) -> bool {
        let mut guard = self.borrow_mut();
        let EndGuard { end: Some(end), failure, network, .. } = &mut *guard else { return false };
        match record {
            ConnectionRecord::Requested(_, target, None) => {
                *network.hosts.entry(target.host.clone()).or_default() += 1;
            }
            ConnectionRecord::Requested(..) => {}
            ConnectionRecord::Closed(_, _, received, _) => network.received += received,
        }
        if failure.is_none() {
            *failure = end.record_connection(record).err();
        }
        failure.is_none()
    }

    fn ask(&self, question: &HostQuestion) -> Option<Result<AllowedBy, CodedError>> {
        let mut guard = self.borrow_mut();
        let EndGuard { end: Some(end), running, confinement, failure: failure @ None, .. } =
            &mut *guard
        else {
            return None;
        };
        end.ask_about_host(question, *confinement, running)
            .map_err(|error| *failure = Some(error))
            .ok()
    }
}

impl<J: Journal> EndGuard<'_, J> {
    /// There is time for what the journal has put off.
    fn run_idle_work(&mut self) {
        if let Some(end) = &mut self.end {
            end.journal.run_idle_work();
        }
    }

    fn finish(mut self, outcome: Outcome) -> Result<FinishedCall, J::Error> {
        if let Some(failure) = self.failure.take() {
            self.end = None;
            return Err(failure);
        }
        match self.end.take() {
            Some(end) => end.write(outcome, Some(self.at)),
            // `finish` consumes the guard, and only it and `drop` take the end.
            None => Ok(FinishedCall {
                status: Status::RuntimeError,
                ending: Ending::Failed,
                value: Value::Null,
                problem: Some(CodedError::new(Code::EngineFault, "a call ended twice")),
                micros: 0,
                has_undo: false,
                network: NetworkUsage::default(),
            }),
        }
        .map(|done| FinishedCall { network: self.network.clone(), ..done })
    }
}

impl<J: Journal> Drop for EndGuard<'_, J> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // Whether there is a next event is for others to say.
            let end = EndWriter { durability: Durability::CrashSafe, ..end };
            let outcome = Outcome {
                ending: Ending::Failed,
                problem: Some(CodedError::new(Code::EnginePanicked, "the tool panicked")),
                output: Output::default(),
                enforcement: Enforcement::InProcess,
                changes: Vec::new(),
            };
            // The panic is on its way to someone who stops the run; a journal that cannot be
            // written to either leaves an outcome that is unknown, which is what readers will see.
            let _ = end.write(outcome, Some(self.at));
        }
    }
}
