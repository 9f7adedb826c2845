//! Removes a folder, however deep a command nested it and whatever permissions it set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, unlinkat};
use rustix::io::Errno;

const PRIVATE: Mode = Mode::RWXU;

/// Removes a folder and all that is in it. Folders in folders are moved up before they are emptied,
/// so that no depth needs more than two descriptors. That it is not there is fine.
///
/// # Errors
/// When something cannot be removed; what is left can be removed later.
pub fn remove(folder: &Path) -> io::Result<()> {
    let Some((above, name)) = folder.parent().zip(folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = rustix::fs::open(above, flags, Mode::empty())?;
    let top = match open(above.as_fd(), name.as_encoded_bytes()) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let mut moved = 0_u64;
    loop {
        let folders = empty(&top)?;
        if folders.is_empty() {
            break;
        }
        for inner in folders {
            let folder = open(top.as_fd(), &inner)?;
            // What it holds is moved beside it, and has its turn in the next round.
            for deeper in empty(&folder)? {
                chmodat(&folder, deeper.as_slice(), PRIVATE, AtFlags::empty())?;
                moved += 1;
                let beside = format!(".moved-{moved}");
                renameat(&folder, deeper.as_slice(), &top, beside.as_str())?;
            }
            unlinkat(&top, inner.as_slice(), AtFlags::REMOVEDIR)?;
        }
    }
    Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
}

/// Removes everything in a folder but the folders, and gives their names.
fn empty(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        match entry.file_type() {
            FileType::Directory => folders.push(name),
            FileType::Unknown => match unlinkat(folder, name.as_slice(), AtFlags::empty()) {
                Err(Errno::ISDIR) => folders.push(name),
                other => other?,
            },
            _ => unlinkat(folder, name.as_slice(), AtFlags::empty())?,
        }
    }
    Ok(folders)
}

/// Opens a folder of ours, and makes it ours to work in first.
fn open(above: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    chmodat(above, name, PRIVATE, AtFlags::empty())?;
    openat(above, name, flags, Mode::empty())
}
