//! What the events of a run add up to.

use std::collections::BTreeSet;

use capsule_core::action::{Action, Facts, Parsed};
use capsule_core::change::{Change, Node};
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::evidence::{recorded_action, recorded_decision};
use capsule_core::exit::Exit;
use capsule_core::journal::{
    CallFinished, CallProposed, CallStarted, Event, PayloadRef, RunOpened, RunSealed, StepEnded,
    StepEnding,
};
use capsule_core::outcome::{Ending, Problem, Status};
use capsule_core::redact::holds_mask;
use capsule_core::tool::ToolName;
use capsule_store::Payload;
use serde::Serialize;
use serde_json::Value;

/// Looks up a payload that was kept.
pub type Payloads<'p> = dyn Fn(&PayloadRef) -> Option<Vec<u8>> + 'p;

/// Looks up the payloads of one event.
pub fn kept(payloads: &[(PayloadRef, Payload)]) -> impl Fn(&PayloadRef) -> Option<Vec<u8>> {
    move |wanted| {
        let (_, payload) = payloads.iter().find(|(own, _)| own == wanted)?;
        payload.bytes.clone()
    }
}

/// What the events of a run add up to.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// How it began.
    pub header: Option<Header>,
    /// Its calls, in the order in which they were proposed.
    pub calls: Vec<CallStory>,
    /// Its steps, in the order in which they ended.
    pub steps: Vec<StepStory>,
    /// How it ended.
    pub sealed: Option<Sealed>,
}

/// How a run began.
#[derive(Clone, Debug)]
pub struct Header {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What was written.
    pub opened: RunOpened,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What was written.
    pub sealed: RunSealed,
    /// What the plan gives.
    pub outputs: Option<Value>,
}

/// A call and what came of it.
#[derive(Clone, Debug)]
pub struct CallStory {
    /// Its number within the run.
    pub call: u64,
    /// The step that it belongs to.
    pub step: Option<String>,
    /// Which attempt at the step.
    pub attempt: u32,
    /// The tool.
    pub tool: ToolName,
    /// When it was proposed, in microseconds since 1970.
    pub proposed_at: u64,
    /// The arguments, as recorded.
    pub args: Option<Value>,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: Vec<String>,
    /// What it means.
    pub action: Option<Action>,
    /// What was found out about it.
    pub facts: Option<Facts>,
    /// Whether masks stand in what was recorded of the two.
    pub masked: bool,
    /// What was decided.
    pub decision: Option<Decision>,
    /// How it was started.
    pub started: Option<(u64, CallStarted)>,
    /// How it ended.
    pub finished: Option<(u64, CallFinished)>,
    /// The result, as delivered.
    pub output: Option<Value>,
    /// What went wrong.
    pub problem: Option<Problem>,
    /// What it changed in a staged workspace.
    pub changes: Vec<Change>,
}

/// A step and how it ended.
#[derive(Clone, Debug)]
pub struct StepStory {
    /// Its place in the plan, from 1 on.
    pub number: u64,
    /// What was written.
    pub ended: StepEnded,
    /// What was expected and what came.
    pub note: Option<Problem>,
}

impl Story {
    /// Takes the next event.
    pub fn see(&mut self, at: u64, event: &Event, payloads: &Payloads<'_>) {
        match event {
            Event::RunOpened(opened) => {
                self.header = Some(Header { at, opened: (**opened).clone() });
            }
            Event::CallProposed(proposed) => {
                let args = json(payloads, Some(&proposed.args));
                self.calls.push(CallStory::proposed(at, proposed, args));
            }
            Event::CallDecided(decided) => {
                let words = payloads(&decided.text).unwrap_or_else(|| NO_WORDS.to_vec());
                let decision = recorded_decision(decided, &words);
                let considered = decided.action.as_ref().and_then(payloads);
                let masked = considered.as_deref().is_some_and(holds_mask);
                let considered = considered.as_deref().and_then(recorded_action);
                if let Some(call) = self.call(decided.call) {
                    call.decision = decision;
                    call.masked = masked;
                    (call.action, call.facts) = considered.unzip();
                }
            }
            Event::CallStarted(started) => {
                if let Some(call) = self.call(started.call) {
                    call.started = Some((at, started.clone()));
                }
            }
            Event::CallFinished(finished) => {
                let output = json(payloads, Some(&finished.output));
                let problem = json(payloads, finished.problem.as_ref());
                let changes = json(payloads, finished.changes.as_ref());
                if let Some(call) = self.call(finished.call) {
                    call.finished = Some((at, finished.clone()));
                    call.output = output;
                    call.problem = problem;
                    call.changes = changes.unwrap_or_default();
                }
            }
            Event::StepEnded(ended) => {
                let number = u64::try_from(self.steps.len()).unwrap_or(0) + 1;
                let note = json(payloads, ended.note.as_ref());
                self.steps.push(StepStory { number, ended: ended.clone(), note });
            }
            Event::RunSealed(sealed) => {
                let outputs = json(payloads, sealed.outputs.as_ref());
                self.sealed = Some(Sealed { at, sealed: sealed.clone(), outputs });
            }
            Event::RunExported(_) | Event::ChangesDiscarded { .. } => {}
        }
    }

