//! Indexes of repositories, which whoever looks at a repository may write anew: `git status` notes in them how
//! files look. One that holds the same entries is the same for all who change it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::change::{Change, FileState};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, openat, renameat, unlinkat};

use super::directory::CHANGES_DIRECTORY;
use super::excludes;
use super::scan::ChangeScan;
use super::state::Staging;
use crate::change_path::{join, split_parent};
use crate::change_set::ChangeSet;
use crate::control_files::GIT_NAME;
use crate::git_config;
use crate::node;
use crate::repository::{INDEX, is_same_index, with_hidden_files, without_hidden_files};
use crate::resolve::{LookupError, Workspace};
use crate::system::{Stat, mode};

/// What the names of indexes begin with that are kept beside the changes.
const KEPT: &str = "index-";
/// The same of those that the run changed, as they are recorded, while they are prepared for a command.
const RECORDED: &str = "recorded-index-";

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

    /// Whether a file among the changes is an index with the same entries as the one of the workspace, or the same list of what
    /// is left out as a killed process had prepared it.
    pub(super) fn is_same_index(
        &self,
        path: &str,
        before: &FileState,
        directory: BorrowedFd<'_>,
        stat: &Stat,
    ) -> bool {
        let open = || node::open_regular(directory, split_parent(path).1, stat).ok();
        let is_list = || {
            let list = open().and_then(|now| read(&now))?;
            let list = excludes::without_hidden_paths(&list)?;
            Some(matches!(before, FileState::File { sha256, .. } if Digest::of(&list) == *sha256))
        };
        is_index(path) && open().is_some_and(|now| self.staging.has_same_entries(before, &now))
            || excludes::is_list(path) && is_list() == Some(true)
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

    /// Has git take hidden files for unchanged: where they are in an index, they look there as what covers them. That
    /// is the cache of an index and no change of it. Those that are in none are excluded. An index that cannot be read, or is
    /// locked, stays as it is.
    pub fn hide_in_indexes(
        &self,
        workspace: &Workspace,
        repositories: &[String],
        hidden: &BTreeSet<OsString>,
    ) {
        for directory in repositories {
            let Some(tree) = working_tree(workspace, directory) else { continue };
            let inside = |path: &OsString| {
                Some(Path::new(path).strip_prefix(&tree).ok()?.as_os_str().as_bytes().to_vec())
            };
            let names: BTreeSet<Vec<u8>> = hidden.iter().filter_map(inside).collect();
            if !names.is_empty() {
                let hide = |index: &[u8]| {
                    let changed = with_hidden_files(index, &|path| names.contains(path))?;
                    self.keep_recorded(directory, index).then_some(changed)
                };
                let _left_as_it_is = rewrite(workspace, (directory, INDEX), &hide);
                let exclude = |list: &[u8]| Some(excludes::with_hidden_paths(list, &names));
                let _left_as_it_is = rewrite_excludes(workspace, directory, &exclude);
                self.prepared_indexes.borrow_mut().insert(directory.clone());
            }
        }
    }

    /// Has git on the host compare the files that were hidden, in the indexes that are staged. One whose entries are
    /// those that are recorded is again the file that is recorded.
    pub fn show_in_indexes(&self, workspace: &Workspace) {
        for directory in std::mem::take(&mut *self.prepared_indexes.borrow_mut()) {
            let recorded = self.recorded_index(&directory);
            let kept = recorded.and_then(|digest| self.kept(RECORDED, digest));
            let show = |index: &[u8]| match &kept {
                Some(kept) if is_same_index(kept, index) => Some(kept.clone()),
                _ => without_hidden_files(index),
            };
            let _left_as_it_is = rewrite(workspace, (&directory, INDEX), &show);
            let _left_as_it_is =
                rewrite_excludes(workspace, &directory, &excludes::without_hidden_paths);
            if let (Some(digest), Some(_)) = (recorded, kept) {
                let name = format!("{RECORDED}{digest}");
                let _stays_beside = unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }

    /// Removes the locks of indexes, and of lists of what is left out, that a process left which was killed: one that is not
    /// recorded is its, or that of a command which ended with it.
    pub fn remove_stale_locks(&self, workspace: &Workspace, repositories: &[String]) {
        let lists = |directory: &String| (join(directory, excludes::DIRECTORY), excludes::LOCK);
        let indexes = repositories.iter().map(|directory| (directory.clone(), LOCK));
        for (directory, name) in indexes.chain(repositories.iter().map(lists)) {
            let lock = join(&directory, name);
            let is_recorded = self.recorded.borrow().0.contains_key(&lock);
            if !is_recorded && self.open_staged(&lock).is_some() {
                let flags = OFlags::DIRECTORY | OFlags::RDONLY;
                let opened = workspace.open_plain(workspace.root(), OsStr::new(&directory), flags);
                let _is_refused = opened.map(|opened| unlinkat(opened, name, AtFlags::empty()));
            }
        }
    }

    /// Puts back the indexes that a process had prepared for a command when it was killed, as they are recorded.
    /// Nothing is laid over the workspace then.
    pub fn restore_indexes(directory: &Path, changes: &ChangeSet) {
        let Ok(staged) = Workspace::open(&directory.join(CHANGES_DIRECTORY)) else { return };
        for (path, change) in changes.0.iter().filter(|(path, _)| is_index(path)) {
            let Some(FileState::File { sha256, .. }) = &change.after else { continue };
            let kept = directory.join(format!("{RECORDED}{sha256}"));
            if kept.exists() && restore(&staged, path, (&kept, *sha256)).is_none() {
                let _stays_beside = std::fs::remove_file(&kept);
            }
        }
    }

    /// The digest of an index that the run changed, as it is recorded.
    fn recorded_index(&self, directory: &str) -> Option<Digest> {
        match self.recorded.borrow().0.get(&join(directory, INDEX))?.after {
            Some(FileState::File { sha256, .. }) => Some(sha256),
            _ => None,
        }
    }

    /// Keeps an index that is recorded, as it is, before it is prepared for a command. Whether it can be prepared.
    fn keep_recorded(&self, directory: &str, index: &[u8]) -> bool {
        match self.recorded_index(directory).filter(|digest| Digest::of(index) == *digest) {
            Some(digest) if self.kept(RECORDED, digest).is_none() => {
                self.keep(RECORDED, digest, index).is_ok()
            }
            _ => true,
        }
    }

    /// An index that is kept beside the changes.
    fn kept(&self, prefix: &str, digest: Digest) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, format!("{prefix}{digest}"), flags, Mode::empty()).ok()?;
        read(&File::from(file)).filter(|kept| Digest::of(kept) == digest)
    }

    fn keep(&self, prefix: &str, digest: Digest, index: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let (name, mode) = (format!("{prefix}{digest}"), Mode::RUSR | Mode::WUSR);
        let opened = openat(&self.folder, name, flags | OFlags::CLOEXEC, mode)?;
        File::from(opened).write_all(index)
    }

    /// Whether a file among the changes is an index that holds the same entries as the one before.
    pub(super) fn has_same_entries(&self, before: &FileState, now: &File) -> bool {
        let FileState::File { sha256, .. } = before else { return false };
        self.kept(KEPT, *sha256)
            .zip(read(now))
            .is_some_and(|(before, now)| is_same_index(&before, &now))
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
        if Digest::of(&bytes) == sha256 && self.kept(KEPT, sha256).is_none() {
            let _compared_by_bytes = self.keep(KEPT, sha256, &bytes);
        }
    }

    /// Whether an index holds the same entries as the one that a change began with, or ends with.
    pub(crate) fn is_same(&self, node: Option<&FileState>, change: &Change, now: &File) -> bool {
        let Some(FileState::File { sha256, .. }) = node.filter(|_| is_index(&change.path)) else {
            return false;
        };
        let staged = || {
            let staged = self.open_staged(&change.path).and_then(|file| read(&file));
            staged.filter(|staged| Digest::of(staged) == *sha256)
        };
        self.kept(KEPT, *sha256)
            .or_else(staged)
            .zip(read(now))
            .is_some_and(|(one, other)| is_same_index(&one, &other))
    }

    fn open_staged(&self, path: &str) -> Option<File> {
        let (folder, name) = split_parent(path);
        let folder: Result<OwnedFd, LookupError> = self.open_upper(folder);
        let folder = folder.ok()?;
        let stat = node::stat_optional(folder.as_fd(), name).ok()??;
        node::open_regular(folder.as_fd(), name, &stat).ok()
    }
}

