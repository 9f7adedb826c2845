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

use crate::directory_entries::{new_buffer, read_entries};
use crate::resolve::{LookupError, Workspace};

/// The most threads of a walk; beyond, the file system's own locks are what is waited for.
const MAX_THREADS: usize = 8;
/// One entry of a folder.
pub struct WalkedEntry<'e> {
    /// The folder, open.
    pub directory: BorrowedFd<'e>,
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
pub enum WalkStep {
    /// Do not walk it.
    Skip,
    /// Walk it.
    Enter,
    /// Walk it and tell of everything in it that it is closed.
    EnterClosed,
}

/// How many folders one thread reads before others help.
const SINGLE_THREAD_DIRECTORIES: usize = 16;

/// Sees the entries of a walk. Called from several threads at once.
pub trait Visitor: Sync {
    /// Sees an entry; for a folder, says whether to walk it.
    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep;

    /// Whether to end the walk.
    fn should_stop(&self) -> bool;

    /// Sees a folder that is about to be read.
    fn directory(&self, _path: &OsStr, _folder: BorrowedFd<'_>, _closed: bool) {}

    /// Sees a folder that could not be read, or not to its end.
    fn unreadable(&self, _path: &OsStr, _closed: bool, _errno: Errno) {}
}

/// A folder to be read, and whether it is closed.
pub(crate) type PendingDirectory = (OsString, bool);

struct Queue {
    directories: Vec<PendingDirectory>,
    /// Threads that hold a folder, and so may still add some.
    busy: usize,
}

/// The folders that are still to be read.
struct WalkQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
    ended: AtomicBool,
}

impl WalkQueue {
    fn next_directory(&self) -> Option<PendingDirectory> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(folder) = queue.directories.pop() {
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

    fn finish_directory(&self, found: &mut Vec<PendingDirectory>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.busy -= 1;
        queue.directories.append(found);
        self.changed.notify_all();
    }

    /// Whether nothing is left to be read. Only one thread may be at work.
    fn is_over(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.directories.is_empty() || self.ended.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// Walks folders of the workspace and everything beneath them that the visitor wants to see. With
/// each stands whether its entries are told to be closed.
pub fn walk(workspace: &Workspace, from: Vec<PendingDirectory>, visitor: &dyn Visitor) {
    let work = WalkQueue {
        queue: Mutex::new(Queue { directories: from, busy: 0 }),
        changed: Condvar::new(),
        ended: AtomicBool::new(false),
    };
    // A small tree is walked before a thread would have begun.
    walk_worker(workspace, &work, visitor, SINGLE_THREAD_DIRECTORIES);
    if work.is_over() {
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk_worker(workspace, &work, visitor, usize::MAX));
        }
        walk_worker(workspace, &work, visitor, usize::MAX);
    });
}

/// Reads folders until there are no more, or it has read so many.
fn walk_worker(workspace: &Workspace, work: &WalkQueue, visitor: &dyn Visitor, most: usize) {
    let mut buffer = new_buffer();
    let mut found = Vec::new();
    for _ in 0..most {
        let Some((folder, closed)) = work.next_directory() else { return };
        let read = open_directory(workspace, &folder).and_then(|handle| {
            if workspace.is_folding(handle.as_fd()) {
                return Err(Errno::XDEV);
            }
            visitor.directory(&folder, handle.as_fd(), closed);
            read_directory(&handle, (&folder, closed), &mut buffer, visitor, &mut found)
        });
        if let Err(errno) = read {
            visitor.unreadable(&folder, closed, errno);
        }
        work.finish_directory(&mut found);
        if visitor.should_stop() {
            work.end();
        }
    }
}

/// Opens a folder of the workspace without following links.
///
/// # Errors
/// It cannot be opened.
pub fn open_directory(workspace: &Workspace, path: &OsStr) -> Result<OwnedFd, Errno> {
    let opened = workspace.open_plain(workspace.root(), path, OFlags::RDONLY | OFlags::DIRECTORY);
    opened.map_err(|not_found| match not_found {
        LookupError::Missing => Errno::NOENT,
        LookupError::Outside(_) => Errno::XDEV,
        LookupError::Refused(errno) => errno,
    })
}

fn read_directory(
    handle: &OwnedFd,
    (folder, closed): (&OsStr, bool),
    buffer: &mut [MaybeUninit<u8>],
    visitor: &dyn Visitor,
    found: &mut Vec<PendingDirectory>,
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
        let entry = WalkedEntry {
            directory: handle.as_fd(),
            path: OsStr::from_bytes(&path),
            name: OsStr::from_bytes(name),
            kind,
            inode,
            closed,
        };
        match visitor.entry(&entry) {
            next if kind != FileType::Directory || next == WalkStep::Skip => {}
            next => found.push((OsString::from_vec(path.clone()), next == WalkStep::EnterClosed)),
        }
        since_check += 1;
        // A folder of a million entries is left in the middle too.
        since_check % 1024 != 0 || !visitor.should_stop()
    };
    read_entries(handle, buffer, &mut see)
}
