//! What a caller gets.

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::capability::Capabilities;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::lifecycle::{Denied, FinishedCall};
use capsule_core::outcome::{CodedError, Status};
use serde_json::{Value, json};

/// What came of a call, as its caller gets it.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// The call's number within its run.
    pub call: u64,
    /// What was decided.
    pub decision: Decision,
    /// What the caller is told first.
    pub status: Status,
    /// The result; none where nothing ran.
    pub value: Option<Value>,
    /// What went wrong.
    pub problem: Option<CodedError>,
    /// Whether what it changed was kept for an undo.
    pub has_undo: bool,
}

impl CallResult {
    pub(crate) fn denied(call: u64, denied: &Denied) -> Self {
        Self::not_run(call, denied.decision().clone())
    }

    /// A call that does not run, as was decided.
    pub(crate) fn not_run(call: u64, decision: Decision) -> Self {
        let problem = Some(decision.clone().into());
        let status = decision.code.class().into();
        Self { call, decision, status, value: None, problem, has_undo: false }
    }

    /// A call that is allowed, before anything came of it.
    pub(crate) const fn allowed(decision: Decision) -> Self {
        let (status, value, problem) = (Status::Ok, None, None);
        Self { call: 0, decision, status, value, problem, has_undo: false }
    }

    pub(crate) fn done(call: u64, decision: Decision, done: FinishedCall) -> Self {
        let FinishedCall { status, value, problem, has_undo: kept, .. } = done;
        Self { call, decision, status, value: Some(value), problem, has_undo: kept }
    }

    pub(crate) fn broken(call: u64, decision: Decision) -> Self {
        let problem = CodedError::new(Code::EnginePanicked, "the tool panicked");
        let status = Status::RuntimeError;
        Self { call, decision, status, value: None, problem: Some(problem), has_undo: false }
    }

    /// Whether the policy or a person stood in the way before anything ran.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        self.decision.verdict != Verdict::Allow && self.status == Status::Denied
    }

    /// The code of what went wrong; that of the decision where nothing did.
    #[must_use]
    pub fn code(&self) -> Code {
        self.problem.as_ref().map_or(self.decision.code, |problem| problem.code)
    }

    /// How a run ends whose only call this is.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.problem.as_ref().map_or(Exit::Ok, |problem| problem.code.exit())
    }

    /// The status of a process that stands for this one command, in a run that ended so: the
    /// command's own where it ran to its end, as a shell gives it, and nothing went wrong around it.
    #[must_use]
    pub fn command_status(&self, exit: Exit) -> u8 {
        exit.of_command(self.code(), self.value.as_ref())
    }

    /// The capabilities that the call needed.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.decision.capabilities
    }

    /// The result as a model or a script gets it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut answer = json!({ "status": self.status });
        let Value::Object(map) = &mut answer else { return answer };
        if let Some(problem) = &self.problem {
            map.insert("code".into(), json!(problem.code));
            if self.value.is_none() {
                map.insert("rule".into(), json!(self.decision.rule));
            }
            map.insert("reason".into(), json!(problem.message));
            map.insert("suggestion".into(), json!(problem.suggestion));
            if self.status == Status::Denied {
                map.insert("liftable".into(), json!(self.decision.approvable));
                let note = match &problem.suggestion {
                    Some(_) => format!("{DENIAL_NOTE} {MEANT}"),
                    None => DENIAL_NOTE.to_owned(),
                };
                map.insert("note".into(), note.into());
            }
        }
        if let Some(value) = &self.value {
            map.insert("result".into(), value.clone());
        }
        answer
    }
}

/// What a model is told with every denial.
const DENIAL_NOTE: &str =
    "This is the user's policy, not a fault. Do not look for another way to do the same thing.";
/// What it is told beside a suggestion.
const MEANT: &str = "The suggestion is what the policy leaves open instead.";
