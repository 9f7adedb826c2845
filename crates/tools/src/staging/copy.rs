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

use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::PathProblem;
use capsule_core::units::show_size;
use capsule_redact::excerpt;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, chownat, fchmod, fstat, fstatvfs, futimens, linkat,
    mkdirat, openat, readlinkat, statat, symlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::scan::entries;
use super::{FOLDER, apart};
use crate::node;
use crate::tool::Cancel;
use crate::undo::share;
use crate::workspace::{NotFound, Workspace, kind};

/// How large a copy may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most paths.
    pub paths: usize,
    /// The most bytes that are really copied.
    pub bytes: u64,
    /// The space that has to stay free.
    pub spare: u64,
}

impl Bounds {
    /// Those of a run.
    pub(super) const RUN: Self = Self {
        paths: limits::COPIED_PATHS,
        bytes: limits::COPIED_BYTES,
        spare: limits::COPY_FREE_BYTES,
    };
}

/// Why something of the workspace is not in the copy. What stands at its path there, or beneath it,
/// can never be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shut {
    /// It is no file, folder or link.
    LeftOut,
    /// Another file system stands there.
    Mounted,
    /// This user may not read it.
    Unreadable,
    /// No command and no tool may see it. Were it there, a command could give it another name.
    Protected,
    /// It is where the changes of runs are collected.
    Own,
}

impl Shut {
    /// Why a change there is refused.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::LeftOut => "a pipe, a socket or a device stands there, which was not copied",
            Self::Mounted => "another file system is mounted there, which was not copied",
            Self::Unreadable => "it could not be read, so it was not copied",
            Self::Protected => "it is protected, so it was not copied",
            Self::Own => "changes of runs are collected there",
        }
    }
}

/// What became of a workspace that was copied.
#[derive(Debug, Default)]
pub(super) struct Copy {
    /// What is not in the copy.
    pub shut: BTreeMap<OsString, Shut>,
    /// How everything looked in the workspace when it was copied.
    pub originals: BTreeMap<OsString, node::Looks>,
}

/// Copies a workspace into a folder.
pub(super) struct Copier<'c> {
    from: &'c Workspace,
    /// What is protected in it.
    hidden: &'c BTreeSet<OsString>,
    to: BorrowedFd<'c>,
    /// The folder that the changes of all runs lie in, by device and inode.
    own: (u64, u64),
    bounds: Bounds,
    cancel: &'c Cancel,
    paths: usize,
    bytes: u64,
    /// Whether files may turn out to be shareable.
    shares: bool,
    /// The first names of files that have several.
    names: BTreeMap<(u64, u64), OsString>,
    /// The folders that were made, and what they are to look like in the end.
    made: BTreeMap<OsString, Stat>,
    copy: Copy,
}

/// An entry that is to be copied.
struct Entry<'e> {
    from: BorrowedFd<'e>,
    to: BorrowedFd<'e>,
    name: &'e [u8],
    path: &'e OsStr,
    stat: Stat,
}

