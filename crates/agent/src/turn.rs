//! The limits of the work on one message of the user, and how far the work came.

use std::time::Duration;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_base::limits;
use capsule_core::outcome::{CodedError, Status};
use capsule_runtime::{ModelSession, ToolAnswer};

use crate::message::ModelCall;

/// How much a conversation may use.
#[derive(Clone, Copy, Debug)]
pub struct TaskLimits {
    /// Requests to the model for each message of the user.
    pub turns: u64,
    /// Tokens of requests and answers of the whole conversation, as far as the server counts them.
    pub tokens: u64,
    /// Time for each message of the user.
    pub time: Duration,
    /// The most that the whole conversation may cost, in millionths of a US dollar; none for no limit.
    pub cost: Option<u64>,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            turns: limits::TASK_TURNS,
            tokens: limits::TASK_TOKENS,
            time: limits::TASK_TIME,
            cost: None,
        }
    }
}

/// How the work on a message of the user ended.
#[derive(Debug)]
pub enum TaskEnd {
    /// The model gave its answer.
    Answered {
        /// Its text, as it is recorded.
        text: String,
        /// Whether a call was not made because it needs an approval and no person could give one.
        lacked_approval: bool,
    },
    /// A question waits for a person.
    Waiting(u64),
    /// The user ended it.
    Interrupted,
    /// A limit was reached, or the model could not be asked.
    Failed(CodedError),
}

impl TaskEnd {
    /// How the run of the task ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Answered { lacked_approval: false, .. } => Exit::Ok,
            Self::Answered { lacked_approval: true, .. } | Self::Waiting(_) => Exit::ApprovalNeeded,
            Self::Interrupted => Exit::Interrupted,
            Self::Failed(problem) => problem.code.exit(),
        }
    }
}

/// How far the work on a message of the user came.
#[derive(Default)]
pub(crate) struct TurnState {
    pub(crate) turns: u64,
    denials_in_a_row: u64,
    /// Answers in a row with a call that cannot be read, and none behind it that can: the model learns what was wrong
    /// once for each answer.
    malformed_in_a_row: u64,
    last_malformed_turn: Option<u64>,
    last_call: Option<(String, String)>,
    same_calls: u64,
    pub(crate) lacked_approval: bool,
}

impl TurnState {
    /// Takes what came of a call, and says whether another may follow.
    pub(crate) fn take_result(
        &mut self,
        session: &ModelSession<'_>,
        call: &ModelCall,
        answer: &ToolAnswer,
    ) -> Result<(), TaskEnd> {
        let made = Some((call.tool.clone(), call.args.clone()));
        self.same_calls = if self.last_call == made { self.same_calls + 1 } else { 1 };
        self.last_call = made;
        if !answer.is_malformed {
            self.malformed_in_a_row = 0;
        } else if self.last_malformed_turn.replace(self.turns) != Some(self.turns) {
            self.malformed_in_a_row += 1;
        }
        if let Some(result) = &answer.result {
            let is_denied = result.status == Status::Denied;
            self.denials_in_a_row = if is_denied { self.denials_in_a_row + 1 } else { 0 };
            self.lacked_approval |= is_denied && result.code().exit() == Exit::ApprovalNeeded;
            if let Some(problem) = result.problem.as_ref().filter(|_| session.ends_after(result)) {
                return Err(TaskEnd::Failed(problem.clone()));
            }
        }
        if let Some(call) = session.waiting() {
            return Err(TaskEnd::Waiting(call));
        }
        for (count, most, what) in [
            (self.denials_in_a_row, limits::TASK_DENIALS, "refusals in a row"),
            (
                self.malformed_in_a_row,
                limits::TASK_MALFORMED,
                "answers in a row whose calls cannot be read",
            ),
            (self.same_calls, limits::TASK_SAME_CALL, "times the same call in a row"),
        ] {
            if count >= most {
                return Err(limit_reached(&format!("{count} {what}")));
            }
        }
        Ok(())
    }
}

/// The end of a turn that reached a limit.
pub(crate) fn limit_reached(what: &str) -> TaskEnd {
    let message = format!("the task ends after {what}");
    TaskEnd::Failed(
        CodedError::new(Code::TaskLimit, message).with_suggestion(Code::TaskLimit.next_step()),
    )
}
