//! The view of a run: the root of [`super::root`] with the workspace in it, and nothing behind it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::probe::{CommandFilters, PreparedNamespaces};
use super::root::{self, READ_ONLY_ATTRIBUTES, Root, Submounts};
use super::spawn::StandbyInit;
use super::toolchains::Toolchains;
use super::workspace_mount::WorkspaceMount;
use super::{git_files, hidden_paths, overlay};
use crate::linux::backend::InitProcess;
use crate::linux::backend::host_path::{self, reopen};
use crate::linux::backend::system::{DIRECTORIES, private_directory};
use crate::linux::executor::cgroup::Cgroups;
use crate::linux::kernel::set_mount_attributes;
use crate::linux::landlock::LandlockAccess;
use crate::linux::protocol::{
    AtStep as _, EnterRequest, ExecutorError, HostPath, SetupError, StagingPaths, Step,
};

/// What a run sees, and what each call of it needs.
pub(crate) struct NamespaceSandbox {
    /// The first process of the next call. Stands before the groups, which must be empty to be
    /// removed.
    pub(super) standby: Option<StandbyInit>,
    /// The first process of the last call, if it ends by itself.
    pub(in crate::linux::backend) previous: Option<InitProcess>,
    pub(super) root: Root,
    pub(super) workspace: OwnedFd,
    pub(super) mount: WorkspaceMount,
    pub(super) toolchains: Toolchains,
    /// Whether its changes are collected, so that commands may make some.
    pub(super) staged: bool,
    pub(super) abi: i32,
    pub(super) filters: CommandFilters,
    pub(in crate::linux::backend) pid_max: bool,
    pub(crate) cgroups: Cgroups,
    /// The standard input of commands that are given none.
    pub(super) empty_stdin: OwnedFd,
}

impl NamespaceSandbox {
    /// Ends the processes that stand by, and waits for those of the last call.
    pub(crate) fn drop_processes(&mut self) {
        (self.standby, self.previous) = (None, None);
    }
}

impl PreparedNamespaces {
    /// Puts the workspace and the programs into the root and makes it the only root there is.
    ///
    /// # Errors
    /// The step that failed. The ground is lost with it, so that no half-built view is ever used.
    pub(crate) fn enter(
        self,
        enter: &EnterRequest,
    ) -> Result<(NamespaceSandbox, Option<OwnedFd>), ExecutorError> {
        let Self { mut root, abi, cgroups, pid_max, filters, holder } = self;
        let mount = WorkspaceMount::parse(&enter.names).at(Step::Workspace)?;
        mount.prepare(&root).at(Step::Workspace)?;
        let AttachedWorkspace { with_mounts, shared } = attach_workspace(&root, &mount, enter)?;
        if !matches!(enter.staging, Some(StagingPaths::Overlay(_))) {
            root.directories.add_bound(mount.path());
        }
        hide_original_workspace(&root, enter)?;
        for (target, place) in &enter.programs {
            show_program(&mut root, &mount, host_path::bytes_to_path(target), place)?;
        }
        let shown = enter.toolchains.iter().chain(&enter.repository);
        let toolchains = Toolchains::show(&mut root, &mount, shown)?;
        git_files::write_git_files(&root, &enter.git_files).at(Step::Configuration)?;
        root.allow(mount.relative_to_root(), LandlockAccess::Read).at(Step::Workspace)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let workspace = openat(&root.tree, mount.relative_to_root(), flags, Mode::empty())
            .at(Step::Workspace)?;
        make_only_root(&root).at(Step::PivotRoot)?;
        if with_mounts {
            hidden_paths::hide_mounts(&root.cover, workspace.as_fd(), &mount)?;
        }
        let _ = hidden_paths::hide(&root.cover, workspace.as_fd(), &enter.hidden)?;
        let nothing =
            open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at(Step::Device)?;
        drop(holder);
        let view = NamespaceSandbox {
            standby: None,
            previous: None,
            root,
            workspace,
            mount,
            toolchains,
            staged: enter.staging.is_some(),
            abi,
            filters,
            pid_max,
            cgroups,
            empty_stdin: nothing,
        };
        Ok((view, shared))
    }
}

/// The workspace is seen in one place alone: where it lies beneath a folder of the system, nothing
/// would be hidden in it. So do its changes.
fn hide_original_workspace(root: &Root, enter: &EnterRequest) -> Result<(), SetupError> {
    let staged = enter.staging.iter().flat_map(|staged| match staged {
        StagingPaths::Overlay([changes, _]) => [changes].into_iter(),
        StagingPaths::Copied(copy) => [copy].into_iter(),
    });
    for place in staged.chain([&enter.workspace]) {
        let path = host_path::bytes_to_path(&place.path);
        if DIRECTORIES.iter().any(|folder| path.starts_with(folder.path)) {
            root.cover_directory(path).at(Step::Workspace)?;
        }
    }
    Ok(())
}

