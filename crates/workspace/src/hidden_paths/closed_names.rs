//! The names of a file that rules close, whatever name it was asked for by.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use capsule_base::limits;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::index::{HidePredicate, whole_workspace};
use super::walked_directory::{InodeKey, WalkedDirectory};
use crate::resolve::{Workspace, workspace_path};
use crate::system::statat;
use crate::walk::{Visitor, WalkStep, WalkedEntry, walk};

/// Every name in a closed place of a file with several names, as it was when the workspace was walked for it.
/// Who gives a file with one name another one leaves a trace in a folder.
#[derive(Default)]
pub(super) struct ClosedNames {
    by_file: BTreeMap<InodeKey, BTreeSet<OsString>>,
    /// Every folder that was walked.
    directories: BTreeMap<OsString, WalkedDirectory>,
    count: usize,
    /// Whether there may be more: a folder could not be listed, or there are too many.
    partial: bool,
}

impl ClosedNames {
    /// Walks the workspace for them. None where not all can be told: nobody knows which names are missing.
    pub(super) fn find(workspace: &Workspace, closes: &HidePredicate) -> Option<Self> {
        let finder = ClosedNameFinder { is_closed: closes, workspace, names: Mutex::default() };
        walk(workspace, vec![whole_workspace()], &finder);
        let names = finder.names.into_inner().unwrap_or_else(PoisonError::into_inner);
        (!names.partial).then_some(names)
    }

    /// Whether they are still the same: no folder was changed. A further name of a file leaves a trace in the
    /// folder that it stands in.
    pub(super) fn is_unchanged(&self, workspace: &Workspace) -> bool {
        self.directories.iter().all(|(path, folder)| folder.is_unchanged(workspace, path))
    }

    /// Those of one file, in order.
    pub(super) fn names_of(&self, file: InodeKey) -> impl Iterator<Item = &OsString> {
        self.by_file.get(&file).into_iter().flatten()
    }
}

struct ClosedNameFinder<'f> {
    is_closed: &'f HidePredicate,
    workspace: &'f Workspace,
    names: Mutex<ClosedNames>,
}

impl ClosedNameFinder<'_> {
    fn names(&self) -> MutexGuard<'_, ClosedNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor for ClosedNameFinder<'_> {
    fn directory(&self, path: &OsStr, folder: BorrowedFd<'_>, closed: bool) {
        let directory = WalkedDirectory::new(folder, self.workspace.lower(), path, closed);
        let mut names = self.names();
        match directory {
            Some(directory) => drop(names.directories.insert(path.to_owned(), directory)),
            None => names.partial = true,
        }
    }

    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        let is_folder = entry.kind == FileType::Directory;
        let closes =
            || workspace_path(entry.path).map_or(true, |path| (self.is_closed)(&path, is_folder));
        let closed = entry.closed || closes();
        if closed && entry.kind == FileType::Unknown {
            self.names().partial = true;
        } else if closed && entry.kind == FileType::RegularFile {
            // Each is asked for its own, since the number that a folder lists may be another one.
            let stat = statat(entry.directory, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
            let mut names = self.names();
            match stat {
                Ok(stat) if stat.st_nlink <= 1 => {}
                Ok(_) if names.count >= limits::PROTECTED_FILES => names.partial = true,
                Ok(stat) => {
                    let of = names.by_file.entry((stat.st_dev, stat.st_ino));
                    of.or_default().insert(entry.path.to_owned());
                    names.count += 1;
                }
                Err(Errno::NOENT) => {}
                Err(_) => names.partial = true,
            }
        }
        if closed { WalkStep::EnterClosed } else { WalkStep::Enter }
    }

    fn should_stop(&self) -> bool {
        self.names().partial
    }

    fn unreadable(&self, _: &OsStr, _: bool, errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            self.names().partial = true;
        }
    }
}
