//! Why nobody can say what must not be seen.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;

/// Why the veil cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenPathsError {
    /// More paths are to be hidden, or files to be known again, than can be.
    TooMany,
    /// The workspace itself cannot be listed, or all of it is protected.
    Unlisted,
}

impl HiddenPathsError {
    /// What a call is told that would have needed it.
    pub fn problem(self) -> CodedError {
        match self {
            Self::TooMany => {
                let message = format!(
                    "more than {} paths are to be hidden or held, or {} files to be known again",
                    limits::HIDDEN_PATHS,
                    limits::PROTECTED_FILES
                );
                CodedError::new(Code::SandboxTooManyMasks, message)
            }
            Self::Unlisted => {
                let message =
                    "the workspace cannot be listed, so what must be hidden in it is unknown";
                CodedError::new(Code::SandboxFailed, message)
            }
        }
    }
}
