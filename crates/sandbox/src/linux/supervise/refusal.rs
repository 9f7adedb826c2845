//! What an executor refused, in our words.

use std::path::Path;

use rustix::io::Errno;

use crate::linux::protocol::{ExecutorError, SetupError, StageMessage, Step};
use crate::{RedirectTarget, SandboxError};

/// An error of the system in its own words.
pub(super) fn error_text(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

/// A refusal in our words. `stages` are the programs of the command that was refused.
pub(super) fn refusal_error(refusal: ExecutorError, stages: &[StageMessage]) -> SandboxError {
    match refusal {
        ExecutorError::Failed(SetupError { step: Step::Shut, errno: Errno::OPNOTSUPP }) => {
            SandboxError::CannotHide
        }
        ExecutorError::Failed(SetupError { step, errno }) => {
            SandboxError::Setup { step: step.text(), reason: error_text(errno) }
        }
        ExecutorError::ProgramChanged(stage) => {
            SandboxError::ProgramChanged { stage: stage.into() }
        }
        ExecutorError::ProgramMissing(stage) => {
            SandboxError::ProgramMissing { stage: stage.into() }
        }
        ExecutorError::NotExecutable(stage, errno) => {
            SandboxError::NotExecutable { stage: stage.into(), reason: error_text(errno) }
        }
        ExecutorError::Redirect(stage, redirect, errno) => {
            let (stage, redirect) = (usize::from(stage), usize::from(redirect));
            let told = stages.get(stage).and_then(|stage| stage.redirects.get(redirect));
            let (path, write) = told.map_or((Path::new(""), false), |told| match &told.target {
                RedirectTarget::Read(path) => (Path::new(path), false),
                RedirectTarget::Create(path) | RedirectTarget::Append(path) => {
                    (Path::new(path), true)
                }
                RedirectTarget::Device(device) => (Path::new(device.path()), false),
                RedirectTarget::Same(_) => (Path::new(""), true),
            });
            let reason = match errno {
                None => "it is not a plain file".to_owned(),
                // The kernel's word for a path that leaves the folder beneath which it was opened.
                Some(Errno::XDEV) => "it leads out of the workspace".to_owned(),
                Some(errno) => error_text(errno),
            };
            SandboxError::Redirect { stage, path: path.to_owned(), write, reason }
        }
    }
}
