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

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::change::FileState;
use capsule_core::lifecycle::SavedUndo;
use capsule_core::outcome::CodedError;
use capsule_core::undo::NoUndoReason;
use rustix::fs::{
    Access, AtFlags, FileType, OFlags, RenameFlags, accessat, readlinkat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::backup::BackupStore;
use crate::directory_entries::{new_buffer, read_entries};
use crate::node;
use crate::path_problem::{changed_problem, not_found_problem, require_unchanged, system_problem};
use crate::resolve::{FoundPath, NamedEntry, Workspace, file_type, same_file};
use crate::system::{PATH_ONLY, Stat, fstat};

/// How a folder is opened to be read.
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// Something that is to go.
pub struct DeleteTarget {
    /// Where it stands beneath the workspace.
    pub real_path: WorkspacePath,
    /// What the kernel says of it.
    pub stat: Stat,
}

impl DeleteTarget {
    /// How large it is, if it is a file.
    fn size(&self) -> Option<u64> {
        let is_file = file_type(&self.stat) == FileType::RegularFile;
        is_file.then(|| u64::try_from(self.stat.st_size).unwrap_or(u64::MAX))
    }

    /// Whether it is still the same, and nobody wrote to it.
    fn is_unchanged(&self, now: &Stat) -> bool {
        let written = |stat: &Stat| match file_type(stat) {
            FileType::RegularFile => Some((stat.st_size, stat.st_mtime, stat.st_mtime_nsec)),
            _ => None,
        };
        same_file(&self.stat, now)
            && file_type(&self.stat) == file_type(now)
            && written(&self.stat) == written(now)
    }
}

/// What is to be deleted, held as it was judged.
pub struct Deletion {
    workspace: Rc<Workspace>,
    /// The path as it was asked for.
    path: WorkspacePath,
    /// The folder that it is in.
    parent: FoundPath,
    name: String,
    /// It, and what is in it; parents before what is in them.
    targets: Vec<DeleteTarget>,
    backups: Rc<BackupStore>,
    /// Why it cannot be kept for an undo, if it cannot.
    backup_refusal: Option<NoUndoReason>,
}

impl Deletion {
    /// Lists what goes with something that was found.
    ///
    /// # Errors
    /// [`Code::FileNotEmpty`] for a folder with something in it where that was not asked for;
    /// otherwise why it cannot be listed whole.
    pub fn new(
        (workspace, backups): (&Rc<Workspace>, &Rc<BackupStore>),
        path: &WorkspacePath,
        named: NamedEntry,
        recursive: bool,
    ) -> Result<Self, CodedError> {
        let NamedEntry { parent: folder, name, stat } = named;
        let real_path = folder.real_path.join(&name);
        let all = vec![DeleteTarget { real_path, stat }];
        let (workspace, backups) = (Rc::clone(workspace), Rc::clone(backups));
        let path = path.clone();
        let mut deletion = Self {
            workspace,
            path,
            parent: folder,
            name,
            targets: all,
            backups,
            backup_refusal: None,
        };
        let listed = deletion.list_targets(recursive)?;
        let mut pairs = deletion.targets.iter().zip(&listed);
        if !pairs.all(|(found, listed)| found.is_unchanged(&listed.stat)) {
            return Err(changed_problem(&deletion.path));
        }
        deletion.targets = listed;
        deletion.backup_refusal = deletion.find_backup_refusal()?;
        Ok(deletion)
    }

    /// What is to go.
    pub fn targets(&self) -> &[DeleteTarget] {
        &self.targets
    }

    /// Why it cannot be kept for an undo, if it cannot.
    pub const fn backup_refusal(&self) -> Option<NoUndoReason> {
        self.backup_refusal
    }

    fn problem(&self, code: Code, what: &str) -> CodedError {
        CodedError::new(code, format!("`{}` {what}", self.path)).with_suggestion(code.next_step())
    }

    fn system_problem(&self, errno: Errno) -> CodedError {
        system_problem(&self.path, errno)
    }

    /// Lists it anew.
    fn list_targets(&self, recursive: bool) -> Result<Vec<DeleteTarget>, CodedError> {
        let Some(DeleteTarget { real_path: real, .. }) = self.targets.first() else {
            return Ok(Vec::new());
        };
        let stat = self.stat(self.parent.handle.as_fd(), &self.name)?;
        let mut all = vec![DeleteTarget { real_path: real.clone(), stat }];
        let mut next = 0;
        let mut buffer = new_buffer();
        while let Some(DeleteTarget { real_path: real, stat }) = all.get(next) {
            next += 1;
            match file_type(stat) {
                FileType::Directory => {}
                _ => continue,
            }
            let real = real.clone();
            if real.components().count() > limits::STAGED_DEPTH {
                return Err(self.problem(Code::FileTooMany, "is nested too deep"));
            }
            let folder = self.open(&self.name, &real, DIRECTORY_FLAGS)?;
            let mut names: Vec<Option<String>> = Vec::new();
            let room = limits::DELETE_ENTRIES - all.len().min(limits::DELETE_ENTRIES);
            let mut see = |name: &[u8], _, _| {
                names.push(String::from_utf8(name.to_vec()).ok());
                names.len() <= room
            };
            read_entries(&folder, &mut buffer, &mut see)
                .map_err(|errno| self.system_problem(errno))?;
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
                    WorkspacePath::from_fs_name(path.as_str()).is_some_and(|item| item == *path)
                });
                let Some((path, name)) = inner else {
                    let what = "holds a name that no call can name";
                    return Err(self.problem(Code::PathInvalid, what));
                };
                let stat = self.stat(folder.as_fd(), &name)?;
                all.push(DeleteTarget { real_path: path, stat });
            }
        }
        Ok(all)
    }

    fn stat(&self, folder: impl AsFd, name: &str) -> Result<Stat, CodedError> {
        let stat = self.workspace.stat_entry(folder.as_fd(), OsStr::new(name));
        stat.map_err(|why| not_found_problem(&self.path, why))
    }

    /// Opens something of what is to go, which is found under `name` now.
    fn open(&self, name: &str, real: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, CodedError> {
        let item = self.parent.real_path.join(&self.name);
        let beneath = real.as_str().strip_prefix(item.as_str()).unwrap_or_default();
        let path = format!("{name}{beneath}");
        let folder = self.parent.handle.as_fd();
        let opened = self.workspace.open_plain(folder, OsStr::new(&path), flags);
        opened.map_err(|why| not_found_problem(&self.path, why))
    }

    /// Why what is to go cannot be kept for an undo, if it cannot.
    ///
    /// # Errors
    /// It changes while it is looked at.
    fn find_backup_refusal(&self) -> Result<Option<NoUndoReason>, CodedError> {
        let bytes = self.targets.iter().filter_map(DeleteTarget::size).fold(0, u64::saturating_add);
        let mut unkept = (bytes > limits::UNDO_BYTES).then_some(NoUndoReason::TooLarge { bytes });
        self.for_each_target(|folder, item, name| {
            let why = match file_type(&item.stat) {
                FileType::Directory => None,
                FileType::RegularFile => accessat(folder, name, Access::READ_OK, AtFlags::EACCESS)
                    .is_err()
                    .then_some(NoUndoReason::Unreadable),
                FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
                    Ok(target) => target.to_str().is_err().then_some(NoUndoReason::NoText),
                    Err(_) => return Err(changed_problem(&self.path)),
                },
                _ => Some(NoUndoReason::Special),
            };
            unkept = unkept.or(why);
            Ok(())
        })?;
        Ok(unkept)
    }

    /// Does something with each, in the folder that it is in, under the name that it has there.
    fn for_each_target(
        &self,
        mut act: impl FnMut(&OwnedFd, &DeleteTarget, &str) -> Result<(), CodedError>,
    ) -> Result<(), CodedError> {
        let mut held: Option<(Option<WorkspacePath>, OwnedFd)> = None;
        for target in &self.targets {
            let parent = target.real_path.parent();
            let folder = match held.take() {
                Some((path, folder)) if path == parent => folder,
                _ => self.open_parent(&self.name, target)?,
            };
            act(&folder, target, target.real_path.name().unwrap_or_default())?;
            held = Some((parent, folder));
        }
        Ok(())
    }

    /// Keeps all that is to go for an undo; nothing where that cannot be.
    ///
    /// # Errors
    /// It is another by now, or cannot be kept although it looked so.
    pub fn back_up(&self) -> Result<Option<SavedUndo>, CodedError> {
        if self.backup_refusal.is_some() {
            return Ok(None);
        }
        let mut backup = self.backups.begin(self.targets.iter().filter_map(DeleteTarget::size));
        self.for_each_target(|folder, item, name| {
            let mode = item.stat.st_mode & 0o7777;
            let node = match file_type(&item.stat) {
                FileType::Directory => FileState::Directory { mode },
                FileType::Symlink => {
                    let target = readlinkat(folder, name, Vec::new());
                    let target = target.map_err(|errno| self.system_problem(errno))?;
                    let target = target.into_string().map_err(|_| changed_problem(&self.path))?;
                    FileState::Link { target }
                }
                _ => {
                    let file = node::open_regular(folder.as_fd(), name, &item.stat);
                    let file = file.map_err(|errno| self.system_problem(errno))?;
                    if !item
                        .is_unchanged(&fstat(&file).map_err(|errno| self.system_problem(errno))?)
                    {
                        return Err(changed_problem(&self.path));
                    }
                    backup.add_file(&file, mode)?.0
                }
            };
            backup.add_change(item.real_path.to_string(), Some(node), None);
            Ok(())
        })?;
        backup.finish().map(Some)
    }

    /// Holds the folder that something is in.
    fn open_parent(&self, name: &str, target: &DeleteTarget) -> Result<OwnedFd, CodedError> {
        let top = self.targets.first().map(|top| &top.real_path);
        match target.real_path.parent() {
            Some(parent) if top != Some(&target.real_path) => {
                self.open(name, &parent, PATH_ONLY | OFlags::DIRECTORY)
            }
            _ => rustix::io::fcntl_dupfd_cloexec(&self.parent.handle, 0)
                .map_err(|errno| self.system_problem(errno)),
        }
    }

    /// Looks again, only to compare: the path must lead to the folder that was judged, and everything
    /// must be there as it was listed.
    fn require_unchanged(&self) -> Result<(), CodedError> {
        require_unchanged(&self.workspace, &self.path.parent().unwrap_or_default(), &self.parent)?;
        let now = self.list_targets(true).map_err(|_| changed_problem(&self.path))?;
        let mut pairs = self.targets.iter().zip(&now);
        let is_same = self.targets.len() == now.len()
            && pairs.all(|(target, now)| {
                target.real_path == now.real_path && target.is_unchanged(&now.stat)
            });
        if is_same { Ok(()) } else { Err(changed_problem(&self.path)) }
    }

    /// Deletes it.
    ///
    /// # Errors
    /// What could not be deleted; it says so where something is gone already.
    pub fn delete(&self, deadline: Instant) -> Result<(), CodedError> {
        self.require_unchanged()?;
        let name = self.move_aside()?;
        let mut gone = 0;
        let done = self.unlink(&name, deadline, &mut gone);
        if done.is_err() && name != self.name {
            // What is left gets its name again, unless somebody else has it by now.
            let _ = self.rename(&name, &self.name);
        }
        done.map_err(|mut problem| {
            if gone > 0 {
                let all = self.targets.len();
                problem.message = format!("{}; {gone} of {all} entries are gone", problem.message);
            }
            problem
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let folder = &self.parent.handle;
        renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
    }

    /// Takes it aside and looks whether it is what was judged. Gives the name that it has then.
    fn move_aside(&self) -> Result<String, CodedError> {
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
            Err(Errno::NOENT) => return Err(changed_problem(&self.path)),
            Err(errno) => return Err(self.system_problem(errno)),
        }
        let is_it = self.stat(self.parent.handle.as_fd(), &beside);
        if self
            .targets
            .first()
            .zip(is_it.ok())
            .is_some_and(|(target, now)| target.is_unchanged(&now))
        {
            return Ok(beside);
        }
        // It is somebody else's, and gets its name again.
        let _ = self.rename(&beside, &self.name);
        Err(changed_problem(&self.path))
    }

    /// Removes everything, from the inside out.
    fn unlink(&self, name: &str, deadline: Instant, gone: &mut usize) -> Result<(), CodedError> {
        let mut held: Option<(Option<WorkspacePath>, OwnedFd)> = None;
        for (nth, target) in self.targets.iter().enumerate().rev() {
            if Instant::now() > deadline {
                return Err(self.problem(Code::FileSystem, "could not be deleted in time"));
            }
            let parent = target.real_path.parent();
            let folder = match held.take() {
                Some((path, folder)) if path == parent => folder,
                _ => self.open_parent(name, target)?,
            };
            let own_name =
                if nth == 0 { name } else { target.real_path.name().unwrap_or_default() };
            let own_name = OsString::from(own_name);
            let now = self.workspace.stat_entry(folder.as_fd(), &own_name);
            if !now.is_ok_and(|now| target.is_unchanged(&now)) {
                return Err(changed_problem(&self.path));
            }
            let flags = match file_type(&target.stat) {
                FileType::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            unlinkat(&folder, own_name.as_bytes(), flags).map_err(|errno| match errno {
                // Something came into it.
                Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT => changed_problem(&self.path),
                errno => self.system_problem(errno),
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
    use crate::backup::bed::keeper;
    use crate::hidden_paths::HiddenPaths;
    use crate::path_facts::look_up_entry;
    use crate::resolve::EntryLookup;

    fn deleting(workspace: &Rc<Workspace>, path: &str) -> Deletion {
        let path = WorkspacePath::parse(path).unwrap();
        let hidden_paths = HiddenPaths::new(Box::new(|_, _| false));
        match look_up_entry(workspace, &path, &hidden_paths).1 {
            EntryLookup::Found(named) => {
                let (_kept, backups) = keeper();
                Deletion::new((workspace, &backups), &path, *named, true).unwrap()
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
                let deletion = deleting(&workspace, path);
                let deadline = Instant::now() + Duration::from_secs(5);
                let mut gone = 0;
                let done = if late {
                    deletion.require_unchanged().unwrap();
                    change(root);
                    // The folder is not taken aside here: each thing is compared once more.
                    deletion.unlink(&deletion.name, deadline, &mut gone)
                } else {
                    change(root);
                    deletion.delete(deadline)
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