/// Why something was not copied.
enum Failed {
    System(Errno),
    Problem(CodedError),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl<'c> Copier<'c> {
    pub(super) fn new(
        (from, hidden): (&'c Workspace, &'c BTreeSet<OsString>),
        (to, own): (BorrowedFd<'c>, (u64, u64)),
        bounds: Bounds,
        cancel: &'c Cancel,
    ) -> Self {
        let (names, made, copy) = (BTreeMap::new(), BTreeMap::new(), Copy::default());
        let (paths, bytes, shares) = (0, 0, true);
        Self { from, hidden, to, own, bounds, cancel, paths, bytes, shares, names, made, copy }
    }

    /// Copies it.
    ///
    /// # Errors
    /// [`Code::SandboxFailed`] where it is too large or cannot be copied, [`Code::ExecCancelled`]
    /// where nobody wants it any more.
    pub(super) fn run(mut self) -> Result<Copy, CodedError> {
        let mut waiting = vec![OsString::new()];
        while let Some(path) = waiting.pop() {
            match self.open(self.from.root(), &path) {
                Ok(folder) => self.folder(&path, &folder, &mut waiting)?,
                // It went away meanwhile.
                Err(Errno::NOENT) if !path.is_empty() => {}
                Err(Errno::XDEV) if !path.is_empty() => self.shut(&path, Shut::Mounted),
                Err(Errno::ACCESS) if !path.is_empty() => self.shut(&path, Shut::Unreadable),
                Err(errno) => return Err(failed(&path, errno)),
            }
        }
        // From the inside out: some may not be written to any more, and each keeps its date.
        for (path, stat) in self.made.iter().rev() {
            let finished = self.open(self.to, path).and_then(|folder| {
                give(&folder, stat);
                futimens(&folder, &node::times(stat))?;
                fchmod(&folder, Mode::from_raw_mode(stat.st_mode & 0o7777))
            });
            finished.map_err(|errno| failed(path, errno))?;
        }
        Ok(self.copy)
    }

    fn folder(
        &mut self,
        path: &OsStr,
        from: &OwnedFd,
        waiting: &mut Vec<OsString>,
    ) -> Result<(), CodedError> {
        let to = self.open(self.to, path).map_err(|errno| failed(path, errno))?;
        for name in entries(from).map_err(|errno| failed(path, errno))? {
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
                Err(errno) => return Err(failed(&path, errno)),
            };
            self.paths += 1;
            if self.paths > self.bounds.paths {
                return Err(too_large(&format!("holds more than {} paths", self.bounds.paths)));
            }
            let entry = Entry { from: from.as_fd(), to: to.as_fd(), name, path: &path, stat };
            match self.entry(&entry) {
                Ok(true) => waiting.push(path),
                Ok(false) => {}
                Err(Failed::System(errno)) => return Err(failed(&path, errno)),
                Err(Failed::Problem(problem)) => return Err(problem),
            }
        }
        Ok(())
    }

    /// Copies an entry; says whether it is a folder that is to be copied too.
    fn entry(&mut self, entry: &Entry<'_>) -> Result<bool, Failed> {
        let Entry { from, to, name, path, stat } = *entry;
        self.note(path, &stat);
        match kind(&stat) {
            FileType::Directory => {
                mkdirat(to, name, Mode::RWXU)?;
                self.made.insert(path.to_owned(), stat);
                let is_own = (stat.st_dev, stat.st_ino) == self.own;
                match (is_own, self.hidden.contains(path)) {
                    (true, _) => self.shut(path, Shut::Own),
                    (false, true) => self.shut(path, Shut::Protected),
                    (false, false) => {
                        let folder = openat(to, name, FOLDER | OFlags::CLOEXEC, Mode::empty())?;
                        if can_be_given(&folder, &stat) {
                            return Ok(true);
                        }
                        self.shut(path, Shut::Unreadable);
                    }
                }
            }
            FileType::Symlink => {
                symlinkat(readlinkat(from, name, Vec::new())?, to, name)?;
                // A file system without dates or owners of links is no reason to have none.
                let (uid, gid) = node::owner(&stat);
                let _ = chownat(to, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
                let _ = utimensat(to, name, &node::times(&stat), AtFlags::SYMLINK_NOFOLLOW);
            }
            FileType::RegularFile => self.file(entry)?,
            _ => self.shut(path, Shut::LeftOut),
        }
        Ok(false)
    }

    fn file(&mut self, entry: &Entry<'_>) -> Result<(), Failed> {
        let identity = (entry.stat.st_dev, entry.stat.st_ino);
        if let Some(first) = self.names.get(&identity) {
            let (folder, name) = apart(first);
            let folder = self.open(self.to, folder)?;
            linkat(folder, name.as_bytes(), entry.to, entry.name, AtFlags::empty())?;
            // What is not copied is not copied under any of its names.
            if let Some(why) = self.copy.shut.get(first).copied() {
                self.shut(entry.path, why);
            }
            return Ok(());
        }
        if self.hidden.contains(entry.path) {
            self.know(&entry.stat, entry.path);
            return self.placeholder(entry, Shut::Protected);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.from.open_plain(entry.from, OsStr::from_bytes(entry.name), flags);
        let from = match opened.map_err(errno) {
            Ok(from) => File::from(from),
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::XDEV) => return self.placeholder(entry, Shut::Mounted),
            Err(Errno::ACCESS | Errno::PERM) => return self.placeholder(entry, Shut::Unreadable),
            Err(errno) => return Err(errno.into()),
        };
        // Somebody may have put another one there since it was looked at.
        let stat = fstat(&from)?;
        if kind(&stat) != FileType::RegularFile {
            self.shut(entry.path, Shut::LeftOut);
            return Ok(());
        }
        self.note(entry.path, &stat);
        let to = entry.make(Mode::RUSR | Mode::WUSR)?;
        if !give(&to, &stat) && !is_open_to_commands(&stat) {
            fchmod(&to, Mode::empty())?;
            self.shut(entry.path, Shut::Unreadable);
            self.know(&stat, entry.path);
            return Ok(());
        }
        self.fill(&from, &to, &stat)?;
        // Nothing in the copy runs as its owner, who may be another one than the original's.
        fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        futimens(&to, &node::times(&stat))?;
        self.know(&stat, entry.path);
        Ok(())
    }

    /// Notes a file that may have other names.
    fn know(&mut self, stat: &Stat, path: &OsStr) {
        if stat.st_nlink > 1 {
            self.names.insert((stat.st_dev, stat.st_ino), path.to_owned());
        }
    }

    /// Shares the bytes of a file, or copies them.
    fn fill(&mut self, from: &File, mut to: &File, stat: &Stat) -> Result<(), Failed> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size == 0 {
            return Ok(());
        }
        self.shares = self.shares && share(to, from);
        if self.shares {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(size);
        let Bounds { bytes, spare, .. } = self.bounds;
        if self.bytes > bytes {
            let why = format!("holds more than {}", show_size(bytes));
            return Err(Failed::Problem(too_large(&why)));
        }
        let told = fstatvfs(to)?;
        if told.f_bavail.saturating_mul(told.f_frsize) < size.saturating_add(spare) {
            let why = format!("would leave less than {} free", show_size(spare));
            return Err(Failed::Problem(too_large(&why)));
        }
        match io::copy(&mut from.take(size), &mut to) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO).into()),
        }
    }

    /// An empty file that nobody may read, in place of one that is not copied.
    fn placeholder(&mut self, entry: &Entry<'_>, why: Shut) -> Result<(), Failed> {
        let _ = entry.make(Mode::empty())?;
        self.shut(entry.path, why);
        Ok(())
    }

    /// Notes what is not in the copy. A folder is there by its name alone: a protected one can be listed, as
    /// it can where mounts hide it, and holds nothing.
    fn shut(&mut self, path: &OsStr, why: Shut) {
        if let Some(stat) = self.made.get_mut(path) {
            stat.st_mode = if matches!(why, Shut::Protected) { 0o444 } else { 0 };
        }
        self.copy.shut.insert(path.to_owned(), why);
    }

    /// Notes how something looks that is copied.
    fn note(&mut self, path: &OsStr, stat: &Stat) {
        self.copy.originals.insert(path.to_owned(), node::looks(stat));
    }

    /// Opens a folder on either side, without following any link.
    fn open(&self, side: BorrowedFd<'_>, path: &OsStr) -> Result<OwnedFd, Errno> {
        self.from.open_plain(side, path, FOLDER).map_err(errno)
    }
}

