//! The folder that tools work in, held by a descriptor.
//!
//! A path is resolved relative to that descriptor by the kernel (`openat2`), or by [`fallback_resolver`] where
//! the kernel cannot, and from then on it is a descriptor too ([`FoundPath`]): what was judged is what is
//! opened. A later lookup by name happens only to compare.

mod entry_lookup;
mod fallback_resolver;
mod file_stat;
mod lookup_error;
mod path_lookup;
mod plain_file;
mod spelling;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_base::root_names::RootNames;
use capsule_base::spelling::{Spelling, forms};
use capsule_command::specs::is_system_program;
use capsule_core::action::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::system::{PATH_ONLY, Stat, fstat, statat};
pub use entry_lookup::{EntryLookup, NamedEntry};
pub use fallback_resolver::LinkChain;
pub use file_stat::{file_type, same_file};
pub use lookup_error::LookupError;
pub(crate) use lookup_error::lookup_error;
pub use path_lookup::{MissingEntry, PathLookup};
pub(crate) use spelling::listed;

/// How often a path is looked at anew while it changes under the eyes.
const MAX_LOOKUPS: usize = 64;

/// The folder that tools work in.
pub struct Workspace {
    root: OwnedFd,
    path: PathBuf,
    device: u64,
    inode: u64,
    /// What lies beneath, where changes are laid over it.
    lower: Option<OwnedFd>,
    /// How names are compared: by the file system that changes are applied to, or by its own.
    spelling: Spelling,
    /// Whether its own file system may take other spellings of a name for the same.
    has_aliases: bool,
    /// What tells of a folder in it whether that folds names, where some may.
    is_flagged: Option<spelling::IsFlagged>,
    /// The absolute names of its root that calls may use.
    root_names: RootNames,
    /// The real paths of directories outside of it whose programs every command sees, besides the system's.
    program_directories: Arc<[PathBuf]>,
}

/// What stands at a path: held, not just named.
#[derive(Debug)]
pub struct FoundPath {
    /// The descriptor: it says which file, and opens nothing (`O_PATH`).
    pub handle: OwnedFd,
    /// What the kernel says of it.
    pub stat: Stat,
    /// Where it really stands.
    pub real_path: WorkspacePath,
}

impl FoundPath {
    /// What kind of thing it is.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        match file_type(&self.stat) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            _ => FileKind::Special,
        }
    }

    /// Whether it is the same file as another.
    #[must_use]
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        same_file(&self.stat, &other.stat)
    }

    /// Whether it is the same file as another, and stands where that one stood.
    pub(crate) fn is_unchanged(&self, judged: &Self) -> bool {
        self.is_same_file(judged) && self.real_path == judged.real_path
    }

    /// Whether nobody wrote to it since it was found.
    pub(crate) fn is_unmodified(&self) -> bool {
        let written = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        fstat(&self.handle).is_ok_and(|now| written(&now) == written(&self.stat))
    }

    /// Opens the held file itself, whatever its name leads to by now. It neither waits for a pipe
    /// nor takes a terminal.
    ///
    /// # Errors
    /// The system refuses, or another file is opened by its name.
    pub fn open(&self, workspace: &Workspace, access: OFlags) -> Result<OwnedFd, LookupError> {
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let held = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let opened = match rustix::fs::open(held, flags, Mode::empty()) {
            // Without `/proc` its name is opened; the comparison says whether that is the same.
            Err(Errno::NOENT) => workspace.open_plain(workspace.root(), self.name(), flags)?,
            other => other.map_err(lookup_error)?,
        };
        let stat = fstat(&opened).map_err(LookupError::Refused)?;
        if same_file(&stat, &self.stat) {
            Ok(opened)
        } else {
            Err(LookupError::Refused(Errno::AGAIN))
        }
    }

    fn name(&self) -> &OsStr {
        OsStr::new(self.real_path.as_str())
    }
}

