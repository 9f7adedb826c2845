//! Lays out what a person is asked about a plan before it begins: its steps, one after the other, each
//! as its own card would show it.

use capsule_core::approval::{
    Card, CardField, GrantLifetime, GrantOffer, GrantPattern, PlannedRequest, Reversibility,
    StepCall,
};
use capsule_core::capability::Capabilities;
use capsule_core::policy::Policy;
use capsule_core::risk::Risk;
use capsule_core::tool::ToolName;
use serde_json::Value;

use crate::approval::card;

/// The card of a plan of which these steps are asked about, and `open` others are not known yet. None
/// where a step would not be seen as it is: then each is asked about by itself.
pub(super) fn build_plan_card(
    steps: &[PlannedRequest<'_>],
    open: u64,
    policy: &Policy,
) -> Option<Card> {
    let offer = plan_offer(steps, policy);
    // It is a grant for the task, of as many uses as the policy lets one have.
    if !policy.grants.offer.contains(&GrantLifetime::Task) || offer.uses > policy.grants.uses {
        return None;
    }
    let cards: Vec<Card> =
        steps.iter().map(|step| card::build_card(&step.request, policy, false)).collect();
    if cards.iter().any(|card| card.is_hostile() || card.hidden_essential().is_some()) {
        return None;
    }
    let count = u64::try_from(steps.len()).unwrap_or(u64::MAX);
    let mut all = Card {
        call: 0,
        step: None,
        tool: ToolName::unchecked("plan"),
        risk: cards.iter().map(|card| card.risk).max().unwrap_or(Risk::High),
        capabilities: cards
            .iter()
            .flat_map(|card| card.capabilities.iter())
            .collect::<Capabilities>(),
        headline: plan_headline(count, open),
        consequences: Vec::new(),
        exact: Vec::new(),
        place: None,
        new_here: Vec::new(),
        read_before: None,
        seen_before: None,
        why: "`composites` of the policy asks once for what is known of a plan".into(),
        undo: worst_reversibility(&cards),
        undo_hint: None,
        pending_changes: None,
        prevented: shared_preventions(&cards),
        tainted: cards.iter().flat_map(tainted_inputs).collect(),
        offers: vec![offer],
        args: Value::Null,
        diff: plan_diff(steps),
        attention: None,
        steps: count,
        previously_allowed: None,
        waits_unanswered: false,
    };
    for (card, step) in cards.into_iter().zip(steps) {
        let Card { step: name, headline, why, place, exact, .. } = card;
        let name = name.unwrap_or_default();
        let often = match step.max_attempts {
            0 | 1 => String::new(),
            tries => format!(", tried up to {tries} times"),
        };
        all.exact.push(named_part("step", format!("{name}: {headline}{often}")));
        all.exact.push(named_part("why", why));
        all.exact.extend(place.map(|place| named_part("where", place)));
        all.exact.extend(exact);
    }
    Some(all)
}

fn named_part(name: &str, text: String) -> CardField {
    CardField { name: Some(name.into()), text, note: None }
}

fn plan_headline(count: u64, open: u64) -> String {
    let first = format!("{count} steps of this plan need your leave");
    match open {
        0 => first,
        some => format!("{first}, and {some} more cannot be shown yet"),
    }
}

/// What of a step derives from content that nobody vouches for.
fn tainted_inputs(card: &Card) -> Vec<String> {
    let step = card.step.as_deref().unwrap_or_default();
    card.tainted.iter().map(|tainted| format!("{step}: {tainted}")).collect()
}

/// The hardest of all to bring back.
fn worst_reversibility(cards: &[Card]) -> Reversibility {
    let hardness = |reversibility: &Reversibility| match reversibility {
        Reversibility::NoChange => 0,
        Reversibility::Staged => 1,
        Reversibility::Recorded => 2,
        Reversibility::Irreversible => 3,
    };
    cards.iter().map(|card| card.undo).max_by_key(hardness).unwrap_or(Reversibility::Irreversible)
}

/// What is prevented in every one of them that runs a program.
fn shared_preventions(cards: &[Card]) -> Vec<String> {
    let mut walled = cards.iter().map(|card| &card.prevented).filter(|item| !item.is_empty());
    let Some(first) = walled.next() else { return Vec::new() };
    let rest: Vec<_> = walled.collect();
    let shared = |text: &&String| rest.iter().all(|other| other.contains(text));
    first.iter().filter(shared).map(|text| format!("commands: {text}")).collect()
}

/// Leave for just these steps, as often as the plan tries them.
fn plan_offer(steps: &[PlannedRequest<'_>], policy: &Policy) -> GrantOffer {
    GrantOffer {
        scope: GrantLifetime::Task,
        pattern: GrantPattern::Steps {
            steps: steps.iter().map(|step| StepCall::of(&step.request)).collect(),
        },
        uses: steps.iter().fold(0, |sum, request| sum.saturating_add(request.max_attempts)),
        after_ms: policy.grants.expires_after_ms,
        would_have_covered: 0,
        of_them_denied: 0,
        covered: Vec::new(),
    }
}

/// The lines that will differ, step by step.
fn plan_diff(steps: &[PlannedRequest<'_>]) -> Option<String> {
    let mut all = String::new();
    for step in steps {
        let Some(diff) = step.request.diff else { continue };
        all.push_str(&format!("@ step {}\n", step.request.step.unwrap_or_default()));
        all.push_str(diff);
        if !diff.ends_with('\n') {
            all.push('\n');
        }
    }
    (!all.is_empty()).then_some(all)
}
