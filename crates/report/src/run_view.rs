//! What the events of a run add up to.

use std::collections::BTreeMap;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_core::action::{Action, Facts};
use capsule_core::change::Change;
use capsule_core::confinement::ResourceLimit;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{
    AnswerGiven, ApprovalAnswered, ApprovalShown, ApprovalWaiting, CallFinished, CallProposed,
    CallStarted, Event, GrantUsed, RunKind, RunOpened, RunResumed, RunSealed, StepEnded,
};
use capsule_core::lifecycle::{recorded_action, recorded_decision};
use capsule_core::outcome::{CodedError, Ending, Status};
use capsule_core::tool::ToolName;
use capsule_redact::holds_mask;
use serde_json::Value;

use crate::approval::{AnsweredBy, ApprovalView};
use crate::feedback::FeedbackView;
use crate::payloads::{PayloadLookup, payload_json};
use crate::summary::Tally;

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

/// A call and what came of it.
#[derive(Clone, Debug)]
pub struct CallView {
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
    /// The digest of the raw arguments, by which an equal call is known.
    pub args_mac: Digest,
    /// What it means.
    pub action: Option<Action>,
    /// What was found out about it.
    pub facts: Option<Facts>,
    /// Whether masks stand in what was recorded of the two.
    pub masked: bool,
    /// What was decided.
    pub decision: Option<Decision>,
    /// What became of it where the policy asked, and somebody or something answered.
    pub approval: Option<ApprovalView>,
    /// How it was started.
    pub started: Option<(u64, CallStarted)>,
    /// How it ended.
    pub finished: Option<(u64, CallFinished)>,
    /// The result, as delivered.
    pub output: Option<Value>,
    /// What went wrong.
    pub problem: Option<CodedError>,
    /// What it changed in a staged workspace.
    pub changes: Vec<Change>,
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
                if let Some(call) = self.call_mut(*call) {
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
        let is_exec =
            self.header.as_ref().is_some_and(|header| header.opened.origin == RunKind::Exec);
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

/// The processes that ran on when the last program of a command had ended, and were ended, in words; none if
/// its result tells of none.
#[must_use]
pub fn left_running_text(result: &Value) -> Option<String> {
    match result.get("left_running")?.as_u64()? {
        0 => None,
        1 => Some("1 process".into()),
        some => Some(format!("{some} processes")),
    }
}

impl CallView {
    fn proposed(at: u64, proposed: &CallProposed, args: Option<Value>) -> Self {
        Self {
            call: proposed.call,
            step: proposed.step.clone(),
            attempt: proposed.attempt,
            tool: proposed.tool.clone(),
            proposed_at: at,
            args,
            tainted: proposed.tainted.clone(),
            args_mac: proposed.args_mac,
            action: None,
            facts: None,
            masked: false,
            decision: None,
            approval: None,
            started: None,
            finished: None,
            output: None,
            problem: None,
            changes: Vec::new(),
        }
    }

    /// Whether it was denied, before it began or on its way. A call that could not be understood was not:
    /// nothing was decided about it.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        let refused = |(_, end): &(u64, CallFinished)| end.status == Status::Denied;
        let denied =
            |decision: &Decision| decision.verdict == Verdict::Deny && !decision.is_misunderstood();
        self.finished.as_ref().is_some_and(refused) || self.decision.as_ref().is_some_and(denied)
    }

    /// Whether a decision on it kept it from running.
    pub(crate) fn was_stopped_by(&self, by: &Decision) -> bool {
        self.started.is_none() && by.verdict != Verdict::Allow
    }

    /// Whether it needed an approval that nobody was there to give.
    #[must_use]
    pub fn lacked_approval(&self) -> bool {
        let asks =
            |decision: &Decision| matches!(decision.verdict, Verdict::Ask | Verdict::AskEach);
        (self.approval.is_none() || self.is_waiting()) && self.decision.as_ref().is_some_and(asks)
    }

    /// Whether it waits for an answer, with its run suspended.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let waits = |view: &ApprovalView| matches!(view.answered_by, AnsweredBy::Waiting { .. });
        self.approval.as_ref().is_some_and(waits)
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

    /// Whether nothing more comes of it: it ended, or the policy denied it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_denied = |decision: &Decision| decision.verdict == Verdict::Deny;
        self.finished.is_some() || self.decision.as_ref().is_some_and(is_denied)
    }

    /// Whether it was started and its end was never written.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.started.is_some() && self.finished.is_none()
    }

    /// The limits that it ran into, in words; none if there are none that are known.
    #[must_use]
    pub fn limits_text(&self) -> Option<String> {
        let reached = self.output.as_ref()?.get("limits_reached")?;
        let reached: Vec<ResourceLimit> = serde_json::from_value(reached.clone()).ok()?;
        let was_ended = self.problem.as_ref().is_some_and(|error| error.code == Code::ExecMemory);
        let name = |limit: &ResourceLimit| match limit {
            ResourceLimit::Memory if !was_ended => {
                format!("{} (a process of it was ended)", limit.name())
            }
            _ => limit.name().to_owned(),
        };
        let names: Vec<String> = reached.iter().map(name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The processes that ran on when its last program had ended, and were ended, in words; none if there
    /// were none.
    #[must_use]
    pub fn left_running_text(&self) -> Option<String> {
        left_running_text(self.output.as_ref()?)
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
    pub fn summary(&self) -> String {
        match (&self.action, &self.args) {
            (Some(action), _) => action.summary(),
            (None, Some(args)) => args.to_string(),
            (None, None) => String::from("(not kept)"),
        }
    }

    /// How many bytes its result is about.
    #[must_use]
    pub fn result_bytes(&self) -> Option<u64> {
        let output = self.output.as_ref()?;
        let field = |name| output.get(name).and_then(Value::as_u64);
        field("bytes_total").or_else(|| field("stdout_bytes_total"))
    }
}