impl Workspace {
    /// Opens a folder as a workspace.
    ///
    /// # Errors
    /// When it is not a folder that can be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        let spelling = spelling::of(root.as_fd());
        let (device, inode, has_aliases) = (stat.st_dev, stat.st_ino, folds(spelling));
        let is_flagged = spelling::flagged_within(root.as_fd());
        let (root_names, program_directories) = (RootNames::default(), Arc::default());
        Ok(Self {
            root,
            path,
            device,
            inode,
            lower: None,
            spelling,
            has_aliases,
            is_flagged,
            root_names,
            program_directories,
        })
    }

    /// The same workspace, whose root is known by these names.
    #[must_use]
    pub fn with_root_names(self, root_names: RootNames) -> Self {
        Self { root_names, ..self }
    }

    /// The same workspace, whose commands see the programs in these directories, too: real paths.
    #[must_use]
    pub fn with_program_directories(self, directories: Vec<PathBuf>) -> Self {
        Self { program_directories: directories.into(), ..self }
    }

    /// The absolute names of its root that calls may use; commands see it at the first.
    #[must_use]
    pub const fn root_names(&self) -> &RootNames {
        &self.root_names
    }

    /// The same workspace with changes laid over it, which `root` shows.
    pub(crate) fn with_overlay(&self, root: OwnedFd) -> io::Result<Self> {
        let Self { device, inode, .. } = *self;
        let lower = Some(rustix::io::fcntl_dupfd_cloexec(&self.root, 3)?);
        let item = spelling::of(root.as_fd());
        let (spelling, has_aliases) = (self.spelling.max(item), folds(item));
        let (path, is_flagged) = (self.path.clone(), self.is_flagged);
        let root_names = self.root_names.clone();
        let program_directories = Arc::clone(&self.program_directories);
        Ok(Self {
            root,
            path,
            device,
            inode,
            lower,
            spelling,
            has_aliases,
            is_flagged,
            root_names,
            program_directories,
        })
    }

    /// What lies beneath the changes, if any are laid over it.
    pub fn lower(&self) -> Option<BorrowedFd<'_>> {
        self.lower.as_ref().map(AsFd::as_fd)
    }

    /// How names in it are compared.
    #[must_use]
    pub const fn spelling(&self) -> Spelling {
        self.spelling
    }

    /// Whether a file in it may be found by other spellings of its name than the one that is listed: what is laid
    /// over the one does not hide it under the others.
    pub const fn has_aliases(&self) -> bool {
        self.has_aliases
    }

    /// Whether a folder in it folds names, and it does not: what it holds has names that nobody judged.
    pub(crate) fn is_folding(&self, folder: BorrowedFd<'_>) -> bool {
        self.is_flagged.is_some_and(|is_flagged| is_flagged(folder))
    }

    /// Whether a path leads through such a folder.
    fn leads_through_folding(&self, real: &WorkspacePath) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        self.is_flagged.is_some()
            && real.ancestors().filter(|ancestor| !ancestor.is_root()).any(|ancestor| {
                let opened = self.open_plain(self.root(), OsStr::new(ancestor.as_str()), flags);
                opened.is_ok_and(|fd| self.is_folding(fd.as_fd()))
            })
    }

    /// Whether one of some paths may be reached by other spellings of it.
    pub fn may_alias(&self, paths: &[OsString]) -> bool {
        let stands = |path: &str| statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        // Another form that stands there is the same file, or one that has to be hidden by its own name.
        let has_forms = |path: &OsString| match path.to_str() {
            Some(path) => {
                forms(path).any(|form| stands(&form) && !paths.contains(&OsString::from(form)))
            }
            None => true,
        };
        self.has_aliases || self.spelling == Spelling::Form && paths.iter().any(has_forms)
    }

    /// Its descriptor alone.
    pub(crate) fn into_root_handle(self) -> OwnedFd {
        self.root
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
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Holds what stands at a path beneath the root, following links that stay inside.
    pub(crate) fn open_handle(&self, path: &OsStr) -> Result<OwnedFd, LookupError> {
        let path = if path.is_empty() { OsStr::new(".") } else { path };
        kernel_open(self.root(), path, PATH_ONLY | OFlags::CLOEXEC, LinkPolicy::Inside)
            .unwrap_or_else(|| fallback_resolver::open_handle(self.root(), path))
    }

    /// What a path beneath the root leads through.
    pub(crate) fn link_chain(&self, path: &OsStr) -> LinkChain {
        fallback_resolver::link_chain(self.root(), path)
    }

    /// Opens a path beneath a folder of the workspace; none of its components may be a link.
    ///
    /// # Errors
    /// There is nothing at the path, a link is on the way, or the system refuses.
    pub fn open_plain(
        &self,
        folder: BorrowedFd<'_>,
        path: &OsStr,
        flags: OFlags,
    ) -> Result<OwnedFd, LookupError> {
        let path = if path.is_empty() { OsStr::new(".") } else { path };
        // Not `NOFOLLOW`: with it, and a handle asked for, the kernel would hand out the link itself.
        let flags = flags | OFlags::CLOEXEC;
        kernel_open(folder, path, flags, LinkPolicy::None)
            .unwrap_or_else(|| fallback_resolver::open_plain(folder, path, flags))
    }

    /// Asks what stands at a name in a folder of the workspace. A link is not followed, and another
    /// file system is not entered.
    pub(crate) fn stat_entry(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<Stat, LookupError> {
        let flags = PATH_ONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match kernel_open(folder, name, flags, LinkPolicy::None) {
            Some(opened) => fstat(opened?).map_err(lookup_error),
            None => {
                let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(lookup_error)?;
                match fstat(folder).map_err(lookup_error)?.st_dev == stat.st_dev {
                    true => Ok(stat),
                    false => Err(LookupError::Outside(PathProblem::Mounted)),
                }
            }
        }
    }

    /// Finds what stands at a path, following links that stay inside.
    ///
    /// The name that it has is asked of the kernel after it was opened, and must lead back to it
    /// without any link: a file that was moved or removed in between is looked for anew.
    ///
    /// # Errors
    /// There is nothing, it leads out of the workspace, or the system refuses.
    pub fn resolve(&self, path: &WorkspacePath) -> Result<FoundPath, LookupError> {
        let name = OsStr::new(path.as_str());
        for _ in 0..MAX_LOOKUPS {
            let handle = self.open_handle(name)?;
            let stat = fstat(&handle).map_err(LookupError::Refused)?;
            if path.is_root() {
                // There is no way to the root that could have changed.
                return Ok(FoundPath { handle, stat, real_path: path.clone() });
            }
            let real = match self.workspace_path_of(handle.as_fd()) {
                Some(real) => real,
                // A name that its folder does not list leads to something that has another.
                None if self.has_aliases => {
                    return Err(LookupError::Outside(PathProblem::Unlisted));
                }
                None => fallback_resolver::real_path(self.root(), name)?,
            };
            if self.leads_through_folding(&real) {
                return Err(LookupError::Outside(PathProblem::Folding));
            }
            if self.is_plain_path_to(&real, &stat) {
                return Ok(FoundPath { handle, stat, real_path: real });
            }
        }
        Err(LookupError::Refused(Errno::AGAIN))
    }

    /// The program in a directory of the system, or of a toolchain that commands see, that a path leads to by links, if it leads to one.
    #[must_use]
    pub fn program_of_link(&self, path: &WorkspacePath) -> Option<PathBuf> {
        let flags = PATH_ONLY | OFlags::CLOEXEC;
        let program = rustix::fs::openat(self.root(), path.as_str(), flags, Mode::empty()).ok()?;
        let real = std::fs::read_link(format!("/proc/self/fd/{}", program.as_raw_fd())).ok()?;
        let in_toolchain = self.program_directories.iter().any(|shown| real.starts_with(shown));
        let is_seen = in_toolchain || real.to_str().is_some_and(is_system_program);
        (is_seen && real.is_file()).then_some(real)
    }

    /// Whether a path leads to a file without any link on the way.
    fn is_plain_path_to(&self, real: &WorkspacePath, stat: &Stat) -> bool {
        let opened = self.open_plain(self.root(), OsStr::new(real.as_str()), PATH_ONLY);
        opened.is_ok_and(|handle| fstat(&handle).is_ok_and(|now| same_file(&now, stat)))
    }

    /// Where a descriptor stands now beneath the root, as the kernel names it; none where it stands
    /// elsewhere or the kernel does not tell.
    pub(crate) fn path_of(&self, handle: BorrowedFd<'_>) -> Option<PathBuf> {
        let name = |fd: BorrowedFd<'_>| {
            std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
        };
        let (root, path) = (name(self.root())?, name(handle)?);
        let inside = path.strip_prefix(&root).ok()?;
        match self.has_aliases {
            // The kernel names it as it was asked for.
            true => spelling::listed_path(self.root(), inside),
            false => Some(inside.to_owned()),
        }
    }

    /// The same as a path of ours; none for a name that no path of ours has.
    pub(crate) fn workspace_path_of(&self, handle: BorrowedFd<'_>) -> Option<WorkspacePath> {
        let inside = self.path_of(handle)?;
        WorkspacePath::from_fs_name(inside.to_str()?)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workspace({})", self.path.display())
    }
}

