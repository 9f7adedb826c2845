//! A copy of the workspace, for where the kernel lays no changes over it.
//!
//! It is made file by file beneath descriptors. No link is followed, and no other file system that
//! stands in the workspace is entered. Files that the file system can share are not copied
//! (`FICLONE`). Several names of one file stay that, since by its identity a protected file is known
//! under its other names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::PathProblem;
use capsule_base::units::show_size;
use capsule_core::outcome::CodedError;
use capsule_redact::excerpt;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, chownat, fchmod, fstatvfs, ftruncate,
    futimens, linkat, mkdirat, openat, readlinkat, symlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::layers::DIRECTORY_FLAGS;
use crate::cancel::Cancel;
use crate::change_path::split_os_path;
use crate::directory_entries::entry_names;
use crate::node;
use crate::node::reflink;
use crate::resolve::{LookupError, Workspace, file_type};
use crate::system::{Stat, fstat, statat};

/// How large a copy may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyLimits {
    /// The most paths.
    pub paths: usize,
    /// The most bytes that are really copied.
    pub bytes: u64,
    /// The space that has to stay free.
    pub free_min: u64,
}

impl CopyLimits {
    /// Those of a run.
    pub(super) const RUN: Self = Self {
        paths: limits::COPIED_PATHS,
        bytes: limits::COPIED_BYTES,
        free_min: limits::COPY_FREE_BYTES,
    };
}

/// Why something of the workspace is not in the copy. What stands at its path there, or beneath it,
/// can never be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    /// It is no file, folder or link.
    SpecialFile,
    /// Another file system stands there.
    OtherFileSystem,
    /// This user may not read it.
    Unreadable,
    /// No command and no tool may see it. Were it there, a command could give it another name.
    Protected,
    /// It is where the changes of runs are collected.
    StagingDirectory,
}

impl Omission {
    /// Why a change there is refused.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::SpecialFile => "a pipe, a socket or a device stands there, which was not copied",
            Self::OtherFileSystem => "another file system is mounted there, which was not copied",
            Self::Unreadable => "it could not be read, so it was not copied",
            Self::Protected => "it is protected, so it was not copied",
            Self::StagingDirectory => "changes of runs are collected there",
        }
    }
}

/// What became of a workspace that was copied.
#[derive(Debug, Default)]
pub(super) struct CopyResult {
    /// What is not in the copy.
    pub omitted: BTreeMap<OsString, Omission>,
    /// How everything looked in the workspace when it was copied.
    pub original_stamps: BTreeMap<OsString, node::FileStamp>,
}

/// Copies a workspace into a folder.
pub(super) struct Copier<'c> {
    from: &'c Workspace,
    /// What is protected in it.
    hidden: &'c BTreeSet<OsString>,
    to: BorrowedFd<'c>,
    /// The folder that the changes of all runs lie in, by device and inode.
    staging_root: (u64, u64),
    limits: CopyLimits,
    cancel: &'c Cancel,
    paths: usize,
    bytes: u64,
    /// Whether files may turn out to be shareable.
    may_reflink: bool,
    /// The first names of files that have several.
    first_names: BTreeMap<(u64, u64), OsString>,
    /// The folders that were made, and what they are to look like in the end.
    directories: BTreeMap<OsString, Stat>,
    copy: CopyResult,
}

/// An entry that is to be copied.
struct CopyEntry<'e> {
    from: BorrowedFd<'e>,
    to: BorrowedFd<'e>,
    name: &'e [u8],
    path: &'e OsStr,
    stat: Stat,
}

/// Why something was not copied.
enum CopyError {
    System(Errno),
    Problem(CodedError),
}

