//! The run's executor, and what it is shown.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_core::confinement::{SandboxFailure, SandboxStatus, SandboxTier};
use capsule_sandbox::{
    CommandResult, CommandWatcher, Executor, GitFiles, HiddenPath, Launch, PreparedCommand,
    RepositoryMount, RunningCommand, SandboxBackend as _, SandboxError, SandboxView, StagingMount,
    ToolchainMount,
};
use capsule_workspace::{GitPreferences, HiddenPaths, MountError, OutsideRepository, Workspace};

use crate::command::background::BackgroundJobs;
use crate::command::certificates::certificate_files;
use crate::host::ToolHost;
use crate::network::{self, RunListeners};
use crate::toolchain::Toolchains;

/// The run's executor: one process that every command of the run goes through.
#[derive(Clone, Default)]
pub struct CommandRunner {
    state: Rc<RefCell<ExecutorState>>,
    /// The parts of a list that run in the background.
    jobs: BackgroundJobs,
    /// Whether one command is all that is expected.
    single: bool,
}

#[derive(Default)]
enum ExecutorState {
    /// Not needed so far.
    #[default]
    Idle,
    /// Started.
    Running {
        executor: Box<Executor>,
        /// It sees the workspace.
        view_entered: bool,
        /// The sockets that listen in the network of its commands, where that leads somewhere.
        listeners: Option<RunListeners>,
    },
    /// It could not be started, holds no walls, or cannot be shown the workspace: nothing is run.
    Failed(SandboxError),
    /// It is not to be started: calls are judged and not run.
    Disabled,
}

impl CommandRunner {
    /// Those of a run of one command: nothing is made ready for another.
    #[must_use]
    pub fn for_one_command() -> Self {
        Self { single: true, ..Self::default() }
    }

    /// The same with an executor that is a copy of this process, for a program that has done nothing so
    /// far: it is there at once. Should it not be made, the first who needs one starts it.
    #[must_use]
    pub fn for_one_command_forked() -> Self {
        let state = match Executor::start_forked() {
            Ok(executor) => ExecutorState::Running {
                executor: Box::new(executor),
                view_entered: false,
                listeners: None,
            },
            Err(_) => ExecutorState::Idle,
        };
        Self { state: Rc::new(RefCell::new(state)), single: true, ..Self::default() }
    }

    /// The parts of a list that run in the background.
    pub(crate) const fn jobs(&self) -> &BackgroundJobs {
        &self.jobs
    }

    /// Ends the parts of a list that still run, once it is over; whether changes of theirs are left that no call tells of.
    pub fn end_jobs(&self) -> bool {
        self.jobs.drop_all()
    }

    /// Whether one command is all that is expected.
    pub(crate) const fn is_single(&self) -> bool {
        self.single
    }

