//! The record of what a call is about to change, so that it can be undone.

use capsule_base::json;
use capsule_core::change::Change;
use serde::{Deserialize, Serialize};

/// The version of undo records that this build writes. Those before it do not say what a call leaves,
/// so that nobody can tell what was changed since.
const RECORD_VERSION: u64 = 2;

/// What an undo needs: the paths that a call is about to change, as they are and as the call leaves
/// them, parents before what is in them. The bytes of the files are kept beside the store, under their
/// digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRecord {
    v: u64,
    /// The paths.
    pub changes: Vec<Change>,
}

impl UndoRecord {
    /// A record of these changes.
    #[must_use]
    pub const fn of(changes: Vec<Change>) -> Self {
        Self { v: RECORD_VERSION, changes }
    }

    /// The bytes that are kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        json::canonical(self)
    }

    /// Reads what was kept; none where it is of another version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|made: &Self| made.v == RECORD_VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_versions_are_not_read() {
        let record = UndoRecord::of(Vec::new());
        let bytes = record.to_bytes();
        assert_eq!(bytes, br#"{"changes":[],"v":2}"#);
        assert_eq!(UndoRecord::from_bytes(&bytes), Some(record));
        for other in [&br#"{"changes":[],"v":1}"#[..], br#"{"v":2}"#, b"{}\nraw", b""] {
            assert_eq!(UndoRecord::from_bytes(other), None);
        }
    }
}
