//! Creates a staged workspace, and takes up one of an earlier run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::spelling::Spelling;
use capsule_core::change::{Change, FileState};
use capsule_core::outcome::CodedError;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use super::copy_changes::CopiedWorkspace;
use super::directory::{CHANGES_DIRECTORY, WORK_DIRECTORY, hold_directory, overlay_area};
use super::layers::StagingLayers;
use super::mount::{MountError, MountStaging, StagingArea, staging_problem};
use super::scan::ChangeScan;
use super::state::{OriginalNode, Staging};
use super::workspace_copy::{Copier, CopyLimits};
use crate::cancel::Cancel;
use crate::change_set::ChangeSet;
use crate::hidden_paths::{HiddenPaths, HiddenPathsError};
use crate::node;
use crate::resolve::Workspace;
use crate::system::PATH_ONLY;

/// What helps where the workspace can neither be laid under changes nor be copied.
const STAGING_HINT: &str =
    "put the store on a local disk (`--store`), and let nothing be mounted in the workspace";
/// Why no changes are laid over a workspace on such a file system.
const ALIASES: &str = "its file system takes other spellings of a name for the same";
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
        staging.lay_over(folder, workspace, mounts, resume_problem)
    }

    /// Has the kernel lay the changes of a session over the workspace again, as an earlier process left them.
    /// `changes` are what its record says of them.
    ///
    /// # Errors
    /// [`Code::SandboxFailed`] where the kernel does not, or they cannot be opened.
    pub fn reopen(
        directory: &Path,
        changes: &ChangeSet,
        workspace: &Rc<Workspace>,
        mounts: &dyn MountStaging,
    ) -> Result<StagingSetup, CodedError> {
        let unopened = |error: io::Error| {
            let message = format!("`{}` cannot be opened: {error}", directory.display());
            CodedError::new(Code::SandboxFailed, message)
        };
        let staging = Self::open(directory, workspace).map_err(unopened)?;
        let original =
            |change: &Change| OriginalNode { node: change.before.clone(), refusal: None };
        let originals = changes.0.iter().map(|(path, change)| (path.clone(), original(change)));
        staging.originals.replace(originals.collect());
        staging.last_scan.replace(changes.clone());
        staging.recorded.replace(changes.clone());
        staging.lay_over(directory, workspace, mounts, staging_problem)
    }

    /// Has the kernel lay changes that are there already over the workspace. `refused` makes the error where it
    /// does not.
    fn lay_over(
        self,
        directory: &Path,
        workspace: &Rc<Workspace>,
        mounts: &dyn MountStaging,
        refused: fn(&dyn std::fmt::Display) -> CodedError,
    ) -> Result<StagingSetup, CodedError> {
        let unopened = |error: io::Error| {
            let message = format!("`{}` cannot be taken up: {error}", directory.display());
            CodedError::new(Code::SandboxFailed, message)
        };
        if workspace.has_aliases() {
            return Err(refused(&ALIASES));
        }
        let overlay = overlay_area(directory).map_err(unopened)?;
        let handle = match mounts.mount(workspace, overlay) {
            Ok(Some(handle)) => handle,
            Err(MountError::Overlay(why)) => return Err(refused(&why)),
            Err(MountError::Problem(problem)) => return Err(problem),
            Ok(None) => return Err(staging_problem(&"the sandbox gives no handle on them")),
        };
        let workspace = Rc::new(workspace.with_overlay(handle).map_err(unopened)?);
        Ok(StagingSetup { workspace, staging: Rc::new(self) })
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
        let hidden =
            hidden_paths.hidden_now(&self.layers.lower).map_err(HiddenPathsError::problem)?;
        let hidden: BTreeSet<OsString> = hidden.into_iter().collect();
        let (from, to) = ((&*self.layers.lower, &hidden), (self.layers.upper.as_fd(), item));
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
        let now = hidden_paths.hidden_now(&self.layers.lower).map_err(HiddenPathsError::problem)?;
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
        self.copied = Some(CopiedWorkspace::new(&self.layers, copy, why));
        Ok(())
    }

    /// Opens the changes of an earlier run.
    ///
    /// # Errors
    /// When they are not there.
    pub fn open(folder: &Path, workspace: &Rc<Workspace>) -> io::Result<Self> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = rustix::fs::open(folder.join(CHANGES_DIRECTORY), flags, Mode::empty())?;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let now = clock_gettime(ClockId::Realtime);
        Ok(Self {
            created_at: (now.tv_sec, now.tv_nsec),
            layers: StagingLayers {
                lower: Rc::clone(workspace),
                stamps_are_reliable: node::stamps_are_reliable(upper.as_fd()),
                limits: Cell::default(),
                upper,
            },
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
            prepared_indexes: RefCell::default(),
        })
    }
}

/// Why a run does not go on from what it had staged.
fn resume_problem(why: &dyn std::fmt::Display) -> CodedError {
    let message = format!("what the run had staged cannot be gone on from: {why}");
    CodedError::new(Code::ResumeChanged, message)
        .with_suggestion("`capsule changes` shows it; apply or discard it, and run the plan anew")
}
