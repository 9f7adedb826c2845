//! Why a store could not be used.

use std::path::PathBuf;

use capsule_base::code::Code;
use capsule_core::journal::EntryError;

use crate::cause::Cause;

/// Why a store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or is not a store of ours.
    #[error("`{}` cannot be opened: {why}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        why: Cause,
    },
    /// Events that were noted beside it are not in it any more.
    #[error("the store `{}` {what}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The note of how many events there were.
        note: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A newer version wrote it.
    #[error("the store has version {found}; this build reads up to {known}")]
    UnsupportedVersion {
        /// The version that was found.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// It could not be written to.
    #[error("the record cannot be written: {0}")]
    Write(Cause),
    /// It could not be read.
    #[error("the record cannot be read: {0}")]
    Read(Cause),
    /// Stored bytes are not an event.
    #[error("event {leaf}: {why}")]
    InvalidEntry {
        /// Which leaf.
        leaf: u64,
        /// Why.
        why: EntryError,
    },
    /// Something is not what was written.
    #[error("{place}: {what}")]
    Integrity {
        /// Where: `payload 1f3a… of event 7`.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A run cannot be written to that file.
    #[error("`{}` is not written to: {why}", path.display())]
    Target {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The key beside the store is there and cannot be used, or could not be made.
    #[error("the key `{}`: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
        /// What to do.
        suggestion: Option<String>,
    },
    /// An anchor cannot be written or read.
    #[error("the anchor `{}`: {why}", path.display())]
    Anchor {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// There is no such run.
    #[error("there is no run `{0}`")]
    RunUnknown(String),
    /// More than one run begins so.
    #[error("`{asked}` is the beginning of several runs: {}", labels.join(", "))]
    RunAmbiguous {
        /// What was asked for.
        asked: String,
        /// Some of the runs.
        labels: Vec<String>,
    },
}

impl StoreError {
    /// The code that users see.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Open { .. } | Self::Read(_) => Code::StoreOpen,
            Self::UnsupportedVersion { .. } => Code::StoreVersion,
            Self::Write(_) => Code::StoreWrite,
            Self::InvalidEntry { .. } | Self::Integrity { .. } | Self::Incomplete { .. } => {
                Code::Integrity
            }
            Self::Target { .. } => Code::Usage,
            Self::Key { .. } => Code::AuditKey,
            Self::Anchor { .. } => Code::AuditAnchor,
            Self::RunUnknown(_) => Code::RunUnknown,
            Self::RunAmbiguous { .. } => Code::RunAmbiguous,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn suggestion(&self) -> String {
        let text = match self {
            Self::Open { why, .. } | Self::Write(why) | Self::Read(why) => why.suggestion(),
            Self::Key { suggestion, .. } => suggestion.as_deref(),
            Self::Target { .. } => Some("name another file"),
            Self::Incomplete { note, .. } if !note.exists() => Some(
                "bring its log (`-wal`) back, or an earlier copy; nothing is written to what is left",
            ),
            Self::Incomplete { note, .. } => {
                return format!(
                    "`capsule verify` says where they were; if you put an older copy there yourself, or they \
                     are lost for good, put `{}` away: the record then goes on from what is there",
                    note.display()
                );
            }
            _ => None,
        };
        text.unwrap_or_else(|| self.code().next_step()).to_owned()
    }

    pub(crate) fn write(cause: impl Into<Cause>) -> Self {
        Self::damaged_or(cause.into(), Self::Write)
    }

    pub(crate) fn read(cause: impl Into<Cause>) -> Self {
        Self::damaged_or(cause.into(), Self::Read)
    }

    /// A file that is damaged is not what was written, whatever was to be done with it.
    fn damaged_or(cause: Cause, other: fn(Cause) -> Self) -> Self {
        match cause.is_damage() {
            true => Self::Integrity { place: "the database".into(), what: cause.to_string() },
            false => other(cause),
        }
    }
}
