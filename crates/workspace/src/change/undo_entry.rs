//! One path of an undo, and how it stands to what is to be undone there.

use capsule_base::code::Code;
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;

/// How a path stands to what is to be undone there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoStatus {
    /// It is what the call left, and what stood there before can be brought back.
    Ready {
        /// The lines that come and go, where it is text.
        lines: Option<(u64, u64)>,
        /// Whether what goes for it is kept, so that it comes back by an undo of this one. What is more
        /// than is kept for one call needs only be what the call left.
        backed_up: bool,
    },
    /// It is already what it was before.
    AlreadyRestored,
    /// The call made this folder; something else is in it by now, so it stays.
    DirectoryInUse,
    /// It is something else, last changed at this time, in seconds since 1970, if that can be told.
    Changed {
        /// What stands there.
        now: Option<FileState>,
        /// When it last changed.
        at: Option<i64>,
    },
    /// What stood there before is not kept any more.
    BackupGone,
    /// What was kept of it is something else by now.
    BackupDamaged,
}

/// One path of an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoEntry {
    /// What comes of it; what stands there now is what was found.
    pub change: Change,
    /// How it stands.
    pub status: UndoStatus,
}

impl UndoEntry {
    /// Why nothing can be undone because of this path.
    #[must_use]
    pub fn problem(&self) -> Option<CodedError> {
        let path = &self.change.path;
        let (code, message) = match self.status {
            UndoStatus::Ready { .. } | UndoStatus::AlreadyRestored | UndoStatus::DirectoryInUse => {
                return None;
            }
            UndoStatus::Changed { .. } => return Some(differs_problem(&self.change)),
            UndoStatus::BackupGone => {
                (Code::UndoGone, format!("what stood at `{path}` before is not kept"))
            }
            UndoStatus::BackupDamaged => {
                (Code::UndoDamaged, format!("what was kept of `{path}` is something else by now"))
            }
        };
        Some(CodedError::new(code, message).with_suggestion(code.next_step()))
    }
}

/// A path that is something else than what the call left.
pub(super) fn differs_problem(change: &Change) -> CodedError {
    let message = format!("`{}` is not what the call left", change.path);
    CodedError::new(Code::UndoConflict, message).with_suggestion(Code::UndoConflict.next_step())
}
