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

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timestamps, flock, futimens,
    openat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::change::atomic_exchange::{ExchangeResult, exchange};
use crate::change::rename::rename_new;
use crate::change_path::{
    ChangePath, NEW_DIRECTORY_MODE, split_parent, unlink_if_there, with_writable_directory,
};
use crate::directory_entries::{new_buffer, read_entries};
use crate::node;
use crate::node::is_unsupported;
use crate::resolve::{LookupError, Workspace, file_type};
use crate::system::Stat;

/// How a folder is opened to be read.
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// How much is copied before it is asked whether to go on.
const COPY_CHUNK: usize = 256 * 1024;

/// Where the files come from that changes bring.
pub(crate) trait ChangeSource {
    /// Opens what a change brings, to be read; with its dates, if it is to have them.
    ///
    /// # Errors
    /// It is not to be had.
    fn open(&self, change: &Change) -> Result<(File, Option<Timestamps>), CodedError>;

    /// What is said of a file whose bytes are not those that were recorded.
    fn mismatch_problem(&self, change: &Change) -> CodedError;
}

/// Says whether to go on: it is not too late, and nobody cancelled it.
pub(crate) type ContinueCheck<'g> = &'g dyn Fn() -> Result<(), CodedError>;

/// Makes changes.
pub(crate) struct ChangeApplier {
    /// The workspace.
    pub workspace: Rc<Workspace>,
    /// What its own unfinished files are called: nobody else's are, since a run's id is random.
    pub temporary_name: String,
    /// What those of others are called who began before and were killed.
    pub leftover_names: Vec<String>,
    /// Where the changes put a link, or take one away: see [`link_paths`].
    pub link_paths: BTreeSet<String>,
    /// What is said of a path that is not what it was compared with.
    pub conflict_problem: fn(&Change) -> CodedError,
}

/// How large the file is that a change replaces or removes, if it is a file.
pub const fn replaced_size(change: &Change) -> Option<u64> {
    match &change.before {
        Some(FileState::File { bytes, .. }) => Some(*bytes),
        _ => None,
    }
}

/// The paths at which changes put a link or take one away. What such a change compares is the link; beneath
/// it there is nothing until a folder takes its place, whatever the link leads to.
pub(crate) fn link_paths(changes: &[Change]) -> BTreeSet<String> {
    let is_link = |node: &Option<FileState>| matches!(node, Some(FileState::Link { .. }));
    let item = changes.iter().filter(|change| is_link(&change.before) || is_link(&change.after));
    item.map(|change| change.path.clone()).collect()
}

impl ChangeApplier {
    /// Opens a folder without following any link.
    pub(crate) fn open_directory(&self, path: &str) -> Result<OwnedFd, LookupError> {
        self.workspace.open_plain(self.workspace.root(), OsStr::new(path), DIRECTORY_FLAGS)
    }

    /// Keeps all others from making changes in the same workspace until what it gives is dropped.
    pub(crate) fn lock_workspace(&self) -> Option<OwnedFd> {
        self.open_directory("").ok().filter(try_lock)
    }