/// Whether a file is surely, or perhaps, found by names in another case.
const fn folds(spelling: Spelling) -> bool {
    matches!(spelling, Spelling::Case | Spelling::Folded | Spelling::Unknown)
}

/// A name on disk as a path of ours. Bytes that are not UTF-8, and characters that no path of ours
/// has, become a replacement that wildcards match: an odd name does not unprotect a file.
///
/// # Errors
/// It is longer than a path may be.
pub fn workspace_path(name: &OsStr) -> Result<WorkspacePath, PathProblem> {
    let text = name.to_string_lossy();
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    // `./` keeps a name that begins with `~` or `$` what it is.
    WorkspacePath::parse(&format!("./{text}"))
}

/// Which links are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkPolicy {
    /// Those that stay inside.
    Inside,
    /// None.
    None,
}

/// Opens by the kernel's own rules for staying beneath; none where the kernel has none.
#[cfg(target_os = "linux")]
fn kernel_open(
    root: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
    links: LinkPolicy,
) -> Option<Result<OwnedFd, LookupError>> {
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{ResolveFlags, openat2};
    let rules = match links {
        LinkPolicy::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        LinkPolicy::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    };
    // The kernel answers EAGAIN when something on the way is renamed at the same time.
    for _ in 0..16 {
        match openat2(root, path.as_bytes(), flags, Mode::empty(), rules | ResolveFlags::NO_XDEV) {
            Ok(opened) => return Some(Ok(opened)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => return None,
            Err(Errno::XDEV) => {
                // Both a climb and another file system give EXDEV; only the message differs.
                let again = openat2(root, path.as_bytes(), PATH_ONLY, Mode::empty(), rules);
                let mounted = again.is_ok();
                let problem = if mounted { PathProblem::Mounted } else { PathProblem::Escapes };
                return Some(Err(LookupError::Outside(problem)));
            }
            Err(errno) => return Some(Err(lookup_error(errno))),
        }
    }
    Some(Err(LookupError::Refused(Errno::AGAIN)))
}

#[cfg(not(target_os = "linux"))]
fn kernel_open(
    _: BorrowedFd<'_>,
    _: &OsStr,
    _: OFlags,
    _: LinkPolicy,
) -> Option<Result<OwnedFd, LookupError>> {
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
        let escapes = Err(LookupError::Outside(PathProblem::Escapes));
        let missing = Err(LookupError::Missing);
        let rows: &[(&str, Result<&str, LookupError>)] = &[
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
            let by_kernel = workspace.resolve(&path).map(|found| found.real_path.to_string());
            let by_steps =
                fallback_resolver::real_path(workspace.root(), name).map(|real| real.to_string());
            let expected = expected.map(|real| WorkspacePath::parse(real).unwrap_or_default());
            let expected = expected.map(|real| real.to_string());
            assert_eq!(by_kernel, expected, "{asked} by the kernel");
            assert_eq!(by_steps, expected, "{asked} by steps");
            let real = expected.ok().filter(|real| *real == path.to_string());
            let plain = workspace.open_plain(workspace.root(), name, PATH_ONLY);
            assert_eq!(plain.is_ok(), real.is_some(), "{asked} without links");
            let steps = fallback_resolver::open_plain(workspace.root(), name, PATH_ONLY);
            assert_eq!(steps.is_ok() || name.is_empty(), real.is_some(), "{asked} plain steps");
        }
    }
}
