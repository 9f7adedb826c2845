//! What starts runs, and what waits while they begin.

use serde::{Deserialize, Serialize};

use crate::journal::PayloadRef;

/// What started the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// `capsule run`: a plan.
    Plan,
    /// `capsule call`: one call.
    Call,
    /// `capsule exec`: one command, whose exit status is that of the run's process.
    Exec,
    /// `capsule apply`: what an earlier run changed is made in the workspace.
    Apply,
    /// `capsule feedback`: what a person says of a decision of an earlier run.
    Feedback,
    /// `capsule undo`: what stood in the workspace before an earlier run changed it is brought back.
    Undo,
    /// `capsule approvals answer`: what a person says to a question that waits.
    Answer,
    /// `capsule resume`: a plan that was suspended for an answer goes on.
    Resume,
    /// Calls of several processes, one after another, that share a staged workspace, grants and budgets.
    Session,
    /// `capsule chat`: the calls of a model, in a session.
    Chat,
    /// `capsule mcp serve`: the calls of a client, in a session.
    Mcp,
    /// `capsule sandbox` with a proxy or staged changes: one call, which is a whole agent.
    Agent,
}

capsule_base::words! {
    RunKind::name:
    Plan = "plan", Call = "call", Exec = "exec", Apply = "apply", Feedback = "feedback",
    Undo = "undo", Answer = "answer", Resume = "resume", Session = "session", Chat = "chat",
    Mcp = "mcp", Agent = "agent",
}

impl RunKind {
    /// Whether the exit status of its process is that of the one program that it ran.
    #[must_use]
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Exec | Self::Agent)
    }
}

/// Staged changes of earlier runs in the same workspace that nobody has applied or discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingChanges {
    /// How many runs.
    pub runs: u64,
    /// How many paths those of them changed that came to their end.
    pub paths: u64,
}

/// A process takes a session up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionJoined {
    /// The number of the process on its machine.
    pub process: u64,
    /// The command that it runs.
    pub command: RunKind,
    /// The call that the process before did not end: what came of it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// What that process changed and did not record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<PayloadRef>,
}
