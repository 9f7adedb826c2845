//! The backend of a replay: it serves recorded results and touches nothing.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::url::HttpUrl;
use capsule_core::action::{Action, Facts};
use capsule_core::approval::Approver;
use capsule_core::call::ToolCall;
use capsule_core::journal::{CallFinished, ConnectionClosed, ConnectionTarget, Event};
use capsule_core::lifecycle::{
    ConnectionRecord, Operation, Permit, PreflightReport, Preview, SavedUndo, recorded_action,
    recorded_decision,
};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::HostQuestion;

use crate::backend::CallBackend;
use crate::backend::answers::RecordedAnswers;
use crate::replay::Recording;

/// Serves recorded results.
pub(crate) struct ReplayBackend {
    recording: Rc<RefCell<Recording>>,
    /// What the last call meant.
    last_preflight: Option<(Action, Facts)>,
    answers: RecordedAnswers,
}

impl ReplayBackend {
    pub(crate) fn new(recording: Rc<RefCell<Recording>>) -> Self {
        let answers = RecordedAnswers::new(Rc::clone(&recording));
        Self { recording, last_preflight: None, answers }
    }

    fn recorded_preflight(&self, (action, facts): (Action, Facts)) -> PreflightReport {
        let prepared = Box::new(RecordedOperation { recording: Rc::clone(&self.recording) });
        PreflightReport { action, facts, operation: prepared }
    }
}

impl CallBackend for ReplayBackend {
    fn preflight(&mut self, _: &ToolCall) -> Result<PreflightReport, CodedError> {
        let mut recording = self.recording.borrow_mut();
        let Some(Event::CallDecided(decided)) = recording.peek(1) else {
            return Err(recording.note_missing("the decision on a call is missing"));
        };
        let Some(considered) = decided.action else {
            // It was not understood then; what was said about it is said again.
            let words = recording.payload(1, &decided.text).unwrap_or_default();
            let decision = recorded_decision(&decided, &words);
            return Err(decision.map_or_else(
                || recording.note_missing("the reason of a denial is missing"),
                CodedError::from,
            ));
        };
        let bytes = recording.payload(1, &considered).unwrap_or_default();
        let Some(considered) = recorded_action(&bytes) else {
            return Err(recording.note_missing("what a call meant is missing"));
        };
        drop(recording);
        self.last_preflight = Some(considered.clone());
        Ok(self.recorded_preflight(considered))
    }

    fn preflight_ahead(&mut self, _: &ToolCall) -> Option<Result<PreflightReport, CodedError>> {
        None
    }

    fn preflight_again(&mut self, _: &ToolCall) -> Result<PreflightReport, CodedError> {
        // What stood in its way then is in the record in place of its beginning.
        let served = RecordedOperation { recording: Rc::clone(&self.recording) };
        if let Some(finished) = served.finished_event(1)
            && finished.code == Some(Code::ApprovalChangedAfter)
        {
            return Err(served.problem(&finished).unwrap_or_else(|| {
                self.recording.borrow_mut().note_missing("why a call could not run is missing")
            }));
        }
        match self.last_preflight.take() {
            Some(considered) => Ok(self.recorded_preflight(considered)),
            None => Err(self.recording.borrow_mut().note_missing("what a call meant is missing")),
        }
    }

    fn approver(&mut self) -> &mut dyn Approver {
        &mut self.answers
    }

    fn pause(&mut self, _: Duration) {}

    fn interrupted(&mut self) -> bool {
        self.recording.borrow().was_interrupted()
    }
}

/// What a call came to, from the record.
struct RecordedOperation {
    recording: Rc<RefCell<Recording>>,
}

impl RecordedOperation {
    fn finished_event(&self, ahead: u64) -> Option<CallFinished> {
        match self.recording.borrow_mut().peek(ahead) {
            Some(Event::CallFinished(finished)) => Some(finished),
            _ => None,
        }
    }

