//! What can go wrong before, around and instead of a command.

use std::path::PathBuf;

use capsule_core::confinement::{ResourceLimit, SandboxFailure, SandboxLayer};
use thiserror::Error;

/// Why a command was not run, or its end is not known.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The machine lacks a wall, so nothing is run on it.
    #[error("this machine cannot hold the {}: {reason}", .layer.name())]
    Unavailable {
        /// The wall.
        layer: SandboxLayer,
        /// Why not.
        reason: String,
    },
    /// This program has no backend for the system, so nothing is run on it.
    #[error("Capsule has no sandbox for {name} yet")]
    UnsupportedPlatform {
        /// The name of the system, as Rust calls it.
        name: &'static str,
    },
    /// The machine cannot keep a bound, so nothing is run on it.
    #[error("this machine cannot bound {bound:?}: {reason}")]
    LimitUnavailable {
        /// The bound.
        bound: ResourceLimit,
        /// Why not.
        reason: String,
    },
    /// A step of the set-up failed; the command was not started.
    #[error("could not {step}: {reason}")]
    Setup {
        /// What could not be done.
        step: &'static str,
        /// The system's reason.
        reason: String,
    },
    /// The kernel lays no folder of changes over this workspace, or not from that file system. A copy
    /// of the workspace will do.
    #[error("could not mount the changes over the workspace: {reason}")]
    Overlay {
        /// The system's reason.
        reason: String,
    },
    /// Something that is not to be seen stands in the workspace that the command may change, and only
    /// mounts of its own could hide it there.
    #[error("without namespaces, nothing can be hidden from a program that changes the workspace")]
    CannotHide,
    /// A program is not the file that was decided on.
    #[error("the program was changed after it was decided on")]
    ProgramChanged {
        /// Which one of the command's, counted from 0.
        stage: usize,
    },
    /// The view holds no such program.
    #[error("there is no such program in the sandbox")]
    ProgramMissing {
        /// Which one of the command's, counted from 0.
        stage: usize,
    },
    /// A program cannot be executed. Those before it in the pipeline were ended.
    #[error("the program cannot be executed: {reason}")]
    NotExecutable {
        /// Which one of the command's, counted from 0.
        stage: usize,
        /// The system's reason.
        reason: String,
    },
    /// What a stream of a program leads to cannot be opened. No program was started.
    #[error("cannot {} `{}`: {reason}", if *.write { "write to" } else { "read from" }, .path.display())]
    Redirect {
        /// Which program of the command's, counted from 0.
        stage: usize,
        /// The path, as it was asked for.
        path: PathBuf,
        /// Whether it was to be written to.
        write: bool,
        /// The system's reason, or ours.
        reason: String,
    },
    /// The launch itself makes no sense; the executor was not asked.
    #[error("{problem}")]
    Launch {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The executor could not be started.
    #[error("the executor could not be started: {reason}")]
    Start {
        /// The system's reason.
        reason: String,
    },
    /// The executor is gone or does not answer; it and all its commands have been ended. What the
    /// command did until then is not known.
    #[error("the executor ended: {reason}")]
    ExecutorDied {
        /// How that was noticed.
        reason: &'static str,
    },
}

impl From<&SandboxError> for SandboxFailure {
    fn from(error: &SandboxError) -> Self {
        let reason = error.to_string();
        match error {
            SandboxError::UnsupportedPlatform { .. } => Self::Unsupported { unsupported: reason },
            _ => Self::Failed(reason),
        }
    }
}
