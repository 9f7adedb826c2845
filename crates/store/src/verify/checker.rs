//! The state of a verification while it walks the events of a store.

use std::collections::BTreeMap;

use crate::merkle::Frontier;
use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::policy::PayloadRetention;

use crate::checkpoint::AttestationCheck;
use crate::head::Noted;
use crate::open::Store;
use crate::verify::fault::Fault;
use crate::verify::proof::Proof;

/// A verification that goes on.
pub(super) struct Checker<'s> {
    pub(super) store: &'s Store,
    pub(super) wanted: Option<&'s str>,
    pub(super) tree: Frontier,
    pub(super) open: BTreeMap<RunId, Walk>,
    pub(super) proof: Proof,
    pub(super) referenced: u64,
    pub(super) attesting: AttestationCheck<'s>,
    /// The runs of which the record says that they were erased. That it says so is verified as it is walked.
    pub(super) erased: BTreeMap<RunId, Erasure>,
    /// The first private payload that is not here, where nothing of its run was erased.
    pub(super) withheld: Option<Fault>,
    /// What was noted beside the store before anything of it was read.
    pub(super) noted: Noted,
    /// Whether the file is one by itself, as one that was written out.
    pub(super) is_alone: bool,
}

/// The erasing of a run.
pub(super) struct Erasure {
    /// The event that says so.
    pub(super) leaf: u64,
    /// How many payloads of the run were found so far.
    pub(super) found: u64,
}

/// Where a run stands while its events are walked.
pub(super) struct Walk {
    pub(super) seq: u64,
    pub(super) prev: Digest,
    pub(super) at: u64,
    pub(super) payloads: PayloadRetention,
}

/// The columns of an event.
pub(super) struct Columns {
    pub(super) leaf: i64,
    pub(super) run: Option<String>,
    pub(super) seq: i64,
    pub(super) kind: String,
    pub(super) hash: [u8; 32],
    pub(super) bytes: Vec<u8>,
}
