//! `store` remembers.
//!
//! A store is one SQLite file: the events as the exact bytes that were hashed, the payloads that
//! they commit to, and the edge of the Merkle tree over them. Nothing in it decides or acts.
//! `FORMAT.md` is the norm for what stands on disk.

mod cause;
mod checkpoint;
mod complete;
mod erase;
mod error;
mod export;
mod export_target;
mod grants;
mod head;
mod history;
mod last_run;
mod list;
mod lock;
mod log_reader;
mod merkle;
mod open;
mod policy_runs;
mod program_digests;
mod read;
mod related_runs;
mod run_label;
mod schema;
mod store_file;
mod transaction;
mod verify;
mod wal;
mod write;

pub use cause::Cause;
pub use checkpoint::{
    Anchor, AnchorReport, AttestationReport, Checkpoint, SignatureCheck, SignedNote, Signer,
    SigningSchedule, TrustRoots, Verifier, WitnessedCheckpoints, is_key_name, is_origin, read_keys,
};
pub use complete::Completeness;
pub use erase::RelatedRun;
pub use error::StoreError;
pub use export_target::check_target;
pub use head::Head;
pub use list::{RunFilter, RunState, RunSummary};
pub use lock::{RunClaim, RunLock, SessionLock};
pub use merkle::{Frontier, leaf_hash};
pub use open::Store;
pub use read::{StoredEvent, StoredPayload};
pub use run_label::{canonical_label, run_label};
pub use store_file::sidecar_path;
pub use verify::{Fault, Proof, Verified};
pub use wal::WalFrames;
pub use write::{Clock, RUN_KEY_BYTES, RunWriter, WrittenRun};
