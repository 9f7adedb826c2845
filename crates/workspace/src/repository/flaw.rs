//! The error where a part of a repository cannot be read or compared.

use std::io;

/// Why something cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw(String);

impl Flaw {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    pub(super) fn io(why: &io::Error) -> Self {
        Self(why.to_string())
    }

    /// The reason that a refusal names.
    pub(super) fn told(&self) -> String {
        format!("what git would make of it cannot be compared: {}", self.0)
    }
}
