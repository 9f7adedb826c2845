//! A card as lines of a width. Everything that comes from elsewhere is escaped here, wrapped and
//! never cut; what is left out says so, and how much it is.

use anstyle::{AnsiColor, Style};
use capsule_base::{escape, limits, units};
use capsule_core::approval::{Card, CardField, GrantLifetime, GrantOffer, Reversibility};
use capsule_core::journal::PendingChanges;
use capsule_report::{diff_label, width, wrap};

use crate::card::choices::{Choice, choices};

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// As ever.
    Plain,
    /// What it is about.
    Strong,
    /// Said beside it.
    Dim,
    /// To be looked at.
    Warning,
    /// A line that is added.
    Added,
    /// A line that goes.
    Removed,
}

impl LineStyle {
    /// Its colour.
    pub(crate) const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Warning => AnsiColor::Yellow.on_default().bold(),
            Self::Added => AnsiColor::Green.on_default(),
            Self::Removed => AnsiColor::Red.on_default(),
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// How it is meant.
    pub(crate) tone: LineStyle,
    /// It, no wider than asked for.
    pub(crate) text: String,
}

/// Lines, and whether some of them are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// The lines.
    pub(crate) rows: Vec<Row>,
    /// Whether something has to be opened before all is seen.
    pub(crate) hides_something: bool,
    pub(super) columns: usize,
}

/// Where the text behind a label begins.
const LABEL_COLUMNS: usize = 11;
/// How much more than two blanks in a row are shown as: room is used to push things out of sight.
const MAX_BLANKS: usize = 3;
/// How many marks above one letter are shown; more of them cover other lines.
const MAX_COMBINING: usize = 2;

impl Rows {
    pub(super) fn new(columns: usize) -> Self {
        Self { rows: Vec::new(), hides_something: false, columns: columns.max(24) }
    }

    pub(super) fn push(&mut self, tone: LineStyle, text: impl Into<String>) {
        self.rows.push(Row { tone, text: text.into() });
    }

    /// The lines as one text.
    pub(crate) fn into_text(self) -> String {
        self.rows.into_iter().map(|row| row.text + "\n").collect()
    }

    /// A text behind a label, in as many lines as it needs.
    pub(super) fn push_labelled(&mut self, tone: LineStyle, label: &str, text: &str) {
        self.push_hanging(tone, &format!("{label:<LABEL_COLUMNS$}"), text);
    }

    /// A text behind a head, its further lines below its beginning.
    fn push_hanging(&mut self, tone: LineStyle, head: &str, text: &str) {
        let room = self.columns.saturating_sub(width(head)).max(12);
        let pieces = wrap(text, room);
        let folded: Vec<String> = pieces.iter().flat_map(|piece| wrap_exact(piece, room)).collect();
        for (at, piece) in folded.into_iter().enumerate() {
            let blank = " ".repeat(width(head));
            let head = if at == 0 { head } else { blank.as_str() };
            self.push(tone, format!("{head}{piece}"));
        }
    }
}

/// A text in pieces of so many columns.
pub(crate) fn wrap_exact(text: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut piece, mut used) = (String::new(), 0);
    for c in text.chars() {
        let needs = width(c.encode_utf8(&mut [0; 4]));
        if used + needs > columns && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        used += needs;
        piece.push(c);
    }
    pieces.push(piece);
    pieces
}

