//! Systems without a backend of their own yet: everything says so, and nothing is run.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use capsule_core::confinement::{Layer, Walls};

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
    pub fn run(&mut self, _launch: Launch, _watch: &mut dyn Watch) -> Result<Exit, SandboxError> {
        match *self {}
    }
}

/// Nothing to do.
#[must_use]
pub fn executor_main() -> ExitCode {
    ExitCode::FAILURE
}