    fn call(&mut self, number: u64) -> Option<&mut CallStory> {
        self.calls.iter_mut().rev().find(|call| call.call == number)
    }

    /// The last attempt at a step.
    #[must_use]
    pub fn call_of(&self, step: &StepStory) -> Option<&CallStory> {
        self.calls.iter().rev().find(|call| call.step.as_deref() == Some(&step.ended.step))
    }

    /// The call that a person means by a number or by a step's id.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&CallStory> {
        let by_step = || self.calls.iter().rev().find(|call| call.step.as_deref() == Some(name));
        let by_place = || {
            let number: u64 = name.parse().ok()?;
            let step = self.steps.iter().find(|step| step.number == number);
            match step {
                Some(step) => self.call_of(step),
                None => self.calls.iter().find(|call| call.call == number),
            }
        };
        by_step().or_else(by_place)
    }

    /// What the run did, in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
        let (mut hosts, mut programs) = (BTreeSet::new(), BTreeSet::new());
        for call in &self.calls {
            summary.denied += u64::from(call.was_denied());
            summary.asked += u64::from(call.was_asked());
            summary.unknown += u64::from(call.is_unknown());
            if call.started.is_none() {
                continue;
            }
            written.extend(call.changes.iter().filter_map(written_file));
            let done = call.finished.as_ref().is_some_and(|(_, end)| end.ending == Ending::Done);
            match &call.action {
                // What was tried and did not happen is shown with its call, and counts for nothing.
                Some(Action::Read { .. } | Action::Write { .. }) if !done => {}
                Some(Action::Read { path, .. }) => drop(read.insert(path.asked.clone())),
                Some(Action::Write { path, .. }) => drop(written.insert(path.asked.clone())),
                Some(Action::Fetch { url, .. }) => {
                    if let Parsed::Url(address) = &url.parsed {
                        hosts.insert(address.host().to_string());
                    }
                }
                Some(Action::Apply { changes, .. }) if done => {
                    written.extend(changes.iter().filter_map(written_file));
                }
                Some(Action::Run { argv, .. }) => {
                    programs.extend(argv.first().cloned());
                }
                _ => {}
            }
        }
        self.count_endings(&mut summary);
        let sorted = |set: BTreeSet<String>| set.into_iter().collect();
        summary.files_read = sorted(read);
        summary.files_written = sorted(written);
        summary.hosts = sorted(hosts);
        summary.programs = sorted(programs);
        summary.calls = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        let began = self.header.as_ref().map_or(0, |header| header.at);
        summary.micros = self.sealed.as_ref().map_or(0, |end| end.at.saturating_sub(began));
        summary
    }

    /// Counts steps, or calls where the run has no steps.
    fn count_endings(&self, summary: &mut Summary) {
        if self.steps.is_empty() {
            for call in &self.calls {
                match call.status() {
                    _ if call.was_asked() => summary.unanswered += 1,
                    _ if call.was_cancelled() => summary.cancelled += 1,
                    Some(Status::Ok) => summary.ok += 1,
                    Some(Status::Denied) => summary.stopped += 1,
                    _ => summary.failed += 1,
                }
            }
            return;
        }
        for step in &self.steps {
            match step.ended.ending {
                StepEnding::Ok => summary.ok += 1,
                StepEnding::FailedAsExpected => summary.ok += 1,
                StepEnding::DeniedAsExpected => summary.expected_denials += 1,
                StepEnding::Denied if step.was_asked() => summary.unanswered += 1,
                StepEnding::Denied => summary.stopped += 1,
                StepEnding::Failed if step.was_cancelled() => summary.cancelled += 1,
                StepEnding::Failed => summary.failed += 1,
                StepEnding::Skipped | StepEnding::NotReached => summary.skipped += 1,
            }
        }
        let steps = self.header.as_ref().map_or(0, |header| header.opened.steps);
        let ended = u64::try_from(self.steps.len()).unwrap_or(u64::MAX);
        summary.not_reached = steps.saturating_sub(ended);
    }
}

/// The path of a change, if a file was written there.
fn written_file(change: &Change) -> Option<String> {
    matches!(change.after, Some(Node::File { .. })).then(|| change.path.clone())
}

/// The words of a decision whose text was erased or never kept.
const NO_WORDS: &[u8] = br#"{"reason":"(not kept)","suggestion":null}"#;

fn json<T: serde::de::DeserializeOwned>(
    payloads: &Payloads<'_>,
    reference: Option<&PayloadRef>,
) -> Option<T> {
    serde_json::from_slice(&payloads(reference?)?).ok()
}

