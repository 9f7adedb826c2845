//! Walking the workspace by descriptors, with several threads.
//!
//! A folder is opened by its path beneath the root, without following any link, so nothing that is
//! renamed or swapped meanwhile can lead the walk outside. Nothing but names and metadata is read.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::workspace::{NotFound, Workspace};

/// The most threads of a walk; beyond, the file system's own locks are what is waited for.
const THREADS: usize = 8;
/// How much of a folder is read at once.
const BUFFER: usize = 32 * 1024;

/// What [`entries`] reads into; made once for many folders.
pub(crate) fn buffer() -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); BUFFER]
}

/// One entry of a folder.
pub(crate) struct Entry<'e> {
    /// The folder, open.
    pub folder: BorrowedFd<'e>,
    /// The path beneath the root.
    pub path: &'e OsStr,
    /// The name.
    pub name: &'e OsStr,
    /// What kind of thing it is.
    pub kind: FileType,
    /// Its inode, as the folder lists it.
    pub inode: u64,
    /// Whether the visitor closed a folder above it.
    pub closed: bool,
}

/// What to do with a folder. Other things are never entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Do not walk it.
    Leave,
    /// Walk it.
    Enter,
    /// Walk it and tell of everything in it that it is closed.
    EnterClosed,
}

/// How many folders one thread reads before others help.
const ALONE: usize = 16;

/// Sees the entries of a walk. Called from several threads at once.
pub(crate) trait Visitor: Sync {
    /// Sees an entry; for a folder, says whether to walk it.
    fn entry(&self, entry: &Entry<'_>) -> Next;

    /// Whether to end the walk.
    fn stop(&self) -> bool;

    /// Sees a folder that is about to be read.
    fn folder(&self, _path: &OsStr, _folder: BorrowedFd<'_>, _closed: bool) {}

    /// Sees a folder that could not be read, or not to its end.
    fn unreadable(&self, _path: &OsStr, _closed: bool, _errno: Errno) {}
}

/// A folder to be read, and whether it is closed.
pub(crate) type Waiting = (OsString, bool);

struct Queue {
    folders: Vec<Waiting>,
    /// Threads that hold a folder, and so may still add some.
    busy: usize,
}

/// The folders that are still to be read.
struct Work {
    queue: Mutex<Queue>,
    changed: Condvar,
    ended: AtomicBool,
}

impl Work {
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(folder) = queue.folders.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            if queue.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, found: &mut Vec<Waiting>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.busy -= 1;
        queue.folders.append(found);
        self.changed.notify_all();
    }

    /// Whether nothing is left to be read. Only one thread may be at work.
    fn is_over(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.folders.is_empty() || self.ended.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// Walks folders of the workspace and everything beneath them that the visitor wants to see. With
/// each stands whether its entries are told to be closed.
pub(crate) fn walk(workspace: &Workspace, from: Vec<Waiting>, visitor: &dyn Visitor) {
    let work = Work {
        queue: Mutex::new(Queue { folders: from, busy: 0 }),
        changed: Condvar::new(),
        ended: AtomicBool::new(false),
    };
    // A small tree is walked before a thread would have begun.
    worker(workspace, &work, visitor, ALONE);
    if work.is_over() {
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| worker(workspace, &work, visitor, usize::MAX));
        }
        worker(workspace, &work, visitor, usize::MAX);
    });
}

/// Reads folders until there are no more, or it has read so many.
fn worker(workspace: &Workspace, work: &Work, visitor: &dyn Visitor, most: usize) {
    let mut buffer = buffer();
    let mut found = Vec::new();
    for _ in 0..most {
        let Some((folder, closed)) = work.next() else { return };
        let read = open_folder(workspace, &folder).and_then(|handle| {
            if workspace.is_folding(handle.as_fd()) {
                return Err(Errno::XDEV);
            }
            visitor.folder(&folder, handle.as_fd(), closed);
            read_folder(&handle, (&folder, closed), &mut buffer, visitor, &mut found)
        });
        if let Err(errno) = read {
            visitor.unreadable(&folder, closed, errno);
        }
        work.done(&mut found);
        if visitor.stop() {
            work.end();
        }
    }
}

/// Opens a folder of the workspace without following links.
pub(crate) fn open_folder(workspace: &Workspace, path: &OsStr) -> Result<OwnedFd, Errno> {
    let opened = workspace.open_plain(workspace.root(), path, OFlags::RDONLY | OFlags::DIRECTORY);
    opened.map_err(|not_found| match not_found {
        NotFound::Missing => Errno::NOENT,
        NotFound::Outside(_) => Errno::XDEV,
        NotFound::Refused(errno) => errno,
    })
}

fn read_folder(
    handle: &OwnedFd,
    (folder, closed): (&OsStr, bool),
    buffer: &mut [MaybeUninit<u8>],
    visitor: &dyn Visitor,
    found: &mut Vec<Waiting>,
) -> Result<(), Errno> {
    let mut path = folder.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    let base = path.len();
    let mut since_check = 0;
    let mut see = |name: &[u8], kind: FileType, inode: u64| {
        path.truncate(base);
        path.extend_from_slice(name);
        let entry = Entry {
            folder: handle.as_fd(),
            path: OsStr::from_bytes(&path),
            name: OsStr::from_bytes(name),
            kind,
            inode,
            closed,
        };
        match visitor.entry(&entry) {
            next if kind != FileType::Directory || next == Next::Leave => {}
            next => found.push((OsString::from_vec(path.clone()), next == Next::EnterClosed)),
        }
        since_check += 1;
        // A folder of a million entries is left in the middle too.
        since_check % 1024 != 0 || !visitor.stop()
    };
    entries(handle, buffer, &mut see)
}

/// Sees a name, a kind and an inode; says whether to go on.
type See<'s> = dyn FnMut(&[u8], FileType, u64) -> bool + 's;

/// Reads the entries of a folder until the visitor has seen enough.
///
/// # Errors
/// When the folder cannot be read to its end.
#[cfg(target_os = "linux")]
pub(crate) fn entries(
    handle: &OwnedFd,
    buffer: &mut [MaybeUninit<u8>],
    see: &mut See<'_>,
) -> Result<(), Errno> {
    let mut raw = rustix::fs::RawDir::new(handle, buffer);
    while let Some(entry) = raw.next() {
        let entry = entry?;
        if !one(handle, entry.file_name().to_bytes(), entry.file_type(), entry.ino(), see) {
            break;
        }
    }
    Ok(())
}

/// Reads the entries of a folder until the visitor has seen enough.
///
/// # Errors
/// When the folder cannot be read to its end.
#[cfg(not(target_os = "linux"))]
pub(crate) fn entries(
    handle: &OwnedFd,
    _: &mut [MaybeUninit<u8>],
    see: &mut See<'_>,
) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(handle)? {
        let entry = entry?;
        if !one(handle, entry.file_name().to_bytes(), entry.file_type(), entry.ino(), see) {
            break;
        }
    }
    Ok(())
}

/// Sees one entry; says whether to go on.
fn one(folder: &OwnedFd, name: &[u8], listed: FileType, inode: u64, see: &mut See<'_>) -> bool {
    if matches!(name, b"." | b"..") {
        return true;
    }
    let kind = match listed {
        FileType::Unknown => kind_of(folder, name),
        known => known,
    };
    see(name, kind, inode)
}

fn kind_of(folder: &OwnedFd, name: &[u8]) -> FileType {
    rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}
