//! What is kept of a run, when the log is signed, and where signed checkpoints are told besides.

use alloc::string::String;
use alloc::vec::Vec;

use crate::decision::Verdict;
use crate::journal::Event;
use crate::outcome::Status;
use crate::policy::source_location::SourceLocation;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditRule {
    /// Whether payloads are kept or only their digests.
    pub payloads: PayloadRetention,
    /// After how many seconds payloads are erased, if they ever are.
    pub erase_after: Option<u64>,
    /// When the log is signed.
    pub checkpoints: CheckpointRule,
    /// The files that every checkpoint is added to.
    pub anchors: Vec<AnchorRule>,
}

impl AuditRule {
    /// Whether the policy says itself that the log is signed, so that nothing runs where it cannot be.
    #[must_use]
    pub const fn demands_signing(&self) -> bool {
        self.checkpoints.source.is_some() || !self.anchors.is_empty()
    }
}

/// Whether payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadRetention {
    /// They are; the run can be replayed.
    #[default]
    Full,
    /// Only their digests are; the run cannot be replayed.
    Digest,
}

/// When the log is signed. A policy that does not say has it signed wherever there is a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRule {
    /// Where the policy says so.
    pub source: Option<SourceLocation>,
    /// When so many events stand behind the newest checkpoint, whichever runs they belong to.
    pub every: u64,
    /// When a person answered.
    pub approval: bool,
    /// When a call was denied, or refused while it ran.
    pub denial: bool,
    /// When a run ended.
    pub run_end: bool,
}

impl CheckpointRule {
    /// The word of [`CheckpointRule::approval`].
    pub const APPROVAL: &str = "approval";
    /// The word of [`CheckpointRule::denial`].
    pub const DENIAL: &str = "denial";
    /// The word of [`CheckpointRule::run_end`].
    pub const RUN_END: &str = "run-end";
    /// Every moment that can be named.
    pub const MOMENTS: [&str; 3] = [Self::APPROVAL, Self::DENIAL, Self::RUN_END];

    /// Whether the log is signed once these events stand in it, with so many that no checkpoint signs.
    pub fn is_due<'e>(&self, events: impl IntoIterator<Item = &'e Event>, unsigned: u64) -> bool {
        unsigned >= self.every || events.into_iter().any(|event| self.triggers_on(event))
    }

    /// Whether it is one of the moments.
    fn triggers_on(&self, event: &Event) -> bool {
        match event {
            Event::ApprovalAnswered(_) | Event::PlanAnswered(_) | Event::AnswerGiven(_) => {
                self.approval
            }
            Event::CallDecided(decided) => self.denial && decided.decision == Verdict::Deny,
            Event::CallFinished(finished) => self.denial && finished.status == Status::Denied,
            Event::RunSealed(_) => self.run_end,
            _ => false,
        }
    }
}

impl Default for CheckpointRule {
    fn default() -> Self {
        Self { source: None, every: 64, approval: true, denial: true, run_end: true }
    }
}

/// A file that every checkpoint is added to, so that what was signed stands in more than one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorRule {
    /// The file, from the root on.
    pub path: String,
}

impl AnchorRule {
    /// What stands before the path of a file.
    pub const FILE: &str = "file:";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RunSealed;
    use capsule_base::exit::Exit;

    /// So many events, whatever they are, and the moments that are named.
    #[test]
    fn due_after_so_many_events_and_at_the_moments_that_are_named() {
        let other = Event::ApprovalCovered { call: 2, by: 1 };
        let sealed = Event::RunSealed(RunSealed {
            suspended: None,
            exit: Exit::Ok,
            events: 3,
            calls: 0,
            outputs: None,
        });
        let rule = CheckpointRule::default();
        assert!(!rule.is_due([&other], 63));
        assert!(rule.is_due([&other], 64) && rule.is_due([&other], 70));
        assert!(rule.is_due([&other, &sealed], 1));
        let silent = CheckpointRule { run_end: false, ..rule };
        assert!(!silent.is_due([&sealed], 2));
    }
}
