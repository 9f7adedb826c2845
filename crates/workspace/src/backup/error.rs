//! The errors of a backup.

use std::io;

use capsule_core::outcome::CodedError;
use rustix::io::Errno;

/// The error where a file was not backed up.
pub(super) enum BackupError {
    System(Errno),
    Problem(CodedError),
}

impl From<Errno> for BackupError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl From<CodedError> for BackupError {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}

/// The number of a system error.
pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
