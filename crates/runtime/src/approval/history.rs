//! What only history tells: whether something is new here, and what an offer would have covered of the
//! calls that were asked about before, in this workspace and under the same policy.

use std::collections::BTreeMap;

use capsule_core::action::{Action, Facts};
use capsule_core::approval::{AnswerKind, ApprovalRequest, Card, GrantPattern, PlannedRequest};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{CallDecided, Event};
use capsule_core::lifecycle::{recorded_action, recorded_decision};
use capsule_core::limits;
use capsule_core::tool::ToolName;
use capsule_store::{Store, StoreError};
use serde_json::Value;

use crate::author::is_own_word;

/// Where something was done before.
pub(super) struct Place<'p> {
    /// The workspace's real path.
    pub(super) workspace: &'p str,
    /// The path of the policy's file, or its built-in name; and what it calls itself.
    pub(super) policy: (&'p str, &'p str),
    /// The run at hand.
    pub(super) label: &'p str,
    /// Whether rules can be put into the policy.
    pub(super) is_file: bool,
}

/// An earlier call.
struct Past {
    /// `r-7Q3K:2`.
    name: String,
    tool: ToolName,
    decided: CallDecided,
    decision: Decision,
    action: Action,
    facts: Facts,
    /// Whether somebody said no to it.
    denied: bool,
    /// Whether somebody said yes to it, or to calls like it.
    allowed: bool,
}

impl Past {
    fn is_covered(&self, reach: &GrantPattern, asked: &ApprovalRequest<'_>) -> bool {
        self.decision.verdict == Verdict::Ask
            && self.with(asked, |own| reach.covers(own)) == Some(true)
    }

    /// Whether it is what is asked now: the same thing done to the same file or page, or by the same
    /// command with no other options.
    fn is_same(&self, asked: &ApprovalRequest<'_>) -> bool {
        if self.tool != *asked.tool {
            return false;
        }
        match (&self.action, asked.action) {
            (Action::Delete { recursive: true, .. }, _)
            | (_, Action::Delete { recursive: true, .. }) => false,
            (Action::Fetch { url: then, .. }, Action::Fetch { url: now, .. }) => {
                then.asked == now.asked
            }
            (Action::Run { .. } | Action::Command { .. }, _) => {
                let like = self.with(asked, GrantPattern::similar_to).flatten();
                let same = like.is_some() && like == GrantPattern::similar_to(asked);
                same || self.action == *asked.action
            }
            (then, now) => match (then.path(), now.path()) {
                (Some(then), Some(now)) => then.inside().is_some() && then.inside() == now.inside(),
                _ => then == now,
            },
        }
    }

