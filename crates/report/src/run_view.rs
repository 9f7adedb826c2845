//! What the events of a run add up to.

use std::collections::BTreeMap;

use capsule_base::exit::Exit;
use capsule_core::confinement::SandboxStatus;
use capsule_core::journal::{
    AnswerGiven, ApprovalAnswered, ApprovalShown, ApprovalWaiting, Event, GrantUsed, RunOpened,
    RunResumed, RunSealed, StepEnded, StepEnding,
};
use capsule_core::lifecycle::{recorded_action, recorded_decision};
use capsule_core::outcome::CodedError;
use capsule_redact::holds_mask;
use serde_json::Value;

use crate::approval::ApprovalView;
use crate::call_view::CallView;
use crate::connections::ConnectionView;
use crate::feedback::FeedbackView;
use crate::payloads::{PayloadLookup, payload_json};
use crate::summary::{Summary, Tally};

/// What the events of a run add up to.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// How it began.
    pub header: Option<RunHeader>,
    /// Its calls, in the order in which they were proposed.
    pub calls: Vec<CallView>,
    /// Its steps, in the order in which they ended.
    pub steps: Vec<StepView>,
    /// What a person said of a decision of the run that this one is about.
    pub feedback: Option<FeedbackView>,
    /// What it goes on with, if it goes on with a suspended run.
    pub resumed: Option<ResumedView>,
    /// What a person said to a question of the run that this one is about.
    pub answer: Option<AnswerView>,
    /// The question about its plan as a whole, if that was asked.
    pub plan: Option<ApprovalView>,
    /// How it ended.
    pub sealed: Option<SealedView>,
    /// What the calls come to that are not among `calls` any more.
    pub(crate) tally: Tally,
    /// The last call of each step, whether or not it is among `calls`.
    calls_of_steps: BTreeMap<String, u64>,
    /// Whether calls that are over are only counted.
    only_counts: bool,
}

/// How many of the last calls are there in any case: what comes behind a call may be about it.
const KEPT_CALLS: usize = 64;

impl RunHeader {
    /// What holds the commands of the run, as it was found when the run began; none where that was not asked for.
    #[must_use]
    pub fn sandbox(&self) -> Option<&SandboxStatus> {
        self.opened.walls.as_ref()
    }
}

/// What a run goes on with.
#[derive(Clone, Debug)]
pub struct ResumedView {
    /// What was written.
    pub resumed: RunResumed,
    /// How many steps were over.
    pub steps: u64,
}

/// What a person said to a question that waited.
#[derive(Clone, Debug)]
pub struct AnswerView {
    /// What was written.
    pub given: AnswerGiven,
    /// Their own words.
    pub why: Option<String>,
}

/// How a run began.
#[derive(Clone, Debug)]
pub struct RunHeader {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What was written.
    pub opened: RunOpened,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct SealedView {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What was written.
    pub sealed: RunSealed,
    /// What the plan gives.
    pub outputs: Option<Value>,
}

/// A step and how it ended.
#[derive(Clone, Debug)]
pub struct StepView {
    /// Its place in the plan, from 1 on.
    pub number: u64,
    /// What was written.
    pub ended: StepEnded,
    /// What was expected and what came.
    pub note: Option<CodedError>,
    /// The last call that was made for it, by its number.
    pub call: Option<u64>,
}

impl RunView {
    /// A story that only counts calls that are over, so that it does not grow with the run: all but the last of
    /// its calls are missing in it.
    #[must_use]
    pub fn counting() -> Self {
        Self { only_counts: true, ..Self::default() }
    }

    /// Takes the next event.
    pub fn apply_event(&mut self, at: u64, event: &Event, payloads: &PayloadLookup<'_>) {
        self.take(at, event, payloads);
        if self.only_counts && self.calls.len() >= 2 * KEPT_CALLS {
            let has_steps = self.has_steps();
            for call in self.take_over() {
                self.tally.add(&call, has_steps);
            }
        }
    }

    /// Takes out the calls that are over, the oldest first; the last ones stay.
    pub(crate) fn take_over(&mut self) -> Vec<CallView> {
        let old = self.calls.len().saturating_sub(KEPT_CALLS);
        let over = self.calls.iter().take(old).take_while(|call| call.is_over()).count();
        self.calls.drain(..over).collect()
    }

    /// Whether it has taken in so many calls that some can be taken out again.
    pub(crate) fn is_full(&self) -> bool {
        self.calls.len() >= 2 * KEPT_CALLS
    }

    /// Whether its run goes through the steps of a plan.
    pub(crate) fn has_steps(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.opened.plan.is_some())
    }

