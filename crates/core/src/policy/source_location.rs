//! The place of a rule in the text of a policy.

use alloc::string::String;
use core::ops::Range;

/// Where a rule stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// File, line and column as they are shown.
    pub at: String,
    /// The bytes of the text.
    pub span: Range<usize>,
}
