//! The folder that holds the changes of a run: whether it has room, who holds it, and how it is removed.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use capsule_sandbox as sandbox;
use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs, flock, statvfs};

use super::{CHANGES_DIRECTORY, REMOVED_PREFIX, Staging};

impl Staging {
    /// Whether the file system that changes are in has hardly any room left.
    #[must_use]
    pub fn is_full(folder: &Path) -> bool {
        const ROOM: u64 = 1 << 20;
        let free = |told: StatVfs| told.f_bavail.saturating_mul(told.f_frsize);
        statvfs(folder).is_ok_and(|told| free(told) < ROOM)
    }

    /// Keeps everybody from applying or dropping the changes of a run until what it gives is dropped.
    ///
    /// # Errors
    /// When somebody does it already, or they cannot be opened.
    pub fn hold(folder: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::open(folder.join(CHANGES_DIRECTORY), flags, Mode::empty());
        let held = open().or_else(|_| {
            // A command may have closed it. It is ours, whatever its permissions say.
            let mode = std::fs::Permissions::from_mode(0o700);
            let _ = std::fs::set_permissions(folder.join(CHANGES_DIRECTORY), mode);
            open()
        })?;
        flock(&held, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        Ok(held)
    }

    /// Removes the changes of a run. Whatever their permissions say, it is we who made them.
    ///
    /// # Errors
    /// When something cannot be removed; what is left can be removed later.
    pub fn remove(folder: &Path) -> io::Result<()> {
        let Some((all, name)) = folder.parent().zip(folder.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // First it is nobody's any more, all of it at once: half of the changes would be something else.
        let mut gone = OsString::from(REMOVED_PREFIX);
        gone.push(name);
        let gone = all.join(gone);
        match std::fs::rename(folder, &gone) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved?,
        }
        // What somebody was killed over goes, too, unless somebody else is at it.
        for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(REMOVED_PREFIX.as_bytes()) {
                let _ = sandbox::remove_tree::remove_directory(&entry.path());
            }
        }
        match sandbox::remove_tree::remove_directory(&gone) {
            Err(_) if !gone.exists() => Ok(()),
            removed => removed,
        }
    }
}