impl From<Errno> for CopyError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl<'c> Copier<'c> {
    pub(super) fn new(
        (from, hidden): (&'c Workspace, &'c BTreeSet<OsString>),
        (to, item): (BorrowedFd<'c>, (u64, u64)),
        bounds: CopyLimits,
        cancel: &'c Cancel,
    ) -> Self {
        let (names, made, copy) = (BTreeMap::new(), BTreeMap::new(), CopyResult::default());
        let (paths, bytes, shares) = (0, 0, true);
        Self {
            from,
            hidden,
            to,
            staging_root: item,
            limits: bounds,
            cancel,
            paths,
            bytes,
            may_reflink: shares,
            first_names: names,
            directories: made,
            copy,
        }
    }

    /// Copies it.
    ///
    /// # Errors
    /// [`Code::SandboxFailed`] where it is too large or cannot be copied, [`Code::ExecCancelled`]
    /// where nobody wants it any more.
    pub(super) fn run(mut self) -> Result<CopyResult, CodedError> {
        let mut waiting = vec![OsString::new()];
        while let Some(path) = waiting.pop() {
            match self.open_directory(self.from.root(), &path) {
                Ok(folder) => self.copy_directory(&path, &folder, &mut waiting)?,
                // It went away meanwhile.
                Err(Errno::NOENT) if !path.is_empty() => {}
                Err(Errno::XDEV) if !path.is_empty() => {
                    self.note_omitted(&path, Omission::OtherFileSystem)
                }
                Err(Errno::ACCESS) if !path.is_empty() => {
                    self.note_omitted(&path, Omission::Unreadable)
                }
                Err(errno) => return Err(copy_problem(&path, errno)),
            }
        }
        // From the inside out: some may not be written to any more, and each keeps its date.
        for (path, stat) in self.directories.iter().rev() {
            let finished = self.open_directory(self.to, path).and_then(|folder| {
                give_to_owner(&folder, stat);
                futimens(&folder, &node::timestamps(stat))?;
                fchmod(&folder, crate::system::mode(stat.st_mode & 0o7777))
            });
            finished.map_err(|errno| copy_problem(path, errno))?;
        }
        Ok(self.copy)
    }

    fn copy_directory(
        &mut self,
        path: &OsStr,
        from: &OwnedFd,
        waiting: &mut Vec<OsString>,
    ) -> Result<(), CodedError> {
        let to = self.open_directory(self.to, path).map_err(|errno| copy_problem(path, errno))?;
        for name in entry_names(from).map_err(|errno| copy_problem(path, errno))? {
            if self.cancel.is_set() {
                let message = "the workspace was not copied to its end";
                return Err(CodedError::new(Code::ExecCancelled, message));
            }
            let path = Path::new(path).join(&name).into_os_string();
            let name = name.as_bytes();
            node::refresh(from.as_fd(), name);
            let stat = match statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(copy_problem(&path, errno)),
            };
            self.paths += 1;
            if self.paths > self.limits.paths {
                return Err(too_large_problem(&format!(
                    "holds more than {} paths",
                    self.limits.paths
                )));
            }
            let entry = CopyEntry { from: from.as_fd(), to: to.as_fd(), name, path: &path, stat };
            match self.copy_entry(&entry) {
                Ok(true) => waiting.push(path),
                Ok(false) => {}
                Err(CopyError::System(errno)) => return Err(copy_problem(&path, errno)),
                Err(CopyError::Problem(problem)) => return Err(problem),
            }
        }
        Ok(())
    }

