//! Files that only some systems have.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens what is to be mounted, without a right to its content.
///
/// # Errors
/// When it is not there, or the system has no such handles.
pub fn open_place(path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, open};
        open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(Into::into)
    }
    #[cfg(not(target_os = "linux"))]
    unsupported(path)
}

/// Makes a pipe with a name, which only the user may open.
///
/// # Errors
/// When that cannot be done there, or on this system.
pub fn make_named_pipe(path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into)
    }
    #[cfg(not(target_os = "linux"))]
    unsupported(path)
}

#[cfg(not(target_os = "linux"))]
fn unsupported<T>(path: &Path) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("{} on this system", path.display())))
}
