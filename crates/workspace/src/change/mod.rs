//! Making of changes in the workspace: files that are written and deleted, staged changes that are applied,
//! and backups that are restored. Only what is still what was compared is replaced.

mod applied;
mod applier;
mod apply;
mod atomic_exchange;
mod atomic_write;
mod delete;
mod rename;
mod restore;
mod undo_comparison;
mod undo_entry;

pub use applied::AppliedChanges;
pub use applier::{is_half_applied, replaced_size};
pub use apply::StagedApply;
pub use atomic_write::AtomicWrite;
pub use delete::{DeleteTarget, Deletion};
pub use restore::{Restoration, UndoPlan};
pub use undo_entry::{UndoEntry, UndoStatus};
