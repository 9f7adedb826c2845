//! What people were asked, and what they said: patterns only, by the rule that asked.

use std::collections::BTreeMap;

use capsule_base::limits;
use capsule_core::approval::{AnswerKind, AnswerSurface};
use serde::Serialize;

use crate::approval::{AnsweredBy, ApprovalView};
use crate::distribution::Distribution;
use crate::plain_names::plain_rule;
use crate::run_view::RunView;

/// The microseconds of an hour.
const HOUR_MICROS: u64 = 3_600_000_000;
/// From how many answers on it is told that nobody reads them.
const MIN_SAMPLES: u64 = 3;

/// What people were asked over many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PromptStats {
    /// How often somebody was shown a card, or answered one that waited.
    pub prompts: u64,
    /// In how many hours of the clock.
    pub hours: u64,
    /// The most in one of them.
    pub most_in_an_hour: u64,
    /// Calls that a grant answered in place of a person.
    pub by_grants: u64,
    /// Questions that nobody was there to answer.
    pub unattended: u64,
    /// By the rule that asked.
    pub rules: BTreeMap<String, RulePromptStats>,
    #[serde(skip)]
    by_hour: BTreeMap<u64, u64>,
}

/// What people said where a rule asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RulePromptStats {
    /// How often they said yes.
    pub allowed: u64,
    /// How often they said no.
    pub denied: u64,
    /// How often they said neither: in time, or at all, or changed the call.
    pub neither: u64,
    /// How long they took, in milliseconds, in front of a screen.
    pub millis: Distribution,
    /// How often they said yes sooner than anybody reads what was shown.
    pub unread: u64,
    /// Whether they do that most of the time.
    pub is_unread: bool,
}

impl PromptStats {
    /// Counts a run.
    pub(crate) fn add(&mut self, view: &RunView) {
        if let Some(asked) = &view.plan {
            self.add_approval("(a whole plan)".into(), asked);
        }
        for call in &view.calls {
            self.unattended += u64::from(call.lacked_approval());
            let Some(approval) = &call.approval else { continue };
            let rule = call.decision.as_ref().and_then(|decision| decision.rule.as_deref());
            match &approval.answered_by {
                AnsweredBy::Grant { .. } => self.by_grants += 1,
                AnsweredBy::Card | AnsweredBy::Person { .. } => {
                    let rule = rule.map_or_else(|| "(no rule)".into(), plain_rule);
                    self.add_approval(rule, approval);
                }
                AnsweredBy::List { .. } | AnsweredBy::Waiting { .. } => {}
            }
        }
    }

    fn add_approval(&mut self, rule: String, approval: &ApprovalView) {
        self.prompts += 1;
        let in_hour = self.by_hour.entry(approval.at / HOUR_MICROS).or_default();
        *in_hour += 1;
        self.most_in_an_hour = self.most_in_an_hour.max(*in_hour);
        self.hours = u64::try_from(self.by_hour.len()).unwrap_or(u64::MAX);
        let stats = self.rules.entry(rule).or_default();
        let AnsweredBy::Person { outcome, latency_ms, surface, .. } = &approval.answered_by else {
            stats.neither += 1;
            return;
        };
        match outcome {
            AnswerKind::Approved => stats.allowed += 1,
            AnswerKind::Denied => stats.denied += 1,
            AnswerKind::Expired | AnswerKind::Withdrawn => stats.neither += 1,
        }
        // Whoever answers from elsewhere took the time that they were away.
        if *surface == AnswerSurface::Command {
            return;
        }
        stats.millis.add(*latency_ms);
        let least = approval.chars.saturating_mul(1_000) / limits::READING_CHARS_PER_SECOND;
        stats.unread += u64::from(*outcome == AnswerKind::Approved && *latency_ms < least);
        stats.is_unread = stats.unread >= MIN_SAMPLES && stats.unread * 2 > stats.allowed;
    }

    /// Prompts in an hour, of the hours in which there were any; in tenths.
    #[must_use]
    pub fn tenths_per_hour(&self) -> Option<u64> {
        self.prompts.saturating_mul(10).checked_div(self.hours)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests fail by panics")]

    use super::*;

    fn answered(at: u64, latency_ms: u64, chars: u64) -> ApprovalView {
        ApprovalView {
            at,
            chars,
            answered_by: AnsweredBy::Person {
                outcome: AnswerKind::Approved,
                stops: false,
                changed: false,
                latency_ms,
                surface: AnswerSurface::Terminal,
                why: None,
                grant: None,
            },
        }
    }

    /// A yes that comes before anybody can have read the card is counted; three of them are told.
    #[test]
    fn answers_that_come_too_soon_are_told() {
        let mut prompts = PromptStats::default();
        for at in 0..3 {
            assert!(!prompts.rules.get("a").is_some_and(|own| own.is_unread));
            prompts.add_approval("a".into(), &answered(at, 600, 1_000));
        }
        for at in 0..3 {
            prompts.add_approval("b".into(), &answered(HOUR_MICROS + at, 60_000, 1_000));
        }
        assert_eq!(prompts.rules["a"].unread, 3);
        assert!(prompts.rules["a"].is_unread);
        assert_eq!(prompts.rules["b"].unread, 0);
        assert!(!prompts.rules["b"].is_unread);
        assert_eq!((prompts.prompts, prompts.hours, prompts.most_in_an_hour), (6, 2, 3));
        assert_eq!(prompts.tenths_per_hour(), Some(30));
    }

    /// Reading takes most of the answers, not one of them.
    #[test]
    fn one_quick_answer_among_many_says_nothing() {
        let mut prompts = PromptStats::default();
        for _ in 0..3 {
            prompts.add_approval("a".into(), &answered(0, 600, 1_000));
        }
        for _ in 0..4 {
            prompts.add_approval("a".into(), &answered(0, 60_000, 1_000));
        }
        assert_eq!(prompts.rules["a"].unread, 3);
        assert!(!prompts.rules["a"].is_unread);
    }
}