    fn problem(&self, finished: &CallFinished) -> Option<CodedError> {
        let bytes = self.recording.borrow_mut().payload(1, &finished.problem?)?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The host that was asked about, which is that of the next connection.
    fn requested_address(&self) -> Option<HttpUrl> {
        let recording = self.recording.borrow();
        let events = (1..).map_while(|place| Some((place, recording.peek(place)?)));
        let mut events = events.take_while(|(_, event)| !matches!(event, Event::CallFinished(_)));
        let bytes = events.find_map(|(place, event)| match event {
            Event::ConnectionRequested(request) => Some(recording.payload(place, &request.target)),
            _ => None,
        })??;
        let target: ConnectionTarget = serde_json::from_slice(&bytes).ok()?;
        HttpUrl::parse(&format!("https://{}/", target.host)).ok()
    }

    /// Writes down what the command connected to then; nothing is dialled.
    ///
    /// # Errors
    /// When what was recorded is missing, or differs.
    fn record_connections(&self, permit: &Permit<'_>) -> Result<(), CodedError> {
        loop {
            // Let go of before the event is written, which the recording compares.
            let next = self.recording.borrow().peek(1);
            match next {
                // The connection that comes of it, or its refusal, is in the record, too.
                Some(Event::ConnectionShown(_) | Event::GrantUsed(_)) => {
                    let Some(address) = self.requested_address() else { return Ok(()) };
                    let _ = permit.ask(&HostQuestion::recorded(address));
                }
                Some(Event::ConnectionRequested(request)) => {
                    let bytes = self.recording.borrow().payload(1, &request.target);
                    let target = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    let missing = "where a command connected to is missing";
                    let target: ConnectionTarget =
                        target.ok_or_else(|| self.recording.borrow_mut().note_missing(missing))?;
                    let (number, refused) = (request.connection, request.refused);
                    permit.record(ConnectionRecord::Requested(number, &target, refused))?;
                }
                Some(Event::ConnectionClosed(closed)) => {
                    let ConnectionClosed { connection, sent, received, cut, .. } = closed;
                    permit.record(ConnectionRecord::Closed(connection, sent, received, cut))?;
                }
                _ => return Ok(()),
            }
        }
    }
}

impl Operation for RecordedOperation {
    fn preview(&mut self) -> Preview {
        Preview::Recorded
    }

    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        // The call ended before it began: what stood in its way then stands in its way now.
        if let Some(finished) = self.finished_event(1) {
            let missing = "what kept a call from beginning is missing";
            return Err(self
                .problem(&finished)
                .unwrap_or_else(|| self.recording.borrow_mut().note_missing(missing)));
        }
        let started = match self.recording.borrow_mut().peek(1) {
            Some(Event::CallStarted(started)) => Some(started),
            _ => None,
        };
        // The journal of a replay knows the recorded bytes by their event.
        let kept = started.filter(|started| started.undo.is_some());
        Ok(kept.map(|started| SavedUndo { record: Vec::new(), coverage: started.covers }))
    }

    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let incomplete =
            |what: &str| Outcome::failed(self.recording.borrow_mut().note_missing(what));
        if let Err(problem) = self.record_connections(&permit) {
            return Outcome::failed(problem);
        }
        let Some(finished) = self.finished_event(1) else {
            return incomplete("the end of a call is missing");
        };
        let output = self.recording.borrow_mut().payload(1, &finished.output);
        let Some(value) = output.and_then(|bytes| serde_json::from_slice(&bytes).ok()) else {
            return incomplete("the result of a call is missing");
        };
        let problem = self.problem(&finished);
        if problem.is_none() && finished.problem.is_some() {
            return incomplete("what went wrong in a call is missing");
        }
        let changes = match finished.changes {
            None => Some(Vec::new()),
            Some(changes) => {
                let bytes = self.recording.borrow_mut().payload(1, &changes);
                bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())
            }
        };
        let Some(changes) = changes else {
            return incomplete("what a call changed is missing");
        };
        Outcome {
            changes,
            ending: finished.ending,
            problem,
            output: Output::recorded(value, finished.masked),
            enforcement: finished.enforcement,
        }
    }
}
