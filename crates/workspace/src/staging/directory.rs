//! The folder that holds the changes of a run: whether it has room, and who holds it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs, flock, statvfs};

use super::mount::StagingArea;
use super::state::Staging;
use crate::resolve::Workspace;

/// What commands and tools change: what differs, or a copy of the workspace in which it does.
pub(super) const CHANGES_DIRECTORY: &str = "changes";
/// What the kernel needs for itself.
pub(super) const WORK_DIRECTORY: &str = "work";

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
}

/// Holds one of the directories of staged changes.
pub(super) fn hold_directory(folder: &Path, name: &str) -> io::Result<OwnedFd> {
    Workspace::open(&folder.join(name)).map(Workspace::into_root_handle)
}

/// The directories that are mounted over the workspace.
pub(super) fn overlay_area(folder: &Path) -> io::Result<StagingArea> {
    Ok(StagingArea::Overlay {
        changes: hold_directory(folder, CHANGES_DIRECTORY)?,
        work: hold_directory(folder, WORK_DIRECTORY)?,
    })
}
