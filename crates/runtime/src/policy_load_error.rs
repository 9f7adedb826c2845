//! Why there is no policy to decide by.

use capsule_base::diagnostic::Diagnostics;
use capsule_core::outcome::CodedError;
use capsule_policy::SourceText;

/// Why there is no policy to decide by. Everything is denied.
#[derive(Debug)]
pub enum PolicyLoadError {
    /// It could not be found or read.
    Problem(CodedError),
    /// It was read and is wrong.
    Invalid(SourceText, Diagnostics),
}

impl From<CodedError> for PolicyLoadError {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}
