//! The folder that tools work in, held by a descriptor.
//!
//! A path is resolved beneath that descriptor by the kernel (`openat2`), or by [`steps`] where the
//! kernel cannot, and from then on it is a descriptor too: what was judged is what is opened. A
//! later look-up by name happens only to compare.

mod steps;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use capsule_core::action::{FileKind, PathFact, Place};
use capsule_core::path::{PathProblem, WorkspacePath};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::veil::Veil;

/// The folder that tools work in.
pub struct Workspace {
    root: OwnedFd,
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// What stands at a path: held, not just named.
#[derive(Debug)]
pub struct Found {
    /// The descriptor: it says which file, and opens nothing (`O_PATH`).
    pub handle: OwnedFd,
    /// What the kernel says of it.
    pub stat: Stat,
    /// Where it really stands.
    pub real: WorkspacePath,
}

impl Found {
    /// What kind of thing it is.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        match FileType::from_raw_mode(self.stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Folder,
            _ => FileKind::Special,
        }
    }

    /// Whether it is the same file as another.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        (self.stat.st_dev, self.stat.st_ino) == (other.stat.st_dev, other.stat.st_ino)
    }
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// There is nothing at the path.
    Missing,
    /// The path leads out.
    Outside(PathProblem),
    /// The system refuses.
    Refused(Errno),
}

impl Workspace {
    /// Opens a folder as a workspace.
    ///
    /// # Errors
    /// When it is not a folder that can be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        Ok(Self { root, path, device: stat.st_dev, inode: stat.st_ino })
    }

    /// Its real path when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device that it lies on.
    #[must_use]
    pub const fn device(&self) -> u64 {
        self.device
    }

    /// Its inode.
    #[must_use]
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Its descriptor.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a path beneath the root.
    pub(crate) fn open_beneath(
        &self,
        path: &OsStr,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, NotFound> {
        let path = if path.is_empty() { OsStr::new(".") } else { path };
        kernel_open(self.root(), path, flags, mode)
            .unwrap_or_else(|| steps::open(self.root(), path, flags, mode))
    }

    /// Finds what stands at a path, following links that stay inside.
    pub(crate) fn find(&self, path: &WorkspacePath) -> Result<Found, NotFound> {
        let name = OsStr::new(path.as_str());
        let handle = self.open_beneath(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&handle).map_err(NotFound::Refused)?;
        let real = match self.name_of(&handle) {
            Some(real) => real,
            None => steps::real_path(self.root(), name)?,
        };
        Ok(Found { handle, stat, real })
    }

    /// Where a descriptor stands now, as the kernel names it; none where the kernel does not tell.
    fn name_of(&self, handle: &OwnedFd) -> Option<WorkspacePath> {
        let name = |fd: BorrowedFd<'_>| {
            use std::os::fd::AsRawFd;
            std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
        };
        let (root, own) = (name(self.root())?, name(handle.as_fd())?);
        let inside = own.strip_prefix(&root).ok()?;
        let text = inside.to_str()?;
        let path = if text.is_empty() { "." } else { text };
        WorkspacePath::parse(path).ok().filter(|parsed| parsed.as_str() == text)
    }

    /// What is found at a path, as a fact to be judged.
    #[must_use]
    pub fn fact(&self, path: &WorkspacePath, veil: &Veil) -> PathFact {
        let fact = |real, kind, alias| PathFact { path: path.clone(), real, kind, alias };
        match self.find(path) {
            Ok(found) => {
                let is_linked = found.kind() == FileKind::File && found.stat.st_nlink > 1;
                let alias = || veil.alias(self, found.stat.st_dev, found.stat.st_ino);
                match is_linked.then(alias).flatten() {
                    None => fact(Place::Inside(found.real.clone()), found.kind(), None),
                    Some(Ok(name)) => {
                        fact(Place::Inside(found.real.clone()), found.kind(), Some(name))
                    }
                    // Protected under a name that cannot be told.
                    Some(Err(problem)) => fact(Place::Outside(problem), found.kind(), None),
                }
            }
            Err(NotFound::Outside(problem)) => {
                fact(Place::Outside(problem), FileKind::Missing, None)
            }
            Err(NotFound::Missing | NotFound::Refused(_)) => match self.future(path) {
                Ok(real) => fact(Place::Inside(real), FileKind::Missing, None),
                Err(problem) => fact(Place::Outside(problem), FileKind::Missing, None),
            },
        }
    }

    /// Where a file that is not there yet would stand: its deepest folder that is there, with its
    /// links followed, and the rest of the path. A link that leads to nothing is no such place.
    pub(crate) fn future(&self, path: &WorkspacePath) -> Result<WorkspacePath, PathProblem> {
        if self.is_link(path) {
            return Err(PathProblem::Escapes);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(path.clone());
        };
        match self.find(&parent) {
            Ok(found) => Ok(found.real.join(name)),
            Err(NotFound::Outside(problem)) => Err(problem),
            Err(_) => self.future(&parent).map(|real| real.join(name)),
        }
    }

    fn is_link(&self, path: &WorkspacePath) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self.open_beneath(OsStr::new(path.as_str()), flags, Mode::empty());
        opened
            .ok()
            .and_then(|handle| fstat(&handle).ok())
            .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workspace({})", self.path.display())
    }
}

