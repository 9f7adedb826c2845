//! The journal: what is written, how it is chained, and the port it is written through.
//!
//! An event is stored as the exact bytes that were hashed; the hashes are the leaves of one Merkle
//! tree over everything that a store holds. `FORMAT.md` is the norm for every byte of it; the code
//! here and that page change together.

mod entry;
mod event;
mod file;
mod merkle;
mod port;

pub use entry::{Entry, EntryError, Header, VERSION};
pub use event::{
    CallDecided, CallFinished, CallProposed, CallStarted, Document, Event, RunExported, RunKind,
    RunOpened, RunSealed, StepEnded, StepEnding, Workspace,
};
pub use file::{APPLICATION_ID, BESIDE, HEADER_BYTES, STAGED, has_log, is_store};
pub use merkle::{Frontier, leaf_hash};
pub use port::{Durability, Journal, PayloadClass, PayloadRef, Recalled, Recorded, commitment};