    /// The place of a change, in its folder.
    pub(crate) fn open_change_path<'c>(
        &self,
        change: &'c Change,
    ) -> Result<ChangePath<'c>, CodedError> {
        let (folder, name) = split_parent(&change.path);
        match self.open_directory(folder) {
            Ok(folder) => Ok(ChangePath { parent: folder, name }),
            Err(_) => Err((self.conflict_problem)(change)),
        }
    }

    /// What stands there now.
    pub(crate) fn current_node(&self, change: &Change) -> Result<Option<FileState>, CodedError> {
        match self.find_change_path(change)? {
            Some(place) => place.node().map_err(|errno| system_problem(change, errno)),
            None => Ok(None),
        }
    }

    /// The place of a change, if its folder is there.
    pub(crate) fn find_change_path<'c>(
        &self,
        change: &'c Change,
    ) -> Result<Option<ChangePath<'c>>, CodedError> {
        let (folder, name) = split_parent(&change.path);
        match self.open_directory(folder) {
            Ok(folder) => Ok(Some(ChangePath { parent: folder, name })),
            // A folder that comes with the changes is not there yet.
            Err(LookupError::Missing) => Ok(None),
            // Nor is one whose place a link has that comes or goes with them.
            Err(LookupError::Outside(_)) if self.ends_at_changed_link(folder) => Ok(None),
            Err(LookupError::Outside(_)) => Err((self.conflict_problem)(change)),
            Err(LookupError::Refused(errno)) => Err(system_problem(change, errno)),
        }
    }

    /// Whether the way to a folder ends at a link that comes or goes with the changes. Nothing is
    /// followed: the way is gone back to the innermost folder that is one.
    fn ends_at_changed_link(&self, folder: &str) -> bool {
        let mut way = folder;
        while !way.is_empty() {
            let (above, name) = split_parent(way);
            if let Ok(above) = self.open_directory(above) {
                let stat = node::stat_optional(above.as_fd(), name);
                let is_link = |stat: &Stat| file_type(stat) == FileType::Symlink;
                return self.link_paths.contains(way)
                    && stat.is_ok_and(|stat| stat.as_ref().is_some_and(is_link));
            }
            way = above;
        }
        false
    }

    /// Opens the file that stands there now.
    pub(crate) fn open_current(&self, change: &Change) -> Result<File, CodedError> {
        let place = self.open_change_path(change)?;
        let failed = |errno| system_problem(change, errno);
        let stat = place.stat().map_err(failed)?.ok_or_else(|| (self.conflict_problem)(change))?;
        node::open_regular(place.parent.as_fd(), place.name, &stat).map_err(failed)
    }

    /// Whether the folder at a change's place holds nothing but what is known.
    pub(crate) fn holds_only(
        &self,
        change: &Change,
        known: &dyn Fn(&str) -> bool,
    ) -> Result<bool, CodedError> {
        let folder =
            self.open_directory(&change.path).map_err(|_| (self.conflict_problem)(change))?;
        let mut only = true;
        let mut see = |name: &[u8], _, _| {
            only = std::str::from_utf8(name).is_ok_and(|name| {
                self.is_temporary(name) || known(&format!("{}/{name}", change.path))
            });
            only
        };
        read_entries(&folder, &mut new_buffer(), &mut see)
            .map_err(|errno| system_problem(change, errno))?;
        Ok(only)
    }

    /// Makes changes that are sorted by path, each with what stands there now. What goes away goes first
    /// and from the inside out, what comes comes from the outside in.
    ///
    /// # Errors
    /// At the first one that cannot be made; those before it are made.
    pub(crate) fn apply_all(
        &self,
        waiting: &[(&Change, Option<FileState>)],
        source: &dyn ChangeSource,
        goes_on: ContinueCheck<'_>,
    ) -> Result<(), CodedError> {
        // Where it stands still: an attempt before may have come further.
        let gone = |(change, here): &&(&Change, Option<FileState>)| {
            replaces_other_kind(change) && here.is_some() && *here == change.before
        };
        for (change, _) in waiting {
            self.require_replaceable(change)?;
        }
        for (change, _) in waiting.iter().rev().filter(gone) {
            goes_on()?;
            self.remove_path(change)?;
        }
        for (change, _) in waiting {
            goes_on()?;
            self.apply(change, source, goes_on)?;
        }
        Ok(())
    }

    /// Closes folders that may not be written to, once everything is in them; and the names survive a
    /// power cut.
    pub(crate) fn close_directories(&self, changes: &[Change]) -> Result<(), CodedError> {
        for change in changes.iter().rev() {
            if let Some(FileState::Directory { mode }) = &change.after {
                self.open_change_path(change)?
                    .set_mode(*mode)
                    .map_err(|errno| system_problem(change, errno))?;
            }
        }
        let synced: Result<(), Errno> = self.directories(changes).try_for_each(|directory| {
            match rustix::fs::fsync(&directory) {
                // A file system that has no such thing for folders.
                Err(errno) if is_unsupported(errno) => Ok(()),
                synced => synced,
            }
        });
        synced.map_err(|errno| CodedError::new(Code::FileSystem, errno.to_string()))
    }

    /// The folders that changes are in, as far as they are there.
    fn directories<'c>(&'c self, changes: &'c [Change]) -> impl Iterator<Item = OwnedFd> + 'c {
        let folders: BTreeSet<&str> =
            changes.iter().map(|change| split_parent(&change.path).0).collect();
        folders.into_iter().filter_map(|path| self.open_directory(path).ok())
    }

    fn is_temporary(&self, name: &str) -> bool {
        name == self.temporary_name || self.leftover_names.iter().any(|text| text == name)
    }

    /// Removes what interrupted attempts may have left beside their targets.
    pub(crate) fn clear_leftovers(&self, changes: &[Change]) -> Result<(), CodedError> {
        let names = || self.leftover_names.iter().chain([&self.temporary_name]);
        let cleared: Result<(), Errno> = self
            .directories(changes)
            .try_for_each(|folder| names().try_for_each(|name| unlink_if_there(&folder, name)));
        cleared.map_err(|errno| CodedError::new(Code::FileSystem, errno.to_string()))
    }

    fn clear_directory(&self, folder: &OwnedFd) -> Result<(), Errno> {
        unlink_if_there(folder, &self.temporary_name)
    }

    /// What a file replaces, if it is one that stays.
    fn replaced_file(&self, change: &Change) -> Result<Option<Stat>, CodedError> {
        let is_file = |node: &Option<FileState>| matches!(node, Some(FileState::File { .. }));
        if !is_file(&change.before) || !is_file(&change.after) {
            return Ok(None);
        }
        let Some(place) = self.find_change_path(change)? else { return Ok(None) };
        place.stat().map_err(|errno| system_problem(change, errno))
    }

    /// Whether a file that is replaced can keep its owner: nobody's becomes ours.
    fn require_replaceable(&self, change: &Change) -> Result<(), CodedError> {
        match self.replaced_file(change)? {
            Some(before) if !node::can_copy_owner(&before) => {
                Err(node::not_ours_problem(&change.path, &before))
            }
            _ => Ok(()),
        }
    }

    fn remove_path(&self, change: &Change) -> Result<(), CodedError> {
        let place = self.open_change_path(change)?;
        // Once more, as close to it as can be.
        if self.current_node(change)? != change.before {
            return Err((self.conflict_problem)(change));
        }
        let flags = match change.before {
            Some(FileState::Directory { .. }) => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        let removed =
            with_writable_directory(&place.parent, || unlinkat(&place.parent, place.name, flags));
        removed.map_err(|errno| match errno {
            // Something came into it.
            Errno::NOTEMPTY | Errno::EXIST => (self.conflict_problem)(change),
            errno => system_problem(change, errno),
        })
    }

    fn apply(
        &self,
        change: &Change,
        source: &dyn ChangeSource,
        goes_on: ContinueCheck<'_>,
    ) -> Result<(), CodedError> {
        let Some(after) = &change.after else { return Ok(()) };
        let place = self.open_change_path(change)?;
        let failed = |errno| system_problem(change, errno);
        match after {
            FileState::Directory { .. } => place.make_directory().map_err(failed),
            FileState::Link { target } => {
                self.clear_directory(&place.parent).map_err(failed)?;
                let make =
                    || symlinkat(target.as_str(), &place.parent, self.temporary_name.as_str());
                with_writable_directory(&place.parent, make).map_err(failed)?;
                self.move_into_place(change, &place)
            }
            FileState::File { sha256, mode, .. } => {
                self.clear_directory(&place.parent).map_err(failed)?;
                let (from, times) = source.open(change)?;
                let copied =
                    self.copy_beside(change, &place, from, goes_on).and_then(|(to, copied)| {
                        if copied != *sha256 {
                            return Err(source.mismatch_problem(change));
                        }
                        if let Some(before) = self.replaced_file(change)? {
                            node::copy_owner(&to, &before)
                                .map_err(|_| node::not_ours_problem(&change.path, &before))?;
                        }
                        node::set_mode(&to, crate::system::mode(mode & 0o777)).map_err(failed)?;
                        times.map_or(Ok(()), |times| futimens(&to, &times)).map_err(failed)?;
                        to.sync_all().map_err(|error| io_problem(change, &error))
                    });
                copied.inspect_err(|_| {
                    // Nothing of a failed write stays; the error says what happened.
                    let _ = self.clear_directory(&place.parent);
                })?;
                self.move_into_place(change, &place)
            }
            FileState::Special => Err((self.conflict_problem)(change)),
        }
    }

    /// Copies a file beside the place that it is for; says what was copied.
    fn copy_beside(
        &self,
        change: &Change,
        place: &ChangePath<'_>,
        mut from: File,
        goes_on: ContinueCheck<'_>,
    ) -> Result<(File, Digest), CodedError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open =
            || openat(&place.parent, self.temporary_name.as_str(), flags, Mode::RUSR | Mode::WUSR);
        let to = with_writable_directory(&place.parent, open)
            .map_err(|errno| system_problem(change, errno))?;
        let mut to = File::from(to);
        let mut since = 0;
        let copied = Digest::of_reader(|buffer| {
            if since >= COPY_CHUNK {
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
    fn move_into_place(&self, change: &Change, place: &ChangePath<'_>) -> Result<(), CodedError> {
        let failed = |errno| system_problem(change, errno);
        let beside = self.temporary_name.as_str();
        let swap = || {
            with_writable_directory(&place.parent, || {
                let flags = RenameFlags::EXCHANGE;
                renameat_with(&place.parent, beside, &place.parent, place.name, flags)
            })
        };
        let unmade = |problem: CodedError| {
            let _ = self.clear_directory(&place.parent);
            Err(problem)
        };
        if change.before.is_none() || replaces_other_kind(change) {
            let take = || rename_new(&place.parent, beside.as_bytes(), place.name.as_bytes());
            return match with_writable_directory(&place.parent, take) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => unmade((self.conflict_problem)(change)),
                Err(errno) => unmade(failed(errno)),
            };
        }
        let compared = match (place.stat(), self.current_node(change)) {
            (Ok(Some(compared)), Ok(here)) if here == change.before => compared,
            _ => return unmade((self.conflict_problem)(change)),
        };
        let is_compared = || {
            let replaced = node::stat_optional(place.parent.as_fd(), beside);
            replaced.is_ok_and(|now| now.is_some_and(|now| node::is_unwritten(&now, &compared)))
        };
        let replace = || renameat(&place.parent, beside, &place.parent, place.name);
        match exchange(swap, replace, is_compared) {
            // The old file; its bytes are in the record.
            Ok(ExchangeResult::Swapped) => self.clear_directory(&place.parent).map_err(failed),
            Ok(ExchangeResult::Overwritten) => Ok(()),
            // Somebody's own, which has its name again; if it cannot have it, it stays beside it.
            Ok(ExchangeResult::Restored) => unmade((self.conflict_problem)(change)),
            Ok(ExchangeResult::Stuck(errno)) => Err(failed(errno)),
            Err(errno) => unmade(failed(errno)),
        }
    }
}

/// Whether what stands there is what whoever was killed over a change may have left: nothing where something
/// has to make room, a new folder without its permissions, a folder that was opened to be worked in.
#[must_use]
pub fn is_half_applied(change: &Change, here: Option<&FileState>) -> bool {
    let is_new = |mode: u32| mode & 0o777 == NEW_DIRECTORY_MODE;
    match (&change.before, here, &change.after) {
        (_, None, Some(_)) => replaces_other_kind(change),
        (Some(FileState::Directory { mode }), Some(FileState::Directory { mode: now }), after) => {
            let is_other = !matches!(after, None | Some(FileState::Directory { .. }));
            *now == mode | NEW_DIRECTORY_MODE || is_other && is_new(*now)
        }
        (_, Some(FileState::Directory { mode: now }), Some(FileState::Directory { .. })) => {
            is_new(*now)
        }
        _ => false,
    }
}

/// Whether something has to go before anything can come.
pub(crate) const fn replaces_other_kind(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(_), None) => true,
        (Some(FileState::Directory { .. }), Some(after)) => {
            !matches!(after, FileState::Directory { .. })
        }
        (Some(_), Some(FileState::Directory { .. })) => true,
        _ => false,
    }
}

/// Takes a folder's lock, if nobody has it.
pub(crate) fn try_lock(folder: &OwnedFd) -> bool {
    flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// An error of the system, with the path of a change.
pub(crate) fn system_problem(change: &Change, errno: Errno) -> CodedError {
    CodedError::new(Code::FileSystem, format!("`{}`: {errno}", change.path))
}

fn io_problem(change: &Change, error: &io::Error) -> CodedError {
    system_problem(change, Errno::from_io_error(error).unwrap_or(Errno::IO))
}
