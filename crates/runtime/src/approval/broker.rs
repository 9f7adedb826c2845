//! Where a person sits: what they allowed before answers for them, and what they are asked passes
//! here.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::approval::{
    AnswerSurface, ApprovalAnswer, ApprovalRequest, ApprovalRoute, Approver, Card, Grant,
    GrantOffer, GrantPattern, GrantUse, Person, PlannedRequest, ReceivedAnswer, Reversibility,
};
use capsule_core::journal::PendingChanges;
use capsule_core::policy::Policy;
use capsule_redact::holds_mask;
use capsule_store::Store;
use serde_json::Value;

use crate::approval::card::{self, build_card};
use crate::approval::history::{self, HistoryScope};
use crate::approval::plan_card;
use crate::bound_policy::BoundPolicy;
use crate::clock::now_micros;

/// What shows cards to a person.
pub trait Prompt {
    /// Whether somebody may be in front of it.
    fn is_attended(&mut self) -> bool;

    /// Whether the run is over after this call, so that a grant beyond it would have no use.
    fn is_once(&self) -> bool {
        false
    }

    /// Shows a card and waits for what they do.
    fn show(&mut self, card: &Card) -> PromptReply;
}

/// What a person did with a card.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptReply {
    /// What they said.
    pub answer: PromptAnswer,
    /// From showing to answering, in milliseconds.
    pub latency_ms: u64,
    /// Where.
    pub surface: AnswerSurface,
}

/// What a person said to a card.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptAnswer {
    /// Yes, to this call, or to one of the card's offers by its place.
    Allow(Person, Option<usize>),
    /// With these arguments instead.
    ChangeArguments(Person, Value),
    /// No, and why.
    Deny(Person, Option<String>),
    /// No, and nothing after it.
    Stop(Person, Option<String>),
    /// Nothing now: the question may wait.
    Postpone,
    /// Nothing, in time.
    Expired,
    /// Nothing: the screen went away, or the run is being interrupted.
    Withdrawn,
}

/// What somebody did with a card that waited for them.
#[derive(Clone, Debug)]
pub(crate) struct StoredReply {
    /// What the answer is bound to.
    pub(crate) binding: Digest,
    /// The card, as they saw it.
    pub(crate) card: Card,
    /// What they did.
    pub(crate) reply: PromptReply,
}

/// Nobody sits there.
#[derive(Clone, Copy, Debug)]
pub struct NoPrompt;

impl Prompt for NoPrompt {
    fn is_attended(&mut self) -> bool {
        false
    }

    fn show(&mut self, _: &Card) -> PromptReply {
        PromptReply {
            answer: PromptAnswer::Withdrawn,
            latency_ms: 0,
            surface: AnswerSurface::Command,
        }
    }
}

/// What a run remembers of approvals from one call to the next.
#[derive(Debug, Default)]
pub(crate) struct ApprovalMemory {
    /// The grants that may answer.
    pub(crate) grants: Vec<Grant>,
    /// How many grants were given.
    pub(crate) grants_given: u64,
    /// When cards were shown, in microseconds since 1970.
    pub(crate) shown_at: Vec<u64>,
    /// The last leaf that was searched for revocations.
    pub(crate) revocations_seen: Option<u64>,
}

/// A person's place in one run.
pub(crate) struct ApprovalBroker {
    prompt: Box<dyn Prompt>,
    policy: Arc<Policy>,
    /// The run's label, which the names of its grants begin with.
    run_label: String,
    /// The workspace's real path.
    workspace: String,
    /// The path of the policy's file, or its built-in name.
    place: String,
    memory: Rc<RefCell<ApprovalMemory>>,
    /// The policy of the question at hand.
    policy_digest: Option<Digest>,
    revocations: RevocationWatch,
    /// What waits in the workspace from earlier runs.
    pending_changes: Option<PendingChanges>,
    /// Whether the policy can be patched: it is a file of the user's own.
    is_file: bool,
    /// Whether what nobody is there for waits.
    can_suspend: bool,
    /// Whether staged changes are applied or dropped when the call ends.
    settles: bool,
    /// What somebody answered while the first question waited.
    stored_reply: Option<StoredReply>,
    /// The answers to earlier questions of the session.
    session_replies: Vec<StoredReply>,
    /// What they did with the card that is laid down now.
    ready_reply: Option<PromptReply>,
}