impl StepStory {
    /// Whether it needed an approval that nobody was there to give.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.ended.code.is_some_and(|code| code.exit() == Exit::ApprovalNeeded)
    }

    /// Whether a person ended it.
    #[must_use]
    pub fn was_cancelled(&self) -> bool {
        self.ended.code.is_some_and(|code| code.exit() == Exit::Interrupted)
    }
}

impl CallStory {
    fn proposed(at: u64, proposed: &CallProposed, args: Option<Value>) -> Self {
        Self {
            call: proposed.call,
            step: proposed.step.clone(),
            attempt: proposed.attempt,
            tool: proposed.tool.clone(),
            proposed_at: at,
            args,
            tainted: proposed.tainted.clone(),
            action: None,
            facts: None,
            masked: false,
            decision: None,
            started: None,
            finished: None,
            output: None,
            problem: None,
            changes: Vec::new(),
        }
    }

    /// Whether it was denied, before it began or on its way.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        let refused = |(_, end): &(u64, CallFinished)| end.status == Status::Denied;
        self.finished.as_ref().is_some_and(refused)
            || self.decision.as_ref().is_some_and(|own| own.verdict == Verdict::Deny)
    }

    /// Whether it needed an approval that nobody was there to give.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        let asks = |own: &Decision| matches!(own.verdict, Verdict::Ask | Verdict::AskEach);
        self.decision.as_ref().is_some_and(asks)
    }

    /// Whether a person ended it.
    #[must_use]
    pub fn was_cancelled(&self) -> bool {
        self.finished.as_ref().is_some_and(|(_, end)| end.ending == Ending::Cancelled)
    }

    /// What its caller was told first; none while it goes on, or if its end was never written.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match (&self.finished, &self.decision) {
            (Some((_, finished)), _) => Some(finished.status),
            (None, Some(decision)) if decision.verdict != Verdict::Allow => {
                Some(decision.code.class().into())
            }
            _ => None,
        }
    }

    /// Whether it could change the workspace itself, of which nothing is collected.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        let confinement = self.started.as_ref().and_then(|(_, started)| started.confinement);
        confinement.is_some_and(|own| own.workspace == WorkspaceAccess::Direct)
    }

    /// Whether it was started and its end was never written.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.started.is_some() && self.finished.is_none()
    }

    /// From its start to its end, in microseconds.
    #[must_use]
    pub fn micros(&self) -> Option<u64> {
        let (began, _) = self.started.as_ref()?;
        let (ended, _) = self.finished.as_ref()?;
        Some(ended.saturating_sub(*began))
    }

    /// What it is about, in a line; not escaped.
    #[must_use]
    pub fn about(&self) -> String {
        match (&self.action, &self.args) {
            (Some(action), _) => action.summary(),
            (None, Some(args)) => args.to_string(),
            (None, None) => String::from("(not kept)"),
        }
    }

    /// How many bytes its result is about.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let output = self.output.as_ref()?;
        let field = |name| output.get(name).and_then(Value::as_u64);
        field("bytes_total").or_else(|| field("stdout_bytes_total"))
    }
}

/// What a run did, in numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Steps (or calls) that went as asked.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were denied.
    #[serde(rename = "denied_unexpectedly")]
    pub stopped: u64,
    /// Those that needed an approval that nobody was there to give.
    #[serde(rename = "approval_needed")]
    pub unanswered: u64,
    /// Those that a person ended.
    pub cancelled: u64,
    /// Those that were denied as the plan expects.
    pub expected_denials: u64,
    /// Those that were skipped.
    pub skipped: u64,
    /// Those that the run ended before.
    pub not_reached: u64,
    /// All calls.
    pub calls: u64,
    /// All calls that were denied, whether expected or not.
    pub denied: u64,
    /// All calls that needed an approval that nobody was there to give.
    pub asked: u64,
    /// Calls that were started and have no end.
    pub unknown: u64,
    /// Times that a person was asked.
    pub prompts: u64,
    /// How long the run took, in microseconds.
    pub micros: u64,
    /// The files that were read.
    pub files_read: Vec<String>,
    /// The files that were written.
    pub files_written: Vec<String>,
    /// The hosts that were contacted.
    pub hosts: Vec<String>,
    /// The programs that ran.
    pub programs: Vec<String>,
}

impl Summary {
    /// The exit as a word for people.
    #[must_use]
    pub const fn exit_word(exit: Exit) -> &'static str {
        match exit {
            Exit::Ok => "ok",
            Exit::ToolFailed => "a tool failed",
            Exit::BadUsage => "bad usage",
            Exit::Denied => "denied",
            Exit::ApprovalNeeded => "approval needed",
            Exit::ReplayDiverged => "replay diverged",
            Exit::IntegrityFailed => "integrity failed",
            Exit::BudgetUsedUp => "budget used up",
            Exit::SandboxBelowFloor => "sandbox below floor",
            Exit::RuntimeError => "runtime error",
            Exit::Interrupted => "interrupted",
        }
    }
}
