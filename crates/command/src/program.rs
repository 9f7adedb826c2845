//! Programs on disk.

use alloc::string::String;

use capsule_base::digest::Digest;
use serde::{Deserialize, Serialize};

/// A program on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFact {
    /// Where it was found.
    pub path: String,
    /// Where that leads once every link is followed.
    pub real: String,
    /// The digest of its bytes.
    pub sha256: Digest,
}
