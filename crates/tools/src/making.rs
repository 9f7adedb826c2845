//! Makes changes in a workspace, each whole or not at all, and only where what was compared still
//! stands.
//!
//! No component of a path may be a link, and no other file system is entered. What is made stands beside
//! its place until it takes it; what it replaces is exchanged for it, and given its name again where it
//! is something else than what was compared.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use capsule_core::change::{Change, FileState};
use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::outcome::CodedError;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, Timestamps, fchmod, flock,
    fstat, futimens, mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::node;
use crate::walk::{buffer, entries};
use crate::workspace::{
    Exchanged, NotFound, Workspace, exchange, is_unsupported, kind, rename_new,
};

/// The permissions of a new folder until everything is in it.
const OPEN: u32 = 0o700;
/// How a folder is opened to be read.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// How much is copied before it is asked whether to go on.
const CHUNK: usize = 256 * 1024;

/// Where the files come from that changes bring.
pub(crate) trait Source {
    /// Opens what a change brings, to be read; with its dates, if it is to have them.
    ///
    /// # Errors
    /// It is not to be had.
    fn open(&self, change: &Change) -> Result<(File, Option<Timestamps>), CodedError>;

    /// What is said of a file whose bytes are not those that were recorded.
    fn other(&self, change: &Change) -> CodedError;
}

/// Says whether to go on: it is not too late, and nobody cancelled it.
pub(crate) type GoesOn<'g> = &'g dyn Fn() -> Result<(), CodedError>;

/// Makes changes.
pub(crate) struct Maker {
    /// The workspace.
    pub workspace: Rc<Workspace>,
    /// What its own unfinished files are called: nobody else's are, since a run's id is random.
    pub beside: String,
    /// What those of others are called who began before and were killed.
    pub leftovers: Vec<String>,
    /// Where the changes put a link, or take one away: see [`links`].
    pub links: BTreeSet<String>,
    /// What is said of a path that is not what it was compared with.
    pub differs: fn(&Change) -> CodedError,
}

/// How large the file is that a change replaces or removes, if it is a file.
pub(crate) const fn replaced(change: &Change) -> Option<u64> {
    match &change.before {
        Some(FileState::File { bytes, .. }) => Some(*bytes),
        _ => None,
    }
}

/// The paths at which changes put a link or take one away. What such a change compares is the link; beneath
/// it there is nothing until a folder takes its place, whatever the link leads to.
pub(crate) fn links(changes: &[Change]) -> BTreeSet<String> {
    let is_link = |node: &Option<FileState>| matches!(node, Some(FileState::Link { .. }));
    let own = changes.iter().filter(|own| is_link(&own.before) || is_link(&own.after));
    own.map(|own| own.path.clone()).collect()
}

