//! A staged workspace: what a run changes is collected in a folder of ours, and the workspace stays
//! what it is until a person applies the changes.
//!
//! The kernel mounts that directory over the workspace, by the caller's [`MountStaging`]. Where it refuses
//! that, the directory becomes a copy of the workspace ([`workspace_copy`]), and what differs in it is what
//! changed. [`scan`] reads the changes out of it, and [`repository_check`] checks what is around them.
//! Whether a change may be made is judged outside of this crate; [`StagedApply`](crate::StagedApply) makes
//! changes in the workspace.

mod copy_changes;
mod diff;
mod directory;
mod indexes;
mod mount;
mod refusals;
mod repository_check;
mod scan;
mod workspace_copy;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_core::change::{Change, ChangeSet, FileState};
use capsule_core::outcome::CodedError;
use rustix::fs::{AtFlags, Mode, OFlags, fstatvfs, unlinkat};
use rustix::time::{ClockId, clock_gettime};

use crate::cancel::Cancel;
use crate::change_path::{ChangePath, split_parent};
use crate::hidden_paths::{HiddenPaths, HiddenPathsError};
use crate::node;
use crate::resolve::{LookupError, Workspace};
use crate::temporary_names::apply_name;
use copy_changes::CopiedWorkspace;
use directory::{hold_directory, overlay_area};
pub(crate) use indexes::{is_index, read as read_index};
use mount::staging_problem;
pub use mount::{MountError, MountStaging, StagingArea};
use scan::ChangeScan;
use workspace_copy::{Copier, CopyLimits};

/// What commands and tools change: what differs, or a copy of the workspace in which it does.
const CHANGES_DIRECTORY: &str = "changes";
/// What the kernel needs for itself.
const WORK_DIRECTORY: &str = "work";
/// How a folder is opened to be read.
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// What helps where the workspace can neither be laid under changes nor be copied.
const STAGING_HINT: &str =
    "put the store on a local disk (`--store`), and let nothing be mounted in the workspace";
/// Why no changes are laid over a workspace on such a file system.
const ALIASES: &str = "its file system takes other spellings of a name for the same";
/// How often the size of the changes is looked at while a command runs.
const SIZE_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// A staged workspace.
#[derive(Debug)]
pub struct Staging {
    /// The workspace as it is, beneath the changes.
    lower: Rc<Workspace>,
    /// The folder that the kernel lays over it, or that is shown in its place.
    upper: OwnedFd,
    /// Whether what is changed there looks otherwise.
    stamps_are_reliable: bool,
    /// What was copied into that, if the workspace was.
    copied: Option<CopiedWorkspace>,
    /// When the changes were laid over it, in seconds since 1970 and nanoseconds.
    created_at: (i64, i64),
    /// What differs, as it was when it was last looked at.
    last_scan: RefCell<ChangeSet>,
    /// What stood in the workspace at each path of the changes when that was first seen.
    originals: RefCell<BTreeMap<String, OriginalNode>>,
    /// The digests of files, by how they looked.
    digests: RefCell<BTreeMap<String, (node::FileStamp, FileState)>>,
    last_size_check: Cell<Option<(Instant, Duration)>>,
    /// What the run changed so far, as it is recorded.
    recorded: RefCell<ChangeSet>,
    /// How full the file system of the changes was when the running command began.
    space_before: Cell<Option<DiskSpace>>,
    /// Whether the last look found folders that it could not look into.
    has_unreadable: Cell<bool>,
    /// How many bytes the changes hold at most, as far as was looked since all of them were counted.
    weight: Cell<u64>,
    /// The folder of all of it, and the indexes of repositories as they were when the run began.
    folder: OwnedFd,
    indexes: RefCell<BTreeMap<String, File>>,
}

/// How full a file system is.
#[derive(Clone, Copy, Debug)]
struct DiskSpace {
    /// The bytes that are free.
    free: u64,
    /// The files that are there; none is counted where the file system does not.
    files: u64,
}

