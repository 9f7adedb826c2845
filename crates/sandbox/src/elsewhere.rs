//! Systems without a backend of their own yet: everything says so, and nothing is run.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use capsule_core::confinement::{BoundHeld, Layer, Walls};
use capsule_core::evidence::Unconfined;

use crate::{Exit, Launch, SandboxError, View, Watch};

/// There is no executor on this system.
#[derive(Debug)]
pub enum Executor {}

impl Executor {
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
    pub fn at_once() -> Result<Self, SandboxError> {
        Self::start()
    }

    /// # Errors
    /// Always: this system has no sandbox yet.
    pub fn start_with(_program: &Path, _arguments: &[&OsStr]) -> Result<Self, SandboxError> {
        Self::start()
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn walls(&mut self) -> Result<&Walls, SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn enter(&mut self, _view: View) -> Result<Option<OwnedFd>, SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn enter_ahead(&mut self, _view: View) -> Result<(), SandboxError> {
        match *self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn entered(&mut self) -> Result<(), SandboxError> {
        match *self {}
    }

    /// There is no executor to let go of.
    pub fn part(self) {
        match self {}
    }

    /// # Errors
    /// Never: there is no executor.
    pub fn run(&mut self, _launch: Launch, _watch: &mut dyn Watch) -> Result<Exit, SandboxError> {
        match *self {}
    }
}

/// # Errors
/// Always: this system runs no commands yet.
pub fn run_unconfined(
    _leave: &Unconfined<'_>,
    _view: View,
    _launch: Launch,
    _watch: &mut dyn Watch,
) -> Result<(Exit, Vec<BoundHeld>), SandboxError> {
    Err(SandboxError::Launch { problem: "no command can be run on this system yet" })
}

/// Nothing to do.
#[must_use]
pub fn executor_main() -> ExitCode {
    ExitCode::FAILURE
}