/// A folder and a name in it.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Maker {
    /// Opens a folder without following any link.
    pub(crate) fn folder(&self, path: &str) -> Result<OwnedFd, NotFound> {
        self.workspace.open_plain(self.workspace.root(), OsStr::new(path), FOLDER)
    }

    /// Keeps all others from making changes in the same workspace until what it gives is dropped.
    pub(crate) fn lock(&self) -> Option<OwnedFd> {
        self.folder("").ok().filter(lock)
    }

    /// The place of a change, in its folder.
    pub(crate) fn place<'c>(&self, change: &'c Change) -> Result<Place<'c>, CodedError> {
        let (folder, name) = split(&change.path);
        match self.folder(folder) {
            Ok(folder) => Ok(Place { folder, name }),
            Err(_) => Err((self.differs)(change)),
        }
    }

    /// What stands there now.
    pub(crate) fn here(&self, change: &Change) -> Result<Option<FileState>, CodedError> {
        match self.there(change)? {
            Some(place) => place.node().map_err(|errno| system(change, errno)),
            None => Ok(None),
        }
    }

    /// The place of a change, if its folder is there.
    pub(crate) fn there<'c>(&self, change: &'c Change) -> Result<Option<Place<'c>>, CodedError> {
        let (folder, name) = split(&change.path);
        match self.folder(folder) {
            Ok(folder) => Ok(Some(Place { folder, name })),
            // A folder that comes with the changes is not there yet.
            Err(NotFound::Missing) => Ok(None),
            // Nor is one whose place a link has that comes or goes with them.
            Err(NotFound::Outside(_)) if self.is_at_link(folder) => Ok(None),
            Err(NotFound::Outside(_)) => Err((self.differs)(change)),
            Err(NotFound::Refused(errno)) => Err(system(change, errno)),
        }
    }

    /// Whether the way to a folder ends at a link that comes or goes with the changes. Nothing is
    /// followed: the way is gone back to the innermost folder that is one.
    fn is_at_link(&self, folder: &str) -> bool {
        let mut way = folder;
        while !way.is_empty() {
            let (above, name) = split(way);
            if let Ok(above) = self.folder(above) {
                let stat = node::stat_at(above.as_fd(), name);
                let is_link = |stat: &Stat| kind(stat) == FileType::Symlink;
                return self.links.contains(way)
                    && stat.is_ok_and(|own| own.as_ref().is_some_and(is_link));
            }
            way = above;
        }
        false
    }

    /// Opens the file that stands there now.
    pub(crate) fn old(&self, change: &Change) -> Result<File, CodedError> {
        let place = self.place(change)?;
        let failed = |errno| system(change, errno);
        let stat = place.stat().map_err(failed)?.ok_or_else(|| (self.differs)(change))?;
        node::open(place.folder.as_fd(), place.name, &stat).map_err(failed)
    }

    /// Whether the folder at a change's place holds nothing but what is known.
    pub(crate) fn holds_nothing_else(
        &self,
        change: &Change,
        known: &dyn Fn(&str) -> bool,
    ) -> Result<bool, CodedError> {
        let folder = self.folder(&change.path).map_err(|_| (self.differs)(change))?;
        let mut only = true;
        let mut see = |name: &[u8], _, _| {
            only = std::str::from_utf8(name)
                .is_ok_and(|name| self.is_ours(name) || known(&format!("{}/{name}", change.path)));
            only
        };
        entries(&folder, &mut buffer(), &mut see).map_err(|errno| system(change, errno))?;
        Ok(only)
    }

    /// Makes changes that are sorted by path, each with what stands there now. What goes away goes first
    /// and from the inside out, what comes comes from the outside in.
    ///
    /// # Errors
    /// At the first one that cannot be made; those before it are made.
    pub(crate) fn all(
        &self,
        waiting: &[(&Change, Option<FileState>)],
        source: &dyn Source,
        goes_on: GoesOn<'_>,
    ) -> Result<(), CodedError> {
        // Where it stands still: an attempt before may have come further.
        let gone = |(change, here): &&(&Change, Option<FileState>)| {
            makes_room(change) && here.is_some() && *here == change.before
        };
        for (change, _) in waiting {
            self.can_replace(change)?;
        }
        for (change, _) in waiting.iter().rev().filter(gone) {
            goes_on()?;
            self.remove(change)?;
        }
        for (change, _) in waiting {
            goes_on()?;
            self.make(change, source, goes_on)?;
        }
        Ok(())
    }

    /// Closes folders that may not be written to, once everything is in them; and the names survive a
    /// power cut.
    pub(crate) fn close(&self, changes: &[Change]) -> Result<(), CodedError> {
        for change in changes.iter().rev() {
            if let Some(FileState::Directory { mode }) = &change.after {
                self.place(change)?.set_mode(*mode).map_err(|errno| system(change, errno))?;
            }
        }
        let synced: Result<(), Errno> =
            self.folders(changes).try_for_each(|own| match rustix::fs::fsync(&own) {
                // A file system that has no such thing for folders.
                Err(errno) if is_unsupported(errno) => Ok(()),
                synced => synced,
            });
        synced.map_err(|errno| CodedError::new(Code::FileSystem, errno.to_string()))
    }

    /// The folders that changes are in, as far as they are there.
    fn folders<'c>(&'c self, changes: &'c [Change]) -> impl Iterator<Item = OwnedFd> + 'c {
        let folders: BTreeSet<&str> = changes.iter().map(|own| split(&own.path).0).collect();
        folders.into_iter().filter_map(|path| self.folder(path).ok())
    }

    fn is_ours(&self, name: &str) -> bool {
        name == self.beside || self.leftovers.iter().any(|own| own == name)
    }

    /// Removes what interrupted attempts may have left beside their targets.
    pub(crate) fn clear_leftovers(&self, changes: &[Change]) -> Result<(), CodedError> {
        let names = || self.leftovers.iter().chain([&self.beside]);
        let cleared: Result<(), Errno> = self
            .folders(changes)
            .try_for_each(|folder| names().try_for_each(|name| unlinked(&folder, name)));
        cleared.map_err(|errno| CodedError::new(Code::FileSystem, errno.to_string()))
    }

    fn clear(&self, folder: &OwnedFd) -> Result<(), Errno> {
        unlinked(folder, &self.beside)
    }

    /// What a file replaces, if it is one that stays.
    fn replaces(&self, change: &Change) -> Result<Option<Stat>, CodedError> {
        let is_file = |node: &Option<FileState>| matches!(node, Some(FileState::File { .. }));
        if !is_file(&change.before) || !is_file(&change.after) {
            return Ok(None);
        }
        let Some(place) = self.there(change)? else { return Ok(None) };
        place.stat().map_err(|errno| system(change, errno))
    }

    /// Whether a file that is replaced can keep its owner: nobody's becomes ours.
    fn can_replace(&self, change: &Change) -> Result<(), CodedError> {
        match self.replaces(change)? {
            Some(before) if !node::can_give(&before) => Err(node::not_ours(&change.path, &before)),
            _ => Ok(()),
        }
    }

    fn remove(&self, change: &Change) -> Result<(), CodedError> {
        let place = self.place(change)?;
        // Once more, as close to it as can be.
        if self.here(change)? != change.before {
            return Err((self.differs)(change));
        }
        let flags = match change.before {
            Some(FileState::Directory { .. }) => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        let removed = opened(&place.folder, || unlinkat(&place.folder, place.name, flags));
        removed.map_err(|errno| match errno {
            // Something came into it.
            Errno::NOTEMPTY | Errno::EXIST => (self.differs)(change),
            errno => system(change, errno),
        })
    }

    fn make(
        &self,
        change: &Change,
        source: &dyn Source,
        goes_on: GoesOn<'_>,
    ) -> Result<(), CodedError> {
        let Some(after) = &change.after else { return Ok(()) };
        let place = self.place(change)?;
        let failed = |errno| system(change, errno);
        match after {
            FileState::Directory { .. } => place.make_folder().map_err(failed),
            FileState::Link { target } => {
                self.clear(&place.folder).map_err(failed)?;
                let make = || symlinkat(target.as_str(), &place.folder, self.beside.as_str());
                opened(&place.folder, make).map_err(failed)?;
                self.put(change, &place)
            }
            FileState::File { sha256, mode, .. } => {
                self.clear(&place.folder).map_err(failed)?;
                let (from, times) = source.open(change)?;
                let copied = self.copy(change, &place, from, goes_on).and_then(|(to, copied)| {
                    if copied != *sha256 {
                        return Err(source.other(change));
                    }
                    if let Some(before) = self.replaces(change)? {
                        node::give(&to, &before)
                            .map_err(|_| node::not_ours(&change.path, &before))?;
                    }
                    node::set_mode(&to, Mode::from_raw_mode(mode & 0o777)).map_err(failed)?;
                    times.map_or(Ok(()), |times| futimens(&to, &times)).map_err(failed)?;
                    to.sync_all().map_err(|error| io_problem(change, &error))
                });
                copied.inspect_err(|_| {
                    // Nothing of a failed write stays; the error says what happened.
                    let _ = self.clear(&place.folder);
                })?;
                self.put(change, &place)
            }
            FileState::Special => Err((self.differs)(change)),
        }
    }

    /// Copies a file beside the place that it is for; says what was copied.
    fn copy(
        &self,
        change: &Change,
        place: &Place<'_>,
        mut from: File,
        goes_on: GoesOn<'_>,
    ) -> Result<(File, Digest), CodedError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&place.folder, self.beside.as_str(), flags, Mode::RUSR | Mode::WUSR);
        let to = opened(&place.folder, open).map_err(|errno| system(change, errno))?;
        let mut to = File::from(to);
        let mut since = 0;
        let copied = Digest::of_reader(|buffer| {
            if since >= CHUNK {
                goes_on()?;
                since = 0;
            }
            let read = from.read(buffer).map_err(|error| io_problem(change, &error))?;
            since += read;
            to.write_all(buffer.get(..read).unwrap_or_default())
                .map_err(|error| io_problem(change, &error))?;
            Ok::<_, CodedError>(read)
        })?;
        goes_on()?;
        Ok((to, copied))
    }

    /// Gives what was made beside the name that it is for. Only what was compared is replaced.
    fn put(&self, change: &Change, place: &Place<'_>) -> Result<(), CodedError> {
        let failed = |errno| system(change, errno);
        let beside = self.beside.as_str();
        let swap = || {
            opened(&place.folder, || {
                let flags = RenameFlags::EXCHANGE;
                renameat_with(&place.folder, beside, &place.folder, place.name, flags)
            })
        };
        let unmade = |problem: CodedError| {
            let _ = self.clear(&place.folder);
            Err(problem)
        };
        if change.before.is_none() || makes_room(change) {
            let take = || rename_new(&place.folder, beside.as_bytes(), place.name.as_bytes());
            return match opened(&place.folder, take) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => unmade((self.differs)(change)),
                Err(errno) => unmade(failed(errno)),
            };
        }
        let compared = match (place.stat(), self.here(change)) {
            (Ok(Some(compared)), Ok(here)) if here == change.before => compared,
            _ => return unmade((self.differs)(change)),
        };
        let is_compared = || {
            let replaced = node::stat_at(place.folder.as_fd(), beside);
            replaced.is_ok_and(|now| now.is_some_and(|now| node::is_unwritten(&now, &compared)))
        };
        let replace = || renameat(&place.folder, beside, &place.folder, place.name);
        match exchange(swap, replace, is_compared) {
            // The old file; its bytes are in the record.
            Ok(Exchanged::Beside) => self.clear(&place.folder).map_err(failed),
            Ok(Exchanged::Overwritten) => Ok(()),
            // Somebody's own, which has its name again; if it cannot have it, it stays beside it.
            Ok(Exchanged::Back) => unmade((self.differs)(change)),
            Ok(Exchanged::Stuck(errno)) => Err(failed(errno)),
            Err(errno) => unmade(failed(errno)),
        }
    }
}

