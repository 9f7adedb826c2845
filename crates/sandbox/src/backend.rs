//! The parts that a system must offer so that commands can be run on it.
//!
//! One trait, so that a system that lacks a part does not compile. [`crate::Executor`] is the backend of the
//! system that the crate is built for: `linux`, or `unsupported_os`, which runs nothing.

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use capsule_core::confinement::{LimitStatus, SandboxStatus};
use capsule_core::lifecycle::UnconfinedPermit;

use crate::{
    AgentLaunch, CommandListeners, CommandResult, CommandWatcher, Launch, RunningAgent,
    SandboxError, SandboxView,
};

/// A process that confines the commands of one run, and what is to be known about this system's sandbox.
pub trait SandboxBackend: Debug + Sized {
    /// A command that has been made ready, and that has not begun.
    type Prepared: Debug;
    /// A command that has begun.
    type Running: Debug;

    /// Starts an executor, and does not wait for it: it sets up what it can while the caller does other
    /// work.
    ///
    /// # Errors
    /// The process could not be started.
    fn start() -> Result<Self, SandboxError>;

    /// Makes an executor of a copy of this process, for a program that has done nothing so far.
    ///
    /// # Errors
    /// The copy could not be made, among others because this process has more than one thread.
    fn start_forked() -> Result<Self, SandboxError>;

    /// The number of the executor's process; none once it was waited for.
    fn process(&self) -> Option<i32>;

    /// The layers and limits that the executor can keep on this machine. Waits for it to have found out.
    ///
    /// # Errors
    /// The executor ended or did not answer in time.
    fn sandbox_status(&mut self) -> Result<&SandboxStatus, SandboxError>;

    /// Builds the view of the run. Once. Where a folder of changes was laid over the workspace, gives
    /// what commands see, to be read and written through.
    ///
    /// # Errors
    /// A layer is missing on this machine, or a step of the set-up failed. Nothing can be run then.
    /// [`SandboxError::Overlay`] where only that folder could not be laid over the workspace.
    fn enter(&mut self, view: SandboxView) -> Result<Option<OwnedFd>, SandboxError>;

    /// The same without waiting for it, for a view without staged changes:
    /// [`SandboxBackend::wait_for_view`] tells what came of it.
    ///
    /// # Errors
    /// A layer is missing on this machine, or the view cannot be told.
    fn begin_enter(&mut self, view: SandboxView) -> Result<(), SandboxError>;

    /// Waits for a view that was begun before; nothing if none was.
    ///
    /// # Errors
    /// A step of the set-up failed. Nothing can be run then.
    fn wait_for_view(&mut self) -> Result<(), SandboxError>;

    /// Listens on the loopback of the network that the commands of the run have to themselves: on a port that the
    /// system chooses, and on each of `ports`. What is accepted comes from a command of this run. Once, after the
    /// view was built.
    ///
    /// # Errors
    /// The commands have no network of their own, or a port is taken.
    fn listen(&mut self, ports: &[u16]) -> Result<CommandListeners, SandboxError>;

    /// Makes a copy of the executor that runs one command beside those of this one: in the same view and network, with
    /// processes, limits and control groups of its own. The copy ends with this executor, and when its handle is dropped.
    ///
    /// # Errors
    /// The executor cannot be told, or does not confine by namespaces.
    fn fork_for_background(&mut self) -> Result<Self, SandboxError>;

    /// Has a command made ready in the view, up to the point at which its first program would be
    /// started. The caller may do something else meanwhile, and then has it begin. Without that,
    /// nothing was run, and the next command takes its place.
    ///
    /// # Errors
    /// The command makes no sense, or the executor cannot be told.
    fn prepare(&mut self, launch: Launch) -> Result<Self::Prepared, SandboxError>;

    /// Has a prepared command begin. The caller may do something else before it waits for the end;
    /// what the command prints waits in pipes until then.
    ///
    /// # Errors
    /// The executor cannot be told.
    fn start_command(&mut self, held: Self::Prepared) -> Result<Self::Running, SandboxError>;

    /// Waits until every process of a command has ended.
    ///
    /// # Errors
    /// The command was not started, or the executor died while it ran.
    fn wait(
        &mut self,
        running: Self::Running,
        watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError>;

    /// Prepares a command, starts it and waits for it.
    ///
    /// # Errors
    /// The command was not started, or the executor died while it ran.
    fn run(
        &mut self,
        launch: Launch,
        watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        let held = self.prepare(launch)?;
        let running = self.start_command(held)?;
        self.wait(running, watch)
    }

    /// Lets go of the executor without waiting for it: it tidies up and ends by itself. For a
    /// process that is about to end anyway; elsewhere it would leave an entry in the table of
    /// processes.
    fn detach(self);

    /// Runs one program that nothing confines, within the limits of the permit: with a fresh environment,
    /// none of our descriptors, no terminal and no privileges. Gives how it ended, and by what means each
    /// limit was kept; the layers of the end are all missing.
    ///
    /// # Errors
    /// The program was not started, or its end is not known.
    fn run_unconfined(
        permit: &UnconfinedPermit<'_>,
        view: SandboxView,
        launch: Launch,
        watch: &mut dyn CommandWatcher,
    ) -> Result<(CommandResult, Vec<LimitStatus>), SandboxError>;

    /// Makes a whole agent ready, up to the point at which its program would be started.
    ///
    /// # Errors
    /// A layer is missing on this machine, or a step of the set-up failed.
    fn prepare_agent(launch: &AgentLaunch) -> Result<RunningAgent, SandboxError>;

    /// The whole life of an executor, in the process that was started as one.
    fn executor_main() -> ExitCode;

    /// Has names of hosts looked up in the machine's own file and by DNS, and users in the machine's own
    /// file, without loading what else the machine is set up for into this process. To be called before
    /// anything is looked up; only the first call does something.
    fn use_builtin_name_lookup();

    /// Whether a command sees this absolute path of the host at the same place, because it lies in a
    /// system folder. Links on the way are not followed: ask with a resolved path.
    fn is_system_path(path: &Path) -> bool;

    /// The mount of the sandbox that keeps a workspace with this real path from being mounted there.
    /// `is_direct` says whether commands change the workspace itself.
    fn mount_conflict(root: &Path, is_direct: bool) -> Option<&'static str>;

    /// The private folder that every command has where this absolute path of the host lies, so that the
    /// path cannot be shown to it.
    fn private_directory(path: &Path) -> Option<&'static str>;

    /// Runs into every layer, through a sandbox of its own in a fresh folder.
    fn self_test() -> Vec<SelfTestResult>;

    /// Has a command write into a staged workspace whose changes are collected in a fresh folder below
    /// `place`, on the file system that runs will collect them on.
    fn try_staging(place: &Path) -> SelfTestResult;

    /// The same with a folder that is shown in place of the workspace, as a copy of it would be.
    fn try_copying(place: &Path) -> SelfTestResult;

    /// Has changes that are collected below `place` laid over a workspace, in which nothing runs.
    ///
    /// # Errors
    /// Why the system does not.
    fn try_overlay(place: &Path, workspace: &Path) -> Result<(), String>;
}

/// The result of one check of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfTestResult {
    /// The name of the check.
    pub name: &'static str,
    /// Whether all is well.
    pub passed: bool,
    /// The finding in words.
    pub detail: String,
}
