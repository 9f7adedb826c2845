//! The state of a staged workspace: its layers, and what is known of the changes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::change::{Change, FileState};
use capsule_core::confinement::ChangeLimits;
use capsule_core::outcome::CodedError;
use rustix::fs::{AtFlags, fstatvfs, unlinkat};

use super::copy_changes::CopiedWorkspace;
use super::layers::StagingLayers;
use crate::change_path::{ChangePath, split_parent};
use crate::change_set::ChangeSet;
use crate::node;
use crate::resolve::{LookupError, Workspace};
use crate::temporary_names::apply_name;

/// A staged workspace.
#[derive(Debug)]
pub struct Staging {
    /// The workspace, and what is laid over it.
    pub(super) layers: StagingLayers,
    /// What was copied into that, if the workspace was.
    pub(super) copied: Option<CopiedWorkspace>,
    /// When the changes were laid over it, in seconds since 1970 and nanoseconds.
    pub(super) created_at: (i64, i64),
    /// What differs, as it was when it was last looked at.
    pub(super) last_scan: RefCell<ChangeSet>,
    /// What stood in the workspace at each path of the changes when that was first seen.
    pub(super) originals: RefCell<BTreeMap<String, OriginalNode>>,
    /// The digests of files, by how they looked.
    pub(super) digests: RefCell<BTreeMap<String, (node::FileStamp, FileState)>>,
    pub(super) last_size_check: Cell<Option<(Instant, Duration)>>,
    /// What the run changed so far, as it is recorded.
    pub(super) recorded: RefCell<ChangeSet>,
    /// How full the file system of the changes was when the running command began.
    pub(super) space_before: Cell<Option<DiskSpace>>,
    /// Whether the last look found folders that it could not look into.
    pub(super) has_unreadable: Cell<bool>,
    /// How many bytes the changes hold at most, as far as was looked since all of them were counted.
    pub(super) weight: Cell<u64>,
    /// The folder of all of it, and the indexes of repositories as they were when the run began.
    pub(super) folder: OwnedFd,
    pub(super) indexes: RefCell<BTreeMap<String, File>>,
    /// The directories of repositories whose indexes were prepared for a command, since they were last looked at.
    pub(super) prepared_indexes: RefCell<BTreeSet<String>>,
}

/// How full a file system is.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskSpace {
    /// The bytes that are free.
    pub(super) free: u64,
    /// The files that are there; none is counted where the file system does not.
    pub(super) files: u64,
}

impl DiskSpace {
    /// Why a command is ended during which far more space went, or far more files came, than may be
    /// staged. What has no name any more takes space too, and so does what is in a folder that the
    /// command closed; somebody else may have taken it, which cannot be told apart.
    fn overuse_since(self, then: Self, most_bytes: u64) -> Option<CodedError> {
        let went = if then.free.saturating_sub(self.free) > most_bytes {
            let most = capsule_base::units::show_size(most_bytes);
            format!("more than {most} of space went")
        } else if self.files.saturating_sub(then.files) > limits::STAGING_DISK_FILES {
            format!("more than {} files came", limits::STAGING_DISK_FILES)
        } else {
            return None;
        };
        let message = format!("{went} where changes are staged while the command ran");
        Some(CodedError::new(Code::ChangeTooMany, message))
    }
}

/// What stood in the workspace when a change of it was first seen.
#[derive(Clone, Debug)]
pub(super) struct OriginalNode {
    pub(super) node: Option<FileState>,
    pub(super) refusal: Option<String>,
}

impl Staging {
    /// Why the run works in a copy of the workspace, if it does.
    #[must_use]
    pub fn copy_reason(&self) -> Option<&str> {
        self.copied.as_ref().map(|copied| copied.why.as_str())
    }

    /// The copy of the workspace that the run works in, if it does.
    #[must_use]
    pub fn copy(&self) -> Option<OwnedFd> {
        self.copied.as_ref().and_then(|_| self.layers.upper.try_clone().ok())
    }

    /// Frees what nobody needs at the end of the run: the rest of a copy, beside its changes.
    pub fn drop_unneeded(&self) {
        // Where it cannot be done, all of it is removed with the changes.
        let _ = self.copied.as_ref().map(|copied| copied.prune(&self.layers));
    }

    /// Removes what applying them left beside its targets when it was killed.
    pub fn remove_leftovers(&self, run: &str, changes: &ChangeSet) {
        let name = apply_name(run);
        let folders: BTreeSet<&str> = changes.0.keys().map(|path| split_parent(path).0).collect();
        for folder in folders {
            // One that is another folder by now holds nothing of ours.
            let Ok(folder) = self.open_lower(folder) else { continue };
            for flags in [AtFlags::empty(), AtFlags::REMOVEDIR] {
                let _ = unlinkat(&folder, name.as_str(), flags);
            }
        }
    }

