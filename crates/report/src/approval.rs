//! What became of a question of the policy.

use capsule_core::approval::{AnswerKind, AnswerSurface, Card, GrantLifetime, GrantPattern};
use capsule_core::journal::{ApprovalAnswered, Event};
use serde::Serialize;

use crate::payloads::{PayloadLookup, payload_json};

/// What became of a question of the policy.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovalView {
    /// When it was shown or answered by what was allowed before, in microseconds since 1970.
    pub at: u64,
    /// How many characters there were to read.
    #[serde(skip)]
    pub chars: u64,
    /// What answered.
    #[serde(flatten)]
    pub answered_by: AnsweredBy,
}

/// What answered a question.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum AnsweredBy {
    /// A card, to which nobody has said anything yet.
    Card,
    /// Nobody was there: it waits for an answer, and the run is suspended.
    Waiting {
        /// Until when, in microseconds since 1970.
        until: u64,
    },
    /// A person.
    Person {
        /// What it came to.
        outcome: AnswerKind,
        /// Whether it ended the run.
        stops: bool,
        /// Whether the call was made again with other arguments.
        changed: bool,
        /// From showing to answering, in milliseconds.
        latency_ms: u64,
        /// Where.
        surface: AnswerSurface,
        /// The person's own words.
        why: Option<String>,
        /// What they allowed beyond the call.
        grant: Option<GrantView>,
    },
    /// A grant.
    Grant {
        /// Its name.
        grant: String,
    },
    /// What was approved with the list that it is a part of.
    List {
        /// The call of the whole.
        call: u64,
    },
}

/// What a person allowed beyond a call.
#[derive(Clone, Debug, Serialize)]
pub struct GrantView {
    /// Its name.
    pub id: String,
    /// How long it holds.
    pub scope: GrantLifetime,
    /// The calls that it is about, if the record still says so.
    pub reach: Option<GrantPattern>,
    /// How many uses it had.
    pub uses: u64,
}

impl AnsweredBy {
    fn from_answer(answered: &ApprovalAnswered, payloads: &PayloadLookup<'_>) -> Self {
        let ApprovalAnswered { outcome, stops, changed, latency_ms, surface, why, grant, .. } =
            answered;
        Self::Person {
            outcome: *outcome,
            stops: *stops,
            changed: *changed,
            latency_ms: *latency_ms,
            surface: *surface,
            why: payload_json(payloads, why.as_ref()),
            grant: grant.as_ref().map(|given| GrantView {
                id: given.id.clone(),
                scope: given.scope,
                reach: payload_json(payloads, Some(&given.reach)),
                uses: given.uses,
            }),
        }
    }
}

impl ApprovalView {
    /// Takes what an event says of the question of its call.
    pub(crate) fn apply_event(
        item: &mut Option<Self>,
        (at, event): (u64, &Event),
        payloads: &PayloadLookup<'_>,
    ) {
        let by = match event {
            Event::ApprovalShown(_) | Event::PlanShown(_) => AnsweredBy::Card,
            Event::ApprovalWaiting(waiting) => AnsweredBy::Waiting { until: waiting.until },
            Event::GrantUsed(used) => AnsweredBy::Grant { grant: used.grant.clone() },
            Event::ApprovalCovered { by, .. } => AnsweredBy::List { call: *by },
            Event::ApprovalAnswered(answered) | Event::PlanAnswered(answered) => {
                AnsweredBy::from_answer(answered, payloads)
            }
            _ => return,
        };
        let chars = match event {
            Event::ApprovalShown(shown) | Event::PlanShown(shown) => {
                payload_json(payloads, Some(&shown.card)).as_ref().map(count_chars)
            }
            _ => None,
        };
        let (at, chars) = match item {
            Some(shown) => (shown.at, shown.chars),
            None => (at, chars.unwrap_or(0)),
        };
        *item = Some(Self { at, chars, answered_by: by });
    }

    /// Whether a person was shown a card.
    #[must_use]
    pub const fn was_shown(&self) -> bool {
        matches!(self.answered_by, AnsweredBy::Card | AnsweredBy::Person { .. })
    }

    /// It in a few words: `approved by a person after 4 s`.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.answered_by {
            AnsweredBy::Card => "asked, and never answered".into(),
            AnsweredBy::Waiting { .. } => "waits for an answer".into(),
            AnsweredBy::Grant { grant } => format!("allowed by grant {grant}"),
            AnsweredBy::List { call } => format!("within what was approved as call {call}"),
            AnsweredBy::Person { outcome, changed, latency_ms, grant, .. } => {
                let what = match outcome {
                    AnswerKind::Withdrawn if *changed => "changed by a person",
                    AnswerKind::Approved => "approved by a person",
                    AnswerKind::Denied => "denied by a person",
                    AnswerKind::Expired => "asked, and not answered in time",
                    AnswerKind::Withdrawn => "asked, and taken back",
                };
                let given = grant.as_ref().map(|grant| format!(" · grant {}", grant.id));
                let seconds = latency_ms.div_ceil(1_000);
                format!("{what} after {seconds} s{}", given.unwrap_or_default())
            }
        }
    }
}

/// How many characters of a card say what it is about.
fn count_chars(card: &Card) -> u64 {
    let exact = card.exact.iter().map(|field| field.text.as_str());
    let all = exact.chain([card.headline.as_str(), card.why.as_str()]);
    let count: usize = all.map(|text| text.chars().count()).sum();
    u64::try_from(count).unwrap_or(u64::MAX)
}
