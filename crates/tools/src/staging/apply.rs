//! Applies staged changes to the workspace: all of them are compared before the first is made, each is
//! made whole or not at all, and what they replace is in the undo record first. Whoever is interrupted
//! can begin again: what was applied already is known by its content.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use capsule_core::change::{Change, Node};
use capsule_core::code::Code;
use capsule_core::digest::Digest;
use capsule_core::json;
use capsule_core::limits;
use capsule_core::outcome::{Output, Problem};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock, fstat, futimens,
    mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde_json::json;

use super::judge::OURS;
use super::{Staging, node, split};
use crate::tool::Cancel;
use crate::workspace::{Exchanged, NotFound, exchange};

/// The permissions of a new folder until everything is in it.
const OPEN: u32 = 0o700;
const AGAIN: &str = "apply them again: it goes on where it stopped";
/// How much is copied before the time is looked at.
const CHUNK: usize = 256 * 1024;

/// Changes that are to be applied.
pub(crate) struct Applying {
    staging: Rc<Staging>,
    run: String,
    changes: Vec<Change>,
    /// Whether somebody began to before, so that a change may be half done.
    again: bool,
    cancel: Cancel,
    /// What our own unfinished files are called: nobody else's are, since a run's id is random.
    beside: String,
    /// Nobody drops them, and nobody applies others to the same workspace meanwhile.
    _locks: [OwnedFd; 2],
}

/// The name under which something stands beside its target until it takes that one's place.
pub(super) fn beside(run: &str) -> String {
    format!("{OURS}{run}.tmp")
}

impl Applying {
    /// # Errors
    /// [`Code::ChangeConflict`] while somebody else applies something to the same workspace.
    pub(crate) fn new(
        staging: Rc<Staging>,
        (run, changes): (String, Vec<Change>),
        again: bool,
        cancel: Cancel,
    ) -> Result<Self, Problem> {
        let lock = |folder: Result<OwnedFd, NotFound>| -> Result<OwnedFd, Problem> {
            let folder = folder.map_err(|_| conflict("a folder cannot be opened".into()))?;
            flock(&folder, FlockOperation::NonBlockingLockExclusive)
                .map_err(|_| conflict("somebody else applies or drops changes here".into()))?;
            Ok(folder)
        };
        let locks = [lock(staging.upper_folder(""))?, lock(staging.lower_folder(""))?];
        let beside = beside(&run);
        Ok(Self { staging, run, changes, again, cancel, beside, _locks: locks })
    }

    /// The undo record: a line of JSON that says what stood where, and behind it the bytes of the
    /// files, one after the other.
    ///
    /// # Errors
    /// [`Code::ChangeConflict`] where the workspace or the staged files are not what the record
    /// says; [`Code::FileUndoTooLarge`] where more would be replaced than is kept.
    pub(crate) fn preserve(&self) -> Result<Vec<u8>, Problem> {
        let (mut paths, mut bytes) = (Vec::new(), Vec::new());
        for change in &self.changes {
            let before = self.here(change)?;
            if before == change.after {
                continue;
            }
            if let Some(why) = self.staging.odd(change) {
                let message = format!("`{}`: {why}", change.path);
                return Err(Problem::new(Code::ChangeRefused, message));
            }
            self.is_as_recorded(change, before.as_ref())?;
            if let Some(Node::File { sha256, .. }) = &before {
                let kept = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let old = self.old(change, limits::UNDO_BYTES.saturating_sub(kept))?;
                if Digest::of(&old) != *sha256 {
                    return Err(differs(change));
                }
                bytes.extend_from_slice(&old);
            }
            paths.push(json!({ "path": change.path, "before": before }));
        }
        let head = json!({ "v": 1, "run": self.run, "changes": paths, "bytes": bytes.len() });
        let mut record = json::canonical(&head);
        record.push(b'\n');
        record.append(&mut bytes);
        Ok(record)
    }

