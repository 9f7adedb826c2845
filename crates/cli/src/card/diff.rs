//! Differences behind a card: of the file that is written, and of the policy that a rule would change.

use capsule_base::escape;
use capsule_core::approval::Card;

use crate::card::card_rows::{
    LineStyle, Rows, learn_command, make_text_visible, quote_exact, wrap_exact,
};

/// The lines in which a file will differ.
pub(crate) fn diff_rows(card: &Card, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    add_diff_lines(&mut all, card.diff.as_deref().unwrap_or_default().lines());
    all
}

/// The rule that an earlier yes would make: how to come by it, and what it would change in the policy.
pub(crate) fn rule_rows(card: &Card, patch: &str, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    let command = learn_command(card.previously_allowed.as_deref().unwrap_or_default());
    let what = format!("`{command} --write` makes this change, once the run is over");
    all.push_labelled(LineStyle::Strong, "a rule", &escape::line(&what));
    all.push(LineStyle::Plain, "");
    // Which file it is stands above what differs.
    let body = patch.find("\n@@").map_or(patch.len(), |at| at + 1);
    for line in patch.get(..body).unwrap_or_default().lines() {
        for piece in wrap_exact(&quote_exact(line), all.columns) {
            all.push(LineStyle::Dim, piece);
        }
    }
    add_diff_lines(&mut all, patch.get(body..).unwrap_or_default().lines());
    all
}

/// Lines of a difference.
fn add_diff_lines<'l>(all: &mut Rows, lines: impl Iterator<Item = &'l str>) {
    let room = all.columns;
    for line in lines {
        let mut signs = line.chars();
        let (tone, sign) = match signs.next() {
            Some('+') => (LineStyle::Added, "+"),
            Some('-') => (LineStyle::Removed, "-"),
            // Where the next lines stand.
            Some('@') => {
                all.push(LineStyle::Dim, escape::line(line));
                continue;
            }
            _ => (LineStyle::Plain, " "),
        };
        let text = escape::strict_block(signs.as_str()).into_owned();
        for (at, piece) in wrap_exact(&make_text_visible(&text), room - 2).into_iter().enumerate() {
            let head = if at == 0 { sign } else { "┆" };
            all.push(tone, format!("{head} {piece}"));
        }
    }
}