impl DiskSpace {
    /// Why a command is ended during which far more space went, or far more files came, than may be
    /// staged. What has no name any more takes space too, and so does what is in a folder that the
    /// command closed; somebody else may have taken it, which cannot be told apart.
    fn overuse_since(self, then: Self) -> Option<CodedError> {
        let went = if then.free.saturating_sub(self.free) > limits::STAGING_DISK_BYTES {
            let most = capsule_base::units::show_size(limits::STAGING_DISK_BYTES);
            format!("more than {most} of space went")
        } else if self.files.saturating_sub(then.files) > limits::STAGING_DISK_FILES {
            format!("more than {} files came", limits::STAGING_DISK_FILES)
        } else {
            return None;
        };
        let message = format!("{went} where changes are staged while the command ran");
        Some(CodedError::new(Code::ChangeTooMany, message))
    }
}

/// What stood in the workspace when a change of it was first seen.
#[derive(Clone, Debug)]
struct OriginalNode {
    node: Option<FileState>,
    refusal: Option<String>,
}

/// A workspace with changes laid over it, and what they are collected in.
pub struct StagingSetup {
    /// What tools and commands see.
    pub workspace: Rc<Workspace>,
    /// Where the changes are collected.
    pub staging: Rc<Staging>,
}

impl Staging {
    /// Makes a folder for the changes of a run and has the kernel lay it over the workspace. Where
    /// that is refused, the workspace is copied into it.
    ///
    /// # Errors
    /// [`Code::SandboxFailed`] where the folder cannot be made, or neither can be done.
    pub fn create(
        folder: &Path,
        workspace: &Rc<Workspace>,
        mounts: &dyn MountStaging,
        (hidden_paths, cancel): (&HiddenPaths, &Cancel),
    ) -> Result<StagingSetup, CodedError> {
        let unmade = |error: io::Error| {
            let message = format!("`{}` cannot be made: {error}", folder.display());
            CodedError::new(Code::SandboxFailed, message)
        };
        let private = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        private(&folder.join(WORK_DIRECTORY)).map_err(unmade)?;
        private(&folder.join(CHANGES_DIRECTORY)).map_err(unmade)?;
        let mut staging = Self::open(folder, workspace).map_err(unmade)?;
        let overlay = overlay_area(folder).map_err(unmade)?;
        let hidden = match workspace.spelling() {
            Spelling::Form => {
                hidden_paths.hidden_now(workspace).map_err(HiddenPathsError::problem)?
            }
            _ => Vec::new(),
        };
        let overlaid = match workspace.may_alias(&hidden) {
            // What is laid over a name there does not hide it under the others.
            true => Err(MountError::Overlay(ALIASES.to_owned())),
            false => mounts.mount(workspace, overlay),
        };
        let handle = match overlaid {
            Ok(Some(handle)) => handle,
            Err(MountError::Overlay(why)) => {
                let all = folder.parent().unwrap_or(folder).metadata().map_err(unmade)?;
                staging.copy_workspace((all.dev(), all.ino()), why, (hidden_paths, cancel))?;
                let copied = || hold_directory(folder, CHANGES_DIRECTORY).map_err(unmade);
                match mounts.mount(workspace, StagingArea::Copied(copied()?)) {
                    Ok(_) => copied()?,
                    Err(MountError::Overlay(why)) => return Err(staging_problem(&why)),
                    Err(MountError::Problem(problem)) => return Err(problem),
                }
            }
            Err(MountError::Problem(problem)) => return Err(problem),
            Ok(None) => return Err(staging_problem(&"the sandbox gives no handle on them")),
        };
        let workspace = Rc::new(workspace.with_overlay(handle).map_err(unmade)?);
        Ok(StagingSetup { workspace, staging: Rc::new(staging) })
    }

    /// Has the kernel lay what an earlier run changed over the workspace, which becomes this run's.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where the kernel does not: changes in a copy of the workspace cannot
    /// be taken up.
    pub fn resume(
        (from, folder): (&Path, &Path),
        workspace: &Rc<Workspace>,
        mounts: &dyn MountStaging,
    ) -> Result<StagingSetup, CodedError> {
        let unmade = |error: io::Error| {
            let message = format!("`{}` cannot be taken up: {error}", from.display());
            CodedError::new(Code::SandboxFailed, message)
        };
        {
            let _held = Self::hold(from).map_err(unmade)?;
            std::fs::rename(from, folder).map_err(unmade)?;
        }
        let staging = Self::open(folder, workspace).map_err(unmade)?;
        if workspace.has_aliases() {
            return Err(resume_problem(&ALIASES));
        }
        let overlay = overlay_area(folder).map_err(unmade)?;
        let handle = match mounts.mount(workspace, overlay) {
            Ok(Some(handle)) => handle,
            Err(MountError::Overlay(why)) => return Err(resume_problem(&why)),
            Err(MountError::Problem(problem)) => return Err(problem),
            Ok(None) => return Err(staging_problem(&"the sandbox gives no handle on them")),
        };
        let workspace = Rc::new(workspace.with_overlay(handle).map_err(unmade)?);
        Ok(StagingSetup { workspace, staging: Rc::new(staging) })
    }