    fn old(&self, change: &Change, most: u64) -> Result<Vec<u8>, Problem> {
        let place = self.place(change)?;
        let failed = |errno| system(change, errno);
        let stat = place.stat().map_err(failed)?.ok_or_else(|| differs(change))?;
        let file = node::open(place.folder.as_fd(), place.name, &stat).map_err(failed)?;
        let mut old = Vec::new();
        file.take(most + 1).read_to_end(&mut old).map_err(|error| io_problem(change, &error))?;
        if u64::try_from(old.len()).unwrap_or(u64::MAX) > most {
            let most = capsule_core::units::show_size(limits::UNDO_BYTES);
            let message = format!("more than {most} would be replaced, and so much is not kept");
            return Err(Problem::new(Code::FileUndoTooLarge, message));
        }
        Ok(old)
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// At the first one that cannot be made; those before it are made.
    pub(crate) fn apply(&self, deadline: Instant) -> Result<Output, Problem> {
        self.clear_leftovers()?;
        let mut waiting = Vec::new();
        for change in &self.changes {
            let here = self.here(change)?;
            if here != change.after {
                self.is_as_recorded(change, here.as_ref())?;
                waiting.push((change, here));
            }
        }
        let before = self.changes.len() - waiting.len();
        // What goes away goes first and from the inside out, what comes comes from the outside in.
        // Where it stands still: an attempt before may have come further.
        let gone = |(change, here): &&(&Change, Option<Node>)| {
            makes_room(change) && here.is_some() && *here == change.before
        };
        for (change, _) in waiting.iter().rev().filter(gone) {
            self.goes_on(deadline)?;
            self.remove(change)?;
        }
        for (change, _) in &waiting {
            self.goes_on(deadline)?;
            self.make(change, deadline)?;
        }
        // A folder that may not be written to is closed once everything is in it.
        for change in self.changes.iter().rev() {
            if let Some(Node::Folder { mode }) = &change.after {
                self.place(change)?.set_mode(*mode).map_err(|errno| system(change, errno))?;
            }
        }
        self.sync_folders()?;
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Ok(Output::default()
            .with("run", self.run.clone())
            .with("applied", count(waiting.len()))
            .with("applied_before", count(before)))
    }

    /// The folders that the changes are in, as far as they are there.
    fn folders(&self) -> impl Iterator<Item = OwnedFd> + '_ {
        let folders: BTreeSet<&str> = self.changes.iter().map(|own| split(&own.path).0).collect();
        folders.into_iter().filter_map(|path| self.staging.lower_folder(path).ok())
    }

    /// Removes what an interrupted attempt may have left beside its target.
    fn clear_leftovers(&self) -> Result<(), Problem> {
        let cleared: Result<(), Errno> = self.folders().try_for_each(|folder| self.clear(&folder));
        cleared.map_err(|errno| Problem::new(Code::FileSystem, errno.to_string()))
    }

