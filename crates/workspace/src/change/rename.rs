//! Gives a file that was made beside another name that one, if nothing has it yet.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, mkdirat, openat, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;

use crate::node::is_unsupported;
use crate::resolve::file_type;
use crate::system::statat;

/// Renames within a folder, to a name that nothing has. Where the file system cannot do both at once, a second
/// name is made and the first removed, and where it has no second names, the new one is claimed first: either
/// takes nobody's place.
///
/// # Errors
/// [`Errno::EXIST`] where something has the name; nothing was changed.
pub(crate) fn rename_new(folder: impl AsFd, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    let folder = folder.as_fd();
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Err(errno) if is_unsupported(errno) => {}
        done => return done,
    }
    let stat = statat(folder, from, AtFlags::SYMLINK_NOFOLLOW)?;
    if file_type(&stat) == FileType::Directory {
        return claimed(folder, from, to, FileType::Directory);
    }
    match linkat(folder, from, folder, to, AtFlags::empty()) {
        Ok(()) => unlinkat(folder, from, AtFlags::empty()).inspect_err(|_| {
            // It stays where it was.
            let _ = unlinkat(folder, to, AtFlags::empty());
        }),
        Err(errno) if is_unsupported(errno) || errno == Errno::PERM => {
            claimed(folder, from, to, FileType::RegularFile)
        }
        Err(errno) => Err(errno),
    }
}

/// Makes something empty at the name, which nobody else can then, and renames over that.
fn claimed(folder: BorrowedFd<'_>, from: &[u8], to: &[u8], claim: FileType) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let (made, removal) = match claim {
        FileType::Directory => (mkdirat(folder, to, Mode::RWXU), AtFlags::REMOVEDIR),
        _ => (openat(folder, to, flags, Mode::RUSR | Mode::WUSR).map(drop), AtFlags::empty()),
    };
    made?;
    renameat(folder, from, folder, to).inspect_err(|_| {
        let _ = unlinkat(folder, to, removal);
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// By whatever way it is done: what is there stays, and nothing is left at the old name.
    #[test]
    fn nothing_is_replaced_by_any_way() {
        type Way = fn(BorrowedFd<'_>, &[u8], &[u8]) -> Result<(), Errno>;
        let linked: Way = |folder, from, to| {
            linkat(folder, from, folder, to, AtFlags::empty())?;
            unlinkat(folder, from, AtFlags::empty())
        };
        let file: Way = |folder, from, to| claimed(folder, from, to, FileType::RegularFile);
        let directory: Way = |folder, from, to| claimed(folder, from, to, FileType::Directory);
        let whole: Way = |folder, from, to| rename_new(folder, from, to);
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        let folder = fs::File::open(root).unwrap();
        for (number, (way, kind)) in [
            (whole, "file"),
            (linked, "file"),
            (file, "file"),
            (whole, "link"),
            (linked, "link"),
            (file, "link"),
            (whole, "folder"),
            (directory, "folder"),
        ]
        .into_iter()
        .enumerate()
        {
            let make = |name: &str| match kind {
                "file" => fs::write(root.join(name), "new").unwrap(),
                "link" => symlink("target", root.join(name)).unwrap(),
                _ => fs::create_dir_all(root.join(name).join("inner")).unwrap(),
            };
            let (from, to) = (format!("from-{number}"), format!("to-{number}"));
            make(&from);
            way(folder.as_fd(), from.as_bytes(), to.as_bytes()).unwrap();
            let there = |name: &str| root.join(name).symlink_metadata().is_ok();
            assert_eq!((there(&from), there(&to)), (false, true), "{number} {kind}");
            match kind {
                "file" => assert_eq!(fs::read(root.join(&to)).unwrap(), b"new"),
                "link" => assert!(root.join(&to).is_symlink()),
                _ => assert!(root.join(&to).join("inner").is_dir()),
            }
            make(&from);
            for taken in ["taken", "taken-folder"] {
                let _ = fs::create_dir(root.join("taken-folder"));
                fs::write(root.join("taken"), "old").unwrap();
                let done = way(folder.as_fd(), from.as_bytes(), taken.as_bytes());
                assert_eq!(done, Err(Errno::EXIST), "{number} {kind} {taken}");
            }
            assert!(there(&from), "{number} {kind}");
            assert_eq!(fs::read(root.join("taken")).unwrap(), b"old");
        }
    }
}