    /// Copies an entry; says whether it is a folder that is to be copied too.
    fn copy_entry(&mut self, entry: &CopyEntry<'_>) -> Result<bool, CopyError> {
        let CopyEntry { from, to, name, path, stat } = *entry;
        self.note_stamp(path, &stat);
        match file_type(&stat) {
            FileType::Directory => {
                mkdirat(to, name, Mode::RWXU)?;
                self.directories.insert(path.to_owned(), stat);
                let is_own = (stat.st_dev, stat.st_ino) == self.staging_root;
                match (is_own, self.hidden.contains(path)) {
                    (true, _) => self.note_omitted(path, Omission::StagingDirectory),
                    (false, true) => self.note_omitted(path, Omission::Protected),
                    (false, false) => {
                        let folder =
                            openat(to, name, DIRECTORY_FLAGS | OFlags::CLOEXEC, Mode::empty())?;
                        if owner_can_be_set(&folder, &stat) {
                            return Ok(true);
                        }
                        self.note_omitted(path, Omission::Unreadable);
                    }
                }
            }
            FileType::Symlink => {
                symlinkat(readlinkat(from, name, Vec::new())?, to, name)?;
                // A file system without dates or owners of links is no reason to have none.
                let (uid, gid) = node::owner_of(&stat);
                let _ = chownat(to, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
                let _ = utimensat(to, name, &node::timestamps(&stat), AtFlags::SYMLINK_NOFOLLOW);
            }
            FileType::RegularFile => self.copy_file(entry)?,
            _ => self.note_omitted(path, Omission::SpecialFile),
        }
        Ok(false)
    }

    fn copy_file(&mut self, entry: &CopyEntry<'_>) -> Result<(), CopyError> {
        let identity = (entry.stat.st_dev, entry.stat.st_ino);
        if let Some(first) = self.first_names.get(&identity) {
            let (folder, name) = split_os_path(first);
            let folder = self.open_directory(self.to, folder)?;
            linkat(folder, name.as_bytes(), entry.to, entry.name, AtFlags::empty())?;
            // What is not copied is not copied under any of its names.
            if let Some(why) = self.copy.omitted.get(first).copied() {
                self.note_omitted(entry.path, why);
            }
            return Ok(());
        }
        if self.hidden.contains(entry.path) {
            self.note_links(&entry.stat, entry.path);
            return self.make_placeholder(entry, Omission::Protected);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.from.open_plain(entry.from, OsStr::from_bytes(entry.name), flags);
        let from = match opened.map_err(errno_of) {
            Ok(from) => File::from(from),
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::XDEV) => return self.make_placeholder(entry, Omission::OtherFileSystem),
            Err(Errno::ACCESS | Errno::PERM) => {
                return self.make_placeholder(entry, Omission::Unreadable);
            }
            Err(errno) => return Err(errno.into()),
        };
        // Somebody may have put another one there since it was looked at.
        let stat = fstat(&from)?;
        if file_type(&stat) != FileType::RegularFile {
            self.note_omitted(entry.path, Omission::SpecialFile);
            return Ok(());
        }
        self.note_stamp(entry.path, &stat);
        let to = entry.create_file(Mode::RUSR | Mode::WUSR)?;
        if !give_to_owner(&to, &stat) && !is_readable_by_commands(&stat) {
            fchmod(&to, Mode::empty())?;
            self.note_omitted(entry.path, Omission::Unreadable);
            self.note_links(&stat, entry.path);
            return Ok(());
        }
        self.fill_file(&from, &to, &stat)?;
        // Nothing in the copy runs as its owner, who may be another one than the original's.
        fchmod(&to, crate::system::mode(stat.st_mode & 0o777))?;
        futimens(&to, &node::timestamps(&stat))?;
        self.note_links(&stat, entry.path);
        Ok(())
    }

    /// Notes a file that may have other names.
    fn note_links(&mut self, stat: &Stat, path: &OsStr) {
        if stat.st_nlink > 1 {
            self.first_names.insert((stat.st_dev, stat.st_ino), path.to_owned());
        }
    }

    /// Shares the bytes of a file, or copies them.
    fn fill_file(&mut self, from: &File, mut to: &File, stat: &Stat) -> Result<(), CopyError> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size == 0 {
            return Ok(());
        }
        self.may_reflink = self.may_reflink && reflink(to, from);
        if self.may_reflink {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(size);
        let CopyLimits { bytes, free_min: spare, .. } = self.limits;
        if self.bytes > bytes {
            let why = format!("holds more than {}", show_size(bytes));
            return Err(CopyError::Problem(too_large_problem(&why)));
        }
        let told = fstatvfs(to)?;
        if told.f_bavail.saturating_mul(told.f_frsize) < size.saturating_add(spare) {
            let why = format!("would leave less than {} free", show_size(spare));
            return Err(CopyError::Problem(too_large_problem(&why)));
        }
        match io::copy(&mut from.take(size), &mut to) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO).into()),
        }
    }

    /// A file that nobody may read, in place of one that is not copied. It looks as one that mounts hide.
    fn make_placeholder(&mut self, entry: &CopyEntry<'_>, why: Omission) -> Result<(), CopyError> {
        let file = entry.create_file(Mode::empty())?;
        if matches!(why, Omission::Protected) {
            ftruncate(&file, limits::HIDDEN_FILE_BYTES.into())?;
            let time = Timespec { tv_sec: limits::HIDDEN_FILE_SECONDS.into(), tv_nsec: 0 };
            futimens(&file, &Timestamps { last_access: time, last_modification: time })?;
        }
        self.note_omitted(entry.path, why);
        Ok(())
    }

    /// Notes what is not in the copy. A folder is there by its name alone: a protected one can be listed, as
    /// it can where mounts hide it, and holds nothing.
    fn note_omitted(&mut self, path: &OsStr, why: Omission) {
        if let Some(stat) = self.directories.get_mut(path) {
            stat.st_mode = if matches!(why, Omission::Protected) { 0o444 } else { 0 };
        }
        self.copy.omitted.insert(path.to_owned(), why);
    }

    /// Notes how something looks that is copied.
    fn note_stamp(&mut self, path: &OsStr, stat: &Stat) {
        self.copy.original_stamps.insert(path.to_owned(), node::file_stamp(stat));
    }

    /// Opens a folder on either side, without following any link.
    fn open_directory(&self, side: BorrowedFd<'_>, path: &OsStr) -> Result<OwnedFd, Errno> {
        self.from.open_plain(side, path, DIRECTORY_FLAGS).map_err(errno_of)
    }
}

