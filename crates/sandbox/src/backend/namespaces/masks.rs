//! Hiding paths of the workspace.
//!
//! An empty file or folder that is nobody's to read is laid over each. Nothing is made in the
//! workspace itself. What can still be seen of a hidden path is its name in the folder above it and
//! whether it is a folder; not its content, its size, its dates, its owner or what lies in it.

use std::os::fd::{AsFd as _, BorrowedFd};

use capsule_core::path::WORKSPACE_MOUNT;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::mountinfo;
use super::root::{self, Cover};
use crate::protocol::{At as _, Failed, Step};

/// Hides these paths; those that are not there (any more) need no hiding. Tells whether any was not
/// hidden before.
///
/// # Errors
/// A path could not be hidden. A link on the way counts: the path meant another file when it was
/// found.
pub(super) fn hide(
    cover: &Cover,
    workspace: BorrowedFd<'_>,
    paths: &[Vec<u8>],
) -> Result<bool, Failed> {
    let mut any = false;
    for path in paths {
        any |= hide_one(cover, workspace, path).at(Step::Mask)?;
    }
    Ok(any)
}

fn hide_one(cover: &Cover, workspace: BorrowedFd<'_>, path: &[u8]) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = match openat2(workspace, root::path(path), flags, Mode::empty(), resolve) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
        Err(error) => return Err(error),
    };
    let facts = fstat(&found)?;
    for covering in [&cover.file, &cover.folder] {
        let covering = fstat(covering)?;
        if (covering.st_dev, covering.st_ino) == (facts.st_dev, facts.st_ino) {
            return Ok(false); // hidden before
        }
    }
    match FileType::from_raw_mode(facts.st_mode) {
        // A link holds only a name; what it leads to is hidden under its own, if it is to be.
        FileType::Symlink => Ok(false),
        kind => cover.hide(found.as_fd(), kind == FileType::Directory).map(|()| true),
    }
}

/// Hides whatever else is mounted within the workspace: the policy judged the workspace, not other
/// disks that stand in it.
///
/// # Errors
/// A mount could not be hidden, or the mounts not be listed.
pub(super) fn hide_mounts(cover: &Cover, workspace: BorrowedFd<'_>) -> Result<(), Failed> {
    let mounts = mountinfo::own();
    if mounts.is_empty() {
        return Err(Failed { step: Step::Mask, errno: Errno::NOENT });
    }
    for mount in mounts {
        let Ok(within) = mount.point.strip_prefix(WORKSPACE_MOUNT) else { continue };
        if !within.as_os_str().is_empty() {
            hide_one(cover, workspace, within.as_os_str().as_encoded_bytes()).at(Step::Mask)?;
        }
    }
    Ok(())
}
