//! The journal: what is written, how it is chained, and the port it is written through.
//!
//! An event is stored as the exact bytes that were hashed; the hashes are the leaves of one Merkle
//! tree over everything that a store holds. `FORMAT.md` is the norm for every byte of it; the code
//! here and that page change together.

mod entry;
mod event;
mod file;
mod kind;
mod layer;
mod merkle;
mod port;
mod questions;

pub use entry::{Entry, EntryError, Header, VERSION};
pub use event::{
    Bare, CallDecided, CallFinished, CallProposed, CallStarted, Covers, Document, Event, Fault,
    FeedbackGiven, RunExported, RunOpened, RunSealed, StepEnded, StepEnding, Workspace,
};
pub use file::{APPLICATION_ID, BESIDE, HEAD, HEADER_BYTES, KEY, STAGED, UNDO, has_log, is_store};
pub use kind::{RunKind, Unpulled};
pub use layer::{LayerGone, LayerOpened};
pub use merkle::{Frontier, leaf_hash};
pub use port::{Durability, Journal, PayloadClass, PayloadRef, Recalled, Recorded, commitment};
pub use questions::{
    AnswerGiven, ApprovalAnswered, ApprovalShown, ApprovalWaiting, GrantGiven, GrantUsed,
    RunResumed,
};
