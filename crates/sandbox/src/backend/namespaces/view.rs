//! The view of a run: the root of [`super::root`] with the workspace in it, and nothing behind it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::probe::Ground;
use super::root::{self, Beneath, Root, SEALED, WORKSPACE};
use super::spawn::Standby;
use super::{masks, staging};
use crate::backend::First;
use crate::backend::place::{self, open_again};
use crate::backend::system::{FOLDERS, taken};
use crate::executor::cgroup::Cgroups;
use crate::kernel::set_mount_attributes;
use crate::landlock::Reach;
use crate::protocol::{At as _, Enter, Failed, Place, Refusal, Staged, Step};
use crate::seccomp::Filter;

/// What a run sees, and what each call of it needs.
pub(crate) struct View {
    /// The first process of the next call. Stands before the groups, which must be empty to be
    /// removed.
    pub(super) standby: Option<Standby>,
    /// The first process of the last call, if it ends by itself.
    pub(in crate::backend) ending: Option<First>,
    pub(super) root: Root,
    pub(super) workspace: OwnedFd,
    /// Whether its changes are collected, so that commands may make some.
    pub(super) staged: bool,
    pub(super) abi: i32,
    pub(super) filter: Filter,
    pub(super) pid_max: bool,
    pub(crate) cgroups: Cgroups,
    /// The standard input of commands that are given none.
    pub(super) nothing: OwnedFd,
}

impl Ground {
    /// Puts the workspace and the programs into the root and makes it the only root there is.
    ///
    /// # Errors
    /// The step that failed. The ground is lost with it, so that no half-built view is ever used.
    pub(crate) fn enter(self, enter: &Enter) -> Result<(View, Option<OwnedFd>), Refusal> {
        let Self { mut root, abi, cgroups, pid_max, filter, holder } = self;
        let Attached { with_mounts, shared } = attach_workspace(&root, enter)?;
        hide_at_home(&root, enter)?;
        for (target, place) in &enter.programs {
            show_program(&mut root, place::path(target), place)?;
        }
        root.allow(WORKSPACE, Reach::Read).at(Step::Workspace)?;
        let workspace =
            openat(&root.tree, WORKSPACE, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .at(Step::Workspace)?;
        make_only_root(&root).at(Step::PivotRoot)?;
        if with_mounts {
            masks::hide_mounts(&root.cover, workspace.as_fd())?;
        }
        let _ = masks::hide(&root.cover, workspace.as_fd(), &enter.masks)?;
        let nothing =
            open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at(Step::Device)?;
        drop(holder);
        let view = View {
            standby: None,
            ending: None,
            root,
            workspace,
            staged: enter.staging.is_some(),
            abi,
            filter,
            pid_max,
            cgroups,
            nothing,
        };
        Ok((view, shared))
    }
}

/// The workspace is seen in one place alone: where it lies beneath a folder of the system, nothing
/// would be hidden in it. So do its changes.
fn hide_at_home(root: &Root, enter: &Enter) -> Result<(), Failed> {
    let staged = enter.staging.iter().flat_map(|staged| match staged {
        Staged::Overlay([changes, _]) => [changes].into_iter(),
        Staged::Copied(copy) => [copy].into_iter(),
    });
    for place in staged.chain([&enter.workspace]) {
        let path = place::path(&place.path);
        if FOLDERS.iter().any(|folder| path.starts_with(folder.path)) {
            root.cover_folder(path).at(Step::Workspace)?;
        }
    }
    Ok(())
}

/// The workspace, as it was put into the root.
struct Attached {
    /// Whether other mounts came along.
    with_mounts: bool,
    /// The workspace with changes laid over it, for the deciding process: nobody else can open that.
    shared: Option<OwnedFd>,
}

/// Puts the workspace into the root, read-only; a staged one is made writable for the calls that may
/// write. This is the one place that knows how.
fn attach_workspace(root: &Root, enter: &Enter) -> Result<Attached, Failed> {
    let folder = open_again(&enter.workspace, Step::WorkspaceMoved)?;
    let attach = |copy: &OwnedFd| root.attach(copy.as_fd(), Path::new(WORKSPACE), SEALED);
    if let Some(Staged::Copied(copied)) = &enter.staging {
        let copied = open_again(copied, Step::Staging)?;
        attach(&root::copy(&copied, Beneath::Left).at(Step::Staging)?).at(Step::Workspace)?;
        return Ok(Attached { with_mounts: false, shared: None });
    }
    if let Some(Staged::Overlay([changes, work])) = &enter.staging {
        let changes = open_again(changes, Step::Staging)?;
        let work = open_again(work, Step::Staging)?;
        let overlay = staging::overlay(&folder, &changes, &work).at(Step::Staging)?;
        // Through it the deciding process reads and writes what commands see.
        let shared = root::copy(&overlay, Beneath::Left).at(Step::Staging)?;
        attach(&overlay).at(Step::Workspace)?;
        return Ok(Attached { with_mounts: false, shared: Some(shared) });
    }
    // Alone if possible. If something is mounted in it, the kernel only copies all of it, lest what
    // lies beneath be uncovered.
    let (copy, with_mounts) = match root::copy(&folder, Beneath::Left) {
        Err(Errno::INVAL) => (root::copy(&folder, Beneath::Copied), true),
        alone => (alone, false),
    };
    attach(&copy.at(Step::Workspace)?).at(Step::Workspace)?;
    Ok(Attached { with_mounts, shared: None })
}

/// Shows a program, or a folder of one, from outside the system folders.
fn show_program(root: &mut Root, target: &Path, place: &Place) -> Result<(), Failed> {
    if taken(target).is_some() {
        return Err(Failed { step: Step::Program, errno: Errno::EXIST });
    }
    let file = open_again(place, Step::ProgramMoved)?;
    let relative = target.strip_prefix("/").unwrap_or(target);
    let folder = fstat(&file).at(Step::Program)?.st_mode;
    let folder = FileType::from_raw_mode(folder) == FileType::Directory;
    let reach = if folder { Reach::Read } else { Reach::ReadFile };
    // It lies in a folder of the configuration, which is shown already.
    if root.shows(relative, place) {
        return root.allow(relative, reach).at(Step::Program);
    }
    let made = if folder {
        root.make_folder(relative)
    } else {
        root.make_file(relative, Mode::from_raw_mode(0o555)).map(drop)
    };
    made.at(Step::Program)?;
    let copy = root::copy(&file, Beneath::Copied).at(Step::Program)?;
    root.attach(copy.as_fd(), relative, SEALED).at(Step::Program)?;
    root.allow(relative, reach).at(Step::Program)
}

/// Leaves the host's root behind: nothing leads to it any more.
fn make_only_root(root: &Root) -> Result<(), Errno> {
    fchdir(&root.tree)?;
    // The old root is laid over the new one for a moment, and then taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    set_mount_attributes(root.tree.as_fd(), false, SEALED)
}
