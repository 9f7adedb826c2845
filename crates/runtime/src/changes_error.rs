//! Why the changes of a run are not available.

use capsule_core::outcome::CodedError;
use capsule_store::StoreError;

/// Why a run's changes are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something else stands in the way.
    #[error("{}", .0.message)]
    Problem(CodedError),
}

impl From<CodedError> for ChangesError {
    fn from(problem: CodedError) -> Self {
        Self::Problem(problem)
    }
}
