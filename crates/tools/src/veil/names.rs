//! The names of a file that rules close, whatever name it was asked for by.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::folder::Identity;
use super::{Conceals, everything, told};
use crate::walk::{Entry, Next, Visitor, walk};
use crate::workspace::Workspace;

/// The closed names of the file that has this identity, in order. Every file in a closed place is asked
/// for its own, since the number that a folder lists may be another one. None where a folder cannot be listed:
/// nobody knows which names are in it.
pub(super) fn closed(
    workspace: &Workspace,
    closes: &Conceals,
    file: Identity,
) -> Option<Vec<OsString>> {
    let names = Names { closes, file, found: Mutex::default(), unseen: AtomicBool::new(false) };
    walk(workspace, vec![everything()], &names);
    if names.unseen.into_inner() {
        return None;
    }
    let mut found = names.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    Some(found)
}

struct Names<'n> {
    closes: &'n Conceals,
    file: Identity,
    found: Mutex<Vec<OsString>>,
    /// Whether a folder could not be listed.
    unseen: AtomicBool,
}

impl Visitor for Names<'_> {
    fn entry(&self, entry: &Entry<'_>) -> Next {
        let is_folder = entry.kind == FileType::Directory;
        let closes = || told(entry.path).map_or(true, |path| (self.closes)(&path, is_folder));
        let closed = entry.closed || closes();
        if closed && entry.kind == FileType::RegularFile {
            let stat = statat(entry.folder, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.file) {
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push(entry.path.to_owned());
            }
        }
        if closed { Next::EnterClosed } else { Next::Enter }
    }

    fn stop(&self) -> bool {
        false
    }

    fn unreadable(&self, _: &OsStr, _: bool, errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            self.unseen.store(true, Ordering::Relaxed);
        }
    }
}