/// The workspace, as it was put into the root.
struct AttachedWorkspace {
    /// Whether other mounts came along.
    with_mounts: bool,
    /// The workspace with changes laid over it, for the deciding process: nobody else can open that.
    shared: Option<OwnedFd>,
}

/// Puts the workspace into the root, read-only; a staged one is made writable for the calls that may
/// write. This is the one place that knows how.
fn attach_workspace(
    root: &Root,
    mount: &WorkspaceMount,
    enter: &EnterRequest,
) -> Result<AttachedWorkspace, SetupError> {
    let folder = reopen(&enter.workspace, Step::WorkspaceMoved)?;
    let attach =
        |copy: &OwnedFd| root.attach(copy.as_fd(), mount.relative_to_root(), READ_ONLY_ATTRIBUTES);
    if let Some(StagingPaths::Copied(copied)) = &enter.staging {
        let copied = reopen(copied, Step::Staging)?;
        attach(&root::copy_mount(&copied, Submounts::Excluded).at(Step::Staging)?)
            .at(Step::Workspace)?;
        return Ok(AttachedWorkspace { with_mounts: false, shared: None });
    }
    if let Some(StagingPaths::Overlay([changes, work])) = &enter.staging {
        let changes = reopen(changes, Step::Staging)?;
        let work = reopen(work, Step::Staging)?;
        let overlay = overlay::overlay(&folder, &changes, &work).at(Step::Staging)?;
        // Through it the deciding process reads and writes what commands see.
        let shared = root::copy_mount(&overlay, Submounts::Excluded).at(Step::Staging)?;
        attach(&overlay).at(Step::Workspace)?;
        return Ok(AttachedWorkspace { with_mounts: false, shared: Some(shared) });
    }
    // Alone if possible. If something is mounted in it, the kernel only copies all of it, lest what
    // lies beneath be uncovered.
    let (copy, with_mounts) = match root::copy_mount(&folder, Submounts::Excluded) {
        Err(Errno::INVAL) => (root::copy_mount(&folder, Submounts::Copied), true),
        alone => (alone, false),
    };
    attach(&copy.at(Step::Workspace)?).at(Step::Workspace)?;
    Ok(AttachedWorkspace { with_mounts, shared: None })
}

/// Shows a program, or a folder of one, from outside the system folders.
fn show_program(
    root: &mut Root,
    mount: &WorkspaceMount,
    target: &Path,
    place: &HostPath,
) -> Result<(), SetupError> {
    let is_inside = target.starts_with(mount.path()) && target != mount.path();
    if private_directory(target).is_some() && !is_inside {
        return Err(SetupError { step: Step::Program, errno: Errno::EXIST });
    }
    let file = reopen(place, Step::ProgramMoved)?;
    let relative = target.strip_prefix("/").unwrap_or(target);
    let folder = fstat(&file).at(Step::Program)?.st_mode;
    let folder = FileType::from_raw_mode(folder) == FileType::Directory;
    let reach = if folder { LandlockAccess::Read } else { LandlockAccess::ReadFile };
    // It lies in a folder of the configuration, which is shown already.
    if root.shows(relative, place) {
        return root.allow(relative, reach).at(Step::Program);
    }
    let made = if is_inside {
        // It is laid over itself there, so that no command changes it.
        Ok(())
    } else if folder {
        root.make_directory(relative)
    } else {
        root.make_file(relative, Mode::from_raw_mode(0o555)).map(drop)
    };
    made.at(Step::Program)?;
    let attached = match folder {
        true => root.show_host_directory(&file, relative, READ_ONLY_ATTRIBUTES),
        false => root::copy_mount(&file, Submounts::Copied)
            .and_then(|copy| root.attach(copy.as_fd(), relative, READ_ONLY_ATTRIBUTES)),
    };
    attached.at(Step::Program)?;
    root.allow(relative, reach).at(Step::Program)
}

/// Leaves the host's root behind: nothing leads to it any more.
pub(super) fn make_only_root(root: &Root) -> Result<(), Errno> {
    fchdir(&root.tree)?;
    // The old root is laid over the new one for a moment, and then taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    set_mount_attributes(root.tree.as_fd(), false, READ_ONLY_ATTRIBUTES)?;
    root.tmp.set_attributes(READ_ONLY_ATTRIBUTES)
}
