//! Differences behind a card: of the file that is written, and of the policy that a rule would change.

use capsule_core::approval::Card;
use capsule_core::escape;

use crate::card::lines::{Rows, Tone, exact, fold, learn, seen_text};

/// The lines in which a file will differ.
pub(crate) fn differing(card: &Card, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    changed(&mut all, card.diff.as_deref().unwrap_or_default().lines());
    all
}

/// The rule that an earlier yes would make: how to come by it, and what it would change in the policy.
pub(crate) fn ruled(card: &Card, patch: &str, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    let command = learn(card.previously_allowed.as_deref().unwrap_or_default());
    let what = format!("`{command} --write` makes this change, once the run is over");
    all.say(Tone::Strong, "a rule", &escape::line(&what));
    all.push(Tone::Plain, "");
    // Which file it is stands above what differs.
    let body = patch.find("\n@@").map_or(patch.len(), |at| at + 1);
    for line in patch.get(..body).unwrap_or_default().lines() {
        for piece in fold(&exact(line), all.columns) {
            all.push(Tone::Dim, piece);
        }
    }
    changed(&mut all, patch.get(body..).unwrap_or_default().lines());
    all
}

/// Lines of a difference.
fn changed<'l>(all: &mut Rows, lines: impl Iterator<Item = &'l str>) {
    let room = all.columns;
    for line in lines {
        let mut signs = line.chars();
        let (tone, sign) = match signs.next() {
            Some('+') => (Tone::Good, "+"),
            Some('-') => (Tone::Bad, "-"),
            // Where the next lines stand.
            Some('@') => {
                all.push(Tone::Dim, escape::line(line));
                continue;
            }
            _ => (Tone::Plain, " "),
        };
        let text = escape::strict_block(signs.as_str()).into_owned();
        for (at, piece) in fold(&seen_text(&text), room - 2).into_iter().enumerate() {
            let head = if at == 0 { sign } else { "┆" };
            all.push(tone, format!("{head} {piece}"));
        }
    }
}