impl CopyEntry<'_> {
    fn create_file(&self, mode: Mode) -> Result<File, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.to, self.name, flags, mode).map(File::from)
    }
}

/// Gives what was made to the owner of what it is a copy of; says whether that could be done. Root
/// reads everything, and commands have no such right: what is its owner's stays that, so that the
/// kernel decides as in the workspace.
fn give_to_owner(to: impl AsFd, stat: &Stat) -> bool {
    node::copy_owner(to, stat).is_ok()
}

/// Whether a folder can be given away once everything is in it, or need not be.
fn owner_can_be_set(to: &OwnedFd, stat: &Stat) -> bool {
    let Ok(copied) = fstat(to) else { return false };
    give_to_owner(to, stat) && give_to_owner(to, &copied) || is_readable_by_commands(stat)
}

/// Whether a command may read what this process could open. Nobody but root opens more.
fn is_readable_by_commands(stat: &Stat) -> bool {
    let me = geteuid();
    if !me.is_root() {
        return true;
    }
    let class = match (me.as_raw() == stat.st_uid, node::is_in_our_group(stat)) {
        (true, _) => 6,
        (false, true) => 3,
        (false, false) => 0,
    };
    let wanted = if file_type(stat) == FileType::Directory { 0o5 } else { 0o4 };
    (stat.st_mode >> class) & wanted == wanted
}

/// What the system says of a path that is not opened.
const fn errno_of(why: LookupError) -> Errno {
    match why {
        LookupError::Missing => Errno::NOENT,
        LookupError::Outside(PathProblem::TooLong) => Errno::NAMETOOLONG,
        LookupError::Outside(_) => Errno::XDEV,
        LookupError::Refused(errno) => errno,
    }
}

fn copy_problem(path: &OsStr, errno: Errno) -> CodedError {
    let path = path.to_string_lossy();
    let path = excerpt(&path, limits::QUOTED_CHARS);
    let message = format!("the workspace cannot be copied: `{path}`: {errno}");
    CodedError::new(Code::SandboxFailed, message)
}

