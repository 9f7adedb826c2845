//! A card as a screen full of text: a frame, the page in it, and what can be done.

use anstyle::{AnsiColor, Style};
use capsule_core::approval::Card;
use capsule_core::escape;
use capsule_core::risk::Risk;
use capsule_report::{clip, width};

use crate::card::choices::Choice;
use crate::card::diff;
use crate::card::keys::{Dead, Keys, Page, Pending};
use crate::card::line::Line;
use crate::card::lines::{self, Row, Rows, Tone};

/// The widest that a card gets; longer lines are hard to read.
const WIDEST: usize = 120;
/// The narrowest and lowest window that a card can be read in.
const LEAST: (usize, usize) = (40, 14);
/// The lines of the frame: its head, the one between page and answers, its foot.
const FRAME: usize = 3;
/// The fewest lines of the page that are seen.
const PAGE: usize = 4;

/// Whether a card can be answered in a window of this size: it is shown as plain lines where it cannot.
pub(crate) fn fits(card: &Card, (columns, height): (usize, usize)) -> bool {
    let inner = columns.min(WIDEST).saturating_sub(4);
    columns >= LEAST.0
        && height >= LEAST.1
        && below(card, &Page::Card, inner).len() + FRAME + PAGE <= height
}

/// The screen at a time, in lines; it tells the keys what is on it.
pub(crate) fn paint(
    card: &Card,
    keys: &mut Keys<'_>,
    (columns, height): (usize, usize),
    now: u64,
    color: bool,
) -> Vec<String> {
    if *keys.page() == Page::Card && !fits(card, (columns, height))
        || columns < LEAST.0
        || height < LEAST.1
    {
        return no_room(card, keys, columns);
    }
    let wide = columns.min(WIDEST);
    let inner = wide - 4;
    let page = match keys.page() {
        Page::Explain => lines::explained(card, inner),
        Page::Diff => diff::differing(card, inner),
        Page::Covered => lines::covered(card, inner),
        Page::Rule => diff::ruled(card, keys.rule(), inner),
        _ => lines::body(card, inner, keys.is_opened()),
    };
    let mut below = below(card, keys.page(), inner);
    let most = height.saturating_sub(FRAME + PAGE);
    if below.len() > most {
        // Of a long line that is typed, the end is seen.
        below.drain(..below.len() - most);
    }
    let room = height - FRAME - below.len();
    keys.laid_out(page.rows.len(), room, page.hides);
    let frame = Frame { wide, color, tone: tone(card.risk) };
    let first = keys.scroll();
    let shown = page.rows.get(first..).unwrap_or_default();
    let shown = shown.get(..room.min(shown.len())).unwrap_or(shown);
    let mut all = vec![frame.edge(('┏', '┓'), "Approve?", &title(card))];
    all.extend(shown.iter().map(|row| frame.row(row)));
    all.push(frame.edge(('┣', '┫'), &place(&page, first, shown.len()), ""));
    all.extend(below.iter().map(|row| frame.row(row)));
    let (status, attention) = (status(card, keys, now), attention(card));
    all.push(frame.edge(('┗', '┛'), &status, &attention));
    all
}

/// A window that was made too small for an answer.
fn no_room(card: &Card, keys: &mut Keys<'_>, columns: usize) -> Vec<String> {
    keys.laid_out(usize::MAX, 0, true);
    let (later, _) = lines::later(card);
    let lines =
        ["The window is too small for this question.", "Make it larger, or press Esc:", later];
    lines.map(|line| clip(line, columns)).to_vec()
}

/// Call and risk.
fn title(card: &Card) -> String {
    format!("{} · {}", lines::subject(card), card.risk.name().to_uppercase())
}

const fn tone(risk: Risk) -> Style {
    match risk {
        Risk::Low => AnsiColor::Cyan.on_default(),
        Risk::Medium => AnsiColor::Yellow.on_default(),
        Risk::High => AnsiColor::Red.on_default(),
    }
}

/// Which lines of the page are on the screen, where not all are.
fn place(page: &Rows, first: usize, shown: usize) -> String {
    let all = page.rows.len();
    if shown >= all {
        return String::new();
    }
    let more = if first + shown < all { " · ↓ or Space for more" } else { "" };
    format!("lines {}–{} of {all}{more}", first + 1, first + shown)
}

