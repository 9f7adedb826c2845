//! A card as the text of a form.

use capsule_core::approval::Card;

use crate::card;

/// The whole of a card, line by line, with what cannot be seen made visible; none where the card cannot be allowed as it
/// is.
pub(super) fn card_text(card: &Card) -> Option<String> {
    if card.hidden_essential().is_some() {
        return None;
    }
    let mut shown = card.clone();
    // A form has no keys that open parts of the card.
    shown.diff = None;
    shown.previously_allowed = None;
    let subject = card::card_subject(card);
    let head = format!("Allow {subject}? Risk {}.\n", card.risk.name());
    card::text_of(&shown, COLUMNS).map(|body| {
        let diff = card.diff.as_ref().map(|_| card::diff_text(card, COLUMNS)).unwrap_or_default();
        format!("{head}{body}{diff}")
    })
}

/// Forms wrap lines by themselves; tables do not need more.
const COLUMNS: usize = 100;
