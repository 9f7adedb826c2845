//! Removes a folder, however deep a command nested it and whatever permissions it set.
//!
//! Everything is reached by descriptors and no link is ever followed: what looks like a folder may be
//! another thing by the time that it is opened.

#[cfg(target_os = "linux")]
use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

/// How often a folder is emptied again that another process fills while it removes the same.
const ROUNDS: usize = 100;

/// How a folder is opened of which only an entry is meant.
#[cfg(target_os = "linux")]
const PARENT: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PARENT: OFlags = OFlags::RDONLY;

/// Removes a folder and all that is in it. Folders in folders are moved up before they are emptied,
/// so that no depth needs more than two descriptors. Several processes may remove the same at one time: what
/// is not there any more is fine.
///
/// # Errors
/// When something cannot be removed; what is left can be removed later.
pub fn remove_directory(folder: &Path) -> io::Result<()> {
    let Some((above, name)) = folder.parent().zip(folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = PARENT | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = rustix::fs::open(above, flags, Mode::empty())?;
    let Some(top) = open(above.as_fd(), name.as_encoded_bytes())? else { return Ok(()) };
    for _ in 0..ROUNDS {
        empty_directory(&top)?;
        match gone(unlinkat(&above, name, AtFlags::REMOVEDIR)) {
            // Another process moved something up in between.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

/// Removes all that is in a folder, and not the folder.
///
/// # Errors
/// As [`remove_directory`].
pub fn empty_directory(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let folders = remove_files(top)?;
        if folders.is_empty() {
            return Ok(());
        }
        for inner in folders {
            let Some(folder) = open(top.as_fd(), &inner)? else { continue };
            // What it holds is moved beside it, and has its turn in the next round.
            for deeper in remove_files(&folder)? {
                // To move a folder takes the right to write into it.
                if open(folder.as_fd(), &deeper)?.is_some() {
                    gone(move_up(&folder, &deeper, top, &mut moved))?;
                }
            }
            match gone(unlinkat(top, inner.as_slice(), AtFlags::REMOVEDIR)) {
                // Another process moved a folder to this name. It has its turn in the next round.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                removed => removed?,
            }
        }
    }
}

/// What is not there any more was removed by another process, which is as good.
fn gone<T: Default>(done: Result<T, Errno>) -> Result<T, Errno> {
    match done {
        Err(Errno::NOENT) => Ok(T::default()),
        done => done,
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
    let entries = match Dir::read_from(folder) {
        Err(Errno::NOENT) => return Ok(folders),
        entries => entries?,
    };
    for entry in entries {
        let entry = match entry {
            // The folder itself was removed.
            Err(Errno::NOENT) => break,
            entry => entry?,
        };
        let name = entry.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        match entry.file_type() {
            FileType::Directory => folders.push(name),
            FileType::Unknown => match unlinkat(folder, name.as_slice(), AtFlags::empty()) {
                Err(Errno::ISDIR) => folders.push(name),
                other => gone(other)?,
            },
            _ => gone(unlinkat(folder, name.as_slice(), AtFlags::empty()))?,
        }
    }
    Ok(folders)
}

/// Opens a folder, and makes it ours to work in if it is not; none where it is not there any more.
#[cfg(target_os = "linux")]
fn open(above: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<OwnedFd>> {
    let held = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = match openat(above, name, held, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        held => held?,
    };
    let mode = rustix::fs::fstat(&held)?.st_mode & 0o700;
    if mode != 0o700 {
        // By the open folder, whatever has its name by now.
        let place = format!("/proc/self/fd/{}", held.as_raw_fd());
        match fs::set_permissions(place, fs::Permissions::from_mode(0o700)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            set => set?,
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(&held, ".", flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(above: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let ours = rustix::fs::chmodat(above, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
    match ours.and_then(|()| openat(above, name, flags, Mode::empty())) {
        Err(Errno::NOENT) => Ok(None),
        opened => Ok(Some(opened?)),
    }
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
        remove_directory(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        // One that is a link by now is no folder.
        symlink(&outside, &top).unwrap();
        assert!(remove_directory(&top).is_err());
        assert!(outside.join("kept").exists());
        assert!(remove_directory(&folder.path().join("missing")).is_ok());
    }

    /// L1: several sweepers at one folder are not in each other's way.
    #[test]
    fn sweepers_of_one_folder_tolerate_each_other() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let top = folder.path().join(format!("top-{round}"));
            for place in 0..40 {
                let deep = top.join(format!("{}/{place}/a/b/c", place % 5));
                fs::create_dir_all(&deep).unwrap();
                fs::write(deep.join("data"), "x").unwrap();
                fs::write(top.join(format!("file-{place}")), "x").unwrap();
            }
            let removed: Vec<io::Result<()>> = std::thread::scope(|scope| {
                let sweepers: Vec<_> =
                    (0..8).map(|_| scope.spawn(|| remove_directory(&top))).collect();
                sweepers.into_iter().map(|sweeper| sweeper.join().unwrap()).collect()
            });
            assert!(removed.iter().all(Result::is_ok), "{round}: {removed:?}");
            assert!(!top.exists());
        }
    }
}