    /// Starts the executor ahead of need: its namespaces are made while the caller goes on.
    pub fn start(&self) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, ExecutorState::Idle) {
            *state = match Executor::start() {
                Ok(executor) => ExecutorState::Running {
                    executor: Box::new(executor),
                    view_entered: false,
                    listeners: None,
                },
                Err(error) => ExecutorState::Failed(error),
            };
        }
    }

    /// Has the executor build what commands will see, ahead of need and without waiting for it: the
    /// first command does. Should that not be possible, the first command says why. Nothing but the
    /// executor's own mounts is touched, so it is left for later where the walls are others.
    pub fn prepare_view(
        &self,
        workspace: &Workspace,
        host: &dyn ToolHost,
        floor: SandboxTier,
        hidden_paths: &HiddenPaths,
    ) {
        let is_ready =
            matches!(self.sandbox_status(), Some(Ok(walls)) if walls.tier == SandboxTier::Full);
        if let ExecutorState::Running { executor, view_entered: entered, .. } =
            &mut *self.state.borrow_mut()
            && is_ready
            && !*entered
            && let Ok(hidden) = hidden_paths.hidden_now(workspace)
            && let masks = hidden.into_iter().map(|path| HiddenPath { path }).collect()
            && let Ok(view) = sandbox_view(workspace, host, floor, None, masks)
        {
            *entered = executor.begin_enter(view).is_ok();
        }
    }

    /// Ends the executor, and waits for that: what it laid over a workspace goes with it. Whoever comes
    /// next finds another one.
    pub fn end(&self) {
        drop(self.take_executor());
    }

    /// Lets go of the executor, for a process that is about to end and has nothing to learn from it any
    /// more. Every command has ended when its end was told, and the executor tidies up by itself.
    pub fn detach(&self) {
        if let Some(executor) = self.take_executor() {
            executor.detach();
        }
    }

    /// The number of the executor's process, where one runs.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        match &*self.state.borrow() {
            ExecutorState::Running { executor, .. } => executor.process(),
            _ => None,
        }
    }

    fn take_executor(&self) -> Option<Executor> {
        let mut state = self.state.borrow_mut();
        if !matches!(*state, ExecutorState::Running { .. }) {
            return None;
        }
        match std::mem::take(&mut *state) {
            ExecutorState::Running { executor, .. } => Some(*executor),
            _ => None,
        }
    }

    /// Commands that are judged and never run: no executor is started.
    #[must_use]
    pub fn disabled() -> Self {
        Self { state: Rc::new(RefCell::new(ExecutorState::Disabled)), ..Self::default() }
    }

    /// The walls that a command would stand behind, or why there are none; nothing where commands
    /// are only judged.
    #[must_use]
    pub fn sandbox_status(&self) -> Option<Result<SandboxStatus, SandboxFailure>> {
        self.start();
        let mut state = self.state.borrow_mut();
        let status = match &mut *state {
            ExecutorState::Running { executor, .. } => executor.sandbox_status().cloned(),
            ExecutorState::Failed(error) => Err(error.clone()),
            ExecutorState::Idle | ExecutorState::Disabled => return None,
        };
        Some(status.map_err(|error| {
            let why = SandboxFailure::from(&error);
            *state = ExecutorState::Failed(error);
            why
        }))
    }

    /// Starts the executor and shows it the workspace with its changes. Where those are laid over it,
    /// gives a handle on what commands will see.
    ///
    /// # Errors
    /// It cannot be shown like this. What comes next finds another executor.
    pub(crate) fn enter_staged(
        &self,
        workspace: &Workspace,
        host: &dyn ToolHost,
        floor: SandboxTier,
        staging: StagingMount,
    ) -> Result<Option<OwnedFd>, MountError> {
        self.start();
        let mut state = self.state.borrow_mut();
        let (executor, entered) = match &mut *state {
            ExecutorState::Running { executor, view_entered: entered, .. } if !*entered => {
                (executor, entered)
            }
            ExecutorState::Failed(error) => return Err(MountError::new(error)),
            _ => return Err(MountError::new(&"no command can be run")),
        };
        let view = sandbox_view(workspace, host, floor, Some(staging), Vec::new())
            .map_err(|why| MountError::new(&why))?;
        match executor.enter(view) {
            Ok(handle) => {
                *entered = true;
                Ok(handle)
            }
            Err(error) => {
                // Its ground is lost with the attempt. What comes next finds another one.
                *state = ExecutorState::Idle;
                Err(match error {
                    SandboxError::Overlay { reason } => MountError::Overlay(reason),
                    error => MountError::new(&error),
                })
            }
        }
    }

    /// Has a command made ready. Where its network leads somewhere, `loopback` are the ports of the host's that
    /// are reached.
    ///
    /// # Errors
    /// The view could not be made up, or the sandbox does not run the command.
    pub(crate) fn prepare(
        &self,
        mut launch: Launch,
        loopback: Option<&[u16]>,
        view: impl FnOnce(&Launch) -> io::Result<SandboxView>,
    ) -> Result<PreparedCommand, CommandError> {
        self.enter(&launch, view)?;
        let mut state = self.state.borrow_mut();
        let ExecutorState::Running { executor, listeners, .. } = &mut *state else {
            return Err(never_started());
        };
        if let Some(ports) = loopback {
            let opened = match listeners.take() {
                Some(listeners) => listeners,
                None => Rc::new(executor.listen(ports).map_err(CommandError::Sandbox)?),
            };
            network::drop_pending(&opened);
            network::add_proxy_variables(&mut launch, opened.proxy_port);
            *listeners = Some(opened);
        }
        executor.prepare(launch).map_err(CommandError::Sandbox)
    }

    /// A copy of the executor for a command that runs beside others.
    ///
    /// # Errors
    /// The view could not be made up, or no copy be made.
    pub(crate) fn fork_executor(
        &self,
        launch: &Launch,
        view: impl FnOnce(&Launch) -> io::Result<SandboxView>,
    ) -> Result<Executor, CommandError> {
        self.enter(launch, view)?;
        self.with_executor(Executor::fork_for_background).map_err(CommandError::Sandbox)
    }

    /// Shows the executor what the run sees, before the first command. If that fails, it holds nothing that a command could
    /// run in, and each later command is told why.
    ///
    /// # Errors
    /// The view could not be made up.
    fn enter(
        &self,
        launch: &Launch,
        view: impl FnOnce(&Launch) -> io::Result<SandboxView>,
    ) -> Result<(), CommandError> {
        self.start();
        let mut state = self.state.borrow_mut();
        let (executor, entered) = match &mut *state {
            ExecutorState::Running { executor, view_entered, .. } => (executor, view_entered),
            ExecutorState::Failed(error) => return Err(CommandError::Sandbox(error.clone())),
            ExecutorState::Idle | ExecutorState::Disabled => return Err(never_started()),
        };
        let entering = match *entered {
            true => Ok(()),
            false => {
                let view = view(launch).map_err(CommandError::View)?;
                executor.enter(view).map(|_| *entered = true)
            }
        };
        // What was begun ahead is over by now, or soon.
        if let Err(error) = entering.and_then(|()| executor.wait_for_view()) {
            *state = ExecutorState::Failed(error.clone());
            return Err(CommandError::Sandbox(error));
        }
        Ok(())
    }

    /// The sockets that listen in the network of the commands, once one was prepared that has such a network.
    pub(crate) fn listeners(&self) -> Option<RunListeners> {
        match &*self.state.borrow() {
            ExecutorState::Running { listeners, .. } => listeners.clone(),
            _ => None,
        }
    }

    /// Has a command begin that was made ready.
    ///
    /// # Errors
    /// The sandbox does not run it.
    pub(crate) fn begin(&self, held: PreparedCommand) -> Result<RunningCommand, SandboxError> {
        self.with_executor(|executor| executor.start_command(held))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The sandbox did not run it.
    pub(crate) fn wait(
        &self,
        running: RunningCommand,
        watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        self.with_executor(|executor| executor.wait(running, watch))
    }

    fn with_executor<T>(
        &self,
        act: impl FnOnce(&mut Executor) -> Result<T, SandboxError>,
    ) -> Result<T, SandboxError> {
        match &mut *self.state.borrow_mut() {
            ExecutorState::Running { executor, .. } => act(executor),
            ExecutorState::Failed(error) => Err(error.clone()),
            ExecutorState::Idle | ExecutorState::Disabled => {
                Err(SandboxError::ExecutorDied { reason: "it was ended before" })
            }
        }
    }
}