impl ApprovalBroker {
    /// A place in front of a prompt, in the run of this label and store.
    pub(crate) fn new(
        prompt: Box<dyn Prompt>,
        bound: &BoundPolicy,
        (label, store): (&str, &Path),
    ) -> Self {
        Self {
            prompt,
            policy: Arc::clone(&bound.policy),
            run_label: label.to_owned(),
            workspace: bound.roots.workspace.clone(),
            place: bound.place(),
            is_file: bound.file.is_some(),
            memory: Rc::default(),
            policy_digest: None,
            revocations: RevocationWatch { open_store: store.to_owned(), connection: None },
            pending_changes: None,
            can_suspend: false,
            settles: false,
            stored_reply: None,
            session_replies: Vec::new(),
            ready_reply: None,
        }
    }

    /// The same where something waits in the workspace from earlier runs.
    pub(crate) fn with_pending_changes(self, unpulled: Option<PendingChanges>) -> Self {
        Self { pending_changes: unpulled, ..self }
    }

    /// The same with what the run remembers of approvals.
    pub(crate) fn with_memory(self, memory: Rc<RefCell<ApprovalMemory>>) -> Self {
        Self { memory, ..self }
    }

    /// The same with somebody in front of it.
    pub(crate) fn with_prompt(self, prompt: Box<dyn Prompt>) -> Self {
        Self { prompt, ..self }
    }

    /// The same, where questions wait that nobody is there for.
    pub(crate) fn suspending(self, waits: bool) -> Self {
        Self { can_suspend: waits, ..self }
    }

    /// The same, where staged changes are applied or dropped when the call ends.
    pub(crate) fn settling(self, settles: bool) -> Self {
        Self { settles, ..self }
    }

    /// The same with the answer to the first question.
    pub(crate) fn with_stored_reply(self, stored: Option<StoredReply>) -> Self {
        Self { stored_reply: stored, ..self }
    }

    /// The same with the answers to questions of the session that no call has used.
    pub(crate) fn with_session_replies(self, session_replies: Vec<StoredReply>) -> Self {
        Self { session_replies, ..self }
    }

    /// The card of a question, with what only history tells.
    fn build_card(&mut self, question: &ApprovalRequest<'_>) -> Card {
        let mut card = build_card(question, &self.policy, self.settles);
        if self.prompt.is_once() {
            card.offers.clear();
        }
        let (store, place) = self.history_store();
        history::add_history(&mut card, question, store, &place);
        card.pending_changes = self.pending_changes;
        card.waits_unanswered = self.can_wait(question);
        // What waits is made by another run or call, if it is.
        let is_here = card.undo == Reversibility::Recorded && !card.waits_unanswered;
        card.undo_hint = is_here.then(|| card::undo_hint(question, &self.run_label));
        card
    }

    /// What was done before, and where that is.
    fn history_store(&mut self) -> (Option<&Store>, HistoryScope<'_>) {
        let place = HistoryScope {
            workspace: &self.workspace,
            policy: (&self.place, &self.policy.name),
            run_label: &self.run_label,
            is_file: self.is_file,
        };
        (self.revocations.store(), place)
    }

    /// Whether a question can wait. A part of a list cannot: those before it have run, and going on
    /// would run them again. Nor can a call by itself of which the record holds only masks.
    fn can_wait(&self, question: &ApprovalRequest<'_>) -> bool {
        let is_whole = question.args.get("part").is_none();
        let is_masked = || holds_mask(question.args.to_string().as_bytes());
        self.can_suspend && is_whole && (question.step.is_some() || !is_masked())
    }

