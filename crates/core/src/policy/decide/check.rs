//! A check: its input, its finding, and the words in which the finding is told.

use alloc::format;
use alloc::string::{String, ToString};

use crate::action::{Action, Facts};
use crate::capability::{Capabilities, Capability};
use crate::decision::{Decision, Verdict};
use crate::policy::source_location::SourceLocation;
use crate::policy::usage::Usage;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::digest::Digest;

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'c> {
    /// The tool's id.
    pub tool: &'c ToolName,
    /// What the call means.
    pub action: &'c Action,
    /// What was found out about it.
    pub facts: &'c Facts,
    /// What the run has used so far.
    pub usage: &'c Usage,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: &'c [String],
    /// The digest of its arguments, by which an equal call is known.
    pub args_digest: Option<Digest>,
}

impl PolicyInput<'_> {
    /// The powers that the call needs by what it means. Having masks put back into what a file holds
    /// tells what that is.
    pub(super) fn capabilities(&self) -> Capabilities {
        let capabilities = self.action.capabilities();
        match self.action {
            Action::Write { .. } if self.facts.masks > 0 => capabilities.with(Capability::FsRead),
            _ => capabilities,
        }
    }
}

/// What one check found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) code: Code,
    pub(crate) rule: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) reason: String,
    pub(crate) suggestion: Option<String>,
}

impl Finding {
    /// A check that denies.
    pub(crate) fn deny(code: Code, reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Deny,
            code,
            rule: None,
            at: None,
            reason: reason.into(),
            suggestion: None,
        }
    }

    /// The word of a rule.
    pub(crate) fn with_verdict(verdict: Verdict, reason: impl Into<String>) -> Self {
        let code = match verdict {
            Verdict::Allow => Code::Allowed,
            Verdict::Ask | Verdict::AskEach => Code::Asked,
            Verdict::Deny => Code::RuleDenied,
        };
        Self { verdict, ..Self::deny(code, reason) }
    }

    /// The same under a rule and its place.
    pub(crate) fn under_rule(self, rule: impl Into<String>, source: &SourceLocation) -> Self {
        self.under(rule, Some(source))
    }

    /// The same under a rule, with its place where the policy has one.
    pub(super) fn under(self, rule: impl Into<String>, source: Option<&SourceLocation>) -> Self {
        let at = source.map(|source| source.at.clone());
        Self { rule: Some(rule.into()), at, ..self }
    }

    /// The decision that it makes.
    pub(crate) fn decision(self, capabilities: Capabilities, risk: Risk) -> Decision {
        // Whoever is refused is told what to do, if nothing better the code's own next step.
        let next_step = || Some(self.code.next_step().to_string());
        let suggestion = match self.verdict {
            Verdict::Allow => self.suggestion,
            _ => self.suggestion.or_else(next_step),
        };
        Decision {
            verdict: self.verdict,
            code: self.code,
            rule: self.rule,
            at: self.at,
            risk,
            capabilities,
            reason: self.reason,
            suggestion,
            // A person's word turns a question into a yes, and nothing else.
            approvable: matches!(self.verdict, Verdict::Ask | Verdict::AskEach),
        }
    }

    /// The same with a way forward.
    pub(crate) fn with_suggestion(self, suggestion: Option<impl Into<String>>) -> Self {
        Self { suggestion: suggestion.map(Into::into), ..self }
    }
}

/// What a verdict says about something.
pub(crate) fn verdict_text(verdict: Verdict, subject: &str) -> String {
    match verdict {
        Verdict::Allow => format!("{subject} is allowed"),
        Verdict::Ask => format!("{subject} needs an approval"),
        Verdict::AskEach => format!("{subject} needs an approval every time"),
        Verdict::Deny => format!("{subject} is denied"),
    }
}

/// The author's reason without its full stop, or else ours.
pub(crate) fn reason_or(theirs: &Option<String>, ours: impl FnOnce() -> String) -> String {
    match theirs {
        Some(text) => text.trim().trim_end_matches('.').to_string(),
        None => ours(),
    }
}
