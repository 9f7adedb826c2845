//! The staged workspace: an overlay, so that what commands write is collected beside the workspace
//! and nothing in it changes.
//!
//! It is mounted in the run's user namespace, which the kernel allows with markers in attributes of
//! the user's own (`userxattr`). What it makes of the folder of changes is described in the kernel's
//! `Documentation/filesystems/overlayfs.rst`.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

/// What a command can never make in the workspace to any effect.
const ATTRIBUTES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Lays a folder of changes over the workspace. `work` is a folder that only the kernel uses, on
/// the same file system as the changes.
///
/// # Errors
/// The kernel refused: something is mounted in the workspace, or the file system of the changes
/// cannot hold them.
pub(super) fn overlay(
    workspace: &OwnedFd,
    changes: &OwnedFd,
    work: &OwnedFd,
) -> Result<OwnedFd, Errno> {
    // By number: a path may hold the characters that separate folders in an option.
    let folder = |file: &OwnedFd| format!("/proc/self/fd/{}", file.as_raw_fd());
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    fsconfig_set_string(context, "source", "capsule")?;
    fsconfig_set_flag(context, "userxattr")?;
    for (option, file) in [("lowerdir", workspace), ("upperdir", changes), ("workdir", work)] {
        fsconfig_set_string(context, option, folder(file))?;
    }
    fsconfig_create(context)?;
    fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES)
}

/// Shows a directory of the host through a layer of its own, so that no socket in it leads to a process of the host,
/// also none that is made later: to the kernel what a layer shows is another file, and nothing listens at that. `below`
/// is an empty directory, since the kernel wants two.
///
/// # Errors
/// The kernel refused: something is mounted in the directory, or it is a layer above layers itself.
pub(super) fn overlay_alone(directory: &OwnedFd, below: &OwnedFd) -> Result<OwnedFd, Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    fsconfig_set_string(context, "source", "capsule")?;
    fsconfig_set_flag(context, "userxattr")?;
    let layers =
        format!("/proc/self/fd/{}:/proc/self/fd/{}", directory.as_raw_fd(), below.as_raw_fd());
    fsconfig_set_string(context, "lowerdir", layers)?;
    fsconfig_create(context)?;
    fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES)
}