/// What stands below the page: the answers, or a line to type in.
fn below(card: &Card, page: &Page, columns: usize) -> Vec<Row> {
    let row = |tone, text: String| Row { tone, text };
    match page {
        Page::Card => lines::answers(card, columns).rows,
        Page::Explain | Page::Diff | Page::Covered | Page::Rule => {
            vec![row(Tone::Strong, "Esc goes back to the card".into())]
        }
        Page::Reason(line) => {
            let what = "Why not? Whoever asked is told so, in your words.";
            let mut all = vec![row(Tone::Strong, clip(what, columns))];
            all.extend(typed(line, columns));
            all
        }
        Page::Change(line, wrong) => {
            let what = "Other arguments, as JSON; the call is decided anew.";
            let mut all = vec![row(Tone::Strong, clip(what, columns))];
            all.extend(typed(line, columns));
            let wrong = wrong.as_ref().map(|why| escape::line(why).into_owned());
            all.extend(wrong.map(|why| row(Tone::Bad, clip(&why, columns))));
            all
        }
    }
}

/// A line with its cursor, in as many lines as it needs.
fn typed(line: &Line, columns: usize) -> Vec<Row> {
    let (before, behind) = line.halves();
    let text = format!("> {}▏{}", escape::line(&before), escape::line(&behind));
    let pieces = lines::fold(&text, columns);
    pieces.into_iter().map(|text| Row { tone: Tone::Plain, text }).collect()
}

/// What the keys do at the moment.
fn status(card: &Card, keys: &Keys<'_>, now: u64) -> String {
    match (keys.page(), keys.pending()) {
        (_, Some(Pending::Later)) => "deciding later… any key takes it back".into(),
        (_, Some(Pending::Interrupt)) => "interrupting… any other key takes it back".into(),
        (_, Some(Pending::Choice(choice))) => {
            let what = match choice {
                Choice::Once => "allowing once",
                Choice::Offer(_) => "allowing what is like it",
                Choice::Change => "changing",
                Choice::Each => "asking at each step",
                Choice::Deny => "denying",
                Choice::Stop => "stopping the run",
            };
            format!("{what}… any key takes it back")
        }
        (Page::Reason(_), _) => "Enter denies · Esc goes back".into(),
        (Page::Change(..), _) => "Enter makes the call · Esc goes back".into(),
        (Page::Card, _) => {
            let allow = match keys.dead(now) {
                Some(Dead::Closed) => "v opens what is hidden, then you can allow",
                Some(Dead::Below) => "go to the end, then you can allow",
                Some(Dead::Arming) => "a moment before you can allow",
                None => "digits answer",
            };
            let diff = if card.diff.is_some() { " · d diff" } else { "" };
            let (later, _) = lines::later(card);
            format!("{allow} · Esc {later} · v everything · e explain{diff}")
        }
        _ => "↑ ↓ Space".into(),
    }
}

/// How many questions were asked of how many that may be.
fn attention(card: &Card) -> String {
    card.attention.map_or_else(String::new, |(shown, most)| format!("{shown}/{most} prompts"))
}

struct Frame {
    wide: usize,
    color: bool,
    tone: Style,
}

impl Frame {
    /// A line of the page between the sides of the frame.
    fn row(&self, row: &Row) -> String {
        let room = self.wide - 4;
        let pad = " ".repeat(room.saturating_sub(width(&row.text)));
        let (side, text) = (self.styled(self.tone, "┃"), self.styled(row.tone.style(), &row.text));
        format!("{side} {text}{pad} {side}")
    }

    /// An edge with something to the left and to the right.
    fn edge(&self, (left, right): (char, char), begins: &str, ends: &str) -> String {
        let begins = if begins.is_empty() { String::new() } else { format!(" {begins} ") };
        let ends = if ends.is_empty() { String::new() } else { format!(" {ends} ") };
        let begins = clip(&begins, self.wide.saturating_sub(5 + width(&ends)));
        let line = self.wide.saturating_sub(4 + width(&begins) + width(&ends));
        let text = format!("{left}━{begins}{}{ends}━{right}", "━".repeat(line));
        self.styled(self.tone, &text)
    }

    fn styled(&self, style: Style, text: &str) -> String {
        match self.color {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}
