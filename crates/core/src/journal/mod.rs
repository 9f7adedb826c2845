//! The journal: what is written, how it is chained, and the port it is written through.
//!
//! An event is stored as the exact bytes that were hashed; the hashes are the leaves of one Merkle
//! tree over everything that a store holds. `FORMAT.md` is the norm for every byte of it; the code
//! here and that page change together.

mod approval_events;
mod connection_events;
mod entry;
mod event;
mod feedback_events;
mod layer;
mod model_events;
mod port;
mod run_kind;
mod step_events;
mod store_files;

pub use approval_events::{
    AnswerGiven, ApprovalAnswered, ApprovalShown, ApprovalWaiting, GrantGiven, GrantUsed,
    RunResumed,
};
pub use connection_events::{ConnectionClosed, ConnectionRequested, ConnectionTarget};
pub use entry::{Entry, EntryError, EntryHeader, VERSION};
pub use event::{
    CallDecided, CallFinished, CallProposed, CallStarted, Document, Event, NoSandbox, RunExported,
    RunOpened, RunSealed, UndoCoverage, WorkspaceIdentity,
};
pub use feedback_events::{DecisionFault, FeedbackGiven};
pub use layer::{LayerGone, LayerOpened};
pub use model_events::{ModelAnswered, ModelRequested};
pub use port::{
    Durability, EntryPosition, Journal, PayloadClass, PayloadRef, RecordedDecision, commitment,
};
pub use run_kind::{PendingChanges, RunKind, SessionJoined};
pub use step_events::{StepEnded, StepEnding};
pub use store_files::{
    APPLICATION_ID, HEAD, HEADER_BYTES, KEY_SUFFIX, SESSIONS_SUFFIX, SIDECAR_SUFFIXES,
    STAGED_SUFFIX, UNDO_SUFFIX, has_wal, is_store,
};
