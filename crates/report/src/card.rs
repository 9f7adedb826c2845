//! What a person is asked, as plain lines: for logs, for screen readers, and for questions that wait.

use capsule_base::escape;
use capsule_base::units::{counted, show_span};
use capsule_core::approval::{Card, CardField, GrantOffer, Reversibility};
use capsule_core::capability::Capability;

use crate::columns::{Layout, wrap};

/// How wide the names are, with the space behind them.
const LABEL_COLUMNS: usize = 11;

/// Everything that a card says, in the order of use, with nothing cut.
#[must_use]
pub fn card_lines(card: &Card, layout: Layout) -> Vec<String> {
    let mut sheet =
        LabelledLines { lines: Vec::new(), width: layout.width.saturating_sub(LABEL_COLUMNS) };
    sheet.add("asks", &card.headline);
    sheet.add("may", &card.consequences.join(" · "));
    sheet.add("risk", card.risk.name());
    for (place, CardField { name, text, note }) in card.exact.iter().enumerate() {
        let name = name.clone().unwrap_or_else(|| (place + 1).to_string());
        sheet.add(&name, text);
        if let Some(note) = note {
            sheet.add("", &format!("({note})"));
        }
    }
    if let Some(place) = &card.place {
        sheet.add("where", place);
    }
    sheet.add("new here", &card.new_here.join(" · "));
    sheet.add("has read", card.read_before.as_deref().unwrap_or_default());
    sheet.add("has seen", card.seen_before.as_deref().unwrap_or_default());
    if let Some(before) = &card.previously_allowed {
        let rule = format!("allowed as {before} · `capsule policy learn {before}` makes it a rule");
        sheet.add("before", &rule);
    }
    sheet.add("why asked", &card.why);
    let undo = card.undo_hint.as_deref().unwrap_or(reversibility_text(card.undo));
    sheet.add("undo", undo);
    sheet.add("cannot", &card.prevented.join(" · "));
    sheet.add("beware", unconfined_warning(card).unwrap_or_default());
    let diff = card.diff.as_deref().unwrap_or_default();
    sheet.add(diff_label(diff).0, diff);
    sheet.add("untrusted", &card.tainted.join(" "));
    for offer in &card.offers {
        sheet.add(offer.scope.keyword(), &offer_text(offer));
    }
    sheet.lines
}

/// What the lines behind a card are called, and the files of which they show the program text in place of a
/// difference.
#[must_use]
pub fn diff_label(diff: &str) -> (&'static str, Option<String>) {
    let names = diff.lines().filter_map(|line| line.strip_prefix("@@ "));
    let names: Vec<&str> = names.filter_map(|name| Some(name.split_once(',')?.0)).collect();
    match names.is_empty() || diff.lines().any(|line| line.starts_with(['+', '-'])) {
        true => ("diff", None),
        false => ("code", Some(names.join(" and "))),
    }
}

/// What a person has to know before anything else of a command that nothing confines.
#[must_use]
pub const fn unconfined_warning(card: &Card) -> Option<&'static str> {
    match card.capabilities.contains(Capability::ProcUnconfined) {
        true => Some(
            "this machine has no sandbox: nothing prevents it from reading, changing, deleting and \
             sending whatever you can; the policy's bounds on paths hold for its words alone",
        ),
        false => None,
    }
}

const fn reversibility_text(undo: Reversibility) -> &'static str {
    match undo {
        Reversibility::NoChange => "it changes nothing",
        Reversibility::Staged => "it changes a staged copy, which is applied or dropped later",
        Reversibility::Recorded => "an undo record is kept before",
        Reversibility::Irreversible => "it cannot be brought back",
    }
}

fn offer_text(offer: &GrantOffer) -> String {
    let GrantOffer { pattern: reach, uses, after_ms, would_have_covered, of_them_denied, .. } =
        offer;
    let time = show_span(*after_ms);
    let before = match would_have_covered {
        0 => String::new(),
        some => {
            let calls = counted(*some, "earlier call");
            format!(" · would have covered {calls}, {of_them_denied} denied")
        }
    };
    format!("{reach}, {} or {time}{before}", counted(*uses, "use"))
}

/// How long ago something was, in its largest unit.
#[must_use]
pub fn age_text(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Lines of names and values; a long value goes on below itself, and nothing stands for nothing.
struct LabelledLines {
    lines: Vec<String>,
    width: usize,
}

impl LabelledLines {
    fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() && !name.chars().all(|c| c.is_ascii_digit()) {
            return;
        }
        let (name, value) = (escape::line(name), escape::block(value));
        let mut lines = value.lines().flat_map(|line| wrap(line, self.width));
        let names = LABEL_COLUMNS - 1;
        self.lines.push(format!("{name:<names$} {}", lines.next().unwrap_or_default()));
        self.lines.extend(lines.map(|more| format!("{:names$} {more}", "")));
    }
}