    fn take(&mut self, at: u64, event: &Event, payloads: &PayloadLookup<'_>) {
        match event {
            Event::RunOpened(opened) => {
                self.header = Some(RunHeader { at, opened: (**opened).clone() });
            }
            Event::CallProposed(proposed) => {
                let args = payload_json(payloads, Some(&proposed.args));
                if let Some(step) = &proposed.step {
                    self.calls_of_steps.insert(step.clone(), proposed.call);
                }
                self.calls.push(CallView::proposed(at, proposed, args));
            }
            Event::CallDecided(decided) => {
                let words =
                    payloads(&decided.text).unwrap_or_else(|| MISSING_DECISION_TEXT.to_vec());
                let decision = recorded_decision(decided, &words);
                let considered = decided.action.as_ref().and_then(payloads);
                let masked = considered.as_deref().is_some_and(holds_mask);
                let considered = considered.as_deref().and_then(recorded_action);
                if let Some(call) = self.call_mut(decided.call) {
                    call.decision = decision;
                    call.masked = masked;
                    (call.action, call.facts) = considered.unzip();
                }
            }
            Event::CallStarted(started) => {
                if let Some(call) = self.call_mut(started.call) {
                    call.started = Some((at, started.clone()));
                }
            }
            Event::ConnectionShown(_)
            | Event::ConnectionRequested(_)
            | Event::ConnectionClosed(_) => {
                self.apply_connection_event(at, event, payloads);
            }
            Event::CallFinished(finished) => {
                let output = payload_json(payloads, Some(&finished.output));
                let problem = payload_json(payloads, finished.problem.as_ref());
                let changes = payload_json(payloads, finished.changes.as_ref());
                if let Some(call) = self.call_mut(finished.call) {
                    call.finished = Some((at, finished.clone()));
                    call.output = output;
                    call.problem = problem;
                    call.changes = changes.unwrap_or_default();
                }
            }
            Event::StepEnded(ended) => self.add_step(ended, payloads),
            Event::FeedbackGiven(given) => {
                self.feedback = Some(FeedbackView::from_record(given, payloads))
            }
            Event::RunSealed(sealed) => {
                let outputs = payload_json(payloads, sealed.outputs.as_ref());
                self.sealed = Some(SealedView { at, sealed: sealed.clone(), outputs });
            }
            _ => self.apply_question_event(at, event, payloads),
        }
    }

    /// Takes an event that is about a connection of a call.
    fn apply_connection_event(&mut self, at: u64, event: &Event, payloads: &PayloadLookup<'_>) {
        match event {
            Event::ConnectionShown(shown) => {
                if let Some(call) = self.call_mut(shown.call) {
                    call.host_questions += 1;
                }
            }
            Event::ConnectionRequested(request) => {
                let target = payload_json(payloads, Some(&request.target));
                if let Some(call) = self.call_mut(request.call) {
                    let requested = request.clone();
                    call.connections.push(ConnectionView { at, requested, target, closed: None });
                }
            }
            Event::ConnectionClosed(closed) => {
                let number = closed.connection;
                let connections =
                    self.call_mut(closed.call).map(|call| call.connections.iter_mut());
                let open = connections.into_iter().flatten();
                for connection in open.filter(|open| open.requested.connection == number) {
                    connection.closed = Some(*closed);
                }
            }
            _ => {}
        }
    }

    /// Takes an event that is about a question, or about none of this run.
    fn apply_question_event(&mut self, at: u64, event: &Event, payloads: &PayloadLookup<'_>) {
        match event {
            Event::RunResumed(resumed) => {
                let progress: Option<Value> = payload_json(payloads, Some(&resumed.progress));
                let steps = progress.and_then(|value| value.get("at")?.as_u64()).unwrap_or(0);
                self.resumed = Some(ResumedView { resumed: resumed.clone(), steps });
            }
            Event::AnswerGiven(given) => {
                let why = payload_json(payloads, given.why.as_ref());
                self.answer = Some(AnswerView { given: given.clone(), why });
            }
            Event::PlanShown(_) | Event::PlanAnswered(_) => {
                ApprovalView::apply_event(&mut self.plan, (at, event), payloads);
            }
            Event::ApprovalWaiting(ApprovalWaiting { call, .. })
            | Event::ApprovalShown(ApprovalShown { call, .. })
            | Event::ApprovalAnswered(ApprovalAnswered { call, .. })
            | Event::GrantUsed(GrantUsed { call, .. })
            | Event::ApprovalCovered { call, .. } => {
                // What was asked about a connection of a running call is told with the connection.
                if let Some(call) = self.call_mut(*call).filter(|call| call.started.is_none()) {
                    ApprovalView::apply_event(&mut call.approval, (at, event), payloads);
                }
            }
            _ => {}
        }
    }

