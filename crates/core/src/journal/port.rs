//! The port through which evidence writes. Stores and replays implement it; nothing else does
//! (`cargo xtask tidy` keeps the list).

use serde::{Deserialize, Serialize};

use crate::confinement::Confinement;
use crate::decision::Decision;
use crate::journal::Event;
use capsule_base::digest::Digest;

/// How sure a write must be before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is written with the next event, as one. For what leads to nothing before that.
    Deferred,
    /// It survives the death of the process.
    CrashSafe,
    /// It survives a power cut. For the record of an intent to change or send something.
    PowerSafe,
}

/// What a payload holds, and so who may see it and how long it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadClass {
    /// Arguments, masked.
    Arguments,
    /// The action and the facts that were judged, masked.
    Action,
    /// Text that quotes arguments or outputs.
    Text,
    /// Results, as delivered.
    Output,
    /// What a call changed in a staged workspace, masked.
    Changes,
    /// Plans, policies and inputs, masked.
    Document,
    /// Raw bytes for undo: private, never exported, erasable.
    Undo,
    /// The run's key for the digests of raw arguments: private and erasable.
    Key,
}

capsule_base::words! {
    PayloadClass::name:
    Arguments = "arguments", Action = "action", Text = "text", Output = "output",
    Changes = "changes", Document = "document", Undo = "undo", Key = "key",
}

impl PayloadClass {
    /// Whether it never leaves the store.
    #[must_use]
    pub const fn is_private(self) -> bool {
        matches!(self, Self::Undo | Self::Key)
    }
}

/// An event's hold on a payload: the commitment stays when payload and salt are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadRef {
    /// `SHA-256(salt ‖ payload)`.
    pub commit: Digest,
    /// The payload's size.
    pub bytes: u64,
}

/// The commitment to a payload under a salt.
#[must_use]
pub fn commitment(salt: &[u8], payload: &[u8]) -> Digest {
    Digest::of_parts(&[salt, payload])
}

/// Where an event came to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPosition {
    /// Its number within the run, from 1 on.
    pub seq: u64,
    /// When it was written, in microseconds since 1970.
    pub at: u64,
}

/// A decision that was taken in the recorded run, as far as it steers what is written next.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// The decision.
    pub decision: Decision,
    /// What the command was confined to, if it was started.
    pub confinement: Option<Confinement>,
}

/// Where evidence writes.
pub trait Journal {
    /// Why a write failed.
    type Error;

    /// Takes a payload; it becomes part of the record together with the next event.
    ///
    /// # Errors
    /// When no salt can be had.
    fn put_payload(
        &mut self,
        class: PayloadClass,
        payload: &[u8],
    ) -> Result<PayloadRef, Self::Error>;

    /// The digest of raw arguments under the run's key.
    ///
    /// # Errors
    /// When a replay has no such digest in its recording.
    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, Self::Error>;

    /// What was decided on the call at hand, where the record holds masks in place of what was
    /// judged. Only the journal of a replay answers: nothing acts behind it.
    fn recorded_decision(&mut self) -> Option<RecordedDecision> {
        None
    }

    /// How many events the run has so far.
    fn event_count(&self) -> u64;

    /// Writes an event, and every payload taken since the last one, as one.
    ///
    /// # Errors
    /// When it cannot be written, or when a replay's recording has another event here.
    fn append(
        &mut self,
        event: Event,
        durability: Durability,
    ) -> Result<EntryPosition, Self::Error>;

    /// Something goes on by itself now, and whoever writes has time: to show what was written, and to tidy up.
    /// Called behind each intent.
    fn run_idle_work(&mut self) {}

    /// Writes what waits for the next event ([`Durability::Deferred`]); nothing if nothing does. For
    /// whoever is about to let time pass before that event.
    ///
    /// # Errors
    /// When it cannot be written. It goes on waiting then.
    fn flush_deferred(&mut self) -> Result<(), Self::Error>;
}