    /// Asks something of the call as it was.
    fn with<T>(
        &self,
        asked: &ApprovalRequest<'_>,
        act: impl FnOnce(&ApprovalRequest<'_>) -> T,
    ) -> Option<T> {
        let question = ApprovalRequest {
            call: self.decided.call,
            step: None,
            tool: &self.tool,
            args: &Value::Null,
            tainted: &[],
            diff: None,
            action: &self.action,
            facts: &self.facts,
            decision: &self.decision,
            fingerprint: self.decided.fingerprint?,
            confinement: None,
            policy: asked.policy,
            binding: asked.binding,
        };
        Some(act(&question))
    }
}

/// Adds to a card what history tells.
pub(super) fn fill(
    card: &mut Card,
    asked: &ApprovalRequest<'_>,
    store: Option<&Store>,
    place: &Place<'_>,
) {
    let Some(past) = told(card, store, place, asked.call) else { return };
    card.new_here.extend(first(&past, asked));
    if place.is_file && may_be_ruled(asked) {
        let same = past
            .iter()
            .find(|own| own.decision.verdict == Verdict::Ask && own.allowed && own.is_same(asked));
        card.previously_allowed = same.map(|own| own.name.clone());
    }
    for offer in &mut card.offers {
        let covered: Vec<&Past> =
            past.iter().filter(|own| own.is_covered(&offer.pattern, asked)).collect();
        let count = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
        offer.would_have_covered = count(covered.len());
        offer.of_them_denied = count(covered.iter().filter(|own| own.denied).count());
        let line = |own: &&Past| {
            let denied = if own.denied { " · denied" } else { "" };
            format!("{} {} {}{denied}", own.name, own.tool, about(&own.action))
        };
        offer.covered = covered.iter().take(limits::CARD_COVERED).map(line).collect();
    }
}

/// Adds to the card of a plan what is new about its steps.
pub(super) fn fill_plan(
    card: &mut Card,
    steps: &[PlannedRequest<'_>],
    store: Option<&Store>,
    place: &Place<'_>,
) {
    let Some(past) = told(card, store, place, 0) else { return };
    for PlannedRequest { request: question, .. } in steps {
        let news = first(&past, question);
        let step = question.step.unwrap_or_default();
        card.new_here.extend(news.map(|news| format!("{step}: {news}")));
    }
}

/// What was decided here before, or on the card that nobody knows.
fn told(card: &mut Card, store: Option<&Store>, place: &Place<'_>, call: u64) -> Option<Vec<Past>> {
    let past = store.and_then(|store| earlier(store, place, call).ok());
    if past.is_none() {
        card.new_here.push("what was done here before cannot be told".into());
    }
    past
}

/// What is new about a call.
fn first(past: &[Past], asked: &ApprovalRequest<'_>) -> Option<String> {
    let subject = subject(asked)?;
    let same = |own: &Past| own.with(asked, self::subject).flatten();
    let known = past.iter().any(|own| same(own).as_ref() == Some(&subject));
    (!known).then(|| format!("the first {subject} here"))
}

/// Whether a rule could answer it from now on: what is asked each time, or by a narrower rule's word, is
/// meant. Programs have rules of their own.
fn may_be_ruled(asked: &ApprovalRequest<'_>) -> bool {
    let is_command = matches!(asked.action, Action::Run { .. } | Action::Command { .. });
    asked.decision.verdict == Verdict::Ask
        && (is_command || is_own_word(asked.tool, asked.decision))
}

/// What a call is about, in few words.
fn about(action: &Action) -> String {
    match action {
        Action::Run { argv, .. } => argv.join(" "),
        Action::Command { text, .. } => text.clone(),
        Action::Fetch { url, .. } => url.asked.clone(),
        other => other.path().map_or_else(String::new, |path| path.asked.clone()),
    }
}

/// What may be new about a call: its program, its folder, its host.
fn subject(question: &ApprovalRequest<'_>) -> Option<String> {
    let program = |name: &String| format!("`{name}`");
    match (GrantPattern::similar_to(question), question.action) {
        (Some(GrantPattern::Command { names, .. }), _) => Some(format!("`{}`", names.join(" "))),
        (Some(GrantPattern::Directory { folder, .. }), _) => {
            Some(format!("change beneath {folder}/"))
        }
        (Some(GrantPattern::Host { origin, .. }), _) => Some(format!("call to {origin}")),
        (_, Action::Run { argv, .. }) => argv.first().map(program),
        (_, Action::Command { text, .. }) => {
            text.split_whitespace().next().map(|name| program(&name.to_owned()))
        }
        _ => None,
    }
}

/// The newest calls that were decided here, but for the one at hand.
fn earlier(store: &Store, place: &Place<'_>, call: u64) -> Result<Vec<Past>, StoreError> {
    let mut all = Vec::new();
    for run in store.runs_in(place.workspace, place.policy, limits::HISTORY_RUNS)? {
        let label = store.label(&run);
        let here = label == place.label;
        let mut calls = of(store, &run, &label)?;
        calls.retain(|own| !here || own.decided.call < call);
        calls.reverse();
        all.append(&mut calls);
        if all.len() >= limits::HISTORY_CALLS {
            break;
        }
    }
    all.truncate(limits::HISTORY_CALLS);
    Ok(all)
}

/// The calls of a run that were understood.
fn of(store: &Store, run: &str, label: &str) -> Result<Vec<Past>, StoreError> {
    let mut tools: BTreeMap<u64, ToolName> = BTreeMap::new();
    let mut all: Vec<Past> = Vec::new();
    store.visit::<StoreError>(run, |stored| {
        match &stored.entry.event {
            Event::CallProposed(own) => drop(tools.insert(own.call, own.tool.clone())),
            Event::CallDecided(decided) => {
                let kept = store.payloads(stored.leaf, &stored.entry.event)?;
                let bytes = |wanted| {
                    let own = kept.iter().find(|(own, _)| Some(*own) == wanted);
                    own.and_then(|(_, payload)| payload.bytes.as_deref())
                };
                let understood = bytes(decided.action).and_then(recorded_action);
                let words = bytes(Some(decided.text)).unwrap_or_default();
                let decision = recorded_decision(decided, words);
                let tool = tools.get(&decided.call).cloned();
                // What was erased tells nothing.
                if let (Some((action, facts)), Some(decision), Some(tool)) =
                    (understood, decision, tool)
                {
                    let name = format!("{label}:{}", decided.call);
                    let decided = decided.clone();
                    let (denied, allowed) = (false, false);
                    all.push(Past {
                        name,
                        tool,
                        decided,
                        decision,
                        action,
                        facts,
                        denied,
                        allowed,
                    });
                }
            }
            Event::ApprovalAnswered(answered) => {
                for own in all.iter_mut().filter(|own| own.decided.call == answered.call) {
                    own.denied |= answered.outcome == AnswerKind::Denied;
                    own.allowed |= answered.outcome == AnswerKind::Approved;
                }
            }
            Event::GrantUsed(used) => {
                for own in all.iter_mut().filter(|own| own.decided.call == used.call) {
                    own.allowed = true;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(all)
}
