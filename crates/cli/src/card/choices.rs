//! What can be answered to a card, and by which digit. The digits of what every card has never
//! change, so that a hand that knows them is never wrong.

use capsule_core::approval::{Card, GrantLifetime, GrantPattern};

/// What an answer would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The call runs.
    Once,
    /// It runs, and calls like it may, too: an offer of the card, by its place.
    Offer(usize),
    /// It is made with other arguments.
    Change,
    /// Each step of a plan is asked about when it is reached.
    StepByStep,
    /// It does not run.
    Deny,
    /// It does not run, and nothing after it.
    Stop,
}

impl Choice {
    /// Whether something may run by it.
    pub(crate) const fn allows(self) -> bool {
        matches!(self, Self::Once | Self::Offer(_) | Self::Change)
    }
}

/// The digits of further offers.
const EXTRA_DIGITS: [char; 4] = ['6', '7', '8', '9'];

/// What a card can be answered with. What a mask hides cannot be allowed.
pub(crate) fn choices(card: &Card) -> Vec<(char, Choice)> {
    if card.steps > 0 {
        return plan_choices(card);
    }
    let mut all = Vec::new();
    let mut further = Vec::new();
    if card.hidden_essential().is_none() {
        all.push(('1', Choice::Once));
        let first = preferred_offer(card);
        all.extend(first.map(|at| ('2', Choice::Offer(at))));
        // The same pattern for another lifetime allows the same calls.
        let pattern = |at: usize| card.offers.get(at).map(|offer| &offer.pattern);
        let rest = (0..card.offers.len()).filter(|at| {
            Some(*at) != first && first.is_none_or(|first| pattern(*at) != pattern(first))
        });
        further.extend(EXTRA_DIGITS.into_iter().zip(rest.map(Choice::Offer)));
    }
    // A running command that waits to reach a host has no arguments to change.
    all.extend((!card.args.is_null()).then_some(('3', Choice::Change)));
    all.extend([('4', Choice::Deny), ('5', Choice::Stop)]);
    all.extend(further);
    all
}

/// What the card of a plan can be answered with: all of its steps, or none, or one by one.
fn plan_choices(card: &Card) -> Vec<(char, Choice)> {
    let whole = card.hidden_essential().is_none() && !card.is_hostile() && !card.offers.is_empty();
    let all = whole.then_some(('1', Choice::Offer(0)));
    let rest = [('3', Choice::StepByStep), ('4', Choice::Deny), ('5', Choice::Stop)];
    all.into_iter().chain(rest).collect()
}

/// The offer that stands first: a pattern, for as long as may be. A whole capability never does.
fn preferred_offer(card: &Card) -> Option<usize> {
    let is_pattern = |at: &usize| {
        card.offers
            .get(*at)
            .is_some_and(|offer| !matches!(offer.pattern, GrantPattern::AnyWithCapability { .. }))
    };
    let is_long = |at: &usize| {
        card.offers.get(*at).is_some_and(|offer| offer.scope == GrantLifetime::Session)
    };
    let patterns = || (0..card.offers.len()).filter(is_pattern);
    patterns().find(is_long).or_else(|| patterns().next())
}
