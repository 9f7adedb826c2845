//! What is asked about a repository. The words of the command line that answers it are ours.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::action::PathTarget;

/// A question about a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "kebab-case")]
pub enum RepositoryQuery {
    /// What differs from the last commit, by name.
    Status,
    /// What differs, line by line.
    Diff {
        /// The files and folders that are meant; all if there are none.
        paths: Vec<PathTarget>,
        /// Whether what is ready to be committed is meant.
        staged: bool,
    },
    /// The last commits.
    Log {
        /// The files and folders that they changed; all if there are none.
        paths: Vec<PathTarget>,
        /// How many at most, as asked.
        limit: Option<u64>,
    },
}

impl RepositoryQuery {
    /// The files and folders that it is about.
    #[must_use]
    pub fn paths(&self) -> &[PathTarget] {
        match self {
            Self::Status => &[],
            Self::Diff { paths, .. } | Self::Log { paths, .. } => paths,
        }
    }
}
