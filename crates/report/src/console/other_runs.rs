//! Lines of runs that wait, go on with another run, or say something about one.

use capsule_base::units::counted;
use capsule_core::journal::DecisionFault;

use super::{Console, Sign};

impl Console {
    /// A call with which its run is suspended: its step is the next one.
    pub(super) fn waiting_call_lines(&self) -> Vec<String> {
        let Some(call) = self.run.calls.last() else { return Vec::new() };
        let over = u64::try_from(self.run.steps.len()).unwrap_or(0) + self.run.steps_before();
        let (number, id) = match &call.step {
            Some(step) => (over + 1, step.as_str()),
            None => (call.call, ""),
        };
        let mut lines = self.timeline_lines(number, &Sign::of_call(call), id, Some(call));
        lines.extend(self.problem_lines(call, None));
        lines
    }

    /// What the run goes on with.
    pub(super) fn resumed_lines(&self) -> Vec<String> {
        let subject = self.run.header.as_ref().and_then(|header| header.opened.subject);
        let Some((resumed, subject)) = self.run.resumed.as_ref().zip(subject) else {
            return Vec::new();
        };
        let place = match resumed.steps {
            0 => "at its first step".to_owned(),
            some => format!("after {}", counted(some, "step")),
        };
        let call = resumed.resumed.call;
        vec![format!("goes on from {subject}, {place}; call {call} was answered")]
    }

    /// What a person said to a question of another run.
    pub(super) fn answer_lines(&self) -> Vec<String> {
        let subject = self.run.header.as_ref().and_then(|header| header.opened.subject);
        let Some((answer, subject)) = self.run.answer.as_ref().zip(subject) else {
            return Vec::new();
        };
        let given = &answer.given;
        let scope = given.scope.map(|scope| format!(" · {}", scope.keyword())).unwrap_or_default();
        let said = given.outcome.name();
        let mut lines = vec![format!("call {} of {subject} was {said}{scope}", given.call)];
        lines.extend(answer.why.iter().flat_map(|why| self.wrapped_bar(why)));
        lines
    }

    /// What a person said of a decision of another run.
    pub(super) fn feedback_lines(&self) -> Vec<String> {
        let subject = self.run.header.as_ref().and_then(|header| header.opened.subject);
        let Some((feedback, subject)) = self.run.feedback.as_ref().zip(subject) else {
            return Vec::new();
        };
        let said = match feedback.given.fault {
            DecisionFault::WrongDenial => "should have been allowed",
            DecisionFault::WrongAllow => "should have been denied",
        };
        let mut lines = vec![format!("call {} of {subject} {said}", feedback.given.call)];
        lines.extend(feedback.why.iter().flat_map(|why| self.wrapped_bar(why)));
        lines
    }
}
