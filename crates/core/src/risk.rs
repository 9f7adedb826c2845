//! How much a call could cost.

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

capsule_base::words! {
    Risk::name:
    Low = "low", Medium = "medium", High = "high",
}
