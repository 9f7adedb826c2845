//! What a policy says about secrets: what is masked besides what this build knows, what becomes of a
//! mask that comes back, and the handles that stand for values which no policy holds.

use alloc::string::String;
use alloc::vec::Vec;

use crate::policy::model::{Constraint, Policy, SourceLocation};
use crate::tool::ToolName;
use capsule_base::url::HttpUrl;
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

impl ReturnedMasks {
    /// The words of the policy language.
    pub const KEYWORDS: [&'static str; 2] = ["refuse", "resolve"];

    /// The word.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Refuse => "refuse",
        }
    }
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

impl Policy {
    /// The patterns that are masked under it and its layers.
    #[must_use]
    pub fn redaction_patterns(&self) -> Vec<CustomPattern> {
        let rules = self.self_and_layers().flat_map(|layer| &layer.redaction.patterns);
        rules.map(|rule| rule.pattern.clone()).collect()
    }

    /// The secrets that a tool sends to an address.
    pub fn secrets_sent_to<'p>(
        &'p self,
        tool: &'p ToolName,
        address: &'p HttpUrl,
    ) -> impl Iterator<Item = &'p SecretRule> {
        let fetch = self.tool(tool).and_then(|rule| match &rule.constraint {
            Constraint::Fetch(fetch) => Some(fetch),
            _ => None,
        });
        let named = move |(name, id): &(ToolName, String)| {
            let rules = fetch.filter(|_| name == tool).into_iter().flat_map(|fetch| &fetch.allow);
            rules.into_iter().any(|rule| rule.id == *id && rule.pattern.matches(address))
        };
        self.secrets.iter().filter(move |secret| secret.only_for.iter().any(named))
    }
}