fn too_large_problem(why: &str) -> CodedError {
    CodedError::new(Code::SandboxFailed, format!("the workspace is not copied, since it {why}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    const WIDE: CopyLimits = CopyLimits { paths: 100, bytes: 1_000, free_min: 0 };

    /// A workspace of six paths and 300 bytes, of which 100 have two names, and a folder beside it.
    fn lay() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("d")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("d/one"), [1; 100]).unwrap();
        fs::write(from.join("two"), [2; 200]).unwrap();
        fs::hard_link(from.join("d/one"), from.join("again")).unwrap();
        fs::write(from.join("empty"), "").unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();
        (folder, from, to)
    }

    fn copy(
        (from, to): (&Path, &Path),
        bounds: CopyLimits,
        cancelled: bool,
    ) -> Result<CopyResult, CodedError> {
        let from = Workspace::open(from).unwrap();
        let to = Workspace::open(to).unwrap();
        let cancel = Cancel::new(Arc::new(AtomicBool::new(cancelled)));
        let hidden = BTreeSet::from(["hidden".into()]);
        Copier::new((&from, &hidden), (to.root(), (0, 0)), bounds, &cancel).run()
    }

    #[test]
    fn a_copy_is_bounded() {
        let (_folder, from, to) = lay();
        let shares = {
            let (one, two) = (File::open(from.join("two")), File::create(to.join("probe")));
            let shares = reflink(&two.unwrap(), &one.unwrap());
            fs::remove_file(to.join("probe")).unwrap();
            shares
        };
        let rows = [
            (CopyLimits { paths: 6, bytes: 300, ..WIDE }, false, None),
            (CopyLimits { paths: 5, ..WIDE }, false, Some("more than 5 paths")),
            // What is shared takes nothing.
            (CopyLimits { bytes: 299, ..WIDE }, false, Some("more than 299")),
            (CopyLimits { free_min: 1 << 62, ..WIDE }, false, Some("free")),
            (WIDE, true, Some("not copied to its end")),
        ];
        for (bounds, cancelled, expected) in rows {
            fs::remove_dir_all(&to).unwrap();
            fs::create_dir(&to).unwrap();
            let why = copy((&from, &to), bounds, cancelled).err().map(|error| error.message);
            let expected =
                expected.filter(|expected| !shares || expected.contains("paths") || cancelled);
            match expected {
                Some(part) => {
                    let why = why.unwrap_or_default();
                    assert!(why.contains(part), "{bounds:?}: {why}");
                }
                None => assert_eq!(why, None, "{bounds:?}"),
            }
        }
    }

    #[test]
    fn kinds_permissions_dates_and_names_are_kept() {
        let (_folder, from, to) = lay();
        for path in ["two", "d", "link"] {
            // Only root can give something away.
            let _ = lchown(from.join(path), Some(12_345), Some(12_345));
        }
        for (path, mode) in [("two", 0o4751), ("d/one", 0o600), ("d", 0o550)] {
            fs::set_permissions(from.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        for path in ["shut", "hidden"] {
            fs::create_dir(from.join(path)).unwrap();
            fs::write(from.join(path).join("in"), "x").unwrap();
        }
        fs::write(from.join("unread"), "x").unwrap();
        for path in ["shut", "unread"] {
            fs::set_permissions(from.join(path), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let shut = copy((&from, &to), WIDE, false).unwrap().omitted;
        for path in ["two", "d/one", "d", "again", "empty", "link"] {
            let facts = |root: &Path| {
                let meta = root.join(path).symlink_metadata().unwrap();
                let times = (meta.mtime(), meta.mtime_nsec());
                (meta.mode() & !0o7000, meta.len(), meta.nlink(), times, meta.uid(), meta.gid())
            };
            assert_eq!(facts(&to), facts(&from), "{path}");
        }
        let meta = |path: &str| to.join(path).symlink_metadata().unwrap();
        assert_eq!(meta("two").mode() & 0o7000, 0, "nothing runs as its owner");
        assert_eq!(meta("again").ino(), meta("d/one").ino());
        assert_eq!(fs::read(to.join("again")).unwrap(), [1; 100]);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/etc/passwd"));
        let reads_all = fs::read(from.join("unread")).is_ok();
        let expected = if reads_all { vec!["hidden"] } else { vec!["hidden", "shut", "unread"] };
        assert_eq!(shut.keys().collect::<Vec<_>>(), expected);
        assert_eq!([meta("shut").mode() & 0o777, meta("unread").mode() & 0o777], [0, 0]);
        assert_eq!(meta("hidden").mode() & 0o777, 0o444);
        for path in ["d", "shut", "hidden"].iter().flat_map(|name| [from.join(name), to.join(name)])
        {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert!(fs::read_dir(to.join("hidden")).unwrap().next().is_none());
    }
}
