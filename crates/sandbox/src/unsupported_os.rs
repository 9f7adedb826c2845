//! A system without a backend: nothing is run, and every question is answered so.
//!
//! The feature `unsupported-os` chooses this backend on Linux, too, so that it can be tested.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use capsule_core::confinement::{LimitStatus, SandboxStatus};
use capsule_core::lifecycle::UnconfinedPermit;

use crate::{
    AgentEvent, AgentLaunch, CommandListeners, CommandResult, CommandWatcher, Launch,
    SandboxBackend, SandboxError, SandboxView, SelfTestResult,
};

/// There is no executor on this system.
#[derive(Debug)]
pub enum Executor {}

/// A command that has been made ready; none ever is.
pub type PreparedCommand = Executor;
/// A command that has begun; none ever does.
pub type RunningCommand = Executor;

/// An agent; none ever runs.
pub type RunningAgent = Executor;

impl Executor {
    /// The other side of its terminal.
    #[must_use]
    pub fn terminal(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    /// Has its program begin.
    ///
    /// # Errors
    /// None; there is no agent.
    pub fn begin(&self) -> Result<(), SandboxError> {
        match *self {}
    }

    /// Has it go on after it was stopped.
    ///
    /// # Errors
    /// None; there is no agent.
    pub fn resume(&self) -> Result<(), SandboxError> {
        match *self {}
    }

    /// Sends a signal to its program.
    ///
    /// # Errors
    /// None; there is no agent.
    pub fn signal(&self, _signal: i32) -> Result<(), SandboxError> {
        match *self {}
    }

    /// The sockets of its ports.
    #[must_use]
    pub fn listeners(&self) -> Option<&CommandListeners> {
        match *self {}
    }

    /// A descriptor that can be read when there is an event.
    ///
    /// # Errors
    /// None; there is no agent.
    pub fn events(&self) -> Result<BorrowedFd<'_>, SandboxError> {
        match *self {}
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// None; there is no agent.
    pub fn next_event(&mut self) -> Result<AgentEvent, SandboxError> {
        match *self {}
    }
}

/// Why nothing is run.
const UNSUPPORTED: SandboxError = SandboxError::UnsupportedPlatform { name: std::env::consts::OS };

fn failed_test(name: &'static str) -> SelfTestResult {
    SelfTestResult { name, passed: false, detail: UNSUPPORTED.to_string() }
}

impl SandboxBackend for Executor {
    type Prepared = Self;
    type Running = Self;

    fn start() -> Result<Self, SandboxError> {
        Err(UNSUPPORTED)
    }

    fn start_forked() -> Result<Self, SandboxError> {
        Err(UNSUPPORTED)
    }

    fn process(&self) -> Option<i32> {
        match *self {}
    }

    fn sandbox_status(&mut self) -> Result<&SandboxStatus, SandboxError> {
        match *self {}
    }

    fn enter(&mut self, _view: SandboxView) -> Result<Option<OwnedFd>, SandboxError> {
        match *self {}
    }

    fn begin_enter(&mut self, _view: SandboxView) -> Result<(), SandboxError> {
        match *self {}
    }

    fn wait_for_view(&mut self) -> Result<(), SandboxError> {
        match *self {}
    }

    fn listen(&mut self, _ports: &[u16]) -> Result<CommandListeners, SandboxError> {
        match *self {}
    }

    fn fork_for_background(&mut self) -> Result<Self, SandboxError> {
        match *self {}
    }

    fn prepare(&mut self, _launch: Launch) -> Result<Self, SandboxError> {
        match *self {}
    }

    fn start_command(&mut self, _held: Self) -> Result<Self, SandboxError> {
        match *self {}
    }

    fn wait(
        &mut self,
        _running: Self,
        _watch: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        match *self {}
    }

    fn detach(self) {
        match self {}
    }

    fn run_unconfined(
        _permit: &UnconfinedPermit<'_>,
        _view: SandboxView,
        _launch: Launch,
        _watch: &mut dyn CommandWatcher,
    ) -> Result<(CommandResult, Vec<LimitStatus>), SandboxError> {
        Err(UNSUPPORTED)
    }

    fn prepare_agent(_launch: &AgentLaunch) -> Result<RunningAgent, SandboxError> {
        Err(UNSUPPORTED)
    }

    fn executor_main() -> ExitCode {
        ExitCode::FAILURE
    }

    fn use_builtin_name_lookup() {}

    fn is_system_path(_path: &Path) -> bool {
        false
    }

    fn mount_conflict(_root: &Path, _is_direct: bool) -> Option<&'static str> {
        None
    }

    fn private_directory(_path: &Path) -> Option<&'static str> {
        None
    }

    fn self_test() -> Vec<SelfTestResult> {
        vec![failed_test("the sandbox can be set up")]
    }

    fn try_staging(_place: &Path) -> SelfTestResult {
        failed_test("what is written is staged, not done")
    }

    fn try_copying(place: &Path) -> SelfTestResult {
        Self::try_staging(place)
    }

    fn try_overlay(_place: &Path, _workspace: &Path) -> Result<(), String> {
        Err(UNSUPPORTED.to_string())
    }
}
