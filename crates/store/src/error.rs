//! Why a store could not be used.

use std::path::PathBuf;

use capsule_core::code::Code;
use capsule_core::journal::EntryError;

/// Why a store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or is not a store of ours.
    #[error("`{}` cannot be opened: {why}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A newer version wrote it.
    #[error("the store has version {found}; this build reads up to {known}")]
    Newer {
        /// The version that was found.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// It could not be written to.
    #[error("the record cannot be written: {0}")]
    Write(String),
    /// It could not be read.
    #[error("the record cannot be read: {0}")]
    Read(String),
    /// Stored bytes are not an event.
    #[error("event {leaf}: {why}")]
    Entry {
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
            Self::Newer { .. } => Code::StoreVersion,
            Self::Write(_) => Code::StoreWrite,
            Self::Entry { .. } | Self::Integrity { .. } => Code::Integrity,
            Self::Target { .. } => Code::Usage,
            Self::Key { .. } => Code::AuditKey,
            Self::Anchor { .. } => Code::AuditAnchor,
            Self::RunUnknown(_) => Code::RunUnknown,
            Self::RunAmbiguous { .. } => Code::RunAmbiguous,
        }
    }

    pub(crate) fn write(error: impl std::fmt::Display) -> Self {
        Self::Write(error.to_string())
    }

    pub(crate) fn read(error: impl std::fmt::Display) -> Self {
        Self::Read(error.to_string())
    }
}
