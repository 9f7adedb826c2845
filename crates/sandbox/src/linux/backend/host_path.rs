//! Places of the host, as the deciding process names them.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::linux::protocol::{AtStep as _, HostPath, SetupError, Step};

/// A path as the bytes that came over the socket.
pub(super) fn bytes_to_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Opens a place by its path, in the namespace where it is needed, and makes sure that it is still
/// what the deciding process holds open.
///
/// # Errors
/// It cannot be opened, or something else is there.
pub(super) fn reopen(place: &HostPath, step: Step) -> Result<OwnedFd, SetupError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, bytes_to_path(&place.path), flags, Mode::empty()).at(step)?;
    let found = fstat(&file).at(step)?;
    if (found.st_dev, found.st_ino) == (place.device, place.inode) {
        Ok(file)
    } else {
        Err(SetupError { step, errno: Errno::STALE })
    }
}
