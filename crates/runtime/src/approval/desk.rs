//! Where a person sits: what they allowed before answers for them, and what they are asked passes
//! here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capsule_core::approval::{
    AnswerSurface, ApprovalAnswer, ApprovalRequest, ApprovalRoute, Approver, Card, Grant,
    GrantOffer, GrantPattern, Person, PlannedRequest, ReceivedAnswer,
};
use capsule_core::digest::Digest;
use capsule_core::journal::PendingChanges;
use capsule_core::limits;
use capsule_core::policy::Policy;
use capsule_redact::holds_mask;
use capsule_store::Store;
use serde_json::Value;

use crate::approval::card::card;
use crate::approval::history::{self, Place};
use crate::approval::plan;
use crate::hands::now;
use crate::law::Law;

/// What shows cards to a person.
pub trait Prompt {
    /// Whether somebody may be in front of it.
    fn is_attended(&mut self) -> bool;

    /// Whether the run is over after this call, so that a grant beyond it would have no use.
    fn is_once(&self) -> bool {
        false
    }

    /// Shows a card and waits for what they do.
    fn show(&mut self, card: &Card) -> Reply;
}

/// What a person did with a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What they said.
    pub said: Said,
    /// From showing to answering, in milliseconds.
    pub latency_ms: u64,
    /// Where.
    pub surface: AnswerSurface,
}

/// What a person said to a card.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Yes, to this call, or to one of the card's offers by its place.
    Allow(Person, Option<usize>),
    /// With these arguments instead.
    Change(Person, Value),
    /// No, and why.
    Deny(Person, Option<String>),
    /// No, and nothing after it.
    Stop(Person, Option<String>),
    /// Nothing now: the question may wait.
    Later,
    /// Nothing, in time.
    Expired,
    /// Nothing: the screen went away, or the run is being interrupted.
    Withdrawn,
}

/// What somebody did with a card that waited for them.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// What the answer is bound to.
    pub(crate) bound: Digest,
    /// The card, as they saw it.
    pub(crate) card: Card,
    /// What they did.
    pub(crate) reply: Reply,
}

/// Nobody sits there.
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl Prompt for Empty {
    fn is_attended(&mut self) -> bool {
        false
    }

    fn show(&mut self, _: &Card) -> Reply {
        Reply { said: Said::Withdrawn, latency_ms: 0, surface: AnswerSurface::Command }
    }
}

/// A person's place in one run.
pub(crate) struct Desk {
    prompt: Box<dyn Prompt>,
    policy: Arc<Policy>,
    /// The run's label, which the names of its grants begin with.
    label: String,
    /// The workspace's real path.
    workspace: String,
    /// The path of the policy's file, or its built-in name.
    place: String,
    grants: Vec<Grant>,
    given: u64,
    /// When cards were shown, in microseconds since 1970.
    shown: Vec<u64>,
    /// The policy of the question at hand.
    asked_by: Option<Digest>,
    revoked: Revoked,
    /// What waits in the workspace from earlier runs.
    unpulled: Option<PendingChanges>,
    /// Whether the policy can be patched: it is a file of the user's own.
    is_file: bool,
    /// Whether what nobody is there for waits.
    waits: bool,
    /// What somebody answered while the first question waited.
    stored: Option<Stored>,
    /// What they did with the card that is laid down now.
    ready: Option<Reply>,
}

impl Desk {
    /// A place in front of a prompt, in the run of this label and store.
    pub(crate) fn new(prompt: Box<dyn Prompt>, law: &Law, (label, store): (&str, &Path)) -> Self {
        Self {
            prompt,
            policy: Arc::clone(&law.policy),
            label: label.to_owned(),
            workspace: law.roots.workspace.clone(),
            place: law.place(),
            is_file: law.file.is_some(),
            grants: Vec::new(),
            given: 0,
            shown: Vec::new(),
            asked_by: None,
            revoked: Revoked { store: store.to_owned(), seen: None, open: None },
            unpulled: None,
            waits: false,
            stored: None,
            ready: None,
        }
    }