/// A line of which every character is seen: room and stacked marks become what they are.
fn make_visible(line: &str) -> String {
    let mut shown = String::new();
    let (mut blanks, mut marks) = (0, 0);
    let flush = |shown: &mut String, blanks: &mut usize, at_end: bool| {
        match *blanks {
            0 => {}
            few if few < MAX_BLANKS && !at_end => shown.extend(std::iter::repeat_n(' ', few)),
            many => shown.push_str(&format!("⟨{many} blank{}⟩", if many == 1 { "" } else { "s" })),
        }
        *blanks = 0;
    };
    for c in line.chars() {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        let at_start = shown.is_empty();
        flush(&mut shown, &mut blanks, at_start);
        marks = if width(c.encode_utf8(&mut [0; 4])) == 0 { marks + 1 } else { 0 };
        if marks > MAX_COMBINING {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    flush(&mut shown, &mut blanks, true);
    shown
}

/// A word, name or path as it is.
pub(super) fn quote_exact(text: &str) -> String {
    match text {
        "" => "⟨empty⟩".into(),
        text => make_visible(&escape::strict_line(text)),
    }
}

/// What is asked about, in short.
pub(crate) fn card_subject(card: &Card) -> String {
    match card.steps {
        0 => format!("call {}", card.call),
        _ => "plan".into(),
    }
}

/// The card's own lines.
pub(crate) fn body_rows(card: &Card, columns: usize, opened: bool) -> Rows {
    let mut all = Rows::new(columns);
    for line in wrap(&quote_exact(&card.headline), all.columns) {
        for piece in wrap_exact(&line, all.columns) {
            all.push(LineStyle::Strong, piece);
        }
    }
    if !card.consequences.is_empty() {
        let consequences = escape::line(&card.consequences.join(" · ")).into_owned();
        all.push_labelled(LineStyle::Plain, "may", &consequences);
    }
    let mut number = 0;
    for (at, field) in card.exact.iter().enumerate() {
        let is_program = |field: &CardField| field.name.is_none() && field.note.is_some();
        let before = card.exact.get(..at).unwrap_or_default();
        // Each program of a list is by itself.
        if card.steps == 0 && is_program(field) && before.iter().any(is_program) {
            all.push(LineStyle::Plain, "");
        }
        add_part(&mut all, field, &mut number, opened);
    }
    if let Some(place) = &card.place {
        all.push_labelled(LineStyle::Dim, "  where", &quote_exact(place));
    }
    if card.is_hostile() {
        let what = "some of its characters are not what they seem, and are shown as ⟨U+…⟩; \
                    only this one call can be allowed";
        all.push_labelled(LineStyle::Warning, "beware", what);
    }
    if let Some(what) = card.hidden_essential() {
        let what = format!("a mask covers {what}: it can be changed or denied, and not allowed");
        all.push_labelled(LineStyle::Warning, "beware", &what);
    }
    if let Some(what) = capsule_report::unconfined_warning(card) {
        all.push_labelled(LineStyle::Warning, "beware", what);
    }
    add_facts(&mut all, card);
    all
}

fn add_facts(all: &mut Rows, card: &Card) {
    for (label, named) in [("has read", &card.read_before), ("has seen", &card.seen_before)] {
        if let Some(named) = named {
            all.push_labelled(LineStyle::Plain, label, &escape::line(named));
        }
    }
    if !card.new_here.is_empty() {
        all.push_labelled(LineStyle::Plain, "new here", &escape::line(&card.new_here.join(" · ")));
    }
    if let Some(before) = &card.previously_allowed {
        let what = format!(
            "allowed as {before}; `{}` makes it a rule (p shows it)",
            learn_command(before)
        );
        all.push_labelled(LineStyle::Plain, "before", &escape::line(&what));
    }
    if let Some(diff) = &card.diff {
        let (word, what) = describe_diff(diff);
        all.push_labelled(LineStyle::Plain, word, &escape::line(&what));
    }
    all.push_labelled(LineStyle::Plain, "why asked", &escape::line(&card.why));
    let undo = match card.undo {
        Reversibility::NoChange => "nothing is changed".into(),
        Reversibility::Staged => "a staged copy is changed; you apply or discard it later".into(),
        Reversibility::Recorded => match &card.undo_hint {
            Some(hint) => format!("yes: {}", escape::line(hint)),
            None => "yes: `capsule undo latest` brings back what is there now".into(),
        },
        Reversibility::Irreversible => "no: it cannot be taken back".into(),
    };
    all.push_labelled(
        if card.undo == Reversibility::Irreversible {
            LineStyle::Warning
        } else {
            LineStyle::Plain
        },
        "undo",
        &undo,
    );
    if let Some(PendingChanges { runs, paths }) = card.pending_changes {
        let (paths, runs) = (units::counted(paths, "path"), units::counted(runs, "earlier run"));
        let what = format!("{paths}, staged by {runs} and not applied");
        all.push_labelled(LineStyle::Plain, "waiting", &what);
    }
    if !card.prevented.is_empty() {
        all.push_labelled(LineStyle::Plain, "cannot", &card.prevented.join(" · "));
    }
    if !card.tainted.is_empty() {
        let what = format!("{}: from content that nobody vouches for", card.tainted.join(", "));
        all.push_labelled(LineStyle::Warning, "tainted", &escape::line(&what));
    }
    if let Some(step) = &card.step {
        all.push_labelled(
            LineStyle::Dim,
            "because",
            &format!("step `{}` of the plan", escape::line(step)),
        );
    }
}

/// What is behind a card, in a line.
fn describe_diff(diff: &str) -> (&'static str, String) {
    let (word, files) = diff_label(diff);
    let (added, removed) = count_diff(diff);
    let what = match files {
        Some(files) => format!("the text of {files}   (d shows it)"),
        None if diff.is_empty() => "none: this is what is there already".into(),
        None => format!("+{added} −{removed}   (d shows it)"),
    };
    (word, what)
}

/// The command that makes a rule of a call.
pub(super) fn learn_command(call: &str) -> String {
    format!("capsule policy learn {call}")
}

/// One part of the exact call.
fn add_part(all: &mut Rows, field: &CardField, number: &mut usize, opened: bool) {
    let mut lines;
    // The lines that go on with the line above them.
    let mut continued = Vec::new();
    let gutter = match &field.name {
        Some(name) => {
            *number = 0;
            format!("  {} ", quote_exact(name))
        }
        None => {
            // Each program of a list counts its own words.
            *number = if field.note.is_some() { 1 } else { *number + 1 };
            format!("{number:>3} ")
        }
    };
    let indent = width(&gutter).min(LABEL_COLUMNS);
    let room = all.columns.saturating_sub(width(&gutter).max(indent)).max(12);
    if field.is_text() {
        (lines, continued) = text_lines(&field.text, all.columns - 6);
    } else {
        lines = wrap_exact(&quote_exact(&field.text), room);
    }
    if let (Some(note), [only]) = (&field.note, lines.as_mut_slice()) {
        let note = format!("   {}", quote_exact(note));
        if width(only) + width(&note) <= room {
            only.push_str(&note);
        } else {
            lines.push(note);
        }
    } else if let Some(note) = &field.note {
        lines.extend(wrap_exact(&format!("   {}", quote_exact(note)), room));
    }
    let heads = field.note.is_some() || field.name.as_deref() == Some("step");
    let tone = if heads { LineStyle::Strong } else { LineStyle::Plain };
    let most = limits::CARD_LINES;
    let left_out = if opened || lines.len() <= most { 0 } else { lines.len() - most };
    for (at, line) in lines.iter().enumerate() {
        // The end is shown as well as the beginning.
        let (head, tail) = (most * 3 / 4, most / 4);
        if left_out > 0 && at >= head && at < lines.len() - tail {
            if at == head {
                all.hides_something = true;
                let more = units::counted(left_out, "more line");
                let what = format!("⋯ {more}: v shows everything");
                all.push_hanging(LineStyle::Warning, "      ", &what);
            }
            continue;
        }
        match (at, field.is_text()) {
            (0, _) => all.push(tone, format!("{gutter}{line}")),
            (_, true) => {
                let mark = if continued.contains(&at) { '┆' } else { '│' };
                all.push(LineStyle::Plain, format!("    {mark} {line}"));
            }
            (_, false) => all.push(tone, format!("{:>indent$}{line}", "┆")),
        }
    }
}

/// The number of lines of a text and these lines, each in as many as it needs, and which of those go on with the line above
/// them.
fn text_lines(text: &str, room: usize) -> (Vec<String>, Vec<usize>) {
    let text = escape::strict_block(text).into_owned();
    let mut lines = vec![units::counted(text.lines().count(), "line")];
    let mut continued = Vec::new();
    for line in text.lines() {
        let pieces = wrap_exact(&make_text_visible(line), room);
        continued.extend(lines.len() + 1..lines.len() + pieces.len());
        lines.extend(pieces);
    }
    (lines, continued)
}

/// A line of a text: its indentation is a part of it.
pub(super) fn make_text_visible(line: &str) -> String {
    let rest = line.trim_start_matches([' ', '\t']);
    let head = line.get(..line.len() - rest.len()).unwrap_or_default();
    let wide = limits::CARD_LINES * 4;
    match head.len() {
        0 => make_visible(rest),
        few if few <= wide => format!("{}{}", head.replace('\t', "⇥   "), make_visible(rest)),
        many => format!("⟨{many} blanks⟩{}", make_visible(rest)),
    }
}

fn count_diff(diff: &str) -> (usize, usize) {
    let count = |sign: char| diff.lines().filter(|line| line.starts_with(sign)).count();
    (count('+'), count('-'))
}

/// What can be answered.
pub(crate) fn answer_rows(card: &Card, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    let (mut fixed, mut further) = (Vec::new(), Rows::new(columns));
    for (digit, choice) in choices(card) {
        match choice {
            Choice::Once => all.push(LineStyle::Strong, format!("{digit}  Allow once")),
            Choice::Offer(_) if card.steps > 0 => {
                let what = format!("{digit}  Allow these {} steps, as they are shown", card.steps);
                all.push(LineStyle::Strong, what);
            }
            Choice::StepByStep => fixed.push(format!("{digit}  Ask me at each step")),
            Choice::Offer(at) => {
                let Some(offer) = card.offers.get(at) else { continue };
                let to = if digit == '2' { &mut all } else { &mut further };
                add_offer(to, digit, offer);
            }
            Choice::Change => fixed.push(format!("{digit}  Change the arguments…")),
            Choice::Deny => fixed.push(format!("{digit}  Deny, and say why…")),
            Choice::Stop => fixed.push(format!("{digit}  Deny and stop the run")),
        }
    }
    // As many beside each other as there is room for.
    let mut line = String::new();
    for choice in fixed {
        if !line.is_empty() && width(&line) + 3 + width(&choice) > all.columns {
            all.push(LineStyle::Plain, std::mem::take(&mut line));
        }
        let gap = if line.is_empty() { "" } else { "   " };
        line = format!("{line}{gap}{choice}");
    }
    all.push(LineStyle::Plain, line);
    all.rows.append(&mut further.rows);
    all
}

fn add_offer(all: &mut Rows, digit: char, offer: &GrantOffer) {
    let time = match offer.scope {
        GrantLifetime::Once => "once",
        GrantLifetime::Task => "until this run ends",
        GrantLifetime::Session => "this session",
    };
    let head = format!("{digit}  ");
    let reach = escape::strict_line(&offer.pattern.to_string()).into_owned();
    let (uses, after) = (units::counted(offer.uses, "use"), units::show_span(offer.after_ms));
    all.push_hanging(
        LineStyle::Plain,
        &head,
        &format!("Allow {reach} {time} · ends after {uses} or {after}"),
    );
    let list = if offer.covered.is_empty() { "" } else { " (g lists them)" };
    let (calls, denied) = (offer.would_have_covered, offer.of_them_denied);
    let what = match calls {
        0 => "no earlier call here was like it".into(),
        1 => format!("would have covered 1 earlier call here, {denied} denied{list}"),
        _ => format!("would have covered {calls} earlier calls here, {denied} denied{list}"),
    };
    all.push_hanging(if denied > 0 { LineStyle::Warning } else { LineStyle::Dim }, "   ", &what);
}

/// What the offers would have covered.
pub(crate) fn coverage_rows(card: &Card, columns: usize) -> Rows {
    let mut all = Rows::new(columns);
    let mut told = Vec::new();
    for offer in card.offers.iter().filter(|offer| !offer.covered.is_empty()) {
        // The same calls for another time are the same calls.
        if told.contains(&&offer.pattern) {
            continue;
        }
        told.push(&offer.pattern);
        all.push_labelled(
            LineStyle::Strong,
            "covered",
            &escape::strict_line(&offer.pattern.to_string()),
        );
        for line in &offer.covered {
            for piece in wrap_exact(&quote_exact(line), all.columns - 2) {
                all.push(LineStyle::Plain, format!("  {piece}"));
            }
        }
        all.push(LineStyle::Plain, "");
    }
    all
}
