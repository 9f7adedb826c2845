//! Mounting of staged changes, which the sandbox does: here is only what it is asked for.

use std::fmt;
use std::os::fd::OwnedFd;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;

use crate::resolve::Workspace;

/// Where the changes of commands are collected.
#[derive(Debug)]
pub enum StagingArea {
    /// In a directory that is laid over the workspace.
    Overlay {
        /// What differs.
        changes: OwnedFd,
        /// What the kernel needs for itself, on the same file system.
        work: OwnedFd,
    },
    /// In a copy of the workspace, which commands see in its place.
    Copied(OwnedFd),
}

/// Shows commands a workspace whose changes are collected. `tools` implements it over the sandbox.
pub trait MountStaging {
    /// Mounts the area for commands. Where changes are laid over the workspace, the handle is on what
    /// commands will see.
    ///
    /// # Errors
    /// It cannot be shown like this.
    fn mount(
        &self,
        workspace: &Workspace,
        area: StagingArea,
    ) -> Result<Option<OwnedFd>, MountError>;
}

/// Why a workspace is not shown with its changes.
#[derive(Clone, Debug)]
pub enum MountError {
    /// Only not with changes laid over it, for this reason; in a copy, it may be.
    Overlay(String),
    /// Nothing that changes something can be run.
    Problem(CodedError),
}

impl MountError {
    /// An error after which nothing can be staged.
    #[must_use]
    pub fn new(why: &dyn fmt::Display) -> Self {
        Self::Problem(staging_problem(why))
    }
}

/// The problem where changes cannot be staged.
pub(super) fn staging_problem(why: &dyn fmt::Display) -> CodedError {
    CodedError::new(Code::SandboxFailed, format!("changes cannot be staged: {why}"))
}