    /// How many of the changes the workspace holds already.
    #[must_use]
    pub fn applied(&self, changes: &ChangeSet) -> usize {
        let is_applied = |change: &&Change| {
            let (folder, name) = split_parent(&change.path);
            let state = match self.open_lower(folder) {
                Ok(folder) => ChangePath { parent: folder, name }.node().ok(),
                Err(LookupError::Missing) => Some(None),
                Err(_) => None,
            };
            state.is_some_and(|state| change.matches_after(state.as_ref()))
        };
        changes.0.values().filter(is_applied).count()
    }

    /// What the run changed, as it is recorded.
    #[must_use]
    pub fn recorded(&self) -> Vec<Change> {
        self.recorded.borrow().0.values().cloned().collect()
    }

    /// How many paths the run changed, as it is recorded.
    #[must_use]
    pub fn changed_paths(&self) -> usize {
        self.recorded.borrow().0.len()
    }

    /// Whether one of them was refused, so that none may be applied.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.recorded.borrow().refused().is_some()
    }

    /// How many of them a person is asked about before they are applied.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.recorded.borrow().asked().count()
    }

    /// The workspace as it is, beneath the changes.
    pub(crate) const fn lower(&self) -> &Rc<Workspace> {
        &self.layers.lower
    }

    /// Opens a folder among the changes, without following any link.
    pub(crate) fn open_upper(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.layers.open_upper(path)
    }

    /// Opens a folder of the workspace beneath them, without following any link.
    pub(super) fn open_lower(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.layers.open_lower(path)
    }

    /// Adds changes to what is recorded of the run.
    pub fn record(&self, changes: Vec<Change>) {
        self.recorded.borrow_mut().add(changes);
    }

    /// Whether a path is again what it was before the run.
    #[must_use]
    pub fn is_reverted(&self, change: &Change) -> bool {
        let recorded = self.recorded.borrow();
        recorded.0.get(&change.path).is_some_and(|item| item.before == change.after)
    }

    /// Whether what stands at a path in the workspace stands in a copy of it, too. A tool would see nothing
    /// there, or an empty file, and once it had changed that, nothing of the run could be applied.
    ///
    /// # Errors
    /// [`Code::ChangeRefused`] where it was not copied.
    pub fn require_in_copy(&self, path: &WorkspacePath) -> Result<(), CodedError> {
        let refusal =
            self.copied.as_ref().and_then(|workspace| workspace.refusal(path.as_str(), false));
        let Some(why) = refusal else { return Ok(()) };
        let message = format!("`{path}` cannot be changed in the copy of the workspace: {why}");
        Err(CodedError::new(Code::ChangeRefused, message).with_suggestion("choose another path"))
    }

    /// Why nothing may be told of a path that is another spelling of one which was copied.
    pub(super) fn other_spelling(&self, path: &str) -> Option<String> {
        let twin = self.copied.as_ref()?.twin(path, self.layers.lower.spelling())?;
        Some(format!("it is another spelling of `{twin}`, which is the same name there"))
    }

    /// A command is about to run: what is free now is what it may fill. Where folders stayed closed, all
    /// commands since before the first of them share that, since what these hold is never counted.
    pub fn begin_command(&self) {
        if !self.has_unreadable.get() {
            self.space_before.set(self.disk_space());
        }
    }

    /// Bounds how much the run may change.
    pub fn set_limits(&self, limits: ChangeLimits) {
        self.layers.limits.set(limits);
    }

    pub(super) fn disk_space(&self) -> Option<DiskSpace> {
        let told = fstatvfs(&self.layers.upper).ok()?;
        let free = told.f_bavail.saturating_mul(told.f_frsize);
        Some(DiskSpace { free, files: told.f_files.saturating_sub(told.f_ffree) })
    }

    pub(super) fn unreadable_problem(&self) -> Option<CodedError> {
        let (then, now) = self.space_before.get().zip(self.disk_space())?;
        now.overuse_since(then, self.layers.limits.get().disk_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With numbers, since other processes write to a real disk.
    #[test]
    fn a_command_may_fill_so_much_of_a_disk() {
        let most = ChangeLimits::default().disk_bytes();
        let then = DiskSpace { free: most * 3, files: 7 };
        let bytes = |went| DiskSpace { free: then.free - went, ..then };
        let files = |came| DiskSpace { files: then.files + came, ..then };
        for (now, why) in [
            (bytes(most), None),
            (bytes(most + 1), Some("more than 2.1 GB of space went")),
            (files(limits::STAGING_DISK_FILES), None),
            (files(limits::STAGING_DISK_FILES + 1), Some("more than 200000 files came")),
            // Another process frees space.
            (DiskSpace { free: u64::MAX, files: 0 }, None),
        ] {
            let told = now.overuse_since(then, most).map(|error| error.message);
            let is_told = told.as_deref().zip(why).is_some_and(|(told, why)| told.starts_with(why));
            assert!(is_told || told.is_none() && why.is_none(), "{now:?}: {told:?}");
        }
    }
}
