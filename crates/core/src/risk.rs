//! How much a call could cost.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A risk level; the default is the highest. Source: FR-20.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Nothing changes and nothing leaves.
    Low,
    /// Something changes or leaves, and it can be brought back or was meant to.
    Medium,
    /// What happens cannot be brought back.
    #[default]
    High,
}

impl Risk {
    /// The word that is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
