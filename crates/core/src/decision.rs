//! What the policy says, always with the rule, its place, the risk and a way forward.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::outcome::CodedError;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::exit::Exit;

/// The word of a rule. Strictest wins: combining is `max`, and the default denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person is asked; a grant may answer for them.
    Ask,
    /// A person is asked every time.
    AskEach,
    /// It may not run.
    #[default]
    Deny,
}

capsule_base::words! {
    Verdict::keyword:
    Allow = "allow", Ask = "ask", AskEach = "ask-each", Deny = "deny",
}

/// A decision on a call. The order of the fields is that of the JSON that users see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The word.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// What kind of decision it is.
    pub code: Code,
    /// The rule that decided: `fs.write/generated-docs`, `shell.run/git`, `no-credentials`. None
    /// where no rule matched.
    pub rule: Option<String>,
    /// Where that rule stands: file, line, column.
    pub at: Option<String>,
    /// How much the call could cost.
    pub risk: Risk,
    /// What it needs.
    pub capabilities: Capabilities,
    /// Why, in a sentence without its full stop.
    pub reason: String,
    /// What to do instead.
    pub suggestion: Option<String>,
    /// Whether an approval or a grant could allow it. Neither ever changes a denial.
    #[serde(rename = "liftable")]
    pub approvable: bool,
}

impl Decision {
    /// The denial of a call that was not understood: an error while judging is a denial.
    #[must_use]
    pub fn reject_invalid(problem: CodedError) -> Self {
        Self {
            verdict: Verdict::Deny,
            code: problem.code,
            rule: None,
            at: None,
            risk: Risk::Low,
            capabilities: Capabilities::NONE,
            reason: problem.message,
            suggestion: problem.suggestion,
            approvable: false,
        }
    }

    /// Whether it refuses a call that could not be understood: nothing was decided about that.
    #[must_use]
    pub fn is_misunderstood(&self) -> bool {
        self.verdict == Verdict::Deny && self.code.exit() == Exit::ToolFailed
    }

    /// Whether the tool's own verdict or the profile decided, and no narrower rule.
    #[must_use]
    pub fn is_tool_default(&self, tool: &ToolName) -> bool {
        let rule = self.rule.as_deref().unwrap_or_default();
        rule == tool.as_str() || rule.starts_with("profile/")
    }

    /// The same with nobody there to ask.
    #[must_use]
    pub fn unattended(self) -> Self {
        match self.verdict {
            Verdict::Ask | Verdict::AskEach => Self { code: Code::ApprovalNeeded, ..self },
            Verdict::Allow | Verdict::Deny => self,
        }
    }

    /// The same for a call that waits until somebody is there.
    #[must_use]
    pub fn pending(self) -> Self {
        match self.verdict {
            Verdict::Ask | Verdict::AskEach => Self { code: Code::ApprovalWaiting, ..self },
            Verdict::Allow | Verdict::Deny => self,
        }
    }
}

impl From<Decision> for CodedError {
    fn from(decision: Decision) -> Self {
        let Decision { code, reason: message, suggestion, .. } = decision;
        Self { code, message, suggestion }
    }
}