    /// Begins with what an earlier run changed, if that is what lies there.
    ///
    /// # Errors
    /// [`Code::ResumeChanged`] where it is something else.
    pub fn adopt_changes(
        &self,
        changes: &ChangeSet,
        seen: (&HiddenPaths, &Workspace),
    ) -> Result<(), CodedError> {
        let now = ChangeScan::new(self, seen).run()?;
        let states = |all: &ChangeSet| -> BTreeMap<String, Option<FileState>> {
            all.0.iter().map(|(path, change)| (path.clone(), change.after.clone())).collect()
        };
        if states(&now) != states(changes) {
            return Err(resume_problem(&"it differs from the record"));
        }
        *self.last_scan.borrow_mut() = now;
        *self.recorded.borrow_mut() = changes.clone();
        Ok(())
    }

    /// Copies the workspace into the folder of changes, and notes how the copy looks.
    fn copy_workspace(
        &mut self,
        item: (u64, u64),
        why: String,
        (hidden_paths, cancel): (&HiddenPaths, &Cancel),
    ) -> Result<(), CodedError> {
        let hidden = hidden_paths.hidden_now(&self.lower).map_err(HiddenPathsError::problem)?;
        let hidden: BTreeSet<OsString> = hidden.into_iter().collect();
        let (from, to) = ((&*self.lower, &hidden), (self.upper.as_fd(), item));
        let copier = Copier::new(from, to, CopyLimits::RUN, cancel);
        let copy = copier.run().map_err(|mut problem| {
            if problem.code == Code::ExecCancelled {
                return problem;
            }
            problem.message = format!(
                "the workspace cannot be mounted as an overlay ({why}); {}",
                problem.message
            );
            problem.with_suggestion(STAGING_HINT)
        })?;
        let now = hidden_paths.hidden_now(&self.lower).map_err(HiddenPathsError::problem)?;
        let is_known = |path: &OsString| {
            Path::new(path).ancestors().any(|ancestor| hidden.contains(ancestor.as_os_str()))
        };
        if !now.iter().all(is_known) {
            // It may be in the copy, where a command could give it any name.
            let message = "something that is protected came into the workspace while it was copied";
            return Err(
                CodedError::new(Code::SandboxFailed, message).with_suggestion("run it again")
            );
        }
        self.copied = Some(CopiedWorkspace::new(self, copy, why));
        Ok(())
    }

    /// Why the run works in a copy of the workspace, if it does.
    #[must_use]
    pub fn copy_reason(&self) -> Option<&str> {
        self.copied.as_ref().map(|copied| copied.why.as_str())
    }

    /// Frees what nobody needs at the end of the run: the rest of a copy, beside its changes.
    pub fn drop_unneeded(&self) {
        // Where it cannot be done, all of it is removed with the changes.
        let _ = self.copied.as_ref().map(|copied| copied.prune(self));
    }

    /// Opens the changes of an earlier run.
    ///
    /// # Errors
    /// When they are not there.
    pub fn open(folder: &Path, workspace: &Rc<Workspace>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = rustix::fs::open(folder.join(CHANGES_DIRECTORY), flags, Mode::empty())?;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let now = clock_gettime(ClockId::Realtime);
        Ok(Self {
            created_at: (now.tv_sec, now.tv_nsec),
            lower: Rc::clone(workspace),
            stamps_are_reliable: node::stamps_are_reliable(upper.as_fd()),
            upper,
            copied: None,
            last_scan: RefCell::default(),
            originals: RefCell::default(),
            digests: RefCell::default(),
            last_size_check: Cell::default(),
            recorded: RefCell::default(),
            space_before: Cell::default(),
            has_unreadable: Cell::default(),
            weight: Cell::default(),
            folder,
            indexes: RefCell::default(),
        })
    }

