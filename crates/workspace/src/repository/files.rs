//! The files of a repository: as they were before a run, and as they are with what it changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::ops::Bound;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use capsule_core::change::{Change, FileState};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};

use super::flaw::Flaw;
use crate::change_path::{join, split_parent};
use crate::node;
use crate::resolve::{LookupError, Workspace, file_type};
use crate::system::fstat;

/// How a file is opened: nothing waits for a pipe, and no link is followed.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// How a folder is.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Files by their paths beneath the workspace.
pub(super) trait Files {
    /// Opens a regular file, if something stands there.
    ///
    /// # Errors
    /// It is something else, or cannot be opened.
    fn open(&self, path: &str) -> Result<Option<File>, Flaw>;

    /// The names in a folder, and whether each is a folder itself; none where nothing stands there.
    ///
    /// # Errors
    /// It cannot be listed.
    fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Flaw>;

    /// Whether something stands at a path.
    fn exists(&self, path: &str) -> bool;

    /// What a file holds, of at most so many bytes.
    ///
    /// # Errors
    /// It is larger, or cannot be read.
    fn read(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, Flaw> {
        let Some(file) = self.open(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut bytes).map_err(|why| Flaw::io(&why))?;
        match u64::try_from(read).is_ok_and(|read| read <= most) {
            true => Ok(Some(bytes)),
            false => Err(Flaw::new(format!("`{path}` is too large to be compared"))),
        }
    }
}

/// A folder that is open, and all beneath it.
#[derive(Clone, Copy)]
pub(super) struct Disk<'d> {
    pub workspace: &'d Workspace,
    pub root: BorrowedFd<'d>,
}

impl Disk<'_> {
    /// Opens a folder, if one stands there.
    pub(super) fn folder(&self, path: &str) -> Option<OwnedFd> {
        self.opened(path, FOLDER).ok().flatten()
    }

    fn opened(&self, path: &str, flags: OFlags) -> Result<Option<OwnedFd>, Flaw> {
        match self.workspace.open_plain(self.root, OsStr::new(path), flags) {
            Ok(opened) => Ok(Some(opened)),
            Err(LookupError::Missing) => Ok(None),
            Err(LookupError::Outside(_)) => {
                Err(Flaw::new(format!("`{path}` leads elsewhere, or to another file system")))
            }
            Err(LookupError::Refused(errno)) => {
                Err(Flaw::new(format!("`{path}` cannot be read ({errno})")))
            }
        }
    }
}

impl Files for Disk<'_> {
    fn open(&self, path: &str) -> Result<Option<File>, Flaw> {
        self.opened(path, FILE)?.map(|file| regular(file, path)).transpose()
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Flaw> {
        match self.opened(path, FOLDER)? {
            Some(folder) => listed(&folder),
            None => Ok(Vec::new()),
        }
    }

    fn exists(&self, path: &str) -> bool {
        let (folder, name) = split_parent(path);
        let folder = self.folder(folder);
        folder.is_some_and(|fd| {
            node::stat_optional(fd.as_fd(), name).is_ok_and(|stat| stat.is_some())
        })
    }
}

fn regular(file: OwnedFd, path: &str) -> Result<File, Flaw> {
    match fstat(&file).map(|stat| file_type(&stat)) {
        Ok(FileType::RegularFile) => Ok(file.into()),
        _ => Err(Flaw::new(format!("`{path}` is no regular file"))),
    }
}

/// The names in a folder that are text. Git's own are, and no run makes others.
fn listed(folder: &OwnedFd) -> Result<Vec<(String, bool)>, Flaw> {
    let failed = |errno: rustix::io::Errno| Flaw::new(errno.to_string());
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !matches!(name, "." | "..") {
            let is_folder = match entry.file_type() {
                FileType::Unknown => openat(folder, name, FOLDER, Mode::empty()).is_ok(),
                kind => kind == FileType::Directory,
            };
            names.push((name.to_owned(), is_folder));
        }
    }
    names.sort();
    Ok(names)
}

