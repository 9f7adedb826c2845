//! What only history tells: whether something is new here, and what an offer would have covered of the
//! calls that were asked about before, in this workspace and under the same policy.

use std::collections::BTreeMap;

use capsule_base::limits;
use capsule_core::action::{Action, Facts, FileKind, sub_actions};
use capsule_core::approval::{AnswerKind, ApprovalRequest, Card, GrantPattern, PlannedRequest};
use capsule_core::capability::Capability;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::journal::{CallDecided, Event, PayloadRef};
use capsule_core::lifecycle::{recorded_action, recorded_decision};
use capsule_core::tool::ToolName;
use capsule_redact::excerpt;
use capsule_store::{Store, StoreError, StoredPayload};
use serde_json::Value;

/// Where something was done before.
pub(super) struct HistoryScope<'p> {
    /// The workspace's real path.
    pub(super) workspace: &'p str,
    /// The path of the policy's file, or its built-in name; and what it calls itself.
    pub(super) policy: (&'p str, &'p str),
    /// The run at hand.
    pub(super) run_label: &'p str,
    /// Whether rules can be put into the policy.
    pub(super) is_file: bool,
}

/// An earlier call.
struct PastDecision {
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
    /// Whether it ran.
    started: bool,
}

impl PastDecision {
    fn matches_grant(&self, reach: &GrantPattern, asked: &ApprovalRequest<'_>) -> bool {
        self.decision.verdict == Verdict::Ask
            && self.with_question(asked, |request| reach.covers(request)) == Some(true)
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
                let like = self.with_question(asked, GrantPattern::similar_to).flatten();
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
    fn with_question<T>(
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
pub(super) fn add_history(
    card: &mut Card,
    asked: &ApprovalRequest<'_>,
    store: Option<&Store>,
    place: &HistoryScope<'_>,
) {
    let Some(past) = past_or_unknown(card, store, place, asked.call) else { return };
    card.new_here.extend(novelty(&past, asked));
    if asked.decision.capabilities.contains(Capability::NetEgress) {
        let reads = |past: &PastDecision| files_read(&past.action, &past.facts);
        card.read_before = named_before(&past, place.run_label, reads);
        card.seen_before = named_before(&past, place.run_label, content_seen);
    }
    if place.is_file && can_become_rule(asked) {
        let same = past.iter().find(|decision| {
            decision.decision.verdict == Verdict::Ask && decision.allowed && decision.is_same(asked)
        });
        card.previously_allowed = same.map(|decision| decision.name.clone());
    }
    for offer in &mut card.offers {
        let covered: Vec<&PastDecision> =
            past.iter().filter(|decision| decision.matches_grant(&offer.pattern, asked)).collect();
        let count = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
        offer.would_have_covered = count(covered.len());
        offer.of_them_denied = count(covered.iter().filter(|decision| decision.denied).count());
        let line = |decision: &&PastDecision| {
            let denied = if decision.denied { " · denied" } else { "" };
            format!(
                "{} {} {}{denied}",
                decision.name,
                decision.tool,
                action_summary(&decision.action)
            )
        };
        offer.covered = covered.iter().take(limits::CARD_COVERED).map(line).collect();
    }
}

/// Adds to the card of a plan what is new about its steps.
pub(super) fn add_plan_history(
    card: &mut Card,
    steps: &[PlannedRequest<'_>],
    store: Option<&Store>,
    place: &HistoryScope<'_>,
) {
    let Some(past) = past_or_unknown(card, store, place, 0) else { return };
    for PlannedRequest { request: question, .. } in steps {
        let news = novelty(&past, question);
        let step = question.step.unwrap_or_default();
        card.new_here.extend(news.map(|news| format!("{step}: {news}")));
    }
}

/// What was decided here before, or on the card that nobody knows.
fn past_or_unknown(
    card: &mut Card,
    store: Option<&Store>,
    place: &HistoryScope<'_>,
    call: u64,
) -> Option<Vec<PastDecision>> {
    let past = store.and_then(|store| earlier_decisions(store, place, call).ok());
    if past.is_none() {
        card.new_here.push("what was done here before cannot be told".into());
    }
    past
}

/// What is new about a call.
fn novelty(past: &[PastDecision], asked: &ApprovalRequest<'_>) -> Option<String> {
    let subject = novelty_subject(asked)?;
    let same = |decision: &PastDecision| decision.with_question(asked, novelty_subject).flatten();
    let known = past.iter().any(|decision| same(decision).as_ref() == Some(&subject));
    (!known).then(|| format!("the first {subject} here"))
}

/// The files that a call reads. The files that a command names count, whatever it does with them.
pub(crate) fn files_read(action: &Action, facts: &Facts) -> Vec<String> {
    match action {
        // An edit that does not fit quotes what is in the file.
        Action::Read { path, .. } | Action::Search { path, .. } | Action::Edit { path, .. } => {
            vec![path.inside().map_or(path.asked.as_str(), |path| path.as_str()).to_owned()]
        }
        Action::Attach { file } => vec![file.clone()],
        Action::Run { .. } | Action::Command { .. } => {
            let files = facts.paths.iter().filter(|fact| fact.kind == FileKind::File);
            files.map(|fact| fact.path.as_str().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// What a call brings from elsewhere: a page, or what a command may get over the network.
fn content_seen(past: &PastDecision) -> Vec<String> {
    let is_command = matches!(past.action, Action::Run { .. } | Action::Command { .. });
    let is_open = past.decision.capabilities.contains(Capability::NetEgress);
    match &past.action {
        Action::Fetch { url, .. } => vec![url.asked.clone()],
        action if is_command && is_open => vec![action_summary(action)],
        _ => Vec::new(),
    }
}

/// What calls of the session at hand read or saw before, newest first, with the number of the call: what may be sent now
/// need not be what is read now, and what has it sent need not be in this call.
fn named_before(
    past: &[PastDecision],
    run_label: &str,
    named: impl Fn(&PastDecision) -> Vec<String>,
) -> Option<String> {
    let of_run = |decision: &&PastDecision| {
        decision.started && decision.name.split(':').next() == Some(run_label)
    };
    let mut names: Vec<(String, u64)> = Vec::new();
    for decision in past.iter().filter(of_run) {
        for name in named(decision) {
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, decision.decided.call));
            }
        }
    }
    let shown = names
        .iter()
        .take(limits::CARD_READS)
        .map(|(name, call)| format!("`{}` (call {call})", excerpt(name, limits::QUOTED_CHARS)));
    let mut shown: Vec<String> = shown.collect();
    let more = names.len() - shown.len();
    shown.extend((more > 0).then(|| format!("{more} more")));
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// Whether a rule could answer it from now on: what is asked each time, or by a narrower rule's word, is
/// meant. Programs have rules of their own.
fn can_become_rule(asked: &ApprovalRequest<'_>) -> bool {
    let is_command = matches!(asked.action, Action::Run { .. } | Action::Command { .. });
    asked.decision.verdict == Verdict::Ask
        && (is_command || asked.decision.is_tool_default(asked.tool))
}

/// What a call is about, in few words.
fn action_summary(action: &Action) -> String {
    match action {
        Action::Run { argv, .. } => argv.join(" "),
        Action::Command { text, .. } => text.clone(),
        Action::Fetch { url, .. } => url.asked.clone(),
        other => other.path().map_or_else(String::new, |path| path.asked.clone()),
    }
}

/// What may be new about a call: its program, its folder, its host.
fn novelty_subject(question: &ApprovalRequest<'_>) -> Option<String> {
    let program = |name: &String| format!("`{name}`");
    match (GrantPattern::similar_to(question), question.action) {
        (Some(GrantPattern::Command { names, .. }), _) => Some(format!("`{}`", names.join(" "))),
        (Some(GrantPattern::Directory { folder, .. }), _) => {
            Some(format!("change beneath {folder}/"))
        }
        (Some(GrantPattern::Host { origin, .. }), _) => Some(format!("call to {origin}")),
        (_, Action::Run { argv, .. }) => argv.first().map(program),
        (_, Action::Command { steps, .. }) => {
            let mut names: Vec<String> = Vec::new();
            for part in steps.iter().flat_map(|step| sub_actions(step, None, question.facts)) {
                if let Action::Run { argv, .. } = part.action {
                    names.extend(argv.first().map(program).filter(|name| !names.contains(name)));
                }
            }
            (!names.is_empty()).then(|| names.join(" with "))
        }
        _ => None,
    }
}

/// The newest calls that were decided here, but for the one at hand.
fn earlier_decisions(
    store: &Store,
    place: &HistoryScope<'_>,
    call: u64,
) -> Result<Vec<PastDecision>, StoreError> {
    let mut all = Vec::new();
    for run in store.runs_in_workspace(place.workspace, place.policy, limits::HISTORY_RUNS)? {
        let label = store.label(&run);
        let here = label == place.run_label;
        let mut calls = decisions_of_run(store, &run, &label)?;
        calls.retain(|decision| !here || decision.decided.call < call);
        calls.reverse();
        all.append(&mut calls);
        if all.len() >= limits::HISTORY_CALLS {
            break;
        }
    }
    all.truncate(limits::HISTORY_CALLS);
    Ok(all)
}

/// Reads a decision about a call of a run; none where the call was not understood, or its action or the
/// text of the decision was erased.
fn read_past_decision(
    label: &str,
    tool: ToolName,
    decided: &CallDecided,
    kept: &[(PayloadRef, StoredPayload)],
) -> Option<PastDecision> {
    let bytes = |wanted| {
        let item = kept.iter().find(|(item, _)| Some(*item) == wanted);
        item.and_then(|(_, payload)| payload.bytes.as_deref())
    };
    let (action, facts) = bytes(decided.action).and_then(recorded_action)?;
    let words = bytes(Some(decided.text)).unwrap_or_default();
    Some(PastDecision {
        name: format!("{label}:{}", decided.call),
        tool,
        decided: decided.clone(),
        decision: recorded_decision(decided, words)?,
        action,
        facts,
        denied: false,
        allowed: false,
        started: false,
    })
}

/// The calls of a run that were understood.
fn decisions_of_run(
    store: &Store,
    run: &str,
    label: &str,
) -> Result<Vec<PastDecision>, StoreError> {
    let mut tools: BTreeMap<u64, ToolName> = BTreeMap::new();
    let mut all: Vec<PastDecision> = Vec::new();
    store.visit::<StoreError>(run, |stored| {
        match &stored.entry.event {
            Event::CallProposed(proposed) => {
                drop(tools.insert(proposed.call, proposed.tool.clone()))
            }
            Event::CallDecided(decided) => {
                let kept = store.payloads(stored.leaf, &stored.entry.event)?;
                let tool = tools.get(&decided.call).cloned();
                all.extend(tool.and_then(|tool| read_past_decision(label, tool, decided, &kept)));
            }
            Event::ApprovalAnswered(answered) => {
                for decision in
                    all.iter_mut().filter(|decision| decision.decided.call == answered.call)
                {
                    decision.denied |= answered.outcome == AnswerKind::Denied;
                    decision.allowed |= answered.outcome == AnswerKind::Approved;
                }
            }
            Event::CallStarted(started) => {
                let is_it = |decision: &&mut PastDecision| decision.decided.call == started.call;
                all.iter_mut().filter(is_it).for_each(|decision| decision.started = true);
            }
            Event::GrantUsed(used) => {
                for decision in all.iter_mut().filter(|decision| decision.decided.call == used.call)
                {
                    decision.allowed = true;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(all)
}
