//! Asking a person, and what their word covers.
//!
//! The policy's `ask` goes to an [`Approver`]. It may find that a live [`Grant`] answers already,
//! that there is nobody to ask, or it lays down a [`Card`], which is shown and answered. A model is
//! never an approver: whatever says yes carries a [`Person`], which only a user interface can make
//! (`cargo xtask tidy` keeps the list of sites).

mod card;
mod grant;
mod pattern;

use alloc::boxed::Box;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use card::{Card, CardField, GrantOffer, Reversibility};
pub use grant::{Grant, GrantLifetime, GrantPolicy, GrantUse, PromptBudget};
pub use pattern::{GrantPattern, StepCall};

use crate::action::{Action, Facts, Fingerprint};
use crate::confinement::Confinement;
use crate::decision::Decision;
use crate::tool::ToolName;
use capsule_base::digest::Digest;

/// Says that somebody at a user interface gave this answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person(());

impl Person {
    /// Somebody is there. For user interfaces, and for the replay of what was said to one.
    #[must_use]
    pub const fn present() -> Self {
        Self(())
    }
}

/// What a person is asked about: a call as it was judged. Everything in it is masked.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalRequest<'q> {
    /// The call's number within its run.
    pub call: u64,
    /// The plan's step.
    pub step: Option<&'q str>,
    /// The tool.
    pub tool: &'q ToolName,
    /// The arguments.
    pub args: &'q Value,
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: &'q [String],
    /// The lines that will differ, for what writes or edits a file that is there to be compared with.
    pub diff: Option<&'q str>,
    /// What the call means.
    pub action: &'q Action,
    /// What was found out about it.
    pub facts: &'q Facts,
    /// What the policy says.
    pub decision: &'q Decision,
    /// What an approval is bound to.
    pub fingerprint: Fingerprint,
    /// What a command would be confined to.
    pub confinement: Option<Confinement>,
    /// The policy that judged it.
    pub policy: Digest,
    /// What an approval is bound to that is given later: all of the call with nothing masked, under
    /// the run's key.
    pub binding: Digest,
}

/// What a person will be asked when a step is reached, if they are not asked now.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRequest<'q> {
    /// The question.
    pub request: ApprovalRequest<'q>,
    /// How often the call is tried at most.
    pub max_attempts: u64,
}

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalRoute {
    /// Nobody is there to ask.
    NoApprover,
    /// A grant that a person gave before answers.
    Granted(GrantUse),
    /// It is to be shown, and answered.
    Show(Box<Card>),
    /// Nobody is there now. It waits with its card, until this time in microseconds since 1970.
    Wait(Box<Card>, u64),
    /// Somebody answered while it waited, and it is not the question any more that they answered.
    Outdated,
}

/// What somebody answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalAnswer {
    /// The call may run; with a grant, calls like it may, too.
    Approved(Person, Option<Grant>),
    /// The call shall be made with these arguments instead: another call, judged anew.
    Changed(Person, Value),
    /// The call may not run, for this reason, which goes to whoever asked as it is.
    Denied(Person, Option<String>),
    /// The call may not run, and nothing after it.
    Stopped(Person, Option<String>),
    /// Nobody answered in time.
    Expired,
    /// Nothing now: it waits until this time in microseconds since 1970.
    Deferred(u64),
    /// The question was taken back: the run was interrupted, or the screen went away.
    Withdrawn,
}

impl ApprovalAnswer {
    /// The answer in one word.
    #[must_use]
    pub const fn kind(&self) -> AnswerKind {
        match self {
            Self::Approved(..) => AnswerKind::Approved,
            Self::Denied(..) | Self::Stopped(..) => AnswerKind::Denied,
            Self::Expired => AnswerKind::Expired,
            Self::Changed(..) | Self::Deferred(_) | Self::Withdrawn => AnswerKind::Withdrawn,
        }
    }
}

/// The outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// A person said yes.
    Approved,
    /// A person said no.
    Denied,
    /// Nobody said anything in time.
    Expired,
    /// It is not asked any more.
    Withdrawn,
}

capsule_base::words! {
    AnswerKind::name:
    Approved = "approved", Denied = "denied", Expired = "expired", Withdrawn = "withdrawn",
}

/// Where a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerSurface {
    /// A card in a terminal.
    Terminal,
    /// Numbered lines, for screen readers and terminals that can do nothing else.
    Plain,
    /// `capsule approvals answer`, from another terminal.
    Command,
    /// A form of a client of the MCP server.
    Mcp,
}

/// An answer, and how it came.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedAnswer {
    /// The answer.
    pub answer: ApprovalAnswer,
    /// From showing to answering, in milliseconds.
    pub latency_ms: u64,
    /// Where.
    pub surface: AnswerSurface,
}

/// Who is asked.
pub trait Approver {
    /// Looks whether a grant answers, or what is to be shown.
    fn resolve(&mut self, question: &ApprovalRequest<'_>) -> ApprovalRoute;

    /// What is to be shown of a plan before it begins: the questions that it will come to, as far as
    /// they are known, and how many steps are not. None where each is asked by itself.
    fn plan_card(&mut self, _steps: &[PlannedRequest<'_>], _open: u64) -> Option<Box<Card>> {
        None
    }

    /// Shows a card and waits for the answer.
    fn ask(&mut self, card: &Card) -> ReceivedAnswer;
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn resolve(&mut self, _: &ApprovalRequest<'_>) -> ApprovalRoute {
        ApprovalRoute::NoApprover
    }

    fn ask(&mut self, _: &Card) -> ReceivedAnswer {
        ReceivedAnswer {
            answer: ApprovalAnswer::Withdrawn,
            latency_ms: 0,
            surface: AnswerSurface::Command,
        }
    }
}