    /// A question that nobody is there for.
    fn route_unattended(&mut self, question: &ApprovalRequest<'_>, now: u64) -> ApprovalRoute {
        match self.can_wait(question) {
            true => ApprovalRoute::Wait(Box::new(self.build_card(question)), expiry(now)),
            false => ApprovalRoute::NoApprover,
        }
    }

    /// The answer that somebody gave while a question waited.
    fn route_stored(
        &mut self,
        stored: StoredReply,
        question: &ApprovalRequest<'_>,
    ) -> ApprovalRoute {
        let StoredReply { card, reply, .. } = stored;
        self.policy_digest = Some(question.policy);
        self.revocations.start(&mut self.memory.borrow_mut());
        self.ready_reply = Some(reply);
        ApprovalRoute::Show(Box::new(card))
    }

    /// Whether a person has been shown as much as the policy lets them be.
    fn is_over_prompt_limit(&mut self, now: u64) -> bool {
        let Some(attention) = self.policy.budgets.attention else { return false };
        let since = now.saturating_sub(attention.per_ms.saturating_mul(1_000));
        let shown_at = &mut self.memory.borrow_mut().shown_at;
        shown_at.retain(|at| *at >= since);
        u64::try_from(shown_at.len()).unwrap_or(u64::MAX) >= attention.prompts
    }

    /// How many cards were shown, and how many may be.
    fn prompt_budget(&self) -> Option<(u64, u64)> {
        let shown = u64::try_from(self.memory.borrow().shown_at.len()).unwrap_or(u64::MAX);
        self.policy.budgets.attention.map(|budget| (shown, budget.prompts))
    }

    /// Uses a grant for a question, if one that was not taken back answers it.
    fn use_grant(&mut self, question: &ApprovalRequest<'_>, now: u64) -> Option<GrantUse> {
        let memory = &mut *self.memory.borrow_mut();
        if memory.grants.is_empty() {
            return None;
        }
        match self.revocations.since(memory) {
            Some(gone) => {
                let is_gone = |grant: &Grant| {
                    gone.iter().any(|id| id.as_deref().is_none_or(|id| id == grant.id))
                };
                memory.grants.retain(|grant| !is_gone(grant) && !grant.has_expired(now));
            }
            // A revocation that cannot be read may be of any of them.
            None => memory.grants.clear(),
        }
        memory.grants.iter_mut().find_map(|grant| grant.try_use(question, now))
    }

    /// The grant that somebody gave by taking an offer. The call that it was given with is its first
    /// use; a plan that has not begun is none.
    fn make_grant(&mut self, by: Person, offer: &GrantOffer) -> Option<Grant> {
        let mut memory = self.memory.borrow_mut();
        memory.grants_given += 1;
        let first = u64::from(!matches!(offer.pattern, GrantPattern::Steps { .. }));
        let grant = Grant {
            id: format!("{}.{}", self.run_label, memory.grants_given),
            lifetime: offer.scope,
            pattern: offer.pattern.clone(),
            uses: offer.uses.saturating_sub(first),
            expires_at: now_micros().saturating_add(offer.after_ms.saturating_mul(1_000)),
            policy: self.policy_digest?,
            given_by: by,
        };
        memory.grants.push(grant.clone());
        Some(grant)
    }
}