/// Why a command was not run, or its end is not known.
pub(crate) enum CommandError {
    /// What it should see could not be opened.
    View(io::Error),
    /// The sandbox says why.
    Sandbox(SandboxError),
}

/// Why nothing runs where no executor was started.
const fn never_started() -> CommandError {
    CommandError::Sandbox(SandboxError::ExecutorDied { reason: "it was never started" })
}

/// What the commands of a run see: the workspace, and the programs that the policy names elsewhere.
pub(crate) fn sandbox_view(
    workspace: &Workspace,
    host: &dyn ToolHost,
    floor: SandboxTier,
    staging: Option<StagingMount>,
    masks: Vec<HiddenPath>,
) -> io::Result<SandboxView> {
    let names = workspace.root_names();
    let mut programs: Vec<(PathBuf, OwnedFd)> = Vec::new();
    let places = host.program_paths().into_iter().map(PathBuf::from);
    let places = places.chain(certificate_files(host).into_iter().map(|(_, path)| path));
    for place in places {
        // Shown where it really is, which is where it is started from. What is not there, or cannot be
        // shown, fails when it is called, and keeps no other program from running.
        let Ok(path) = place.canonicalize() else { continue };
        let is_inside = path.starts_with(names.mount());
        let is_seen = Executor::is_system_path(&path)
            || Executor::private_directory(&path).is_some() && !is_inside;
        if is_seen || !path.is_file() || programs.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let flags = capsule_workspace::system::PATH_ONLY | rustix::fs::OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?;
        programs.push((path, handle));
    }
    Ok(SandboxView {
        floor,
        workspace: rustix::io::fcntl_dupfd_cloexec(workspace.root(), 3)?,
        root_names: names.clone(),
        staging,
        hidden: masks,
        programs,
        git: git_files(workspace, host),
        toolchains: toolchain_mounts(host.toolchains())?,
        repository: repository_mount(workspace),
    })
}

