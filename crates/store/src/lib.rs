//! `store` remembers.
//!
//! A store is one SQLite file: the events as the exact bytes that were hashed, the payloads that
//! they commit to, and the edge of the Merkle tree over them. Nothing in it decides or acts.
//! `FORMAT.md` is the norm for what stands on disk.

mod about;
mod cause;
mod checkpoint;
mod complete;
mod erase;
mod error;
mod export;
mod grants;
mod head;
mod history;
mod last;
mod list;
mod lock;
mod open;
mod policies;
mod programs;
mod read;
mod schema;
mod target;
mod transaction;
mod verify;
mod wal;
mod whole;
mod write;

pub use cause::Cause;
pub use checkpoint::{
    Anchor, Anchored, Attested, Checkpoint, Note, Seal, Sightings, Signer, Signing, Trust,
    Verifier, is_key_name, is_origin, read_keys,
};
pub use complete::Completeness;
pub use erase::Kin;
pub use error::StoreError;
pub use head::Head;
pub use list::{Filter, RunState, RunSummary};
pub use lock::{Claim, RunLock};
pub use open::Store;
pub use read::{Payload, Stored};
pub use target::{beside, check_target};
pub use verify::{Fault, Proof, Verified};
pub use wal::WalFrames;
pub use write::{Clock, KEY_BYTES, RunWriter, Written};