/// Whether what stands there is what whoever was killed over a change may have left: nothing where something
/// has to make room, a new folder without its permissions, a folder that was opened to be worked in.
#[must_use]
pub fn is_half_done(change: &Change, here: Option<&FileState>) -> bool {
    let is_new = |mode: u32| mode & 0o777 == OPEN;
    match (&change.before, here, &change.after) {
        (_, None, Some(_)) => makes_room(change),
        (Some(FileState::Directory { mode }), Some(FileState::Directory { mode: now }), after) => {
            let is_other = !matches!(after, None | Some(FileState::Directory { .. }));
            *now == mode | OPEN || is_other && is_new(*now)
        }
        (_, Some(FileState::Directory { mode: now }), Some(FileState::Directory { .. })) => {
            is_new(*now)
        }
        _ => false,
    }
}

/// Whether something has to go before anything can come.
pub(crate) const fn makes_room(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(_), None) => true,
        (Some(FileState::Directory { .. }), Some(after)) => {
            !matches!(after, FileState::Directory { .. })
        }
        (Some(_), Some(FileState::Directory { .. })) => true,
        _ => false,
    }
}

/// Does something in a folder. One that its owner closed against writing is opened for it, as the
/// command had to do, and closed again.
pub(crate) fn opened<T>(folder: &OwnedFd, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    let done = act();
    if !matches!(done, Err(Errno::ACCESS | Errno::PERM)) {
        return done;
    }
    let mode = fstat(folder)?.st_mode & 0o7777;
    fchmod(folder, Mode::from_raw_mode(mode | OPEN))?;
    let done = act();
    fchmod(folder, Mode::from_raw_mode(mode))?;
    done
}

