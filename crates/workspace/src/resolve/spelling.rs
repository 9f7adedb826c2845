//! Which spellings of a name the file system of a folder takes for the same, and which of them it lists.
//!
//! A file system says by its kind, or a folder by its flag, that it folds names. Of kinds that may or may not
//! (FUSE, network file systems), an entry is looked up in another case; where no entry can tell, names are compared as
//! strictly as any file system does. Nothing is written.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use capsule_base::spelling::Spelling;
use rustix::fs::{AtFlags, Mode, OFlags, fstatfs, openat};
use rustix::io::Errno;

use super::file_stat::same_file;
use crate::directory_entries::{new_buffer, read_entries};
use crate::system::{PATH_ONLY, statat};

/// How many entries of a folder are looked up in another case before it is taken as it is.
const TRIED: usize = 64;

/// What a kind of file systems does with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It compares bytes.
    Exact,
    /// It compares bytes, but for folders with a flag.
    Flagged,
    /// It takes names in another case for the same, whatever it says.
    Folds,
    /// It may fold case, and nothing else: it has to be tried.
    Case,
    /// It may do one or the other: it has to be tried.
    Unknown,
}

/// The kinds, by the number that the kernel has for them (`statfs(2)`, `linux/magic.h`).
const fn kind_of(magic: u64) -> Kind {
    match magic {
        // ext2 to ext4, f2fs, tmpfs, bcachefs.
        0xef53 | 0xf2f5_2010 | 0x0102_1994 | 0xca45_1a4e => Kind::Flagged,
        // btrfs, overlayfs (which has folders of one kind), squashfs, ramfs, reiserfs, erofs.
        0x9123_683e | 0x794c_7630 | 0x7371_7368 | 0x8584_58f6 | 0x5265_4973 | 0xe0f5_e1e2 => {
            Kind::Exact
        }
        // FAT, exFAT, NTFS, ntfs3, HFS, HFS+, HFSX, VirtualBox, Amiga, HPFS, ISO 9660.
        0x4d44 | 0x2011_bab0 | 0x5346_544e | 0x7366_746e | 0x4244 | 0x482b | 0x4858
        | 0x786f_4256 | 0xadff | 0xf995_e849 | 0x9660 => Kind::Folds,
        // XFS, JFS.
        0x5846_5342 | 0x3153_464a => Kind::Case,
        // ZFS, FUSE, NFS, SMB, CIFS, 9p, Ceph, AFS, and what nobody knows.
        _ => Kind::Unknown,
    }
}

