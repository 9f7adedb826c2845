//! The `/tmp` that all calls of a run share, and what is shown in it.

use std::cell::RefCell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use capsule_base::limits;
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, move_mount};

use super::memory_file_system::{MOST_FILES, memory_file_system};
use crate::linux::backend::system::TMP;
use crate::linux::kernel::set_mount_attributes;

/// The size of a file system that holds the names on the way to a mount.
const HELD_BYTES: &str = "1m";

/// The `/tmp` of a run, once it is mounted.
#[derive(Default)]
pub(super) struct SharedTmp {
    /// The file systems that hold what is shown in it.
    held: RefCell<Vec<OwnedFd>>,
}

impl SharedTmp {
    /// Mounts it in a root, in memory. What is made in it before the root is read-only is held in its place
    /// ([`Self::hold`]).
    ///
    /// # Errors
    /// The memory cannot be had.
    pub(super) fn mount(tree: &OwnedFd) -> Result<(), Errno> {
        let (bytes, files) = (limits::TMP_BYTES.to_string(), MOST_FILES.to_string());
        let settings = [("size", bytes.as_str()), ("nr_inodes", &files), ("mode", "1777")];
        put(&memory_file_system(&settings)?, tree, relative_to_root())
    }

    /// Mounts a small file system over the first directory of a path in it, which becomes read-only with the root. A call
    /// cannot move away or replace a directory on which something is mounted, and so nothing that the path leads to: all
    /// calls share `/tmp`, and the next one would be shown something else there.
    ///
    /// # Errors
    /// The directory or the memory cannot be had.
    pub(super) fn hold(&self, tree: &OwnedFd, path: &Path) -> Result<(), Errno> {
        let Ok(inner) = path.strip_prefix(relative_to_root()) else { return Ok(()) };
        let Some(first) = inner.components().next() else { return Ok(()) };
        let first = relative_to_root().join(first);
        match mkdirat(tree, &first, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(()),
            Err(error) => return Err(error),
        }
        let memory = memory_file_system(&[("size", HELD_BYTES), ("mode", "0755")])?;
        put(&memory, tree, &first)?;
        self.held.borrow_mut().push(memory);
        Ok(())
    }

    /// Gives what holds the mounts in it these attributes.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn set_attributes(&self, attributes: MountAttrFlags) -> Result<(), Errno> {
        let held = self.held.borrow();
        held.iter().try_for_each(|mount| set_mount_attributes(mount.as_fd(), false, attributes))
    }
}

fn put(memory: &OwnedFd, tree: &OwnedFd, path: &Path) -> Result<(), Errno> {
    move_mount(memory, "", tree, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn relative_to_root() -> &'static Path {
    Path::new(TMP.trim_start_matches('/'))
}
