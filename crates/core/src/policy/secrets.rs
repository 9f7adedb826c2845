//! What a policy says about secrets: what is masked besides what this build knows, what becomes of a
//! mask that comes back, and the handles that stand for values which no policy holds.

use alloc::string::String;
use alloc::vec::Vec;

use crate::policy::source_location::SourceLocation;
use crate::tool::ToolName;
use capsule_redact::CustomPattern;

/// What is masked, and what becomes of masks.
#[derive(Clone, Debug, Default)]
pub struct RedactionRule {
    /// The patterns that it adds.
    pub patterns: Vec<PatternRule>,
    /// What becomes of a mask in what is to be written to a file.
    pub returned: ReturnedMasks,
}

/// A pattern for secrets.
#[derive(Clone, Debug)]
pub struct PatternRule {
    /// Where it stands.
    pub source: SourceLocation,
    /// The expression.
    pub text: String,
    /// What looks for it.
    pub pattern: CustomPattern,
}

/// What becomes of a mask in what is to be written to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReturnedMasks {
    /// It is put back into what it stands for, where the same line of the same file held that.
    Resolve,
    /// The call is refused.
    #[default]
    Refuse,
}

capsule_base::words! {
    ReturnedMasks::keyword:
    Refuse = "refuse", Resolve = "resolve",
}

/// A handle: a name that stands for a value of the user's environment, which is sent where the policy
/// says, and nowhere else.
#[derive(Clone, Debug)]
pub struct SecretRule {
    /// The name, which is also that of the variable.
    pub name: String,
    /// Where it stands.
    pub source: SourceLocation,
    /// The rules for URLs under which it is sent: a tool, and the id of one of its rules.
    pub only_for: Vec<(ToolName, String)>,
    /// The header that it is sent in.
    pub header: String,
    /// What stands before and behind it there.
    pub format: (String, String),
}

impl SecretRule {
    /// The value of the header.
    #[must_use]
    pub fn header_value(&self, secret: &str) -> String {
        let (before, behind) = &self.format;
        [before, secret, behind].concat()
    }
}
