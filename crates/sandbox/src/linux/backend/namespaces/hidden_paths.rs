//! Hiding paths of the workspace.
//!
//! A file that no program may read, or a folder with nothing in it, is laid over each. Nothing is made
//! in the workspace itself. What can still be seen of a hidden path is its name in the folder above it
//! and whether it is a folder; not its content, its size, its dates, its owner or what lies in it.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::root::Cover;
use super::workspace_mount::WorkspaceMount;
use crate::linux::backend::host_path;
use crate::linux::protocol::{AtStep as _, SetupError, Step};

/// How much of a path is looked up at once. The kernel takes up to 4,096 bytes.
const MAX_LOOKUP_BYTES: usize = 4_000;

/// Hides these paths; those that are not there (any more) need no hiding. Tells whether any was not
/// hidden before.
///
/// # Errors
/// A path could not be hidden.
pub(super) fn hide(
    cover: &Cover,
    workspace: BorrowedFd<'_>,
    paths: &[Vec<u8>],
) -> Result<bool, SetupError> {
    let covers = cover_ids(cover).at(Step::Mask)?;
    let mut any = false;
    for path in paths {
        any |= hide_path(cover, covers, workspace, path).at(Step::Mask)?;
    }
    Ok(any)
}

/// Device and inode of what is laid over files and folders.
type CoverIds = [(u64, u64); 2];

fn cover_ids(cover: &Cover) -> Result<CoverIds, Errno> {
    let identity = |file| fstat(file).map(|facts| (facts.st_dev, facts.st_ino));
    Ok([identity(&cover.file)?, identity(&cover.directory)?])
}

fn hide_path(
    cover: &Cover,
    covers: CoverIds,
    workspace: BorrowedFd<'_>,
    path: &[u8],
) -> Result<bool, Errno> {
    let found = match find_path(workspace, path) {
        Ok(found) => found,
        // With a link on the way or a name that no file can have, the path leads nowhere any more;
        // what stands behind the link is hidden by its own path.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => return Ok(false),
        Err(error) => return Err(error),
    };
    let facts = fstat(&found)?;
    if covers.contains(&(facts.st_dev, facts.st_ino)) {
        return Ok(false); // hidden before
    }
    match FileType::from_raw_mode(facts.st_mode) {
        // A link holds only a name; what it leads to is hidden under its own, if it is to be.
        FileType::Symlink => Ok(false),
        kind => cover.hide(found.as_fd(), kind == FileType::Directory).map(|()| true),
    }
}

/// Finds a path of any length, without following links.
pub(super) fn find_path(workspace: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |at: BorrowedFd<'_>, path: &[u8]| {
        openat2(at, host_path::bytes_to_path(path), flags, Mode::empty(), resolve)
    };
    let mut rest = path;
    let mut at: Option<OwnedFd> = None;
    while rest.len() > MAX_LOOKUP_BYTES {
        let head = rest.get(..MAX_LOOKUP_BYTES).unwrap_or(rest);
        let end = head.iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let (folders, more) = rest.split_at(end);
        at = Some(open(at.as_ref().map_or(workspace, OwnedFd::as_fd), folders)?);
        rest = more.get(1..).unwrap_or_default();
    }
    open(at.as_ref().map_or(workspace, OwnedFd::as_fd), rest)
}

/// Hides whatever else is mounted within the workspace: the policy judged the workspace, not other
/// disks that stand in it.
///
/// # Errors
/// A mount could not be hidden, or the mounts not be listed.
pub(super) fn hide_mounts(
    cover: &Cover,
    workspace: BorrowedFd<'_>,
    mount: &WorkspaceMount,
) -> Result<(), SetupError> {
    let mounts = mount.mounts().at(Step::Mask)?;
    let covers = cover_ids(cover).at(Step::Mask)?;
    for within in mounts {
        hide_path(cover, covers, workspace, &within).at(Step::Mask)?;
    }
    Ok(())
}
