//! A walk that collects what must not be seen.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use capsule_base::spelling::Spelling;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::index::{HiddenIndex, HidePredicate};
use super::walked_directory::WalkedDirectory;
use crate::control_files::{GIT_NAME, is_candidate};
use crate::resolve::workspace_path;
use crate::store_files::is_listed_store;
use crate::system::{Stat, statat};
use crate::walk::{Visitor, WalkStep, WalkedEntry};

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanPass {
    /// Find what is protected by its name.
    ByName,
    /// Find other names of what is protected.
    OtherNames,
    /// Both, in a folder that changed and in folders that are new.
    Refresh,
}

/// Collects what is to be hidden while the workspace is walked.
pub(super) struct Scanner<'l> {
    pub(super) hides: &'l HidePredicate,
    /// Whether what is neither file, folder nor link is hidden.
    pub(super) hides_special_files: bool,
    /// What says which links lead to orders, if somebody wants to know.
    pub(super) invariants: Option<&'l Invariants>,
    /// How names are compared.
    pub(super) spelling: Spelling,
    /// What lies beneath the changes of a staged workspace.
    pub(super) lower: Option<BorrowedFd<'l>>,
    pub(super) pass: ScanPass,
    /// The inodes that were protected when the walk began.
    pub(super) inodes: BTreeSet<u64>,
    /// Whether every file is to be asked for its identity, listed or not.
    pub(super) every_file: bool,
    pub(super) index: Mutex<HiddenIndex>,
    /// How often it may be asked whether to stop, and how often it was: once for every folder, and more
    /// often in large ones.
    pub(super) limit: usize,
    pub(super) seen: AtomicUsize,
}

impl Scanner<'_> {
    /// Whether it saw more than it may.
    pub(super) fn is_over_limit(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.limit
    }

    fn index(&self) -> MutexGuard<'_, HiddenIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an entry is protected by its name.
    fn is_hidden(&self, path: &OsStr, kind: FileType) -> bool {
        workspace_path(path).map_or(true, |path| (self.hides)(&path, kind == FileType::Directory))
    }

    /// Notes what is protected: by its own name, or because it lies in what is.
    fn add_protected(&self, entry: &WalkedEntry<'_>) {
        let stat = statat(entry.directory, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut drawn = self.index();
        if !entry.closed {
            drawn.hide(entry.path);
        }
        match (entry.kind, stat) {
            (FileType::RegularFile, Ok(stat)) => {
                if entry.name.to_str().is_some_and(|text| self.spelling.is_same(text, GIT_NAME)) {
                    drawn.links.insert(entry.path.to_owned());
                }
                drawn.inodes_differ |= stat.st_ino != entry.inode;
                drawn.add_protected(entry.path, &stat);
            }
            (FileType::Symlink, _) => drop(drawn.links.insert(entry.path.to_owned())),
            _ => {}
        }
    }

    /// Hides the entry if it is another name of a protected file.
    fn hide_alias(&self, entry: &WalkedEntry<'_>) {
        if !self.every_file && !self.inodes.contains(&entry.inode) {
            return;
        }
        let stat = statat(entry.directory, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut drawn = self.index();
        // One that has no other name has the number of a protected file that is gone.
        let is_alias = |stat: Stat| {
            stat.st_nlink > 1 && drawn.protected.contains_key(&(stat.st_dev, stat.st_ino))
        };
        if stat.is_ok_and(is_alias) {
            drawn.hide(entry.path);
        }
    }
}

impl Visitor for Scanner<'_> {
    fn directory(&self, path: &OsStr, folder: BorrowedFd<'_>, closed: bool) {
        if let Some(folder) = WalkedDirectory::new(folder, self.lower, path, closed) {
            self.index().directories.insert(path.to_owned(), folder);
        }
    }

    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        if let Some(invariants) = self.invariants
            && is_candidate(entry, self.spelling)
        {
            self.index().alias_candidates.note(entry, (invariants, self.spelling));
        }
        // A folder may be hidden because a protected link leads to it.
        let closed = entry.closed
            || self.is_hidden(entry.path, entry.kind)
            || self.hides_special_files && reaches_host(entry.kind)
            || entry.kind == FileType::Directory && self.index().hidden.contains(entry.path)
            || self.pass != ScanPass::OtherNames && is_listed_store(entry.directory, entry.name);
        if closed {
            if self.pass == ScanPass::OtherNames {
                return WalkStep::Skip;
            }
            self.add_protected(entry);
        } else if entry.kind == FileType::RegularFile && self.pass != ScanPass::ByName {
            self.hide_alias(entry);
        }
        // Folders that are known are looked at for themselves if they changed.
        let is_known = self.pass == ScanPass::Refresh
            && entry.kind == FileType::Directory
            && self.index().directories.get(entry.path).is_some_and(|known| known.closed == closed);
        match (is_known, closed) {
            (true, _) => WalkStep::Skip,
            (false, true) => WalkStep::EnterClosed,
            (false, false) => WalkStep::Enter,
        }
    }

    fn should_stop(&self) -> bool {
        self.seen.fetch_add(1, Ordering::Relaxed);
        self.is_over_limit()
    }

    fn unreadable(&self, path: &OsStr, closed: bool, errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            self.index().hide_unreadable(path, closed);
        }
    }
}

/// Whether a file of this kind leads to whoever else has it open.
fn reaches_host(kind: FileType) -> bool {
    !matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink)
}