/// What an error of the system means for a path.
pub(crate) fn not_found(errno: Errno) -> NotFound {
    match errno {
        Errno::NOENT | Errno::NOTDIR => NotFound::Missing,
        Errno::XDEV => NotFound::Outside(PathProblem::Escapes),
        Errno::LOOP => NotFound::Outside(PathProblem::Escapes),
        Errno::NAMETOOLONG => NotFound::Outside(PathProblem::TooLong),
        other => NotFound::Refused(other),
    }
}

/// Opens by the kernel's own rules for staying beneath; none where the kernel has none.
#[cfg(target_os = "linux")]
fn kernel_open(
    root: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Option<Result<OwnedFd, NotFound>> {
    use rustix::fs::{ResolveFlags, openat2};
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel answers EAGAIN when something on the way is renamed at the same time.
    for _ in 0..16 {
        match openat2(root, path.as_bytes(), flags, mode, rules | ResolveFlags::NO_XDEV) {
            Ok(opened) => return Some(Ok(opened)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => return None,
            Err(Errno::XDEV) => {
                // Both a climb and another file system give EXDEV; only the message differs.
                let mounted = openat2(root, path.as_bytes(), OFlags::PATH, mode, rules).is_ok();
                let problem = if mounted { PathProblem::Mounted } else { PathProblem::Escapes };
                return Some(Err(NotFound::Outside(problem)));
            }
            Err(errno) => return Some(Err(not_found(errno))),
        }
    }
    Some(Err(NotFound::Refused(Errno::AGAIN)))
}

#[cfg(not(target_os = "linux"))]
fn kernel_open(
    _: BorrowedFd<'_>,
    _: &OsStr,
    _: OFlags,
    _: Mode,
) -> Option<Result<OwnedFd, NotFound>> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways to resolve must agree on every row.
    #[test]
    fn paths_stay_beneath_whoever_resolves_them() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        fs::create_dir_all(root.join("docs/deep")).unwrap();
        fs::create_dir(outer.path().join("ws-evil")).unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        fs::write(root.join("docs/a.md"), "a").unwrap();
        for (target, link) in [
            ("docs/a.md", "inside"),
            ("docs", "folder"),
            ("../secret", "climbs"),
            ("/etc/hosts", "absolute"),
            ("../ws/docs/a.md", "out-and-in"),
            ("loop-b", "loop-a"),
            ("loop-a", "loop-b"),
            ("nowhere", "dangling"),
            ("../nowhere", "dangling-out"),
            ("/proc/self/root", "magic"),
            ("deep/../a.md", "docs/dots"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let workspace = Workspace::open(&root).unwrap();
        let escapes = Err(NotFound::Outside(PathProblem::Escapes));
        let missing = Err(NotFound::Missing);
        let rows: &[(&str, Result<&str, NotFound>)] = &[
            ("docs/a.md", Ok("docs/a.md")),
            (".", Ok("")),
            ("inside", Ok("docs/a.md")),
            ("folder/a.md", Ok("docs/a.md")),
            ("folder", Ok("docs")),
            ("docs/dots", Ok("docs/a.md")),
            ("climbs", escapes),
            ("absolute", escapes),
            ("out-and-in", escapes),
            ("loop-a", escapes),
            ("dangling", missing),
            ("dangling-out", escapes),
            ("magic/etc", escapes),
            ("nothing", missing),
            ("docs/a.md/x", missing),
        ];
        for (asked, expected) in rows {
            let path = WorkspacePath::parse(asked).unwrap();
            let name = OsStr::new(path.as_str());
            let by_kernel = workspace.find(&path).map(|found| found.real.to_string());
            let by_steps = steps::real_path(workspace.root(), name).map(|real| real.to_string());
            let expected = expected.map(|real| WorkspacePath::parse(real).unwrap_or_default());
            let expected = expected.map(|real| real.to_string());
            assert_eq!(by_kernel, expected, "{asked} by the kernel");
            assert_eq!(by_steps, expected, "{asked} by steps");
        }
    }

    #[test]
    fn a_file_that_will_be_has_a_place() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        fs::create_dir_all(root.join("docs")).unwrap();
        symlink("docs", root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("docs/new", root.join("dangling")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let future = |asked: &str| {
            workspace.future(&WorkspacePath::parse(asked).unwrap()).map(|real| real.to_string())
        };
        assert_eq!(future("docs/new/er.md"), Ok("docs/new/er.md".into()));
        assert_eq!(future("link/new.md"), Ok("docs/new.md".into()));
        assert_eq!(future("up/new.md"), Err(PathProblem::Escapes));
        assert_eq!(future("dangling"), Err(PathProblem::Escapes));
    }
}