/// Puts back an index that is kept. None where another one stands there, by its entries.
fn restore(staged: &Workspace, path: &str, (kept, sha256): (&Path, Digest)) -> Option<()> {
    let (parent, name) = split_parent(path);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let parent = staged.open_plain(staged.root(), OsStr::new(parent), flags).ok()?;
    let stat = node::stat_optional(parent.as_fd(), name).ok()??;
    let now = read(&node::open_regular(parent.as_fd(), name, &stat).ok()?)?;
    let file = File::open(kept).ok()?;
    let recorded = read(&file).filter(|recorded| Digest::of(recorded) == sha256)?;
    is_same_index(&recorded, &now).then_some(())?;
    fchmod(&file, mode(stat.st_mode & 0o777)).ok()?;
    renameat(CWD, kept, &parent, name).ok()
}

/// By what git knows that an index is being written.
const LOCK: &str = "index.lock";

/// Writes the list of what a repository leaves out anew.
fn rewrite_excludes(
    workspace: &Workspace,
    directory: &str,
    change: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<()> {
    rewrite(workspace, (&join(directory, excludes::DIRECTORY), excludes::NAME), change)
}

/// Writes an index, or a list, anew. None where that is not needed or cannot be done.
fn rewrite(
    workspace: &Workspace,
    (directory, name): (&str, &str),
    change: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<()> {
    let lock_name = format!("{name}.lock");
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let directory = workspace.open_plain(workspace.root(), OsStr::new(directory), flags).ok()?;
    let stat = node::stat_optional(directory.as_fd(), name).ok()??;
    let held = read(&node::open_regular(directory.as_fd(), name, &stat).ok()?)?;
    let changed = change(&held)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = File::from(openat(&directory, &*lock_name, flags, Mode::RUSR | Mode::WUSR).ok()?);
    let written = (&lock).write_all(&changed).ok().and_then(|()| {
        fchmod(&lock, mode(stat.st_mode & 0o777)).ok()?;
        renameat(&directory, &*lock_name, &directory, name).ok()
    });
    if written.is_none() {
        let _ = unlinkat(&directory, &*lock_name, AtFlags::empty());
    }
    written
}

/// the working tree of a repository, from the root of the workspace.
fn working_tree(workspace: &Workspace, directory: &str) -> Option<PathBuf> {
    let (above, name) = split_parent(directory);
    if name == GIT_NAME {
        return Some(above.into());
    }
    let small = |name: &str| {
        let path = join(directory, name);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = workspace.open_plain(workspace.root(), OsStr::new(&path), flags).ok()?;
        let mut bytes = Vec::new();
        File::from(file).take(limits::CONFIG_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let named = match small("gitdir") {
        Some(file) => Path::new(OsStr::from_bytes(file.trim_ascii())).parent()?.to_owned(),
        None => {
            let settings = git_config::settings(&small("config")?).ok()?;
            let tree = settings.into_iter().rfind(|setting| setting.is("core", "worktree"))?;
            OsStr::from_bytes(&tree.value?).into()
        }
    };
    let whole = workspace.path().join(directory).join(named);
    plain_path(&whole).strip_prefix(workspace.path()).ok().map(Path::to_owned)
}

/// A path without `.` and `..`. Links are not followed.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}