impl Entry<'_> {
    fn make(&self, mode: Mode) -> Result<File, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.to, self.name, flags, mode).map(File::from)
    }
}

/// Gives what was made to the owner of what it is a copy of; says whether that could be done. Root
/// reads everything, and commands have no such right: what is its owner's stays that, so that the
/// kernel decides as in the workspace.
fn give(to: impl AsFd, stat: &Stat) -> bool {
    node::give(to, stat).is_ok()
}

/// Whether a folder can be given away once everything is in it, or need not be.
fn can_be_given(to: &OwnedFd, stat: &Stat) -> bool {
    let Ok(own) = fstat(to) else { return false };
    give(to, stat) && give(to, &own) || is_open_to_commands(stat)
}

/// Whether a command may read what this process could open. Nobody but root opens more.
fn is_open_to_commands(stat: &Stat) -> bool {
    let me = geteuid();
    if !me.is_root() {
        return true;
    }
    let class = match (me.as_raw() == stat.st_uid, node::is_of_our_group(stat)) {
        (true, _) => 6,
        (false, true) => 3,
        (false, false) => 0,
    };
    let wanted = if kind(stat) == FileType::Directory { 0o5 } else { 0o4 };
    (stat.st_mode >> class) & wanted == wanted
}

/// What the system says of a path that is not opened.
const fn errno(why: NotFound) -> Errno {
    match why {
        NotFound::Missing => Errno::NOENT,
        NotFound::Outside(PathProblem::TooLong) => Errno::NAMETOOLONG,
        NotFound::Outside(_) => Errno::XDEV,
        NotFound::Refused(errno) => errno,
    }
}

fn failed(path: &OsStr, errno: Errno) -> CodedError {
    let path = path.to_string_lossy();
    let path = excerpt(&path, limits::QUOTED_CHARS);
    let message = format!("the workspace cannot be copied: `{path}`: {errno}");
    CodedError::new(Code::SandboxFailed, message)
}

fn too_large(why: &str) -> CodedError {
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

    const WIDE: Bounds = Bounds { paths: 100, bytes: 1_000, spare: 0 };

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
        bounds: Bounds,
        cancelled: bool,
    ) -> Result<Copy, CodedError> {
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
            let shares = share(&two.unwrap(), &one.unwrap());
            fs::remove_file(to.join("probe")).unwrap();
            shares
        };
        let rows = [
            (Bounds { paths: 6, bytes: 300, ..WIDE }, false, None),
            (Bounds { paths: 5, ..WIDE }, false, Some("more than 5 paths")),
            // What is shared takes nothing.
            (Bounds { bytes: 299, ..WIDE }, false, Some("more than 299")),
            (Bounds { spare: 1 << 62, ..WIDE }, false, Some("free")),
            (WIDE, true, Some("not copied to its end")),
        ];
        for (bounds, cancelled, expected) in rows {
            fs::remove_dir_all(&to).unwrap();
            fs::create_dir(&to).unwrap();
            let why = copy((&from, &to), bounds, cancelled).err().map(|own| own.message);
            let expected = expected.filter(|own| !shares || own.contains("paths") || cancelled);
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
        let shut = copy((&from, &to), WIDE, false).unwrap().shut;
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
