//! Whether what stood at some paths when a command began still stands there.
//!
//! A mount lies on an entry of a folder, in the mounts of one call. Whoever replaces that entry from
//! elsewhere (git on the host, an editor that saves, another run) takes the mount away with it, and
//! the command sees the new file as it is. The kernel tells nobody, so the entries are looked at.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use capsule_workspace::system::{Stat, statat};
use capsule_workspace::{Workspace, file_type, same_file, store_names};
use rustix::fs::{AtFlags, FileType};

/// How long nobody looks after a look.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How many times as long as a look took, if that is longer: looking takes a small part of the time.
const REST_FACTOR: u32 = 20;

/// What must not be changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileExpectation {
    /// It stays the file that it is. Others may write to it.
    SameFile,
    /// It stays as it is.
    Unmodified,
}

/// What stood at some paths.
pub(crate) struct UnchangedGuard<'w> {
    workspace: &'w Workspace,
    noted: BTreeMap<OsString, (FileExpectation, Stat)>,
    /// What was found to be another file while the command ran. It may be the old one again since.
    replaced: RefCell<BTreeSet<OsString>>,
    /// When to look again.
    next_check: Cell<Option<Instant>>,
}

impl<'w> UnchangedGuard<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        let (replaced, next) = (RefCell::new(BTreeSet::new()), Cell::new(None));
        Self { workspace, noted: BTreeMap::new(), replaced, next_check: next }
    }

    /// Notes what stands at a path, if something does. Of two demands, the stronger one counts. A
    /// folder only stays itself: its mount covers what others rename in it, as editors do all the time.
    pub(crate) fn note(&mut self, path: &OsStr, stays: FileExpectation) {
        if self
            .noted
            .get(path)
            .is_some_and(|(expectation, _)| *expectation == FileExpectation::Unmodified)
        {
            return;
        }
        if let Some(stat) = stat_path(self.workspace, path) {
            let folder = file_type(&stat) == FileType::Directory;
            let stays = if folder { FileExpectation::SameFile } else { stays };
            self.noted.insert(path.to_owned(), (stays, stat));
        }
    }

    /// Whether another file stands somewhere by now. Asked often; answered from time to time.
    pub(crate) fn any_replaced(&self) -> bool {
        let now = Instant::now();
        if self.next_check.get().is_none_or(|next| now >= next) {
            let replaced = self.noted.iter().filter(|(path, (_, then))| {
                !stat_path(self.workspace, path).is_some_and(|now| same_file(&now, then))
            });
            self.replaced.borrow_mut().extend(replaced.map(|(path, _)| path.clone()));
            self.next_check
                .set(Some(Instant::now() + CHECK_INTERVAL.max(now.elapsed() * REST_FACTOR)));
        }
        !self.replaced.borrow().is_empty()
    }

    /// Everything that is, or was found to be, something else than what stood there.
    pub(crate) fn changed_paths(&self) -> BTreeSet<OsString> {
        let is_changed = |stays: FileExpectation, then: &Stat, now: &Stat| {
            !same_file(now, then)
                || stays == FileExpectation::Unmodified && write_stamp(now) != write_stamp(then)
        };
        let changed = self.noted.iter().filter(|(path, (stays, then))| {
            stat_path(self.workspace, path).is_none_or(|now| is_changed(*stays, then, &now))
        });
        let changed = changed.map(|(path, _)| path.clone());
        changed.chain(self.replaced.borrow().iter().cloned()).collect()
    }
}

fn stat_path(workspace: &Workspace, path: &OsStr) -> Option<Stat> {
    statat(workspace.root(), path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// By what it is known that nobody wrote to a file: its size and the times of its last changes.
fn write_stamp(stat: &Stat) -> impl PartialEq + use<> {
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
}

/// Whether a path lies beside another of these by its name, as the files of a store do: whoever works
/// with the store makes and removes them.
pub(crate) fn is_store_sibling(path: &OsStr, is_one: impl Fn(&OsStr) -> bool) -> bool {
    store_names(path.as_bytes()).map(OsStr::from_bytes).any(is_one)
}
