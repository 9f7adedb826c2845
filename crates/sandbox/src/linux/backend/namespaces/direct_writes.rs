//! Places of the workspace that a command may write to, in the mounts of its own call.
//!
//! The workspace is read-only. What is open in it is bound onto itself and made writable; what is
//! held in there is bound onto itself and stays read-only. The kernel renames and removes nothing
//! that something is mounted on, but everything above it: so each folder above what is held, or
//! hidden, is bound onto itself as well.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::hidden_paths;
use super::root::{self, READ_ONLY_ATTRIBUTES, Submounts};
use super::workspace_mount::WorkspaceMount;
use crate::linux::kernel::{make_writable, set_mount_attributes};
use crate::linux::landlock::LandlockAccess;
use crate::linux::protocol::{AtStep as _, DirectPaths, SetupError, Step};

/// Opens the places. Gives what Landlock has to allow for each.
///
/// # Errors
/// Something that is to be open is not there, or something that is to be held cannot be.
pub(super) fn open_writable(
    mount: &WorkspaceMount,
    direct: &DirectPaths,
) -> Result<Vec<(OwnedFd, LandlockAccess)>, SetupError> {
    // Read before anything is added: what is hidden was laid over it before this call.
    let hidden = mount.mounts().at(Step::Direct)?;
    for path in &direct.writable {
        make_path_writable(mount, path).at(Step::Direct)?;
    }
    let kept = direct.read_only.iter().chain(&hidden);
    let mut pinned: BTreeSet<&[u8]> = kept.flat_map(|path| parents(path)).collect();
    pinned.extend(direct.pinned.iter().map(Vec::as_slice));
    // From the top down, which is how they are sorted: a mount above covers those that were beneath.
    for path in pinned.into_iter().filter(|path| is_writable(direct, path)) {
        let _ = bind_onto_itself(mount, path, false).at(Step::Direct)?;
    }
    for path in &direct.read_only {
        let _ = bind_onto_itself(mount, path, true).at(Step::Direct)?;
    }
    let reach = |path: &Vec<u8>| {
        let file = find_mounted(mount, path)?.ok_or(Errno::NOENT)?;
        let reach = if is_directory(&file)? {
            LandlockAccess::ChangeLasting
        } else {
            LandlockAccess::ChangeFile
        };
        Ok((file, reach))
    };
    direct.writable.iter().map(reach).collect::<Result<_, Errno>>().at(Step::Direct)
}

/// Binds a place onto itself and makes it writable, without what is mounted in it.
fn make_path_writable(mount: &WorkspaceMount, path: &[u8]) -> Result<(), Errno> {
    if path.is_empty() {
        return make_writable(mount.open()?.as_fd());
    }
    let copy = bind_onto_itself(mount, path, false)?.ok_or(Errno::NOENT)?;
    make_writable(copy.as_fd())
}

/// Binds a place onto itself with all that is mounted in it, for good read-only if it is `held`.
/// None if it is not there any more.
fn bind_onto_itself(
    mount: &WorkspaceMount,
    path: &[u8],
    held: bool,
) -> Result<Option<OwnedFd>, Errno> {
    let Some(place) = find_mounted(mount, path)? else { return Ok(None) };
    let copy = root::copy_mount(&place, Submounts::Copied)?;
    if held {
        set_mount_attributes(copy.as_fd(), true, READ_ONLY_ATTRIBUTES)?;
    }
    root::attach_over(&copy, place.as_fd())?;
    Ok(Some(copy))
}

/// Finds a place as this call sees it. Each time anew: a mount may lie over it by now.
fn find_mounted(mount: &WorkspaceMount, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let workspace = mount.open()?;
    if path.is_empty() {
        return Ok(Some(workspace));
    }
    let find = |workspace: BorrowedFd<'_>| hidden_paths::find_path(workspace, path);
    match find(workspace.as_fd()) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_directory(file: &OwnedFd) -> Result<bool, Errno> {
    fstat(file).map(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
}

/// The folders above a path, without the workspace itself.
pub(super) fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    ends.filter_map(|(end, _)| path.get(..end))
}

/// Whether a path lies beneath an open place: elsewhere, nothing can be renamed anyway.
fn is_writable(direct: &DirectPaths, path: &[u8]) -> bool {
    direct.writable.iter().any(|open| {
        open.is_empty()
            || path.strip_prefix(open.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    })
}
