//! Indexes of repositories, which whoever looks at a repository may write anew: `git status` notes in them how
//! files look. One that holds the same entries is the same for all who change it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::change::{Change, FileState};
use rustix::fs::{Mode, OFlags, Stat, openat};

use super::scan::ChangeScan;
use super::state::Staging;
use crate::change_path::{join, split_parent};
use crate::node;
use crate::repository::{INDEX, is_same_index};
use crate::resolve::LookupError;

/// What the names of indexes begin with that are kept beside the changes.
const KEPT: &str = "index-";

/// What an index holds, if it is small enough.
pub(crate) fn read(mut file: &File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.take(limits::GIT_INDEX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    u64::try_from(bytes.len())
        .is_ok_and(|number| number <= limits::GIT_INDEX_BYTES)
        .then_some(bytes)
}

/// Whether a path may be that of an index.
pub(crate) fn is_index(path: &str) -> bool {
    split_parent(path).1 == INDEX
}

impl ChangeScan<'_> {
    /// Whether a file of the workspace is an index that somebody only looked at since the run began.
    pub(super) fn is_refreshed(
        &self,
        path: &str,
        folder: BorrowedFd<'_>,
        (name, stat): (&str, &Stat),
    ) -> bool {
        let open = || node::open_regular(folder, name, stat).ok();
        is_index(path) && open().is_some_and(|now| self.staging.is_refreshed(path, &now))
    }

    /// Keeps an index that the run changes, as it was.
    pub(super) fn keep_index(
        &self,
        path: &str,
        folder: BorrowedFd<'_>,
        (name, stat, node): (&str, &Stat, &FileState),
    ) {
        if let (FileState::File { sha256, .. }, true) = (node, is_index(path))
            && let Ok(file) = node::open_regular(folder, name, stat)
        {
            self.staging.keep_index(path, &file, *sha256);
        }
    }
}

impl Staging {
    /// Holds the indexes of these repositories, as they are when the run begins.
    pub fn hold_indexes(&self, folders: &[String]) {
        for folder in folders {
            let path = join(folder, INDEX);
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let opened =
                self.layers.lower.open_plain(self.layers.lower.root(), OsStr::new(&path), flags);
            if let Ok(opened) = opened {
                self.indexes.borrow_mut().insert(path, File::from(opened));
            }
        }
    }

    /// Whether what stands at a path of the workspace holds the same entries as when the run began. Git gives
    /// an index another file each time, so the one that is held is as it was.
    pub(super) fn is_refreshed(&self, path: &str, now: &File) -> bool {
        let indexes = self.indexes.borrow();
        let both = indexes.get(path).and_then(read).zip(read(now));
        both.is_some_and(|(then, now)| is_same_index(&then, &now))
    }

    /// Keeps an index beside the changes, so that it can be compared later. What cannot be kept is compared
    /// byte for byte.
    pub(super) fn keep_index(&self, path: &str, file: &File, sha256: Digest) {
        let Some(bytes) = Some(file).filter(|_| is_index(path)).and_then(read) else { return };
        if Digest::of(&bytes) == sha256 {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let name = format!("{KEPT}{sha256}");
            let opened =
                openat(&self.folder, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
            let _ = opened.map(|opened| File::from(opened).write_all(&bytes));
        }
    }

    /// Whether an index holds the same entries as the one that a change began with, or ends with.
    pub(crate) fn is_same(&self, node: Option<&FileState>, change: &Change, now: &File) -> bool {
        let Some(FileState::File { sha256, .. }) = node.filter(|_| is_index(&change.path)) else {
            return false;
        };
        let kept = || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(&self.folder, format!("{KEPT}{sha256}"), flags, Mode::empty());
            opened.ok().map(File::from)
        };
        let staged = || self.open_staged(&change.path);
        let known = [kept(), staged()].into_iter().flatten().filter_map(|file| read(&file));
        let mut known = known.filter(|known| Digest::of(known) == *sha256);
        known.next().zip(read(now)).is_some_and(|(one, other)| is_same_index(&one, &other))
    }

    fn open_staged(&self, path: &str) -> Option<File> {
        let (folder, name) = split_parent(path);
        let folder: Result<OwnedFd, LookupError> = self.open_upper(folder);
        let folder = folder.ok()?;
        let stat = node::stat_optional(folder.as_fd(), name).ok()??;
        node::open_regular(folder.as_fd(), name, &stat).ok()
    }
}
