//! What calls replace and delete, kept until somebody wants it back.
//!
//! Beside the store lies a folder with a folder for each run, and in that every file that a call of the
//! run was about to replace or delete, under the digest of its bytes. A [`Keeper`] puts them there before
//! the call's intent is written, so that they are durable before anything acts; [`Kept`] finds them again
//! and believes none that has other bytes than its name says. Where the file system can, a file shares
//! its bytes with the original.

mod backup_quota;
mod backup_reader;
mod backup_store;
mod comparison;
mod entry;
mod restore;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;

pub use backup_reader::BackupReader;
pub(crate) use backup_reader::MissingBackup;
pub use backup_store::BackupStore;
pub(crate) use backup_store::CallBackup;
pub use entry::{UndoEntry, UndoStatus};
pub(crate) use restore::Restoration;
pub use restore::UndoPlan;

use crate::walk::{new_buffer, read_entries};
use crate::workspace::file_type;

/// How a folder of ours is opened. No link is followed to it: somebody may have put one there.
const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How a file of ours is opened.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// What the names of files begin with that are not whole yet.
const UNFINISHED_PREFIX: &str = ".new-";

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

/// Has a new file share the bytes of another, if the file system can.
#[cfg(target_os = "linux")]
pub(crate) fn reflink(to: &std::fs::File, from: &std::fs::File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reflink(_: &std::fs::File, _: &std::fs::File) -> bool {
    false
}

#[cfg(test)]
pub(crate) mod bed {
    //! A keeper for tests, beside a store that nobody opens.

    use std::cell::Cell;
    use std::ffi::OsString;
    use std::path::Path;
    use std::rc::Rc;

    use capsule_base::digest::Digest;
    use capsule_core::id::RunId;
    use capsule_sandbox::FileIdentity;
    use tempfile::TempDir;

    use super::BackupStore;
    use crate::tool::ToolHost;

    /// A host that knows nothing and counts what is dropped.
    #[derive(Default)]
    pub(crate) struct Bare {
        pub dropped: Cell<u64>,
    }

    impl ToolHost for Bare {
        fn program_path(&self, _: &str) -> Option<String> {
            None
        }
        fn program_paths(&self) -> Vec<String> {
            Vec::new()
        }
        fn known_digest(&self, _: &Path, _: &FileIdentity) -> Option<Digest> {
            None
        }
        fn remember_digest(&self, _: &Path, _: &FileIdentity, _: Digest) {}
        fn test_command(&self, _: Option<&str>) -> Option<(Vec<String>, String)> {
            None
        }
        fn store_path(&self) -> &Path {
            Path::new("/nonexistent")
        }
        fn record_dropped_backups(&self, _: RunId, files: u64) -> Result<(), String> {
            self.dropped.set(self.dropped.get() + files);
            Ok(())
        }
        fn secret(&self, _: &str) -> Option<capsule_redact::Secret> {
            None
        }
        fn variable(&self, _: &str) -> Option<OsString> {
            None
        }
        fn variables(&self) -> Vec<OsString> {
            Vec::new()
        }
    }

    /// A keeper, and the folder that its own is in.
    pub(crate) fn keeper() -> (TempDir, Rc<BackupStore>) {
        let folder = tempfile::tempdir().unwrap();
        let run = Some(RunId::from_bits([7; 10]));
        let place = folder.path().join("store.db.undo");
        (folder, Rc::new(BackupStore::new(place, run, Rc::new(Bare::default()))))
    }
}
