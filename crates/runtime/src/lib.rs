//! `runtime` is the only place where deciding and acting meet.
//!
//! [`submit`] is the one path that every call takes. A [`Run`] is what it takes it in: a policy, a
//! journal and a backend, which is the live one or that of a recording.

mod annotation;
mod approval;
mod backend;
mod bound_policy;
mod call_result;
mod changes;
mod changes_error;
mod clock;
mod command_list;
mod erase;
mod explain;
mod feedback;
mod layer_diff;
mod layer_history;
mod layers;
mod lifecycle;
mod list_output;
mod live_run;
mod masked_stream;
mod model_call;
mod model_history;
mod model_session;
mod observer;
mod pending_changes;
mod person_time;
pub mod plan;
mod policy_load_error;
mod realpath;
mod replay;
mod resume;
mod run;
mod script_files;
mod session;
mod source_text;
mod tool_schema;
mod toolchains;
mod unconfined;
mod undo;
mod unsent_results;

pub use annotation::AnnotationError;
pub use approval::{
    ActiveGrant, NoPrompt, PendingQuestion, Prompt, PromptAnswer, PromptReply, QuestionAnswer,
    QuestionState, StoredAnswer, active_grants, clear_grants, not_waiting, revoke_grant,
};
pub use backend::{CallBackend, EnvLookup, LiveBackend, SystemHost};
pub use bound_policy::{BoundPolicy, PolicyLoadOptions, PolicyTexts};
pub use call_result::CallResult;
pub use capsule_store::StoreError;
pub use capsule_tools::{
    AgentConnections, AgentHost, CATALOGUE, CommandRunner, FoundToolchain, NullSink, OutputKind,
    QUESTION_TOOL, QuestionPrompt, Sink, TOOL_SET, ToolchainDirectory, describe, edit,
    signature_of,
};
pub use capsule_workspace::{Cancel, SplitRepositories, UndoEntry, UndoStatus, Workspace};
pub use changes::{ChangeStatus, StagedDiffs, StagedRun, WaitingChanges};
pub use changes_error::ChangesError;
pub use clock::now_micros;
pub use erase::{EraseError, Erased, Eraser, due_runs};
pub use explain::{explain, explain_call};
pub use feedback::FeedbackRequest;
pub use layer_history::LayerChange;
pub use layers::{LayerText, workspace_layer};
pub use lifecycle::submit;
pub use live_run::{FinishedRun, LiveRun, LiveRunOptions, OpenError};
pub use masked_stream::{MaskedStream, MaskedText};
pub use model_call::{bounded_text, tool_capabilities};
pub use model_history::{HistoryEntry, TokenCount};
pub use model_session::{ModelBudget, ModelRequest, ModelSession, ToolAnswer, offered_tools};
pub use observer::{NullObserver, ObservedJournal, Observer, WrittenEvent};
pub use pending_changes::{UnappliedRun, unapplied_runs};
pub use policy_load_error::PolicyLoadError;
pub use realpath::real_path;
pub use replay::{
    Difference, Divergence, DivergenceCause, ReplayError, ReplayResult, ReplaySource, replay,
};
pub use resume::{ResumeError, Resumption};
pub use run::{Run, count_usage, engine_version, tools_digest};
pub use session::{
    EndedSession, HeldSession, OpenSession, SessionChoice, SessionError, SessionRequest,
    end_session, open_sessions,
};
pub use source_text::{PolicySource, read_text, shown_name};
pub use tool_schema::ModelTool;
pub use toolchains::{survey_toolchains, well_known_toolchains};
pub use unconfined::allows_unconfined;
pub use undo::{UndoRequest, UndoneBy};
pub use unsent_results::UnsentResults;
