//! Systems without a backend of their own yet: everything says so, and nothing is run.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use capsule_core::confinement::{Layer, LimitStatus, SandboxStatus};
use capsule_core::lifecycle::Unconfined;

use crate::{CommandResult, CommandWatcher, Launch, SandboxError, SandboxView};

/// There is no executor on this system.
#[derive(Debug)]
pub enum Executor {}

impl Executor {
    /// There is no executor.
    #[must_use]
    pub const fn process(&self) -> Option<i32> {
        None
    }

    /// # Errors
    /// Always: this system has no sandbox yet.
    pub fn start() -> Result<Self, SandboxError> {
        Err(SandboxError::Unavailable {
            layer: Layer::UserNamespace,
            reason: format!("there is no sandbox for {} yet", std::env::consts::OS),
        })
    }

    /// # Errors
    /// Always: this system has no sandbox yet.
    pub fn start_forked() -> Result<Self, SandboxError> {
        Self::start()
    }

    /// # Errors
    /// Always: this system has no sandbox yet.
    pub fn start_with(_program: &Path, _arguments: &[&OsStr]) -> Result<Self, SandboxError> {
        Self::start()
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn sandbox_status(&mut self) -> Result<&SandboxStatus, SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn enter(&mut self, _view: SandboxView) -> Result<Option<OwnedFd>, SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn begin_enter(&mut self, _view: SandboxView) -> Result<(), SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn wait_for_view(&mut self) -> Result<(), SandboxError> {
        match *self {}
    }

    /// There is no executor to let go of.
    pub fn detach(self) {
        match self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn run(
        &mut self,
        _launch: Launch,
        _watcher: &mut dyn CommandWatcher,
    ) -> Result<CommandResult, SandboxError> {
        match *self {}
    }
}

/// # Errors
/// Always: this system runs no commands yet.
pub fn run_unconfined(
    _permission: &Unconfined<'_>,
    _view: SandboxView,
    _launch: Launch,
    _watcher: &mut dyn CommandWatcher,
) -> Result<(CommandResult, Vec<LimitStatus>), SandboxError> {
    Err(SandboxError::Launch { problem: "no command can be run on this system yet" })
}

/// Nothing to do.
#[must_use]
pub fn executor_main() -> ExitCode {
    ExitCode::FAILURE
}