/// A name in a folder that is held.
pub(crate) struct Place<'c> {
    /// The folder.
    pub folder: OwnedFd,
    /// The name.
    pub name: &'c str,
}

impl Place<'_> {
    /// What the system says of it now.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, Errno> {
        node::stat_at(self.folder.as_fd(), self.name)
    }

    /// What stands there now.
    pub(crate) fn node(&self) -> Result<Option<FileState>, Errno> {
        let Some(stat) = self.stat()? else { return Ok(None) };
        node::read(self.folder.as_fd(), self.name, &stat).map(Some)
    }

    fn make_folder(&self) -> Result<(), Errno> {
        let make = || mkdirat(&self.folder, self.name, Mode::from_raw_mode(OPEN));
        match opened(&self.folder, make) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let stat = self.stat()?.ok_or(Errno::NOENT)?;
        if stat.st_mode & 0o7777 == mode {
            return Ok(());
        }
        let folder = openat(&self.folder, self.name, flags, Mode::empty())?;
        node::set_mode(&folder, Mode::from_raw_mode(mode))
    }
}

/// Removes a file of ours, if it is there.
fn unlinked(folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    match opened(folder, || unlinkat(folder, name, AtFlags::empty())) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Takes a folder's lock, if nobody has it.
pub(crate) fn lock(folder: &OwnedFd) -> bool {
    flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// An error of the system, with the path of a change.
pub(crate) fn system(change: &Change, errno: Errno) -> CodedError {
    CodedError::new(Code::FileSystem, format!("`{}`: {errno}", change.path))
}

fn io_problem(change: &Change, error: &io::Error) -> CodedError {
    system(change, Errno::from_io_error(error).unwrap_or(Errno::IO))
}
