//! A card as a screen full of text: a frame, the page in it, and what can be done.

use anstyle::{AnsiColor, Style};
use capsule_base::escape;
use capsule_core::approval::Card;
use capsule_core::risk::Risk;
use capsule_report::{clip, diff_label, width};

use crate::card::card_rows::{self, LineStyle, Row, Rows};
use crate::card::card_state::{AllowBlocked, CardState, Page, PendingKey};
use crate::card::choices::Choice;
use crate::card::diff;
use crate::card::explanation;
use crate::card::text_field::TextField;

/// The widest that a card gets; longer lines are hard to read.
const MAX_COLUMNS: usize = 120;
/// The narrowest and lowest window that a card can be read in.
const MIN_SIZE: (usize, usize) = (40, 14);
/// The lines of the frame: its head, the one between page and answers, its foot.
const FRAME_LINES: usize = 3;
/// The fewest lines of the page that are seen.
const PAGE: usize = 4;
/// The columns of a card's sides, of the marks at the ends of its edge, and of the blanks beside a text in it.
const EDGE_COLUMNS: usize = 7;

/// Whether a card can be answered in a window of this size: it is shown as plain lines where it cannot.
pub(crate) fn fits(card: &Card, (columns, height): (usize, usize)) -> bool {
    let inner = columns.min(MAX_COLUMNS).saturating_sub(4);
    columns >= MIN_SIZE.0
        && height >= MIN_SIZE.1
        && footer_rows(card, &Page::Card, inner).len() + FRAME_LINES + PAGE <= height
}

/// The screen at a time, in lines; it tells the keys what is on it.
pub(crate) fn render(
    card: &Card,
    keys: &mut CardState<'_>,
    (columns, height): (usize, usize),
    now: u64,
    color: bool,
) -> Vec<String> {
    if *keys.page() == Page::Card && !fits(card, (columns, height))
        || columns < MIN_SIZE.0
        || height < MIN_SIZE.1
    {
        return render_too_small(card, keys, columns);
    }
    let wide = columns.min(MAX_COLUMNS);
    let inner = wide - 4;
    let page = match keys.page() {
        Page::Explain => explanation::explanation_rows(card, inner),
        Page::Diff => diff::diff_rows(card, inner),
        Page::Coverage => card_rows::coverage_rows(card, inner),
        Page::Rule => diff::rule_rows(card, keys.patch(), inner),
        _ => card_rows::body_rows(card, inner, keys.is_opened()),
    };
    let mut below = footer_rows(card, keys.page(), inner);
    let most = height.saturating_sub(FRAME_LINES + PAGE);
    if below.len() > most {
        // Of a long line that is typed, the end is seen.
        below.drain(..below.len() - most);
    }
    let room = height - FRAME_LINES - below.len();
    keys.set_extent(page.rows.len(), room, page.hides_something);
    let frame = Frame { wide, color, tone: risk_style(card.risk) };
    let first = keys.scroll();
    let shown = page.rows.get(first..).unwrap_or_default();
    let shown = shown.get(..room.min(shown.len())).unwrap_or(shown);
    let mut all = vec![frame.edge(('┏', '┓'), "Approve?", &card_title(card))];
    all.extend(shown.iter().map(|row| frame.row(row)));
    all.push(frame.edge(('┣', '┫'), &scroll_text(&page, first, shown.len()), ""));
    all.extend(below.iter().map(|row| frame.row(row)));
    let (status, attention) = (status_text(card, keys, now, wide), prompt_budget_text(card));
    all.push(frame.edge(('┗', '┛'), &status, &attention));
    all
}

/// A window that was made too small for an answer.
fn render_too_small(card: &Card, keys: &mut CardState<'_>, columns: usize) -> Vec<String> {
    keys.set_extent(usize::MAX, 0, true);
    let (later, _) = explanation::postponed_texts(card);
    let lines =
        ["The window is too small for this question.", "Make it larger, or press Esc:", later];
    lines.map(|line| clip(line, columns)).to_vec()
}

/// Call and risk.
fn card_title(card: &Card) -> String {
    format!("{} · {}", card_rows::card_subject(card), card.risk.name().to_uppercase())
}

const fn risk_style(risk: Risk) -> Style {
    match risk {
        Risk::Low => AnsiColor::Cyan.on_default(),
        Risk::Medium => AnsiColor::Yellow.on_default(),
        Risk::High => AnsiColor::Red.on_default(),
    }
}