    /// The same where something waits in the workspace from earlier runs.
    pub(crate) fn beside(self, unpulled: Option<PendingChanges>) -> Self {
        Self { unpulled, ..self }
    }

    /// The same with somebody in front of it.
    pub(crate) fn prompting(self, prompt: Box<dyn Prompt>) -> Self {
        Self { prompt, ..self }
    }

    /// The same, where questions wait that nobody is there for.
    pub(crate) fn waiting(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// The same with the answer to the first question.
    pub(crate) fn answered(self, stored: Option<Stored>) -> Self {
        Self { stored, ..self }
    }

    /// The card of a question, with what only history tells.
    fn laid(&mut self, question: &ApprovalRequest<'_>) -> Card {
        let mut card = card(question, &self.policy);
        if self.prompt.is_once() {
            card.offers.clear();
        }
        let (store, place) = self.before();
        history::fill(&mut card, question, store, &place);
        card.pending_changes = self.unpulled;
        card.waits_unanswered = self.can_wait(question);
        card
    }

    /// What was done before, and where that is.
    fn before(&mut self) -> (Option<&Store>, Place<'_>) {
        let place = Place {
            workspace: &self.workspace,
            policy: (&self.place, &self.policy.name),
            label: &self.label,
            is_file: self.is_file,
        };
        (self.revoked.store(), place)
    }

    /// Whether a question can wait. A part of a list cannot: those before it have run, and going on
    /// would run them again. Nor can a call by itself of which the record holds only masks.
    fn can_wait(&self, question: &ApprovalRequest<'_>) -> bool {
        let is_whole = question.args.get("part").is_none();
        let is_masked = || holds_mask(question.args.to_string().as_bytes());
        self.waits && is_whole && (question.step.is_some() || !is_masked())
    }

    /// A question that nobody is there for.
    fn alone(&mut self, question: &ApprovalRequest<'_>, now: u64) -> ApprovalRoute {
        match self.can_wait(question) {
            true => ApprovalRoute::Wait(Box::new(self.laid(question)), until(now)),
            false => ApprovalRoute::NoApprover,
        }
    }

    /// The answer to this question, if it is the one that they answered.
    fn recalled(&mut self, stored: Stored, question: &ApprovalRequest<'_>) -> ApprovalRoute {
        let Stored { bound, card, reply } = stored;
        if bound != question.binding {
            return ApprovalRoute::Outdated;
        }
        self.asked_by = Some(question.policy);
        self.revoked.start();
        self.ready = Some(reply);
        ApprovalRoute::Show(Box::new(card))
    }

    /// Whether a person has been shown as much as the policy lets them be.
    fn is_tired(&mut self, now: u64) -> bool {
        let Some(attention) = self.policy.budgets.attention else { return false };
        let since = now.saturating_sub(attention.per_ms.saturating_mul(1_000));
        self.shown.retain(|at| *at >= since);
        u64::try_from(self.shown.len()).unwrap_or(u64::MAX) >= attention.prompts
    }

    /// How many cards were shown, and how many may be.
    fn attention(&self) -> Option<(u64, u64)> {
        let shown = u64::try_from(self.shown.len()).unwrap_or(u64::MAX);
        self.policy.budgets.attention.map(|own| (shown, own.prompts))
    }

    /// The grant that somebody gave by taking an offer. The call that it was given with is its first
    /// use; a plan that has not begun is none.
    fn grant(&mut self, by: Person, offer: &GrantOffer) -> Option<Grant> {
        self.given += 1;
        let first = u64::from(!matches!(offer.pattern, GrantPattern::Steps { .. }));
        let grant = Grant {
            id: format!("{}.{}", self.label, self.given),
            lifetime: offer.scope,
            pattern: offer.pattern.clone(),
            uses: offer.uses.saturating_sub(first),
            expires_at: now().saturating_add(offer.after_ms.saturating_mul(1_000)),
            policy: self.asked_by?,
            given_by: by,
        };
        self.grants.push(grant.clone());
        Some(grant)
    }
}

impl Approver for Desk {
    fn plan_card(&mut self, steps: &[PlannedRequest<'_>], open: u64) -> Option<Box<Card>> {
        let now = now();
        // One question is no fewer than one.
        let [first, _, ..] = steps else { return None };
        if !self.prompt.is_attended() || self.is_tired(now) {
            return None;
        }
        let mut card = plan::card(steps, open, &self.policy)?;
        let (store, place) = self.before();
        history::fill_plan(&mut card, steps, store, &place);
        self.shown.push(now);
        self.asked_by = Some(first.request.policy);
        self.revoked.start();
        card.pending_changes = self.unpulled;
        card.attention = self.attention();
        Some(Box::new(card))
    }

    fn resolve(&mut self, question: &ApprovalRequest<'_>) -> ApprovalRoute {
        let now = now();
        if let Some(stored) = self.stored.take() {
            return self.recalled(stored, question);
        }
        if !self.grants.is_empty() {
            // Where nobody can say what was taken back, everything was.
            match self.revoked.since() {
                Some(gone) => {
                    let is_gone = |own: &Grant| {
                        gone.iter().any(|id| id.as_deref().is_none_or(|id| id == own.id))
                    };
                    self.grants.retain(|own| !is_gone(own) && !own.has_expired(now));
                }
                None => self.grants.clear(),
            }
        }
        if let Some(used) = self.grants.iter_mut().find_map(|own| own.try_use(question, now)) {
            return ApprovalRoute::Granted(used);
        }
        if !self.prompt.is_attended() || self.is_tired(now) {
            return self.alone(question, now);
        }
        self.shown.push(now);
        self.asked_by = Some(question.policy);
        self.revoked.start();
        let mut card = self.laid(question);
        card.attention = self.attention();
        ApprovalRoute::Show(Box::new(card))
    }

    fn ask(&mut self, card: &Card) -> ReceivedAnswer {
        let reply = self.ready.take();
        let Reply { said, latency_ms, surface } = reply.unwrap_or_else(|| self.prompt.show(card));
        let answer = match said {
            Said::Allow(person, None) => ApprovalAnswer::Approved(person, None),
            Said::Allow(person, Some(offer)) => {
                match card.offers.get(offer).and_then(|offer| self.grant(person, offer)) {
                    Some(grant) => ApprovalAnswer::Approved(person, Some(grant)),
                    // What was never offered is no answer.
                    None => ApprovalAnswer::Withdrawn,
                }
            }
            Said::Change(person, args) => ApprovalAnswer::Changed(person, args),
            Said::Deny(person, why) => ApprovalAnswer::Denied(person, why),
            Said::Stop(person, why) => ApprovalAnswer::Stopped(person, why),
            Said::Expired => ApprovalAnswer::Expired,
            Said::Later if card.waits_unanswered => ApprovalAnswer::Deferred(until(now())),
            Said::Later | Said::Withdrawn => ApprovalAnswer::Withdrawn,
        };
        ReceivedAnswer { answer, latency_ms, surface }
    }
}

/// Until when a question can be answered that waits from now on, in microseconds since 1970.
fn until(now: u64) -> u64 {
    let time = u64::try_from(limits::QUESTION_TIME.as_micros()).unwrap_or(u64::MAX);
    now.saturating_add(time)
}

/// What was taken back from elsewhere: another terminal writes it into the store.
struct Revoked {
    store: PathBuf,
    /// The last leaf that was looked at.
    seen: Option<u64>,
    open: Option<Store>,
}

impl Revoked {
    /// The store, opened for reading.
    fn store(&mut self) -> Option<&Store> {
        if self.open.is_none() {
            self.open = Store::open_read_only(&self.store).ok();
        }
        self.open.as_ref()
    }

    /// Begins to watch, before anything can be given.
    fn start(&mut self) {
        if self.seen.is_none() {
            self.since();
        }
    }

    /// What was taken back since it was last asked; none where that cannot be read.
    fn since(&mut self) -> Option<Vec<Option<String>>> {
        let since = self.seen;
        let (seen, gone) = self.store()?.revoked_since(since).ok()?;
        self.seen = Some(seen);
        Some(gone)
    }
}
