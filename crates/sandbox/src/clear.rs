//! Removes a folder, however deep a command nested it and whatever permissions it set.
//!
//! Everything is reached by descriptors and no link is ever followed: what looks like a folder may be
//! another thing by the time that it is opened.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

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
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        top => top?,
    };
    empty(&top)?;
    Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
}

/// Removes all that is in a folder, and not the folder.
///
/// # Errors
/// As [`remove`].
pub fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let folders = remove_files(top)?;
        if folders.is_empty() {
            return Ok(());
        }
        for inner in folders {
            let folder = open(top.as_fd(), &inner)?;
            // What it holds is moved beside it, and has its turn in the next round.
            for deeper in remove_files(&folder)? {
                // To move a folder takes the right to write into it.
                drop(open(folder.as_fd(), &deeper)?);
                move_up(&folder, &deeper, top, &mut moved)?;
            }
            unlinkat(top, inner.as_slice(), AtFlags::REMOVEDIR)?;
        }
    }
}

/// Moves a folder to a name that nothing has.
fn move_up(from: &OwnedFd, name: &[u8], top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let beside = format!(".moved-{moved}");
        match renameat_with(from, name, top, beside.as_str(), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            // A file system that cannot (FUSE, NFS): nobody else is in this folder.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match statat(top, beside.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => {}
                    Err(Errno::NOENT) => return renameat(from, name, top, beside.as_str()),
                    Err(errno) => return Err(errno),
                }
            }
            other => return other,
        }
    }
}

/// Removes everything in a folder but the folders, and gives their names.
fn remove_files(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
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

/// Opens a folder, and makes it ours to work in if it is not.
fn open(above: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let held = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(above, name, held, Mode::empty())?;
    let mode = rustix::fs::fstat(&held)?.st_mode & 0o700;
    if mode != 0o700 {
        // By the open folder, whatever has its name by now.
        let place = format!("/proc/self/fd/{}", held.as_raw_fd());
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(&held, ".", flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn whatever_a_command_made_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o755)).unwrap();
        let top = folder.path().join("top");
        fs::create_dir_all(top.join(".moved-1/a/b")).unwrap();
        fs::create_dir_all(top.join("c/.moved-2/d")).unwrap();
        fs::write(top.join(".moved-1/a/data"), "x").unwrap();
        symlink(&outside, top.join("link")).unwrap();
        symlink(&outside, top.join("c/link")).unwrap();
        fs::create_dir_all(top.join("closed/inner")).unwrap();
        fs::set_permissions(top.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        // One that is a link by now is no folder.
        symlink(&outside, &top).unwrap();
        assert!(remove(&top).is_err());
        assert!(outside.join("kept").exists());
        assert!(remove(&folder.path().join("missing")).is_ok());
    }
}