    fn clear(&self, folder: &OwnedFd) -> Result<(), Errno> {
        match opened(folder, || unlinkat(folder, self.beside.as_str(), AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// The names survive a power cut, before what they were made from is dropped.
    fn sync_folders(&self) -> Result<(), Problem> {
        let synced: Result<(), Errno> = self.folders().try_for_each(|own| rustix::fs::fsync(&own));
        synced.map_err(|errno| Problem::new(Code::FileSystem, errno.to_string()))
    }

    fn goes_on(&self, deadline: Instant) -> Result<(), Problem> {
        if self.cancel.is_set() {
            let problem = Problem::new(Code::ExecCancelled, "not all changes were applied");
            return Err(problem.suggest(AGAIN));
        }
        in_time(deadline)
    }

    fn place<'c>(&self, change: &'c Change) -> Result<Place<'c>, Problem> {
        let (folder, name) = split(&change.path);
        match self.staging.lower_folder(folder) {
            Ok(folder) => Ok(Place { folder, name }),
            Err(_) => Err(differs(change)),
        }
    }

    /// What stands in the workspace now.
    fn here(&self, change: &Change) -> Result<Option<Node>, Problem> {
        let (folder, name) = split(&change.path);
        let folder = match self.staging.lower_folder(folder) {
            Ok(folder) => folder,
            // A folder that comes with the changes is not there yet.
            Err(NotFound::Missing) => return Ok(None),
            Err(NotFound::Outside(_)) => return Err(differs(change)),
            Err(NotFound::Refused(errno)) => return Err(system(change, errno)),
        };
        Place { folder, name }.node().map_err(|errno| system(change, errno))
    }

    /// Whether what stands in the workspace, and the staged file, are what the record says.
    fn is_as_recorded(&self, change: &Change, here: Option<&Node>) -> Result<(), Problem> {
        let half_done = self.again && is_half_done(change, here);
        if here != change.before.as_ref() && !half_done {
            return Err(differs(change));
        }
        let is_folder = matches!(here, Some(Node::Folder { .. }));
        if is_folder && (makes_room(change) || change.before.is_none()) {
            self.holds_nothing_else(change)?;
        }
        let Some(after) = &change.after else { return Ok(()) };
        let staged = self.staged(change)?.node().map_err(|errno| system(change, errno))?;
        match staged.as_ref() == Some(after) {
            true => Ok(()),
            false => Err(conflict(format!("`{}` was staged as something else", change.path))),
        }
    }

    fn holds_nothing_else(&self, change: &Change) -> Result<(), Problem> {
        let folder = self.staging.lower_folder(&change.path);
        let folder = folder.map_err(|_| differs(change))?;
        let names = super::scan::entries(&folder).map_err(|errno| system(change, errno))?;
        for name in names {
            let known = name.into_string().is_ok_and(|name| {
                if name == self.beside {
                    return true;
                }
                let path = super::join(&change.path, &name);
                self.changes.binary_search_by(|own| own.path.as_str().cmp(&path)).is_ok()
            });
            if !known {
                return Err(conflict(format!("`{}` holds something new", change.path)));
            }
        }
        Ok(())
    }

    fn staged<'c>(&self, change: &'c Change) -> Result<Place<'c>, Problem> {
        let (folder, name) = split(&change.path);
        match self.staging.upper_folder(folder) {
            Ok(folder) => Ok(Place { folder, name }),
            Err(_) => Err(conflict(format!("what was staged for `{}` is gone", change.path))),
        }
    }

    fn remove(&self, change: &Change) -> Result<(), Problem> {
        let place = self.place(change)?;
        // Once more, as close to it as can be.
        if self.here(change)? != change.before {
            return Err(differs(change));
        }
        let flags = match change.before {
            Some(Node::Folder { .. }) => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        let removed = opened(&place.folder, || unlinkat(&place.folder, place.name, flags));
        removed.map_err(|errno| system(change, errno))
    }

    fn make(&self, change: &Change, deadline: Instant) -> Result<(), Problem> {
        let Some(after) = &change.after else { return Ok(()) };
        let place = self.place(change)?;
        let failed = |errno| system(change, errno);
        match after {
            Node::Folder { .. } => place.make_folder().map_err(failed),
            Node::Link { target } => {
                self.clear(&place.folder).map_err(failed)?;
                let make = || symlinkat(target.as_str(), &place.folder, self.beside.as_str());
                opened(&place.folder, make).map_err(failed)?;
                self.put(change, &place)
            }
            Node::File { sha256, mode, .. } => {
                self.clear(&place.folder).map_err(failed)?;
                self.copy(change, &place, (*sha256, *mode), deadline).inspect_err(|_| {
                    // Nothing of a failed write stays; the error says what happened.
                    let _ = self.clear(&place.folder);
                })?;
                self.put(change, &place)
            }
            Node::Special => Err(differs(change)),
        }
    }

    /// Copies a staged file beside its place, and makes sure that it is what the record says.
    fn copy(
        &self,
        change: &Change,
        place: &Place<'_>,
        (sha256, mode): (Digest, u32),
        deadline: Instant,
    ) -> Result<(), Problem> {
        let failed = |errno| system(change, errno);
        let staged = self.staged(change)?;
        let stat = staged.stat().map_err(failed)?.ok_or_else(|| differs(change))?;
        let mut from = node::open(staged.folder.as_fd(), staged.name, &stat).map_err(failed)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&place.folder, self.beside.as_str(), flags, Mode::RUSR | Mode::WUSR);
        let to = opened(&place.folder, open).map_err(failed)?;
        let mut to = File::from(to);
        let mut late = false;
        let copied = Digest::of_all(|buffer| {
            late |= Instant::now() > deadline;
            let most = buffer.len().min(CHUNK);
            let read = match late {
                true => 0,
                false => from.read(buffer.get_mut(..most).unwrap_or_default())?,
            };
            to.write_all(buffer.get(..read).unwrap_or_default())?;
            Ok::<_, io::Error>(read)
        });
        let copied = copied.map_err(|error| io_problem(change, &error))?;
        in_time(deadline)?;
        if copied != sha256 {
            return Err(conflict(format!("`{}` was staged as something else", change.path)));
        }
        fchmod(&to, Mode::from_raw_mode(mode & 0o777)).map_err(failed)?;
        futimens(&to, &node::times(&stat)).map_err(failed)?;
        to.sync_all().map_err(|error| io_problem(change, &error))
    }

    /// Gives what was made beside the name that it is for. Only what was compared is replaced.
    fn put(&self, change: &Change, place: &Place<'_>) -> Result<(), Problem> {
        let failed = |errno| system(change, errno);
        let beside = self.beside.as_str();
        let rename = |flags| {
            opened(&place.folder, || {
                renameat_with(&place.folder, beside, &place.folder, place.name, flags)
            })
        };
        let unmade = |problem: Problem| {
            let _ = self.clear(&place.folder);
            Err(problem)
        };
        if change.before.is_none() || makes_room(change) {
            return match rename(RenameFlags::NOREPLACE) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => unmade(differs(change)),
                Err(errno) => unmade(failed(errno)),
            };
        }
        let compared = match (place.stat(), self.here(change)) {
            (Ok(Some(compared)), Ok(here)) if here == change.before => compared,
            _ => return unmade(differs(change)),
        };
        let is_compared = || {
            let replaced = node::stat_at(place.folder.as_fd(), beside);
            replaced.is_ok_and(|now| now.is_some_and(|now| is_unwritten(&now, &compared)))
        };
        let replace = || renameat(&place.folder, beside, &place.folder, place.name);
        match exchange(|| rename(RenameFlags::EXCHANGE), replace, is_compared) {
            // The old file; its bytes are in the record.
            Ok(Exchanged::Beside) => self.clear(&place.folder).map_err(failed),
            Ok(Exchanged::Overwritten) => Ok(()),
            // Somebody's own, which has its name again; if it cannot have it, it stays beside it.
            Ok(Exchanged::Back) => unmade(differs(change)),
            Ok(Exchanged::Stuck(errno)) => Err(failed(errno)),
            Err(errno) => unmade(failed(errno)),
        }
    }
}

