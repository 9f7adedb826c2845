//! Files that are made for a call, and mounted over others.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::root::READ_ONLY_ATTRIBUTES;
use crate::linux::kernel::{errno, set_mount_attributes};

/// Writes a file until it is mounted at its place.
pub(super) fn write_file(path: &str, text: &str) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::from_raw_mode(0o444))?);
    file.write_all(text.as_bytes()).map_err(|error| errno(&error))
}

/// Mounts a file or directory over another one, read-only.
pub(super) fn mount_over(source: &str, target: &str) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, source, flags)?;
    let attributes = READ_ONLY_ATTRIBUTES | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    set_mount_attributes(copy.as_fd(), false, attributes)?;
    move_mount(&copy, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
