//! A walk that collects what must not be seen.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use capsule_core::policy::Invariants;
use capsule_core::spelling::Spelling;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

use super::folder::Folder;
use super::{Conceals, Drawn};
use crate::orders::{GIT, is_lead};
use crate::walk::{Entry, Next, Visitor};
use crate::workspace::own::is_listed_store;
use crate::workspace::told;

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Find what is protected by its name.
    Names,
    /// Find other names of what is protected.
    Links,
    /// Both, in a folder that changed and in folders that are new.
    Again,
}

/// Collects what is to be hidden while the workspace is walked.
pub(super) struct Looker<'l> {
    pub(super) conceals: &'l Conceals,
    /// Whether what is neither file, folder nor link is hidden.
    pub(super) cuts_off: bool,
    /// What says which links lead to orders, if somebody wants to know.
    pub(super) invariants: Option<&'l Invariants>,
    /// How names are compared.
    pub(super) spelling: Spelling,
    /// What lies beneath the changes of a staged workspace.
    pub(super) lower: Option<BorrowedFd<'l>>,
    pub(super) pass: Pass,
    /// The inodes that were protected when the walk began.
    pub(super) inodes: BTreeSet<u64>,
    /// Whether every file is to be asked for its identity, listed or not.
    pub(super) every_file: bool,
    pub(super) drawn: Mutex<Drawn>,
    /// How often it may be asked whether to stop, and how often it was: once for every folder, and more
    /// often in large ones.
    pub(super) most: usize,
    pub(super) seen: AtomicUsize,
}

impl Looker<'_> {
    /// Whether it saw more than it may.
    pub(super) fn is_over(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.most
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an entry is protected by its name.
    fn is_concealed(&self, path: &OsStr, kind: FileType) -> bool {
        told(path).map_or(true, |path| (self.conceals)(&path, kind == FileType::Directory))
    }

    /// Notes what is protected: by its own name, or because it lies in what is.
    fn protect(&self, entry: &Entry<'_>) {
        let stat = statat(entry.folder, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut drawn = self.drawn();
        if !entry.closed {
            drawn.hide(entry.path);
        }
        match (entry.kind, stat) {
            (FileType::RegularFile, Ok(stat)) => {
                if entry.name.to_str().is_some_and(|own| self.spelling.is_same(own, GIT)) {
                    drawn.links.insert(entry.path.to_owned());
                }
                drawn.inodes_differ |= stat.st_ino != entry.inode;
                drawn.protect(entry.path, &stat);
            }
            (FileType::Symlink, _) => drop(drawn.links.insert(entry.path.to_owned())),
            _ => {}
        }
    }

    /// Hides the entry if it is another name of a protected file.
    fn unmask(&self, entry: &Entry<'_>) {
        if !self.every_file && !self.inodes.contains(&entry.inode) {
            return;
        }
        let stat = statat(entry.folder, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut drawn = self.drawn();
        // One that has no other name has the number of a protected file that is gone.
        let is_alias = |stat: Stat| {
            stat.st_nlink > 1 && drawn.protected.contains_key(&(stat.st_dev, stat.st_ino))
        };
        if stat.is_ok_and(is_alias) {
            drawn.hide(entry.path);
        }
    }
}

impl Visitor for Looker<'_> {
    fn folder(&self, path: &OsStr, folder: BorrowedFd<'_>, closed: bool) {
        if let Some(folder) = Folder::of(folder, self.lower, path, closed) {
            self.drawn().folders.insert(path.to_owned(), folder);
        }
    }

    fn entry(&self, entry: &Entry<'_>) -> Next {
        if let Some(invariants) = self.invariants
            && is_lead(entry, self.spelling)
        {
            self.drawn().leads.note(entry, (invariants, self.spelling));
        }
        // A folder may be hidden because a protected link leads to it.
        let closed = entry.closed
            || self.is_concealed(entry.path, entry.kind)
            || self.cuts_off && leads_out(entry.kind)
            || entry.kind == FileType::Directory && self.drawn().hidden.contains(entry.path)
            || self.pass != Pass::Links && is_listed_store(entry.folder, entry.name);
        if closed {
            if self.pass == Pass::Links {
                return Next::Leave;
            }
            self.protect(entry);
        } else if entry.kind == FileType::RegularFile && self.pass != Pass::Names {
            self.unmask(entry);
        }
        // Folders that are known are looked at for themselves if they changed.
        let is_known = self.pass == Pass::Again
            && entry.kind == FileType::Directory
            && self.drawn().folders.get(entry.path).is_some_and(|known| known.closed == closed);
        match (is_known, closed) {
            (true, _) => Next::Leave,
            (false, true) => Next::EnterClosed,
            (false, false) => Next::Enter,
        }
    }

    fn stop(&self) -> bool {
        self.seen.fetch_add(1, Ordering::Relaxed);
        self.is_over()
    }

    fn unreadable(&self, path: &OsStr, closed: bool, errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            self.drawn().shut(path, closed);
        }
    }
}

/// Whether a file of this kind leads to whoever else has it open.
fn leads_out(kind: FileType) -> bool {
    !matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink)
}
