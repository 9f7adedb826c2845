//! File systems in memory.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

/// How many files `/tmp` and a home directory may hold: names take memory too.
pub(super) const MOST_FILES: u64 = 200_000;

/// A file system in memory, which is mounted nowhere so far.
pub(super) fn memory_file_system(settings: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [("source", "capsule")].iter().chain(settings) {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
