//! The run's executor, and what it is shown.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_core::code::Code;
use capsule_core::confinement::{SandboxStatus, SandboxTier};
use capsule_core::outcome::CodedError;
use capsule_sandbox::{
    Executor, Exit, Held, Launch, Mask, Running, SandboxError, Staging, View, Watch,
};

use crate::tool::Host;
use crate::veil::Veil;
use crate::workspace::Workspace;

/// The run's executor: one process that every command of the run goes through.
#[derive(Clone, Default)]
pub struct Commands {
    state: Rc<RefCell<State>>,
    /// Whether one command is all that is expected.
    one: bool,
}

#[derive(Default)]
enum State {
    /// Not needed so far.
    #[default]
    Idle,
    /// Started.
    Running {
        executor: Executor,
        /// It sees the workspace.
        entered: bool,
    },
    /// It could not be started, holds no walls, or cannot be shown the workspace: nothing is run.
    Failed(SandboxError),
    /// It is not to be started: calls are judged and not run.
    Off,
}

impl Commands {
    /// Those of a run of one command: nothing is made ready for another.
    #[must_use]
    pub fn of_one() -> Self {
        Self { one: true, ..Self::default() }
    }

    /// The same with an executor that is a copy of this process, for a program that has done nothing so
    /// far: it is there at once. Should it not be made, the first who needs one starts it.
    #[must_use]
    pub fn of_one_at_once() -> Self {
        let state = match Executor::at_once() {
            Ok(executor) => State::Running { executor, entered: false },
            Err(_) => State::Idle,
        };
        Self { state: Rc::new(RefCell::new(state)), one: true }
    }

    /// Whether one command is all that is expected.
    pub(crate) const fn is_one(&self) -> bool {
        self.one
    }

    /// Starts the executor ahead of need: its namespaces are made while the caller goes on.
    pub fn start(&self) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Idle) {
            *state = match Executor::start() {
                Ok(executor) => State::Running { executor, entered: false },
                Err(error) => State::Failed(error),
            };
        }
    }

    /// Has the executor build what commands will see, ahead of need and without waiting for it: the
    /// first command does. Should that not be possible, the first command says why. Nothing but the
    /// executor's own mounts is touched, so it is left for later where the walls are others.
    pub fn show_ahead(
        &self,
        workspace: &Workspace,
        host: &dyn Host,
        floor: SandboxTier,
        veil: &Veil,
    ) {
        let is_ready =
            matches!(self.walls(), Some(Ok(walls)) if walls.tier == SandboxTier::Namespaces);
        if let State::Running { executor, entered } = &mut *self.state.borrow_mut()
            && is_ready
            && !*entered
            && let Ok(hidden) = veil.hidden(workspace)
            && let masks = hidden.into_iter().map(|path| Mask { path }).collect()
            && let Ok(view) = view(workspace, host, floor, None, masks)
        {
            *entered = executor.enter_ahead(view).is_ok();
        }
    }

    /// Ends the executor, and waits for that: what it laid over a workspace goes with it. Whoever comes
    /// next finds another one.
    pub fn end(&self) {
        drop(self.taken());
    }

    /// Lets go of the executor, for a process that is about to end and has nothing to learn from it any
    /// more. Every command has ended when its end was told, and the executor tidies up by itself.
    pub fn part(&self) {
        if let Some(executor) = self.taken() {
            executor.part();
        }
    }

    fn taken(&self) -> Option<Executor> {
        let mut state = self.state.borrow_mut();
        if !matches!(*state, State::Running { .. }) {
            return None;
        }
        match std::mem::take(&mut *state) {
            State::Running { executor, .. } => Some(executor),
            _ => None,
        }
    }

    /// Commands that are judged and never run: no executor is started.
    #[must_use]
    pub fn off() -> Self {
        Self { state: Rc::new(RefCell::new(State::Off)), one: false }
    }

    /// The walls that a command would stand behind, or why there are none; nothing where commands
    /// are only judged.
    #[must_use]
    pub fn walls(&self) -> Option<Result<SandboxStatus, String>> {
        self.start();
        let mut state = self.state.borrow_mut();
        let walls = match &mut *state {
            State::Running { executor, .. } => executor.walls().cloned(),
            State::Failed(error) => Err(error.clone()),
            State::Idle | State::Off => return None,
        };
        Some(walls.map_err(|error| {
            let why = error.to_string();
            *state = State::Failed(error);
            why
        }))
    }

    /// Starts the executor and shows it the workspace with its changes. Where those are laid over it,
    /// gives a handle on what commands will see.
    ///
    /// # Errors
    /// It cannot be shown like this. What comes next finds another executor.
    pub(crate) fn stage(
        &self,
        workspace: &Workspace,
        host: &dyn Host,
        floor: SandboxTier,
        staging: Staging,
    ) -> Result<Option<OwnedFd>, Unshown> {
        self.start();
        let mut state = self.state.borrow_mut();
        let (executor, entered) = match &mut *state {
            State::Running { executor, entered } if !*entered => (executor, entered),
            State::Failed(error) => return Err(Unshown::new(error)),
            _ => return Err(Unshown::new(&"no command can be run")),
        };
        let view = view(workspace, host, floor, Some(staging), Vec::new())
            .map_err(|why| Unshown::new(&why))?;
        match executor.enter(view) {
            Ok(handle) => {
                *entered = true;
                Ok(handle)
            }
            Err(error) => {
                // Its ground is lost with the attempt. What comes next finds another one.
                *state = State::Idle;
                Err(match error {
                    SandboxError::Overlay { reason } => Unshown::Overlay(reason),
                    error => Unshown::new(&error),
                })
            }
        }
    }

    /// Has a command made ready. Before the first, the executor is shown what the run sees; if that fails,
    /// it holds nothing that a command could run in, and each later command is told why.
    ///
    /// # Errors
    /// The view could not be made up, or the sandbox does not run the command.
    pub(crate) fn hold(
        &self,
        launch: Launch,
        view: impl FnOnce(&Launch) -> io::Result<View>,
    ) -> Result<Held, NotRun> {
        self.start();
        let mut state = self.state.borrow_mut();
        let (executor, entered) = match &mut *state {
            State::Running { executor, entered } => (executor, entered),
            State::Failed(error) => return Err(NotRun::Sandbox(error.clone())),
            State::Idle | State::Off => {
                let reason = "it was never started";
                return Err(NotRun::Sandbox(SandboxError::ExecutorDied { reason }));
            }
        };
        if !*entered {
            let view = view(&launch).map_err(NotRun::View)?;
            if let Err(error) = executor.enter(view) {
                *state = State::Failed(error.clone());
                return Err(NotRun::Sandbox(error));
            }
            *entered = true;
        }
        // What was begun ahead is over by now, or soon.
        if let Err(error) = executor.entered() {
            *state = State::Failed(error.clone());
            return Err(NotRun::Sandbox(error));
        }
        executor.hold(launch).map_err(NotRun::Sandbox)
    }

    /// Has a command begin that was made ready.
    ///
    /// # Errors
    /// The sandbox does not run it.
    pub(crate) fn begin(&self, held: Held) -> Result<Running, SandboxError> {
        self.with_executor(|executor| executor.begin(held))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The sandbox did not run it.
    pub(crate) fn wait(
        &self,
        running: Running,
        watch: &mut dyn Watch,
    ) -> Result<Exit, SandboxError> {
        self.with_executor(|executor| executor.wait(running, watch))
    }

    fn with_executor<T>(
        &self,
        act: impl FnOnce(&mut Executor) -> Result<T, SandboxError>,
    ) -> Result<T, SandboxError> {
        match &mut *self.state.borrow_mut() {
            State::Running { executor, .. } => act(executor),
            State::Failed(error) => Err(error.clone()),
            State::Idle | State::Off => {
                Err(SandboxError::ExecutorDied { reason: "it was ended before" })
            }
        }
    }
}

