//! Reads the entries of an open directory.

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;

use capsule_base::limits;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

/// How much of a folder is read at once.
const BUFFER_BYTES: usize = 32 * 1024;

/// What [`read_entries`] reads into; made once for many folders.
pub fn new_buffer() -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); BUFFER_BYTES]
}

/// Sees a name, a kind and an inode; says whether to go on.
type EntryVisitor<'s> = dyn FnMut(&[u8], FileType, u64) -> bool + 's;

/// Reads the entries of a folder until the visitor has seen enough.
///
/// # Errors
/// When the folder cannot be read to its end.
#[cfg(target_os = "linux")]
pub fn read_entries(
    handle: &OwnedFd,
    buffer: &mut [MaybeUninit<u8>],
    see: &mut EntryVisitor<'_>,
) -> Result<(), Errno> {
    let mut raw = rustix::fs::RawDir::new(handle, buffer);
    while let Some(entry) = raw.next() {
        let entry = entry?;
        if !visit_entry(handle, entry.file_name().to_bytes(), entry.file_type(), entry.ino(), see) {
            break;
        }
    }
    Ok(())
}

/// Reads the entries of a folder until the visitor has seen enough.
///
/// # Errors
/// When the folder cannot be read to its end.
#[cfg(not(target_os = "linux"))]
pub fn read_entries(
    handle: &OwnedFd,
    _: &mut [MaybeUninit<u8>],
    see: &mut EntryVisitor<'_>,
) -> Result<(), Errno> {
    for entry in Dir::read_from(handle)? {
        let entry = entry?;
        if !visit_entry(handle, entry.file_name().to_bytes(), entry.file_type(), entry.ino(), see) {
            break;
        }
    }
    Ok(())
}

/// Sees one entry; says whether to go on.
fn visit_entry(
    folder: &OwnedFd,
    name: &[u8],
    listed: FileType,
    inode: u64,
    see: &mut EntryVisitor<'_>,
) -> bool {
    if matches!(name, b"." | b"..") {
        return true;
    }
    let kind = match listed {
        FileType::Unknown => entry_kind(folder, name),
        known => known,
    };
    see(name, kind, inode)
}

fn entry_kind(folder: &OwnedFd, name: &[u8]) -> FileType {
    crate::system::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileType::Unknown, |stat| crate::system::file_type(stat.st_mode))
}

/// The names in a folder, without those of itself and of the one above.
pub(crate) fn entry_names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
        if names.len() > limits::LIST_SCAN {
            return Err(Errno::OVERFLOW);
        }
    }
    names.sort();
    Ok(names)
}
