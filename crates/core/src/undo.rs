//! What is kept so that a call can be undone, and why something cannot be.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use capsule_base::json;
use capsule_base::limits;
use capsule_base::units::show_size;

/// The version of undo records that this build writes. Those before it do not say what a call leaves,
/// so that nobody can tell what was changed since.
pub const RECORD_VERSION: u64 = 2;

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

/// Why what a call does could not be brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NoUndoReason {
    /// There is more of it than is kept for one call.
    TooLarge {
        /// How many bytes.
        bytes: u64,
    },
    /// This user may not read it.
    Unreadable,
    /// It is or holds a pipe, a socket or a device.
    Special,
    /// It is or holds a link that leads to no text.
    NoText,
}

impl NoUndoReason {
    /// The reason, for people.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::TooLarge { bytes } => format!(
                "there are {} and at most {} are kept for an undo",
                show_size(bytes),
                show_size(limits::UNDO_BYTES)
            ),
            Self::Unreadable => "what is there cannot be read, so nothing is kept of it".into(),
            Self::Special => {
                "a pipe, a socket or a device is among it, and those are not kept".into()
            }
            Self::NoText => {
                "a link that leads to a name which is no text is among it, and is not kept".into()
            }
        }
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