    /// The status that the run's process ended with: for `exec`, that of its command.
    #[must_use]
    pub fn status(&self) -> Option<u8> {
        let exit = self.sealed.as_ref()?.sealed.exit;
        let is_exec = self.header.as_ref().is_some_and(|header| header.opened.origin.is_program());
        let command = self.calls.last().filter(|_| is_exec).and_then(|call| {
            let code = call.problem.as_ref().map(|problem| problem.code);
            let code = code.or(call.decision.as_ref().map(|decision| decision.code))?;
            Some(exit.of_command(code, call.output.as_ref()))
        });
        Some(command.unwrap_or_else(|| exit.status()))
    }

    /// How many steps were over before this run began.
    #[must_use]
    pub fn steps_before(&self) -> u64 {
        self.resumed.as_ref().map_or(0, |view| view.steps)
    }

    fn add_step(&mut self, ended: &StepEnded, payloads: &PayloadLookup<'_>) {
        let number = u64::try_from(self.steps.len()).unwrap_or(0) + self.steps_before() + 1;
        let note = payload_json(payloads, ended.note.as_ref());
        let call = self.calls_of_steps.get(&ended.step).copied();
        self.steps.push(StepView { number, ended: ended.clone(), note, call });
    }

    fn call_mut(&mut self, number: u64) -> Option<&mut CallView> {
        self.calls.iter_mut().rev().find(|call| call.call == number)
    }

    /// The last call of a step: the only one of its last attempt, or the part of a command list that the
    /// step ended with.
    #[must_use]
    pub fn call_of(&self, step: &StepView) -> Option<&CallView> {
        self.calls.iter().rev().find(|call| call.step.as_deref() == Some(&step.ended.step))
    }

    /// The call that a person means by a number or by a step's id.
    #[must_use]
    pub fn find_call(&self, name: &str) -> Option<&CallView> {
        let by_step = || self.calls.iter().rev().find(|call| call.step.as_deref() == Some(name));
        let by_place = || {
            let number: u64 = name.parse().ok()?;
            let step = self.steps.iter().find(|step| step.number == number);
            match step {
                Some(step) => self.call_of(step),
                None => self.calls.iter().rev().find(|call| call.call == number),
            }
        };
        by_step().or_else(by_place)
    }
}

impl RunView {
    /// What the run did, in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut tally = self.tally.clone();
        self.calls.iter().for_each(|call| tally.add(call, self.has_steps()));
        let (mut summary, last_waits) = tally.finish();
        self.count_steps(&mut summary, last_waits);
        summary.prompts += u64::from(self.plan.as_ref().is_some_and(ApprovalView::was_shown));
        let began = self.header.as_ref().map_or(0, |header| header.at);
        summary.micros = self.sealed.as_ref().map_or(0, |end| end.at.saturating_sub(began));
        summary
    }

    /// Counts the steps of a plan.
    fn count_steps(&self, summary: &mut Summary, last_waits: bool) {
        if !self.has_steps() {
            return;
        }
        for step in &self.steps {
            match step.ended.ending {
                StepEnding::Ok => summary.ok += 1,
                StepEnding::FailedAsExpected => summary.ok += 1,
                StepEnding::DeniedAsExpected => summary.expected_denials += 1,
                StepEnding::Denied if step.lacked_approval() => summary.unanswered += 1,
                StepEnding::Denied => summary.stopped += 1,
                StepEnding::Failed if step.was_cancelled() => summary.cancelled += 1,
                StepEnding::Failed => summary.failed += 1,
                StepEnding::Skipped | StepEnding::NotReached => summary.skipped += 1,
            }
        }
        summary.waiting += u64::from(last_waits);
        let steps = self.header.as_ref().map_or(0, |header| header.opened.steps);
        let ended = u64::try_from(self.steps.len()).unwrap_or(u64::MAX);
        let over = ended.saturating_add(self.steps_before()).saturating_add(summary.waiting);
        summary.not_reached = steps.saturating_sub(over);
    }
}

/// The words of a decision whose text was erased or never kept.
const MISSING_DECISION_TEXT: &[u8] = br#"{"reason":"(not kept)","suggestion":null}"#;

impl StepView {
    /// Whether it needed an approval that nobody was there to give.
    #[must_use]
    pub fn lacked_approval(&self) -> bool {
        self.ended.code.is_some_and(|code| code.exit() == Exit::ApprovalNeeded)
    }

    /// Whether a person ended it.
    #[must_use]
    pub fn was_cancelled(&self) -> bool {
        self.ended.code.is_some_and(|code| code.exit() == Exit::Interrupted)
    }
}
