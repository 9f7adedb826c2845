//! The result of a verification that found no fault.

use crate::merkle::Frontier;
use capsule_base::digest::Digest;

use crate::checkpoint::AttestationReport;
use crate::complete::Completeness;

/// What a store that was verified holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Leaves of the tree.
    pub leaves: u64,
    /// The root of the tree.
    pub root: Digest,
    /// Runs that were sealed.
    pub sealed: u64,
    /// Runs that were not.
    pub unsealed: u64,
    /// Events of the run that was asked for.
    pub events: u64,
    /// Whether that run is sealed.
    pub run_sealed: bool,
    /// Payloads that match their commitment.
    pub payloads: u64,
    /// Payloads of runs that were erased, as an event says.
    pub erased: u64,
    /// The newest event that says so.
    pub erased_at: Option<u64>,
    /// Payloads whose bytes were withheld or never kept.
    pub absent: u64,
    /// What is signed, and what was seen elsewhere.
    pub attested: AttestationReport,
    /// What shows that there were no more events.
    pub completeness: Completeness,
}

impl Proof {
    /// Of a store that holds nothing.
    pub(super) fn empty() -> Self {
        Self {
            leaves: 0,
            root: Frontier::default().root(),
            sealed: 0,
            unsealed: 0,
            events: 0,
            run_sealed: false,
            payloads: 0,
            erased: 0,
            erased_at: None,
            absent: 0,
            attested: AttestationReport::default(),
            completeness: Completeness::default(),
        }
    }
}