impl Approver for ApprovalBroker {
    fn plan_card(&mut self, steps: &[PlannedRequest<'_>], open: u64) -> Option<Box<Card>> {
        let now = now_micros();
        // One question is no fewer than one.
        let [first, _, ..] = steps else { return None };
        if !self.prompt.is_attended() || self.is_over_prompt_limit(now) {
            return None;
        }
        let mut card = plan_card::build_plan_card(steps, open, &self.policy)?;
        let (store, place) = self.history_store();
        history::add_plan_history(&mut card, steps, store, &place);
        self.memory.borrow_mut().shown_at.push(now);
        self.policy_digest = Some(first.request.policy);
        self.revocations.start(&mut self.memory.borrow_mut());
        card.pending_changes = self.pending_changes;
        card.attention = self.prompt_budget();
        Some(Box::new(card))
    }

    fn resolve(&mut self, question: &ApprovalRequest<'_>) -> ApprovalRoute {
        let now = now_micros();
        if let Some(stored) = self.stored_reply.take() {
            return match stored.binding == question.binding {
                true => self.route_stored(stored, question),
                false => ApprovalRoute::Outdated,
            };
        }
        let is_same = |reply: &StoredReply| reply.binding == question.binding;
        if let Some(place) = self.session_replies.iter().position(is_same) {
            let stored = self.session_replies.swap_remove(place);
            return self.route_stored(stored, question);
        }
        if let Some(used) = self.use_grant(question, now) {
            return ApprovalRoute::Granted(used);
        }
        if !self.prompt.is_attended() || self.is_over_prompt_limit(now) {
            return self.route_unattended(question, now);
        }
        self.memory.borrow_mut().shown_at.push(now);
        self.policy_digest = Some(question.policy);
        self.revocations.start(&mut self.memory.borrow_mut());
        let mut card = self.build_card(question);
        card.attention = self.prompt_budget();
        ApprovalRoute::Show(Box::new(card))
    }

    fn ask(&mut self, card: &Card) -> ReceivedAnswer {
        let reply = self.ready_reply.take();
        let PromptReply { answer: said, latency_ms, surface } =
            reply.unwrap_or_else(|| self.prompt.show(card));
        let answer = match said {
            PromptAnswer::Allow(person, None) => ApprovalAnswer::Approved(person, None),
            PromptAnswer::Allow(person, Some(offer)) => {
                match card.offers.get(offer).and_then(|offer| self.make_grant(person, offer)) {
                    Some(grant) => ApprovalAnswer::Approved(person, Some(grant)),
                    // What was never offered is no answer.
                    None => ApprovalAnswer::Withdrawn,
                }
            }
            PromptAnswer::ChangeArguments(person, args) => ApprovalAnswer::Changed(person, args),
            PromptAnswer::Deny(person, why) => ApprovalAnswer::Denied(person, why),
            PromptAnswer::Stop(person, why) => ApprovalAnswer::Stopped(person, why),
            PromptAnswer::Expired => ApprovalAnswer::Expired,
            PromptAnswer::Postpone if card.waits_unanswered => {
                ApprovalAnswer::Deferred(expiry(now_micros()))
            }
            PromptAnswer::Postpone | PromptAnswer::Withdrawn => ApprovalAnswer::Withdrawn,
        };
        ReceivedAnswer { answer, latency_ms, surface }
    }
}

/// Until when a question can be answered that waits from now on, in microseconds since 1970.
fn expiry(now: u64) -> u64 {
    let time = u64::try_from(limits::QUESTION_TIME.as_micros()).unwrap_or(u64::MAX);
    now.saturating_add(time)
}

/// What was taken back from elsewhere: another terminal writes it into the store.
struct RevocationWatch {
    open_store: PathBuf,
    connection: Option<Store>,
}

impl RevocationWatch {
    /// The store, opened for reading.
    fn store(&mut self) -> Option<&Store> {
        if self.connection.is_none() {
            self.connection = Store::open_read_only(&self.open_store).ok();
        }
        self.connection.as_ref()
    }

    /// Begins to watch, before anything can be given.
    fn start(&mut self, memory: &mut ApprovalMemory) {
        if memory.revocations_seen.is_none() {
            self.since(memory);
        }
    }

    /// What was taken back since it was last asked; none where that cannot be read.
    fn since(&mut self, memory: &mut ApprovalMemory) -> Option<Vec<Option<String>>> {
        let since = memory.revocations_seen;
        let (seen, gone) = self.store()?.grants_revoked_since(since).ok()?;
        memory.revocations_seen = Some(seen);
        Some(gone)
    }
}
