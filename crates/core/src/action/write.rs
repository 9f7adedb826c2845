//! Ways of writing a file.

use serde::{Deserialize, Serialize};

/// What a write does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Make a file that is not there.
    Create,
    /// Replace the file, or make it.
    Overwrite,
    /// Add to the file, or make it.
    Append,
}

capsule_base::words! {
    WriteMode::keyword:
    Create = "create", Overwrite = "overwrite", Append = "append",
}
