//! Backups of the files that calls replace and delete, for an undo.
//!
//! Next to the store is a directory with a subdirectory for each run. It holds every file that a call of the
//! run was about to replace or delete, named by the digest of its bytes. A [`BackupStore`] puts them there
//! before the call's intent is written, so that they are durable before anything acts. A [`BackupReader`]
//! finds them again and rejects a file whose bytes do not match its name. Where the file system can, a backup
//! shares its bytes with the original.

mod error;
mod quota;
mod reader;
mod store;
mod undo_record;

use std::os::fd::{AsFd, OwnedFd};

use capsule_core::id::RunId;
use rustix::fs::{FileType, Mode, OFlags, fchmod, mkdirat, openat};
use rustix::io::Errno;

pub use reader::BackupReader;
pub(crate) use reader::MissingBackup;
pub use store::BackupStore;
pub(crate) use store::CallBackup;
pub use undo_record::UndoRecord;

use crate::directory_entries::{new_buffer, read_entries};
use crate::resolve::file_type;
use crate::system::fstat;

/// How a folder of ours is opened. No link is followed to it: somebody may have put one there.
const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How a file of ours is opened.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// What the names of files begin with that are not whole yet.
const UNFINISHED_PREFIX: &str = ".new-";

/// Records which backups are dropped. The record belongs to the caller.
pub trait BackupLog {
    /// Records that so many backups of a run are about to be dropped.
    ///
    /// # Errors
    /// It cannot be recorded, so nothing may be dropped.
    fn record_dropped_backups(&self, run: RunId, files: u64) -> Result<(), String>;
}

/// Opens a folder that is nobody else's, and makes it if it is not there; says whether it was made.
fn private_directory(above: impl AsFd, name: &str) -> Result<(OwnedFd, bool), Errno> {
    let (folder, made) = loop {
        let made = match mkdirat(&above, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno),
        };
        match openat(&above, name, DIRECTORY_FLAGS, Mode::empty()) {
            // Another process removed it in between, to make room.
            Err(Errno::NOENT) => {}
            folder => break (folder?, made),
        }
    };
    let stat = fstat(&folder)?;
    if file_type(&stat) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    if stat.st_mode & 0o077 != 0 {
        fchmod(&folder, Mode::RWXU)?;
    }
    Ok((folder, made))
}

/// The names in a folder that are text; ours are.
fn text_names(folder: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    // Opened once more: how far it was read belongs to a descriptor.
    let again = openat(folder, ".", DIRECTORY_FLAGS, Mode::empty())?;
    read_entries(&again, &mut new_buffer(), &mut |name, _, _| {
        names.extend(std::str::from_utf8(name).ok().map(str::to_owned));
        true
    })?;
    Ok(names)
}

#[cfg(test)]
pub(crate) mod bed {
    //! A keeper for tests, beside a store that nobody opens.

    use std::cell::Cell;
    use std::rc::Rc;

    use capsule_core::id::RunId;
    use tempfile::TempDir;

    use super::{BackupLog, BackupStore};

    /// A log that only counts.
    #[derive(Default)]
    pub(crate) struct CountingLog {
        pub dropped: Cell<u64>,
    }

    impl BackupLog for CountingLog {
        fn record_dropped_backups(&self, _: RunId, files: u64) -> Result<(), String> {
            self.dropped.set(self.dropped.get() + files);
            Ok(())
        }
    }

    /// A keeper, and the folder that its own is in.
    pub(crate) fn keeper() -> (TempDir, Rc<BackupStore>) {
        let folder = tempfile::tempdir().unwrap();
        let run = Some(RunId::from_bits([7; 10]));
        let place = folder.path().join("store.db.undo");
        (folder, Rc::new(BackupStore::new(place, run, Rc::new(CountingLog::default()))))
    }
}