/// Says whether a folder folds names by itself.
pub(super) type IsFlagged = fn(BorrowedFd<'_>) -> bool;

/// Where the kernel says that it knows folders that fold names.
const FEATURES: [&str; 3] = [
    "/sys/fs/ext4/features/casefold",
    "/sys/fs/f2fs/features/casefold",
    "/sys/fs/tmpfs/features/casefold",
];

/// What tells of a folder in a workspace whether it folds names, where some may and the workspace does not.
pub(super) fn flagged_within(root: BorrowedFd<'_>) -> Option<IsFlagged> {
    let kernel_knows = FEATURES.iter().any(|path| Path::new(path).exists());
    (kernel_knows && kind(root) == Kind::Flagged && !is_flagged(root)).then_some(is_flagged)
}

fn kind(folder: BorrowedFd<'_>) -> Kind {
    let Ok(told) = fstatfs(folder) else { return Kind::Folds };
    // The number is as wide as the machine has it.
    #[expect(clippy::cast_sign_loss, reason = "the numbers are of 32 bits")]
    let magic = told.f_type as u64 & 0xffff_ffff;
    kind_of(magic)
}

/// How the file system of a folder compares names.
pub(super) fn of(folder: BorrowedFd<'_>) -> Spelling {
    match kind(folder) {
        Kind::Exact => Spelling::Exact,
        Kind::Flagged => match is_flagged(folder) {
            true => Spelling::Folded,
            false => Spelling::Exact,
        },
        Kind::Folds => Spelling::Folded,
        Kind::Case => match tried(folder) {
            Spelling::Form => Spelling::Exact,
            other => other,
        },
        Kind::Unknown => tried(folder),
    }
}

/// Whether a folder has the flag by which it folds names.
#[cfg(target_os = "linux")]
pub(super) fn is_flagged(folder: BorrowedFd<'_>) -> bool {
    // `FS_CASEFOLD_FL`.
    const FOLDS: u32 = 0x4000_0000;
    let flags = open(folder).and_then(rustix::fs::ioctl_getflags);
    flags.is_ok_and(|flag| flag.bits() & FOLDS != 0)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_flagged(_: BorrowedFd<'_>) -> bool {
    false
}

fn open(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(folder, ".", flags, Mode::empty())
}

/// What an entry says that is looked up in another case. Whether forms of Unicode are compared is not known then.
fn tried(folder: BorrowedFd<'_>) -> Spelling {
    let Ok(opened) = open(folder) else { return Spelling::Unknown };
    let mut names = Vec::new();
    let listed = read_entries(&opened, &mut new_buffer(), &mut |name, _, _| {
        names.extend(std::str::from_utf8(name).ok().map(str::to_owned));
        names.len() < TRIED
    });
    let item = name_of(folder).and_then(|(above, name)| {
        // A name in the folder above tells of it only where that is of the same file system.
        let [above_stat, stat] = [crate::system::fstat(&above), crate::system::fstat(folder)];
        (above_stat.ok()?.st_dev == stat.ok()?.st_dev).then_some((above, name))
    });
    let answers = names.iter().filter_map(|name| is_folded(opened.as_fd(), name));
    let item = item.and_then(|(above, name)| is_folded(above.as_fd(), &name));
    match answers.chain(item).next().filter(|_| listed.is_ok()) {
        Some(true) => Spelling::Folded,
        Some(false) => Spelling::Form,
        None => Spelling::Unknown,
    }
}

/// The folder above a folder, and the name that it has there.
fn name_of(folder: BorrowedFd<'_>) -> Option<(OwnedFd, String)> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()?;
    let name = path.file_name()?.to_str()?.to_owned();
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Some((rustix::fs::open(path.parent()?, flags, Mode::empty()).ok()?, name))
}

/// Whether a name leads to the same in another case; none where it has no letters, or is gone.
fn is_folded(folder: BorrowedFd<'_>, name: &str) -> Option<bool> {
    let other: String =
        name.chars()
            .map(|c| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            })
            .collect();
    if other == name {
        return None;
    }
    let stat = |name: &str| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let first = stat(name).ok()?;
    match stat(&other) {
        // Numbers of files may differ by the name that they were asked by (FUSE): then all else tells.
        Ok(found) => {
            let looks = |item: &crate::system::Stat| {
                (item.st_mode, item.st_size, item.st_mtime, item.st_mtime_nsec)
            };
            Some(same_file(&first, &found) || looks(&first) == looks(&found))
        }
        Err(Errno::NOENT) => Some(false),
        Err(_) => None,
    }
}

/// The name that a folder lists for one that leads to something in it: the same, or one that is spelled otherwise.
/// None where it lists no such name: a short name, a stream.
pub(crate) fn listed(folder: BorrowedFd<'_>, name: &OsStr) -> Option<OsString> {
    let opened = open(folder).ok()?;
    let mut found = None;
    let mut see = |item: &[u8], _, _| {
        if item == name.as_bytes() {
            found = Some(item.to_vec());
            return false;
        }
        let same = std::str::from_utf8(item).ok().zip(name.to_str());
        if found.is_none() && same.is_some_and(|(text, name)| Spelling::Folded.is_same(text, name))
        {
            found = Some(item.to_vec());
        }
        true
    };
    read_entries(&opened, &mut new_buffer(), &mut see).ok()?;
    found.map(OsString::from_vec)
}

/// The path that the folders on the way list for one that leads to something.
pub(super) fn listed_path(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::io::fcntl_dupfd_cloexec(root, 3).ok()?;
    let mut real = PathBuf::new();
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let item = listed(folder.as_fd(), name)?;
        if names.peek().is_some() {
            folder = openat(&folder, item.as_bytes(), flags, Mode::empty()).ok()?;
        }
        real.push(item);
    }
    Some(real)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use capsule_base::path::PathProblem;

    use super::*;

    #[test]
    fn kinds_are_known_by_their_numbers() {
        for (magic, kind) in [
            (0xef53, Kind::Flagged),
            (0x0102_1994, Kind::Flagged),
            (0x9123_683e, Kind::Exact),
            (0x794c_7630, Kind::Exact),
            (0x4d44, Kind::Folds),
            (0x7366_746e, Kind::Folds),
            (0x2011_bab0, Kind::Folds),
            (0x482b, Kind::Folds),
            (0x6573_5546, Kind::Unknown),
            (0x6969, Kind::Unknown),
            (0x5846_5342, Kind::Case),
            (0xff53_4d42, Kind::Unknown),
            (0x0102_1997, Kind::Unknown),
            (0x1234, Kind::Unknown),
        ] {
            assert_eq!(kind_of(magic), kind, "{magic:x}");
        }
    }

    /// Here names are compared byte by byte; what is tried says so, or that it does not know.
    #[test]
    fn what_is_tried_is_believed() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("1234");
        fs::create_dir(&root).unwrap();
        let folder = File::open(&root).unwrap();
        assert_eq!(of(folder.as_fd()), Spelling::Exact);
        assert_eq!(tried(folder.as_fd()), Spelling::Unknown, "nothing has a letter");
        fs::write(root.join("56"), "").unwrap();
        assert_eq!(tried(folder.as_fd()), Spelling::Unknown, "nothing has a letter");
        fs::write(root.join("name"), "").unwrap();
        assert_eq!(tried(folder.as_fd()), Spelling::Form);
        let named = outer.path().join("named");
        fs::create_dir(&named).unwrap();
        assert_eq!(
            tried(File::open(&named).unwrap().as_fd()),
            Spelling::Form,
            "its own name tells"
        );
    }

    /// A folder that folds names, in a workspace that does not: no tool reaches what is in it, and a walk tells that it
    /// saw none of it.
    #[test]
    fn folders_that_fold_by_themselves_are_not_entered() {
        use capsule_base::path::WorkspacePath;

        use crate::hidden_paths::HiddenPaths;
        use crate::resolve::{LookupError, Workspace};

        let outer = tempfile::tempdir().unwrap();
        fs::create_dir_all(outer.path().join("plain")).unwrap();
        fs::create_dir_all(outer.path().join("folding/inner")).unwrap();
        for path in ["plain/a", "folding/a", "folding/inner/a"] {
            fs::write(outer.path().join(path), "").unwrap();
        }
        let is_flagged: IsFlagged = |folder| {
            name_of(folder).is_some_and(|(_, name)| matches!(name.as_str(), "folding" | "inner"))
        };
        let opened = Workspace::open(outer.path()).unwrap();
        let workspace = Workspace { is_flagged: Some(is_flagged), ..opened };
        let find = |path: &str| workspace.resolve(&WorkspacePath::parse(path).unwrap());
        assert!(find("plain/a").is_ok());
        for path in ["folding", "folding/a", "folding/inner/a"] {
            let found = find(path);
            let is_refused = matches!(found, Err(LookupError::Outside(PathProblem::Folding)));
            assert!(is_refused, "{path}: {found:?}");
        }
        let hidden = HiddenPaths::new(Box::new(|_, _| false)).hidden_now(&workspace).unwrap();
        assert_eq!(hidden, ["folding"]);
    }

    #[test]
    fn what_is_listed_is_found_by_other_spellings() {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("Sub")).unwrap();
        fs::write(outer.path().join("Sub/.env"), "").unwrap();
        fs::write(outer.path().join("Sub/.ENV2"), "").unwrap();
        let root = File::open(outer.path()).unwrap();
        for (asked, expected) in [
            ("Sub/.env", Some("Sub/.env")),
            ("Sub/.ENV", Some("Sub/.env")),
            ("sub/.Env. ", Some("Sub/.env")),
            ("SUB/.env2", Some("Sub/.ENV2")),
            ("SUB/.env:x", Some("Sub/.env")),
            ("Sub/ENV~1", None),
            ("other/.env", None),
        ] {
            let found = listed_path(root.as_fd(), Path::new(asked));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{asked}");
        }
    }
}