/// Whether what stands there is what an interrupted attempt may have left: nothing where something has
/// to make room, a new folder without its permissions, a folder that was opened to be worked in.
fn is_half_done(change: &Change, here: Option<&Node>) -> bool {
    match (&change.before, here, &change.after) {
        (_, None, Some(_)) => makes_room(change),
        (Some(Node::Folder { mode }), Some(Node::Folder { mode: now }), _) => *now == mode | OPEN,
        (_, Some(Node::Folder { mode: now }), Some(Node::Folder { .. })) => now & 0o777 == OPEN,
        _ => false,
    }
}

/// Whether something has to go before anything can come.
const fn makes_room(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(_), None) => true,
        (Some(Node::Folder { .. }), Some(after)) => !matches!(after, Node::Folder { .. }),
        (Some(_), Some(Node::Folder { .. })) => true,
        _ => false,
    }
}

/// Does something in a folder. One that its owner closed against writing is opened for it, as the
/// command had to do, and closed again.
pub(super) fn opened<T>(folder: &OwnedFd, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
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
struct Place<'c> {
    folder: OwnedFd,
    name: &'c str,
}

impl Place<'_> {
    fn stat(&self) -> Result<Option<Stat>, Errno> {
        node::stat_at(self.folder.as_fd(), self.name)
    }

    fn node(&self) -> Result<Option<Node>, Errno> {
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
        fchmod(&folder, Mode::from_raw_mode(mode))
    }
}

/// Whether it is the same file, and nobody wrote to it in between.
fn is_unwritten(now: &Stat, then: &Stat) -> bool {
    let looks = |stat: &Stat| {
        (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
    };
    looks(now) == looks(then)
}

fn in_time(deadline: Instant) -> Result<(), Problem> {
    if Instant::now() <= deadline {
        return Ok(());
    }
    Err(Problem::new(Code::FileSystem, "the changes could not be applied in time").suggest(AGAIN))
}

fn conflict(message: String) -> Problem {
    Problem::new(Code::ChangeConflict, message)
}

fn differs(change: &Change) -> Problem {
    conflict(format!("`{}` is not what it was when the command ran", change.path))
}

fn system(change: &Change, errno: Errno) -> Problem {
    Problem::new(Code::FileSystem, format!("`{}`: {errno}", change.path))
}

fn io_problem(change: &Change, error: &io::Error) -> Problem {
    system(change, Errno::from_io_error(error).unwrap_or(Errno::IO))
}