    /// Removes what applying them left beside its targets when it was killed.
    pub fn remove_leftovers(&self, run: &str, changes: &ChangeSet) {
        let name = apply_name(run);
        let folders: BTreeSet<&str> = changes.0.keys().map(|path| split_parent(path).0).collect();
        for folder in folders {
            // One that is another folder by now holds nothing of ours.
            let Ok(folder) = self.open_lower(folder) else { continue };
            for flags in [AtFlags::empty(), AtFlags::REMOVEDIR] {
                let _ = unlinkat(&folder, name.as_str(), flags);
            }
        }
    }

    /// How many of the changes the workspace holds already.
    #[must_use]
    pub fn applied(&self, changes: &ChangeSet) -> usize {
        let is_applied = |change: &&Change| {
            let (folder, name) = split_parent(&change.path);
            let state = match self.open_lower(folder) {
                Ok(folder) => ChangePath { parent: folder, name }.node().ok(),
                Err(LookupError::Missing) => Some(None),
                Err(_) => None,
            };
            state.is_some_and(|state| change.matches_after(state.as_ref()))
        };
        changes.0.values().filter(is_applied).count()
    }

    /// How many paths the run changed, as it is recorded.
    #[must_use]
    pub fn changed_paths(&self) -> usize {
        self.recorded.borrow().0.len()
    }

    /// Whether one of them was refused, so that none may be applied.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.recorded.borrow().refused().is_some()
    }

    /// How many of them a person is asked about before they are applied.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.recorded.borrow().asked().count()
    }

    /// The workspace as it is, beneath the changes.
    pub(crate) const fn lower(&self) -> &Rc<Workspace> {
        &self.lower
    }

    /// Opens a folder among the changes, without following any link.
    pub(crate) fn open_upper(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.lower.open_plain(self.upper.as_fd(), path.as_ref(), DIRECTORY_FLAGS)
    }

    /// Opens a folder of the workspace beneath them, without following any link.
    fn open_lower(&self, path: impl AsRef<OsStr>) -> Result<OwnedFd, LookupError> {
        self.lower.open_plain(self.lower.root(), path.as_ref(), DIRECTORY_FLAGS)
    }

    /// Adds changes to what is recorded of the run.
    pub fn record(&self, changes: Vec<Change>) {
        self.recorded.borrow_mut().add(changes);
    }

    /// Whether a path is again what it was before the run.
    #[must_use]
    pub fn is_reverted(&self, change: &Change) -> bool {
        let recorded = self.recorded.borrow();
        recorded.0.get(&change.path).is_some_and(|item| item.before == change.after)
    }

    /// What changed since somebody last asked at one path, beneath it and in the folders above it. What else the
    /// run changed is not looked at, so that the cost does not grow with it.
    ///
    /// # Errors
    /// The changes cannot be read.
    pub fn collect_at(
        &self,
        path: &WorkspacePath,
        seen: (&HiddenPaths, &Workspace),
    ) -> Result<Vec<Change>, CodedError> {
        let Some(now) = ChangeScan::new(self, seen).run_at(path.as_str())? else {
            return self.collect(seen);
        };
        let mut known = self.last_scan.borrow_mut();
        let above = path.ancestors().filter(|ancestor| !ancestor.is_root()).map(String::from);
        let beneath = format!("{path}/");
        let inner = known.0.range(beneath.clone()..);
        let inner = inner.map(|(path, _)| path).take_while(|text| text.starts_with(&beneath));
        let paths: Vec<String> = above.chain(inner.cloned()).collect();
        let before = paths.into_iter().filter_map(|path| known.0.remove_entry(&path));
        let between = ChangeSet(before.collect()).changes_until(&now);
        known.0.extend(now.0);
        Ok(between)
    }

    /// What changed since somebody last asked.
    ///
    /// # Errors
    /// The changes cannot be read.
    pub fn collect(&self, seen: (&HiddenPaths, &Workspace)) -> Result<Vec<Change>, CodedError> {
        let now = ChangeScan::new(self, seen).run()?;
        let mut known = self.last_scan.borrow_mut();
        let between = known.changes_until(&now);
        *known = now;
        Ok(between)
    }

    /// A command is about to run: what is free now is what it may fill. Where folders stayed closed, all
    /// commands since before the first of them share that, since what these hold is never counted.
    pub fn begin_command(&self) {
        if !self.has_unreadable.get() {
            self.space_before.set(self.disk_space());
        }
    }

    fn disk_space(&self) -> Option<DiskSpace> {
        let told = fstatvfs(&self.upper).ok()?;
        let free = told.f_bavail.saturating_mul(told.f_frsize);
        Some(DiskSpace { free, files: told.f_files.saturating_sub(told.f_ffree) })
    }

    fn unreadable_problem(&self) -> Option<CodedError> {
        let (then, now) = self.space_before.get().zip(self.disk_space())?;
        now.overuse_since(then)
    }

    /// Why a command that has written more than may be staged is ended. Looked at now and then, and
    /// never for more than a tenth of the time.
    pub fn space_problem(&self) -> Option<CodedError> {
        if let Some((last, took)) = self.last_size_check.get()
            && last.elapsed() < SIZE_CHECK_INTERVAL.max(took * 10)
        {
            return None;
        }
        let began = Instant::now();
        let full =
            scan::exceeds_limits(self).then(too_many_problem).or_else(|| self.unreadable_problem());
        self.last_size_check.set(Some((Instant::now(), began.elapsed())));
        full
    }
}