/// Which lines of the page are on the screen, where not all are.
fn scroll_text(page: &Rows, first: usize, shown: usize) -> String {
    let all = page.rows.len();
    if shown >= all {
        return String::new();
    }
    let more = if first + shown < all { " · ↓ or Space for more" } else { "" };
    format!("lines {}–{} of {all}{more}", first + 1, first + shown)
}

/// What stands below the page: the answers, or a line to type in.
fn footer_rows(card: &Card, page: &Page, columns: usize) -> Vec<Row> {
    let row = |tone, text: String| Row { tone, text };
    match page {
        Page::Card => {
            let mut all = card_rows::answer_rows(card, columns).rows;
            if !has_keys_in_edge(card, columns + 4) {
                all.push(row(LineStyle::Dim, keys_text(card)));
            }
            all
        }
        Page::Explain | Page::Diff | Page::Coverage | Page::Rule => {
            vec![row(LineStyle::Strong, "Esc goes back to the card".into())]
        }
        Page::Reason(line) => {
            let what = "Why not? Whoever asked is told so, in your words.";
            let mut all = vec![row(LineStyle::Strong, clip(what, columns))];
            all.extend(text_field_rows(line, columns));
            all
        }
        Page::Change(line, wrong) => {
            let what = "Other arguments, as JSON; the call is decided anew.";
            let mut all = vec![row(LineStyle::Strong, clip(what, columns))];
            all.extend(text_field_rows(line, columns));
            let wrong = wrong.as_ref().map(|why| escape::line(why).into_owned());
            all.extend(wrong.map(|why| row(LineStyle::Removed, clip(&why, columns))));
            all
        }
    }
}

/// A line with its cursor, in as many lines as it needs.
fn text_field_rows(line: &TextField, columns: usize) -> Vec<Row> {
    let (before, behind) = line.around_cursor();
    let text = format!("> {}▏{}", escape::line(&before), escape::line(&behind));
    let pieces = card_rows::wrap_exact(&text, columns);
    pieces.into_iter().map(|text| Row { tone: LineStyle::Plain, text }).collect()
}

/// The text of the edge in the first moment, which is the longest of its texts.
const ARMING: &str = "a moment before you can allow";

/// The keys that show more of a card.
fn keys_text(card: &Card) -> String {
    let diff = card.diff.as_deref().filter(|diff| !diff.is_empty());
    let diff = diff.map(|diff| format!(" · d {}", diff_label(diff).0)).unwrap_or_default();
    format!("v all · e explain{diff}")
}

/// Whether the edge of a card has room for those keys, whatever else is in it.
fn has_keys_in_edge(card: &Card, wide: usize) -> bool {
    let (later, _) = explanation::postponed_texts(card);
    let longest = format!("{ARMING} · Esc {later} · {}", keys_text(card));
    let attention = match prompt_budget_text(card) {
        none if none.is_empty() => 0,
        some => width(&some) + 2,
    };
    width(&longest) + attention + EDGE_COLUMNS <= wide
}

/// What the keys do at the moment.
fn status_text(card: &Card, keys: &CardState<'_>, now: u64, wide: usize) -> String {
    match (keys.page(), keys.pending()) {
        (_, Some(PendingKey::Postpone)) => "deciding later… any key takes it back".into(),
        (_, Some(PendingKey::Interrupt)) => "interrupting… any other key takes it back".into(),
        (_, Some(PendingKey::Choice(choice))) => {
            let what = match choice {
                Choice::Once => "allowing once",
                Choice::Offer(_) => "allowing what is like it",
                Choice::Change => "changing",
                Choice::StepByStep => "asking at each step",
                Choice::Deny => "denying",
                Choice::Stop => "stopping the run",
            };
            format!("{what}… any key takes it back")
        }
        (Page::Reason(_), _) => "Enter denies · Esc goes back".into(),
        (Page::Change(..), _) => "Enter makes the call · Esc goes back".into(),
        (Page::Card, _) => {
            let allow = match keys.allow_blocked(now) {
                Some(AllowBlocked::NotExpanded) => "v opens what is hidden first",
                Some(AllowBlocked::EndNotShown) => "go to the end to allow",
                Some(AllowBlocked::Arming) => ARMING,
                None => "digits answer",
            };
            let (later, _) = explanation::postponed_texts(card);
            match has_keys_in_edge(card, wide) {
                true => format!("{allow} · Esc {later} · {}", keys_text(card)),
                false => format!("{allow} · Esc {later}"),
            }
        }
        _ => "↑ ↓ Space".into(),
    }
}

/// How many questions were asked of how many that may be.
fn prompt_budget_text(card: &Card) -> String {
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
