//! The layers that a run begins with, as they are recorded.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::journal::Document;
use crate::policy::LayerKind;
use capsule_base::digest::Digest;

/// A layer that tightens the policy of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerOpened {
    /// Whose it is.
    pub layer: LayerKind,
    /// Its text.
    pub document: Document,
    /// The label of the earliest run since which it has not changed; none where it is new or another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The digest of what a run in this workspace met there before, where that was another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
}

/// A layer that was there and is gone. A person said that it may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerGone {
    /// Where it was read.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Digest,
}