/// Why a run does not go on from what it had staged.
fn resume_problem(why: &dyn std::fmt::Display) -> CodedError {
    let message = format!("what the run had staged cannot be gone on from: {why}");
    CodedError::new(Code::ResumeChanged, message)
        .with_suggestion("`capsule changes` shows it; apply or discard it, and run the plan anew")
}

pub(crate) fn too_many_problem() -> CodedError {
    let message = format!(
        "more than {} paths or {} would be staged",
        limits::STAGED_PATHS,
        capsule_base::units::show_size(limits::STAGED_BYTES)
    );
    CodedError::new(Code::ChangeTooMany, message)
}

/// A name in a folder, as a path beneath the root.
fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A folder and a name in it, of any bytes.
fn split_os_path(path: &OsStr) -> (&OsStr, &OsStr) {
    let path = Path::new(path);
    let folder = path.parent().map_or(OsStr::new(""), Path::as_os_str);
    (folder, path.file_name().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What nobody can look at is bounded by the space that it takes, for all commands together
    /// since something was closed. With numbers, since a real disk is everybody's.
    #[test]
    fn what_is_hidden_is_bounded_by_its_space() {
        let then = DiskSpace { free: limits::STAGING_DISK_BYTES * 3, files: 7 };
        let bytes = |went| DiskSpace { free: then.free - went, ..then };
        let files = |came| DiskSpace { files: then.files + came, ..then };
        for (now, why) in [
            (bytes(limits::STAGING_DISK_BYTES), None),
            (bytes(limits::STAGING_DISK_BYTES + 1), Some("more than 2.1 GB of space went")),
            (files(limits::STAGING_DISK_FILES), None),
            (files(limits::STAGING_DISK_FILES + 1), Some("more than 200000 files came")),
            // Somebody makes room.
            (DiskSpace { free: u64::MAX, files: 0 }, None),
        ] {
            let told = now.overuse_since(then).map(|error| error.message);
            let is_told = told.as_deref().zip(why).is_some_and(|(told, why)| told.starts_with(why));
            assert!(is_told || told.is_none() && why.is_none(), "{now:?}: {told:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        for name in [CHANGES_DIRECTORY, "ws"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let workspace = Rc::new(Workspace::open(&folder.path().join("ws")).unwrap());
        let staging = Staging::open(folder.path(), &workspace).unwrap();
        staging
            .space_before
            .set(staging.disk_space().map(|now| DiskSpace { free: now.free + (1 << 40), ..now }));
        assert!(staging.space_problem().is_some());
        // The next command does not begin anew while something is closed.
        for closed in [true, false] {
            staging.has_unreadable.set(closed);
            staging.begin_command();
            assert_eq!(staging.unreadable_problem().is_some(), closed);
        }
    }
}
