//! Why a call cannot be undone.

use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use capsule_base::limits;
use capsule_base::units::show_size;

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
