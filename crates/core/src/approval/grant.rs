//! What a person allowed beyond the call that they were asked about.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalRequest, GrantPattern, Person};
use crate::decision::Verdict;
use crate::policy::SourceLocation;
use capsule_base::digest::Digest;
use capsule_base::limits;

/// How far an approval goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantLifetime {
    /// This call.
    Once,
    /// Calls like it, until the run ends.
    Task,
    /// Calls like it, until the process ends that the person sits in front of.
    Session,
}

capsule_base::words! {
    GrantLifetime::keyword:
    Once = "once", Task = "task", Session = "session",
}

/// What a policy lets a prompt offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPolicy {
    /// The scopes, `once` among them.
    pub offer: Vec<GrantLifetime>,
    /// How many uses a grant has.
    pub uses: u64,
    /// How long it lives, in milliseconds.
    pub expires_after_ms: u64,
    /// Where the policy says so; none where it says nothing.
    pub source: Option<SourceLocation>,
}

/// How many prompts a person may be shown: their attention is bounded, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptBudget {
    /// How many.
    pub prompts: u64,
    /// In how long, in milliseconds.
    pub per_ms: u64,
}

impl Default for GrantPolicy {
    fn default() -> Self {
        Self {
            offer: alloc::vec![GrantLifetime::Once, GrantLifetime::Task, GrantLifetime::Session],
            uses: limits::GRANT_USES,
            expires_after_ms: millis(limits::GRANT_TIME),
            source: None,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A person's leave for calls like the one that they were asked about. It answers where the policy
/// asks, and never changes a denial or a question that is asked every time.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Its name: the run's label and a number, such as `r-7Q3K.2`.
    pub id: String,
    /// How long it holds.
    pub lifetime: GrantLifetime,
    /// The calls that it is about.
    pub pattern: GrantPattern,
    /// How many uses it has left.
    pub uses: u64,
    /// When it ends, in microseconds since 1970.
    pub expires_at: u64,
    /// The policy that asked.
    pub policy: Digest,
    /// Who gave it.
    pub given_by: Person,
}

/// One use of a grant. There is no way to one without a grant, or the record of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantUse {
    id: String,
    remaining: u64,
}

impl GrantUse {
    /// The grant.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many uses it has left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// A use that is in the record.
    #[must_use]
    pub const fn recorded(_: Person, id: String, left: u64) -> Self {
        Self { id, remaining: left }
    }
}

impl Grant {
    /// Whether it is about a call at all.
    #[must_use]
    pub fn covers(&self, question: &ApprovalRequest<'_>) -> bool {
        question.decision.verdict == Verdict::Ask
            && question.policy == self.policy
            && self.pattern.covers(question)
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn has_expired(&self, now: u64) -> bool {
        self.uses == 0 || now >= self.expires_at
    }

    /// Uses it for a call, if it is about it and has not ended. `now` is in microseconds since 1970.
    pub fn try_use(&mut self, question: &ApprovalRequest<'_>, now: u64) -> Option<GrantUse> {
        if self.has_expired(now) || !self.covers(question) {
            return None;
        }
        self.uses -= 1;
        Some(GrantUse { id: self.id.clone(), remaining: self.uses })
    }
}
