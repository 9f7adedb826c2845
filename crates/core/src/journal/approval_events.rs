//! What is written of questions to a person: shown and answered, or laid down for later.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::approval::{AnswerKind, AnswerSurface, GrantLifetime};
use crate::id::RunId;
use crate::journal::PayloadRef;
use capsule_base::digest::Digest;

/// A person is shown what they are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalShown {
    /// The call; 0 for a plan that has not begun.
    pub call: u64,
    /// Everything that the card says.
    pub card: PayloadRef,
    /// The digest of that.
    pub sha256: Digest,
    /// How many grants it offers besides leave for this call.
    pub offers: u64,
}

/// A question came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The call; 0 for a plan that has not begun.
    pub call: u64,
    /// How.
    pub outcome: AnswerKind,
    /// Whether the run shall end with it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stops: bool,
    /// Whether the call is made again with other arguments.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changed: bool,
    /// From showing to answering, in milliseconds.
    pub latency_ms: u64,
    /// Where it was answered.
    pub surface: AnswerSurface,
    /// The person's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<PayloadRef>,
    /// What they allowed beyond the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantGiven>,
}

/// What a person allowed beyond a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantGiven {
    /// Its name.
    pub id: String,
    /// How long it holds.
    pub scope: GrantLifetime,
    /// The calls that it is about.
    pub reach: PayloadRef,
    /// How many uses it has.
    pub uses: u64,
    /// When it ends, in microseconds since 1970.
    pub until: u64,
    /// The policy that asked.
    pub policy: Digest,
}

/// A grant that a person gave before answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUsed {
    /// The call.
    pub call: u64,
    /// The grant.
    pub grant: String,
    /// How many uses it has left.
    pub left: u64,
}

/// Nobody is there: a question waits, and its run is suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalWaiting {
    /// The call.
    pub call: u64,
    /// Everything that the card says.
    pub card: PayloadRef,
    /// The digest of that.
    pub sha256: Digest,
    /// HMAC under the run's key of what an answer is bound to: tool, action, facts and policy, with
    /// nothing masked.
    pub bound: Digest,
    /// Until when it can be answered, in microseconds since 1970.
    pub until: u64,
}

/// A person answered a question that waited, or came when its time was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerGiven {
    /// The call of the subject that waits.
    pub call: u64,
    /// The digest of the card that they answered.
    pub card: Digest,
    /// How: `approved`, `denied`, or `expired` where somebody came too late.
    pub outcome: AnswerKind,
    /// How far an approval goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<GrantLifetime>,
    /// Whether the run shall end with it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stops: bool,
    /// From the question to the answer, in milliseconds.
    pub latency_ms: u64,
    /// Where it was answered.
    pub surface: AnswerSurface,
    /// The person's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<PayloadRef>,
}

/// A suspended run is gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResumed {
    /// The call of the subject that waited.
    pub call: u64,
    /// The run that holds the answer.
    pub answer: RunId,
    /// How far the subject came: the results of its steps, and what it used.
    pub progress: PayloadRef,
}