/// Why a workspace is not shown with its changes.
pub(crate) enum Unshown {
    /// Only not with changes laid over it, for this reason; in a copy, it may be.
    Overlay(String),
    /// Nothing that changes something can be run.
    Problem(CodedError),
}

impl Unshown {
    fn new(why: &dyn fmt::Display) -> Self {
        Self::Problem(unstaged(why))
    }
}

/// Changes that cannot be staged.
pub(crate) fn unstaged(why: &dyn fmt::Display) -> CodedError {
    CodedError::new(Code::SandboxFailed, format!("changes cannot be staged: {why}"))
}

/// Why a command was not run, or its end is not known.
pub(crate) enum NotRun {
    /// What it should see could not be opened.
    View(io::Error),
    /// The sandbox says why.
    Sandbox(SandboxError),
}

/// What the commands of a run see: the workspace, and the programs that the policy names elsewhere.
pub(crate) fn view(
    workspace: &Workspace,
    host: &dyn Host,
    floor: SandboxTier,
    staging: Option<Staging>,
    masks: Vec<Mask>,
) -> io::Result<View> {
    let workspace = rustix::io::fcntl_dupfd_cloexec(workspace.root(), 3)?;
    let mut programs: Vec<(PathBuf, OwnedFd)> = Vec::new();
    for place in host.program_places() {
        // Shown where it really is, which is where it is started from. What is not there, or cannot be
        // shown, fails when it is called, and keeps no other program from running.
        let Ok(path) = Path::new(&place).canonicalize() else { continue };
        let is_seen =
            capsule_sandbox::is_system_path(&path) || capsule_sandbox::taken(&path).is_some();
        if is_seen || !path.is_file() || programs.iter().any(|(own, _)| *own == path) {
            continue;
        }
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?;
        programs.push((path, handle));
    }
    Ok(View { floor, workspace, staging, masks, programs })
}
