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

use rustix::fs::{AtFlags, FileType, Stat, statat};

use crate::workspace::own::stores_named;
use crate::workspace::{Workspace, kind, same};

/// How long nobody looks after a look.
const PAUSE: Duration = Duration::from_millis(100);
/// How many times as long as a look took, if that is longer: looking takes a small part of the time.
const REST: u32 = 20;

/// What must not be changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It stays the file that it is. Others may write to it.
    Itself,
    /// It stays as it is.
    Unwritten,
}

/// What stood at some paths.
pub(crate) struct Still<'w> {
    workspace: &'w Workspace,
    noted: BTreeMap<OsString, (Stays, Stat)>,
    /// What was found to be another file while the command ran. It may be the old one again since.
    replaced: RefCell<BTreeSet<OsString>>,
    /// When to look again.
    next: Cell<Option<Instant>>,
}

impl<'w> Still<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        let (replaced, next) = (RefCell::new(BTreeSet::new()), Cell::new(None));
        Self { workspace, noted: BTreeMap::new(), replaced, next }
    }

    /// Notes what stands at a path, if something does. Of two demands, the stronger one counts. A
    /// folder only stays itself: its mount covers what others rename in it, as editors do all the time.
    pub(crate) fn note(&mut self, path: &OsStr, stays: Stays) {
        if self.noted.get(path).is_some_and(|(own, _)| *own == Stays::Unwritten) {
            return;
        }
        if let Some(stat) = look(self.workspace, path) {
            let folder = kind(&stat) == FileType::Directory;
            let stays = if folder { Stays::Itself } else { stays };
            self.noted.insert(path.to_owned(), (stays, stat));
        }
    }

    /// Whether another file stands somewhere by now. Asked often; answered from time to time.
    pub(crate) fn is_replaced(&self) -> bool {
        let now = Instant::now();
        if self.next.get().is_none_or(|next| now >= next) {
            let replaced = self.noted.iter().filter(|(path, (_, then))| {
                !look(self.workspace, path).is_some_and(|now| same(&now, then))
            });
            self.replaced.borrow_mut().extend(replaced.map(|(path, _)| path.clone()));
            self.next.set(Some(Instant::now() + PAUSE.max(now.elapsed() * REST)));
        }
        !self.replaced.borrow().is_empty()
    }

    /// Everything that is, or was found to be, something else than what stood there.
    pub(crate) fn changed(&self) -> BTreeSet<OsString> {
        let is_changed = |stays: Stays, then: &Stat, now: &Stat| {
            !same(now, then) || stays == Stays::Unwritten && written(now) != written(then)
        };
        let changed = self.noted.iter().filter(|(path, (stays, then))| {
            look(self.workspace, path).is_none_or(|now| is_changed(*stays, then, &now))
        });
        let changed = changed.map(|(path, _)| path.clone());
        changed.chain(self.replaced.borrow().iter().cloned()).collect()
    }
}

fn look(workspace: &Workspace, path: &OsStr) -> Option<Stat> {
    statat(workspace.root(), path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// By what it is known that nobody wrote to a file: its size and the times of its last changes.
fn written(stat: &Stat) -> impl PartialEq + use<> {
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
}

/// Whether a path lies beside another of these by its name, as the files of a store do: whoever works
/// with the store makes and removes them.
pub(crate) fn is_beside(path: &OsStr, is_one: impl Fn(&OsStr) -> bool) -> bool {
    stores_named(path.as_bytes()).map(OsStr::from_bytes).any(is_one)
}
