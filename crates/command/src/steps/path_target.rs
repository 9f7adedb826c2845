//! Paths as calls name them.

use alloc::string::{String, ToString as _};

use serde::{Deserialize, Serialize};

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_base::root_names::RootNames;

/// A path as it was asked and as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTarget {
    /// The words of whoever asked.
    pub asked: String,
    /// The path inside the workspace, or why it is none.
    #[serde(flatten)]
    pub location: PathLocation,
}

/// Inside the workspace, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathLocation {
    /// Inside.
    Inside(WorkspacePath),
    /// Not inside.
    Outside(PathProblem),
}

impl PathTarget {
    /// Reads a path as a call names it, where the root has no name but the usual one. This never
    /// fails: what is not inside stays to be judged.
    #[must_use]
    pub fn parse(asked: &str) -> Self {
        Self::parse_named(asked, &RootNames::default())
    }

    /// The same where the root has these names.
    #[must_use]
    pub fn parse_named(asked: &str, names: &RootNames) -> Self {
        let place = match WorkspacePath::parse_named(asked, names) {
            Ok(path) => PathLocation::Inside(path),
            Err(problem) => PathLocation::Outside(problem),
        };
        Self { asked: asked.to_string(), location: place }
    }

    /// The path inside the workspace, if it is one.
    #[must_use]
    pub const fn inside(&self) -> Option<&WorkspacePath> {
        match &self.location {
            PathLocation::Inside(path) => Some(path),
            PathLocation::Outside(_) => None,
        }
    }
}
