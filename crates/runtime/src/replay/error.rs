//! Why a replay ended early.

use capsule_store::StoreError;

use super::divergence::Divergence;

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It met something that is not in its recording; more than one thing if it was to go on.
    #[error("the replay differs from its recording")]
    Diverged(Vec<Divergence>),
    /// The recording does not hold everything that is needed.
    #[error("the recording is not complete: {0}")]
    Incomplete(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
