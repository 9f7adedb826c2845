//! The file of a store: how it is opened, what it begins with, and the names of the files beside it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use capsule_core::journal::HEADER_BYTES;
use rustix::fs::OFlags;

/// A file beside a store, by the end of its name (see [`SIDECAR_SUFFIXES`](capsule_core::journal::SIDECAR_SUFFIXES)).
#[must_use]
pub fn sidecar_path(store: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(suffix);
    PathBuf::from(name)
}

/// The first bytes of a file, which say whether it is a store.
pub(crate) fn header(file: File) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    let most = u64::try_from(HEADER_BYTES).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut header)?;
    Ok(header)
}

/// Opens a file to be read. A pipe is not waited for.
pub(crate) fn open_nonblocking(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(path)
}

/// Flags as `OpenOptions` has them.
pub(crate) fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}