/// A folder of the host outside of the workspace, which a repository borrows objects from.
pub(super) struct Outside(pub PathBuf);

impl Files for Outside {
    fn open(&self, path: &str) -> Result<Option<File>, Flaw> {
        match rustix::fs::open(self.0.join(path), FILE, Mode::empty()) {
            Ok(file) => regular(file, path).map(Some),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(Flaw::new(errno.to_string())),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Flaw> {
        match rustix::fs::open(self.0.join(path), FOLDER, Mode::empty()) {
            Ok(folder) => listed(&folder),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(Vec::new()),
            Err(errno) => Err(Flaw::new(errno.to_string())),
        }
    }

    fn exists(&self, path: &str) -> bool {
        self.0.join(path).symlink_metadata().is_ok()
    }
}

/// What a run changed, by path. It is looked up where it is kept: a copy of it for each call would cost more
/// the more calls there were.
pub(crate) struct RunChanges<'c> {
    /// All of it, as far as it is known.
    known: &'c BTreeMap<String, Change>,
    /// What one call changed, which counts where both name a path.
    newest: BTreeMap<&'c str, &'c Change>,
}

impl<'c> RunChanges<'c> {
    pub(crate) fn new(
        known: &'c BTreeMap<String, Change>,
        newest: impl IntoIterator<Item = &'c Change>,
    ) -> Self {
        let newest = newest.into_iter().map(|change| (change.path.as_str(), change)).collect();
        Self { known, newest }
    }

    pub(super) fn get(&self, path: &str) -> Option<&'c Change> {
        self.newest.get(path).copied().or_else(|| self.known.get(path))
    }

    /// Those whose paths begin so.
    fn beneath<'s>(&'s self, start: &'s str) -> impl Iterator<Item = &'c Change> + 's {
        let begins = move |change: &&Change| change.path.starts_with(start);
        let known = self.known.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        let known = known.map(|(_, change)| change).take_while(begins);
        let known = known.filter(|change| !self.newest.contains_key(change.path.as_str()));
        let newest = self.newest.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        known.chain(newest.map(|(_, change)| *change).take_while(begins))
    }
}

/// Files with what a run changed.
pub(super) struct Changed<'c> {
    /// As they were.
    pub before: Disk<'c>,
    /// Where those lie that the run changed.
    pub staged: Disk<'c>,
    /// What it changed.
    pub changes: RunChanges<'c>,
}

impl Files for Changed<'_> {
    fn open(&self, path: &str) -> Result<Option<File>, Flaw> {
        match self.changes.get(path).map(|change| &change.after) {
            None => self.before.open(path),
            Some(None) => Ok(None),
            Some(Some(FileState::File { .. })) => self.staged.open(path),
            Some(Some(_)) => Err(Flaw::new(format!("`{path}` is no regular file"))),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Flaw> {
        // What is new may lie in a folder that was not there, or was something else.
        let before = match self.changes.get(path).map(|change| &change.before) {
            None | Some(Some(FileState::Directory { .. })) => self.before.list(path)?,
            Some(_) => Vec::new(),
        };
        let mut names: BTreeMap<String, bool> = before
            .into_iter()
            .filter(|(name, _)| self.changes.get(&join(path, name)).is_none())
            .collect();
        let beneath = if path.is_empty() { String::new() } else { format!("{path}/") };
        for change in self.changes.beneath(&beneath) {
            let (folder, name) = split_parent(&change.path);
            if folder.len() + 1 == beneath.len().max(1)
                && let Some(after) = &change.after
            {
                names.insert(name.to_owned(), matches!(after, FileState::Directory { .. }));
            }
        }
        Ok(names.into_iter().collect())
    }

    fn exists(&self, path: &str) -> bool {
        match self.changes.get(path) {
            Some(change) => change.after.is_some(),
            None => self.before.exists(path),
        }
    }
}