/// The directories of toolchains, opened; each is shown at its path, and where that really is.
fn toolchain_mounts(toolchains: &Toolchains) -> io::Result<Vec<ToolchainMount>> {
    let mut mounts: Vec<ToolchainMount> = Vec::new();
    for home in toolchains.homes().filter(|home| !Executor::is_system_path(home)) {
        let (path, hidden) = (home.to_owned(), Vec::new());
        mounts.push(ToolchainMount { path, source: None, discards_writes: true, hidden });
    }
    for shown in toolchains.directories() {
        for path in [&shown.path, &shown.real] {
            if Executor::is_system_path(path) || mounts.iter().any(|mount| mount.path == *path) {
                continue;
            }
            let flags = capsule_workspace::system::PATH_ONLY | rustix::fs::OFlags::CLOEXEC;
            mounts.push(ToolchainMount {
                path: path.clone(),
                source: Some(rustix::fs::open(&shown.real, flags, rustix::fs::Mode::empty())?),
                discards_writes: shown.discards_writes,
                hidden: shown.hidden.clone(),
            });
        }
    }
    mounts.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(mounts)
}

/// The directory of the repository of a workspace, where that lies elsewhere and can be shown.
fn repository_mount(workspace: &Workspace) -> Option<RepositoryMount> {
    let found = OutsideRepository::find(workspace).ok()??;
    let mount = Path::new(workspace.root_names().mount());
    let is_of_calls =
        !found.path.starts_with("/tmp") && Executor::private_directory(&found.path).is_some();
    let overlaps = found.path.starts_with(mount) || mount.starts_with(&found.path);
    if is_of_calls || overlaps || Executor::is_system_path(&found.path) {
        return None;
    }
    Some(RepositoryMount {
        config: (found.config_path(), found.config_text(mount)),
        path: found.path,
        source: found.directory,
        hidden: found.hidden,
    })
}

/// How git works in a call. It compares files with an index by their sizes and dates: a file in a copy of the workspace,
/// and what covers a hidden one, has another inode and another time of change. It tidies up before it ends, since what
/// it left running would be ended in the middle.
const CALL_SETTINGS: &[u8] =
    b"[core]\n\tcheckStat = minimal\n[gc]\n\tautoDetach = false\n[maintenance]\n\tautoDetach = false\n";

/// The files that git finds in place of the configuration of the machine and of the user.
fn git_files(workspace: &Workspace, host: &dyn ToolHost) -> GitFiles {
    let preferences = GitPreferences::read(host, workspace.path());
    let mount = Path::new(workspace.root_names().mount());
    let config = preferences.config_text(workspace.path(), mount);
    GitFiles { config: [&config, CALL_SETTINGS].concat(), ignored: preferences.ignored }
}
