//! Deletes what was judged, and nothing else: by descriptors, without following a link and without
//! leaving the file system.
//!
//! What is in a folder is listed before it is judged and compared before anything goes. Where the
//! workspace is not staged, it is first taken aside under a name that nobody else knows, so that what
//! comes under its own name meanwhile stays.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;
use std::time::Instant;

use capsule_core::change::FileState;
use capsule_core::code::Code;
use capsule_core::lifecycle::SavedUndo;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use capsule_core::undo::NoUndoReason;
use rustix::fs::{
    Access, AtFlags, FileType, OFlags, RenameFlags, Stat, accessat, fstat, readlinkat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::builtin::{again, changed, not_there, system};
use crate::node;
use crate::undo::Keeper;
use crate::walk::{buffer, entries};
use crate::workspace::{Found, Named, Workspace, kind, same};

/// How a folder is opened to be read.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// Something that is to go.
pub(crate) struct Doomed {
    /// Where it stands beneath the workspace.
    pub(crate) real: WorkspacePath,
    /// What the kernel says of it.
    pub(crate) stat: Stat,
}

impl Doomed {
    /// How large it is, if it is a file.
    fn size(&self) -> Option<u64> {
        let is_file = kind(&self.stat) == FileType::RegularFile;
        is_file.then(|| u64::try_from(self.stat.st_size).unwrap_or(u64::MAX))
    }

    /// Whether it is still the same, and nobody wrote to it.
    fn is(&self, now: &Stat) -> bool {
        let written = |stat: &Stat| match kind(stat) {
            FileType::RegularFile => Some((stat.st_size, stat.st_mtime, stat.st_mtime_nsec)),
            _ => None,
        };
        same(&self.stat, now)
            && kind(&self.stat) == kind(now)
            && written(&self.stat) == written(now)
    }
}

/// What is to be deleted, held as it was judged.
pub(crate) struct Deleting {
    workspace: Rc<Workspace>,
    /// The path as it was asked for.
    path: WorkspacePath,
    /// The folder that it is in.
    folder: Found,
    name: String,
    /// It, and what is in it; parents before what is in them.
    all: Vec<Doomed>,
    keeper: Rc<Keeper>,
    /// Why it cannot be kept for an undo, if it cannot.
    unkept: Option<NoUndoReason>,
}

impl Deleting {
    /// Lists what goes with something that was found.
    ///
    /// # Errors
    /// [`Code::FileNotEmpty`] for a folder with something in it where that was not asked for;
    /// otherwise why it cannot be listed whole.
    pub(crate) fn list(
        (workspace, keeper): (&Rc<Workspace>, &Rc<Keeper>),
        path: &WorkspacePath,
        named: Named,
        recursive: bool,
    ) -> Result<Self, CodedError> {
        let Named { folder, name, stat } = named;
        let real = folder.real.join(&name);
        let all = vec![Doomed { real, stat }];
        let (workspace, keeper) = (Rc::clone(workspace), Rc::clone(keeper));
        let path = path.clone();
        let mut own = Self { workspace, path, folder, name, all, keeper, unkept: None };
        let listed = own.listed(recursive)?;
        let mut pairs = own.all.iter().zip(&listed);
        if !pairs.all(|(found, listed)| found.is(&listed.stat)) {
            return Err(changed(&own.path));
        }
        own.all = listed;
        own.unkept = own.find_unkept()?;
        Ok(own)
    }

    /// What is to go.
    pub(crate) fn all(&self) -> &[Doomed] {
        &self.all
    }

    /// Why it cannot be kept for an undo, if it cannot.
    pub(crate) const fn unkept(&self) -> Option<NoUndoReason> {
        self.unkept
    }

    fn problem(&self, code: Code, what: &str) -> CodedError {
        CodedError::new(code, format!("`{}` {what}", self.path)).with_suggestion(code.next_step())
    }

    fn system(&self, errno: Errno) -> CodedError {
        system(&self.path, errno)
    }

    /// Lists it anew.
    fn listed(&self, recursive: bool) -> Result<Vec<Doomed>, CodedError> {
        let Some(Doomed { real, .. }) = self.all.first() else { return Ok(Vec::new()) };
        let stat = self.stat(self.folder.handle.as_fd(), &self.name)?;
        let mut all = vec![Doomed { real: real.clone(), stat }];
        let mut next = 0;
        let mut buffer = buffer();
        while let Some(Doomed { real, stat }) = all.get(next) {
            next += 1;
            match kind(stat) {
                FileType::Directory => {}
                _ => continue,
            }
            let real = real.clone();
            if real.components().count() > limits::STAGED_DEPTH {
                return Err(self.problem(Code::FileTooMany, "is nested too deep"));
            }
            let folder = self.open(&self.name, &real, FOLDER)?;
            let mut names: Vec<Option<String>> = Vec::new();
            let room = limits::DELETE_ENTRIES - all.len().min(limits::DELETE_ENTRIES);
            let mut see = |name: &[u8], _, _| {
                names.push(String::from_utf8(name.to_vec()).ok());
                names.len() <= room
            };
            entries(&folder, &mut buffer, &mut see).map_err(|errno| self.system(errno))?;
            if !names.is_empty() && !recursive {
                return Err(self.problem(Code::FileNotEmpty, "is not empty"));
            }
            if names.len() > room {
                let what = format!("holds more than {} entries", limits::DELETE_ENTRIES);
                return Err(self.problem(Code::FileTooMany, &what));
            }
            for name in names {
                let inner = name.map(|name| (real.join(&name), name));
                let inner = inner.filter(|(path, _)| {
                    WorkspacePath::from_fs_name(path.as_str()).is_some_and(|own| own == *path)
                });
                let Some((path, name)) = inner else {
                    let what = "holds a name that no call can name";
                    return Err(self.problem(Code::PathInvalid, what));
                };
                let stat = self.stat(folder.as_fd(), &name)?;
                all.push(Doomed { real: path, stat });
            }
        }
        Ok(all)
    }

    fn stat(&self, folder: impl AsFd, name: &str) -> Result<Stat, CodedError> {
        let stat = self.workspace.stat_itself(folder.as_fd(), OsStr::new(name));
        stat.map_err(|why| not_there(&self.path, why))
    }

    /// Opens something of what is to go, which is found under `name` now.
    fn open(&self, name: &str, real: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, CodedError> {
        let own = self.folder.real.join(&self.name);
        let beneath = real.as_str().strip_prefix(own.as_str()).unwrap_or_default();
        let path = format!("{name}{beneath}");
        let folder = self.folder.handle.as_fd();
        let opened = self.workspace.open_plain(folder, OsStr::new(&path), flags);
        opened.map_err(|why| not_there(&self.path, why))
    }

    /// Why what is to go cannot be kept for an undo, if it cannot.
    ///
    /// # Errors
    /// It changes while it is looked at.
    fn find_unkept(&self) -> Result<Option<NoUndoReason>, CodedError> {
        let bytes = self.all.iter().filter_map(Doomed::size).fold(0, u64::saturating_add);
        let mut unkept = (bytes > limits::UNDO_BYTES).then_some(NoUndoReason::TooLarge { bytes });
        self.each(|folder, own, name| {
            let why = match kind(&own.stat) {
                FileType::Directory => None,
                FileType::RegularFile => accessat(folder, name, Access::READ_OK, AtFlags::EACCESS)
                    .is_err()
                    .then_some(NoUndoReason::Unreadable),
                FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
                    Ok(target) => target.to_str().is_err().then_some(NoUndoReason::NoText),
                    Err(_) => return Err(changed(&self.path)),
                },
                _ => Some(NoUndoReason::Special),
            };
            unkept = unkept.or(why);
            Ok(())
        })?;
        Ok(unkept)
    }

    /// Does something with each, in the folder that it is in, under the name that it has there.
    fn each(
        &self,
        mut act: impl FnMut(&OwnedFd, &Doomed, &str) -> Result<(), CodedError>,
    ) -> Result<(), CodedError> {
        let mut held: Option<(Option<WorkspacePath>, OwnedFd)> = None;
        for own in &self.all {
            let parent = own.real.parent();
            let folder = match held.take() {
                Some((path, folder)) if path == parent => folder,
                _ => self.above(&self.name, own)?,
            };
            act(&folder, own, own.real.name().unwrap_or_default())?;
            held = Some((parent, folder));
        }
        Ok(())
    }

    /// Keeps all that is to go for an undo; nothing where that cannot be.
    ///
    /// # Errors
    /// It is another by now, or cannot be kept although it looked so.
    pub(crate) fn preserve(&self) -> Result<Option<SavedUndo>, CodedError> {
        if self.unkept.is_some() {
            return Ok(None);
        }
        let mut keeping = self.keeper.begin(self.all.iter().filter_map(Doomed::size));
        self.each(|folder, own, name| {
            let mode = own.stat.st_mode & 0o7777;
            let node = match kind(&own.stat) {
                FileType::Directory => FileState::Directory { mode },
                FileType::Symlink => {
                    let target = readlinkat(folder, name, Vec::new());
                    let target = target.map_err(|errno| self.system(errno))?;
                    let target = target.into_string().map_err(|_| changed(&self.path))?;
                    FileState::Link { target }
                }
                _ => {
                    let file = node::open(folder.as_fd(), name, &own.stat);
                    let file = file.map_err(|errno| self.system(errno))?;
                    if !own.is(&fstat(&file).map_err(|errno| self.system(errno))?) {
                        return Err(changed(&self.path));
                    }
                    keeping.file(&file, mode)?.0
                }
            };
            keeping.change(own.real.to_string(), Some(node), None);
            Ok(())
        })?;
        keeping.finish().map(Some)
    }

    /// Holds the folder that something is in.
    fn above(&self, name: &str, own: &Doomed) -> Result<OwnedFd, CodedError> {
        let top = self.all.first().map(|top| &top.real);
        match own.real.parent() {
            Some(parent) if top != Some(&own.real) => {
                self.open(name, &parent, OFlags::PATH | OFlags::DIRECTORY)
            }
            _ => rustix::io::fcntl_dupfd_cloexec(&self.folder.handle, 0)
                .map_err(|errno| self.system(errno)),
        }
    }

    /// Looks again, only to compare: the path must lead to the folder that was judged, and everything
    /// must be there as it was listed.
    fn unchanged(&self) -> Result<(), CodedError> {
        again(&self.workspace, &self.path.parent().unwrap_or_default(), &self.folder)?;
        let now = self.listed(true).map_err(|_| changed(&self.path))?;
        let mut pairs = self.all.iter().zip(&now);
        let is_same = self.all.len() == now.len()
            && pairs.all(|(own, now)| own.real == now.real && own.is(&now.stat));
        if is_same { Ok(()) } else { Err(changed(&self.path)) }
    }

    /// Deletes it.
    ///
    /// # Errors
    /// What could not be deleted; it says so where something is gone already.
    pub(crate) fn delete(&self, deadline: Instant) -> Result<(), CodedError> {
        self.unchanged()?;
        let name = self.aside()?;
        let mut gone = 0;
        let done = self.unlink(&name, deadline, &mut gone);
        if done.is_err() && name != self.name {
            // What is left gets its name again, unless somebody else has it by now.
            let _ = self.rename(&name, &self.name);
        }
        done.map_err(|mut problem| {
            if gone > 0 {
                let all = self.all.len();
                problem.message = format!("{}; {gone} of {all} entries are gone", problem.message);
            }
            problem
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let folder = &self.folder.handle;
        renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
    }

    /// Takes it aside and looks whether it is what was judged. Gives the name that it has then.
    fn aside(&self) -> Result<String, CodedError> {
        // Nobody but this run sees what is staged, and of that only one call is at work.
        if self.workspace.lower().is_some() {
            return Ok(self.name.clone());
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| CodedError::new(Code::FileSystem, error.to_string()))?;
        let beside = format!(".capsule-{:016x}.tmp", u64::from_ne_bytes(random));
        match self.rename(&self.name, &beside) {
            Ok(()) => {}
            // The file system cannot: the comparison that came before is all there is.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV) => {
                return Ok(self.name.clone());
            }
            Err(Errno::NOENT) => return Err(changed(&self.path)),
            Err(errno) => return Err(self.system(errno)),
        }
        let is_it = self.stat(self.folder.handle.as_fd(), &beside);
        if self.all.first().zip(is_it.ok()).is_some_and(|(own, now)| own.is(&now)) {
            return Ok(beside);
        }
        // It is somebody else's, and gets its name again.
        let _ = self.rename(&beside, &self.name);
        Err(changed(&self.path))
    }

    /// Removes everything, from the inside out.
    fn unlink(&self, name: &str, deadline: Instant, gone: &mut usize) -> Result<(), CodedError> {
        let mut held: Option<(Option<WorkspacePath>, OwnedFd)> = None;
        for (nth, own) in self.all.iter().enumerate().rev() {
            if Instant::now() > deadline {
                return Err(self.problem(Code::FileSystem, "could not be deleted in time"));
            }
            let parent = own.real.parent();
            let folder = match held.take() {
                Some((path, folder)) if path == parent => folder,
                _ => self.above(name, own)?,
            };
            let own_name = if nth == 0 { name } else { own.real.name().unwrap_or_default() };
            let own_name = OsString::from(own_name);
            let now = self.workspace.stat_itself(folder.as_fd(), &own_name);
            if !now.is_ok_and(|now| own.is(&now)) {
                return Err(changed(&self.path));
            }
            let flags = match kind(&own.stat) {
                FileType::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            unlinkat(&folder, own_name.as_bytes(), flags).map_err(|errno| match errno {
                // Something came into it.
                Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT => changed(&self.path),
                errno => self.system(errno),
            })?;
            *gone += 1;
            held = Some((parent, folder));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::undo::bed::keeper;
    use crate::veil::Veil;
    use crate::workspace::Itself;

    fn deleting(workspace: &Rc<Workspace>, path: &str) -> Deleting {
        let path = WorkspacePath::parse(path).unwrap();
        let veil = Veil::new(Box::new(|_, _| false));
        match workspace.look_itself(&path, &veil).1 {
            Itself::There(named) => {
                let (_kept, keeper) = keeper();
                Deleting::list((workspace, &keeper), &path, *named, true).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    type Change = fn(&Path);

    /// Whatever is done between the decision and the deletion: only what was judged goes.
    const CHANGES: &[(&str, Change)] = &[
        ("d", |root| fs::write(root.join("d/new"), "kept").unwrap()),
        ("d", |root| fs::write(root.join("d/in/f"), "kept").unwrap()),
        ("d", |root| {
            fs::rename(root.join("d"), root.join("moved")).unwrap();
            fs::create_dir(root.join("d")).unwrap();
            fs::write(root.join("d/f"), "kept").unwrap();
        }),
        ("d", |root| {
            fs::rename(root.join("d/in"), root.join("moved")).unwrap();
            symlink("../other", root.join("d/in")).unwrap();
        }),
        ("d", |root| {
            fs::rename(root.join("d"), root.join("moved")).unwrap();
            symlink("other", root.join("d")).unwrap();
        }),
        ("d/in/f", |root| {
            fs::remove_file(root.join("d/in/f")).unwrap();
            fs::write(root.join("d/in/f"), "kept!").unwrap();
        }),
        ("d/in/f", |root| {
            fs::rename(root.join("d/in"), root.join("moved")).unwrap();
            symlink("../other", root.join("d/in")).unwrap();
        }),
        ("d/link", |root| {
            fs::remove_file(root.join("d/link")).unwrap();
            fs::write(root.join("d/link"), "kept").unwrap();
        }),
    ];

    fn holds(root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(root).unwrap().flatten() {
            let meta = entry.path().symlink_metadata().unwrap();
            assert!(!entry.file_name().to_string_lossy().ends_with(".tmp"), "left beside");
            if meta.is_dir() {
                holds(&entry.path(), found);
            } else if meta.is_file() {
                found.push(fs::read_to_string(entry.path()).unwrap());
            }
        }
    }

    /// C4, C8: only what was judged is deleted, and what comes in its place stays.
    #[test]
    fn only_what_was_judged_is_deleted() {
        for (row, (path, change)) in CHANGES.iter().enumerate() {
            // Once before everything is compared, and once in the middle, past the comparison.
            for late in [false, true] {
                let outer = tempfile::tempdir().unwrap();
                let root = outer.path();
                fs::create_dir_all(root.join("d/in")).unwrap();
                fs::create_dir(root.join("other")).unwrap();
                fs::write(root.join("d/in/f"), "judged").unwrap();
                fs::write(root.join("other/f"), "kept").unwrap();
                symlink("../other", root.join("d/link")).unwrap();
                let workspace = Rc::new(Workspace::open(root).unwrap());
                let deleting = deleting(&workspace, path);
                let deadline = Instant::now() + Duration::from_secs(5);
                let mut gone = 0;
                let done = if late {
                    deleting.unchanged().unwrap();
                    change(root);
                    // The folder is not taken aside here: each thing is compared once more.
                    deleting.unlink(&deleting.name, deadline, &mut gone)
                } else {
                    change(root);
                    deleting.delete(deadline)
                };
                let mut kept = Vec::new();
                holds(root, &mut kept);
                let came = kept.iter().filter(|text| text.starts_with("kept")).count();
                let code = done.map_err(|problem| problem.code);
                assert_eq!(
                    came,
                    1 + usize::from(!matches!(row, 3 | 4 | 6)),
                    "row {row}, late: {late}"
                );
                // A folder that is held is the one that was judged, wherever it was moved.
                if !(late && row == 6) {
                    assert!(code.is_err(), "row {row}, late: {late}");
                }
                if !late {
                    assert_eq!(code, Err(Code::ApprovalChangedAfter), "row {row}");
                }
            }
        }
    }

    /// CAP-12: a deletion has an end in time, and what is left has its name again.
    #[test]
    fn a_late_deletion_leaves_the_name() {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("d")).unwrap();
        fs::write(outer.path().join("d/f"), "x").unwrap();
        let workspace = Rc::new(Workspace::open(outer.path()).unwrap());
        let late = deleting(&workspace, "d").delete(Instant::now());
        assert_eq!(late.map_err(|problem| problem.code), Err(Code::FileSystem));
        assert_eq!(fs::read(outer.path().join("d/f")).unwrap(), b"x");
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    }
}
