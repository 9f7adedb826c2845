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

impl WriteMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Create, Self::Overwrite, Self::Append];

    /// The word.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Overwrite => "overwrite",
            Self::Append => "append",
        }
    }
}
