//! What keys do to a card. The only place where a person's token is made.
//!
//! The rule, which a storm of stray keys must not be able to meet:
//!
//! - Only digits answer, and only on the card's own page.
//! - A digit that lets something run counts once nothing has happened for 500 ms (the card appeared,
//!   a key, another page, another size of the window), and no further key comes for 400 ms.
//! - A digit that stops the run counts if no other key came for 400 ms before it, nor comes for 400 ms
//!   behind it; it does not wait for the card to have stood there. So do Escape, Ctrl+C and Ctrl+D,
//!   which end the question; Ctrl+C may be pressed again and again.
//! - Denying is never dead. It only opens a line for the reason, and Enter there denies.
//! - What arrives at once is a paste or a machine: it never answers, and Enter in it ends nothing.
//! - What is not on the screen was not seen: nothing can be allowed before everything was opened and
//!   the end of it was reached.

use capsule_core::approval::{Card, Person};
use capsule_core::{escape, json, limits, units};
use capsule_redact::holds_mask;
use capsule_runtime::Said;
use serde_json::Value;

use crate::card::bytes::{Input, Key, Move};
use crate::card::choices::{Choice, choices};
use crate::card::line::Line;

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The card.
    Card,
    /// What the answers do, and what an approval is bound to.
    Explain,
    /// The lines in which a file will differ.
    Diff,
    /// What an offer would have covered.
    Covered,
    /// The rule that an earlier yes would make, as a patch of the policy.
    Rule,
    /// A line for the reason of a denial.
    Reason(Line),
    /// A line for other arguments, and what is wrong with them.
    Change(Line, Option<String>),
}

/// What waits for a moment without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// An answer.
    Choice(Choice),
    /// The question is taken back.
    Later,
    /// The run is interrupted.
    Interrupt,
}

/// Why nothing can be allowed at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dead {
    /// Parts are not opened.
    Closed,
    /// The end was not on the screen.
    Below,
    /// Something happened just now.
    Arming,
}

/// A card, and what was pressed.
pub(crate) struct Keys<'c> {
    card: &'c Card,
    choices: Vec<(char, Choice)>,
    page: Page,
    opened: bool,
    /// Whether the card as it is laid out leaves something out.
    hides: bool,
    /// Whether the end of the card was on the screen since it was opened.
    ended: bool,
    scroll: usize,
    /// How many lines there are, and how many of them are on the screen.
    extent: (usize, usize),
    /// When something last happened, in milliseconds.
    touched: u64,
    /// When a key was last pressed.
    pressed: Option<u64>,
    pending: Option<(Pending, u64)>,
    interrupted: bool,
    /// The patch of the policy, once somebody wanted to see it.
    rule: Option<String>,
}

impl<'c> Keys<'c> {
    /// A card that appears now, with keys that were typed before it did or without.
    pub(crate) fn new(card: &'c Card, now: u64, typed_ahead: bool) -> Self {
        Self {
            card,
            choices: choices(card),
            page: Page::Card,
            opened: false,
            hides: false,
            ended: false,
            scroll: 0,
            extent: (0, 0),
            touched: now,
            pressed: typed_ahead.then_some(now),
            pending: None,
            interrupted: false,
            rule: None,
        }
    }

    /// What is on the screen.
    pub(crate) const fn page(&self) -> &Page {
        &self.page
    }

    /// Whether everything is shown in full.
    pub(crate) const fn is_opened(&self) -> bool {
        self.opened
    }

    /// The call that a rule is to be shown for, as long as it was not learned.
    pub(crate) fn wants_rule(&self) -> Option<&'c str> {
        let is_open = self.page == Page::Rule && self.rule.is_none();
        self.card.previously_allowed.as_deref().filter(|_| is_open)
    }

    /// Takes the patch of the policy, or why there is none.
    pub(crate) fn learned(&mut self, patch: String) {
        self.rule = Some(patch);
    }

    /// The patch of the policy.
    pub(crate) fn rule(&self) -> &str {
        self.rule.as_deref().unwrap_or_default()
    }

    /// The first line on the screen.
    pub(crate) const fn scroll(&self) -> usize {
        self.scroll
    }

    /// What waits for a moment without keys.
    pub(crate) fn pending(&self) -> Option<Pending> {
        self.pending.map(|(own, _)| own)
    }

    /// Whether the run is to be interrupted.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Takes how the page was laid out: how many lines it has, how many are on the screen, and whether
    /// some are left out. Call it before a page is painted.
    pub(crate) fn laid_out(&mut self, lines: usize, screen: usize, hides: bool) {
        self.extent = (lines, screen);
        self.scroll = self.scroll.min(lines.saturating_sub(screen));
        if self.page == Page::Card {
            self.hides = hides;
            self.ended |= !hides && screen > 0 && self.scroll + screen >= lines;
        }
    }

    /// Why nothing can be allowed now, if so.
    pub(crate) fn dead(&self, now: u64) -> Option<Dead> {
        if self.hides {
            Some(Dead::Closed)
        } else if !self.ended {
            Some(Dead::Below)
        } else if now.saturating_sub(self.touched) < units::millis(limits::CARD_ARMING) {
            Some(Dead::Arming)
        } else {
            None
        }
    }

    /// Takes what came in; gives what was said, once something was.
    pub(crate) fn take(&mut self, now: u64, input: Input) -> Option<Said> {
        match input {
            Input::Nothing => return self.settle(now),
            Input::Gone => return Some(Said::Withdrawn),
            Input::Resized => self.pending = None,
            Input::Paste(text) => {
                self.pending = None;
                self.pressed = Some(now);
                if let Some(line) = self.line() {
                    line.put(&text);
                }
            }
            Input::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let said = self.key(now, *key);
                    self.touched = now;
                    self.pressed = Some(now);
                    return said;
                }
                several => self.burst(now, several),
            },
        }
        self.touched = now;
        None
    }

    /// Several keys at once: in a line they are text, elsewhere nothing.
    fn burst(&mut self, now: u64, keys: &[Key]) {
        self.pending = None;
        self.pressed = Some(now);
        if let Some(line) = self.line() {
            for key in keys {
                line.press(if *key == Key::Enter { Key::Char(' ') } else { *key });
            }
        }
    }

    const fn line(&mut self) -> Option<&mut Line> {
        match &mut self.page {
            Page::Reason(line) | Page::Change(line, _) => Some(line),
            _ => None,
        }
    }

    /// Whether no key came for a while.
    fn is_quiet(&self, now: u64) -> bool {
        let quiet = units::millis(limits::CARD_QUIET);
        self.pressed.is_none_or(|at| now.saturating_sub(at) >= quiet)
    }

    fn key(&mut self, now: u64, key: Key) -> Option<Said> {
        if let Some((pending, _)) = self.pending {
            // Whoever holds Ctrl+C down means it; any other second key takes back the first.
            if (pending, key) != (Pending::Interrupt, Key::Interrupt) {
                self.pending = None;
            }
            return None;
        }
        if key == Key::Interrupt {
            self.pending = self.is_quiet(now).then_some((Pending::Interrupt, now));
            return None;
        }
        match &self.page {
            Page::Reason(_) | Page::Change(..) => self.typed(key),
            Page::Card => {
                self.on_card(now, key);
                None
            }
            _ => {
                self.on_page(key);
                None
            }
        }
    }

    fn on_card(&mut self, now: u64, key: Key) {
        let page = match key {
            Key::Escape | Key::End if self.is_quiet(now) => {
                self.pending = Some((Pending::Later, now));
                return;
            }
            Key::Char('v') => {
                self.opened = !self.opened;
                self.ended = false;
                self.scroll = 0;
                return;
            }
            Key::Char('e') => Page::Explain,
            Key::Char('d') if self.card.diff.is_some() => Page::Diff,
            Key::Char('p') if self.card.previously_allowed.is_some() => Page::Rule,
            Key::Char('g') if self.card.offers.iter().any(|own| !own.covered.is_empty()) => {
                Page::Covered
            }
            Key::Char(digit) if digit.is_ascii_digit() => return self.digit(now, digit),
            other => return self.move_by(other),
        };
        self.turn(page);
    }

    fn on_page(&mut self, key: Key) {
        match key {
            Key::Escape | Key::End | Key::Char('e' | 'd' | 'g' | 'p' | 'q') => {
                self.turn(Page::Card)
            }
            other => self.move_by(other),
        }
    }

    fn turn(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    fn move_by(&mut self, key: Key) {
        let (lines, screen) = self.extent;
        let most = lines.saturating_sub(screen);
        let page = screen.saturating_sub(1).max(1);
        self.scroll = match key {
            Key::Move(Move::Up) => self.scroll.saturating_sub(1),
            Key::Move(Move::Down) | Key::Enter => (self.scroll + 1).min(most),
            Key::Move(Move::PageUp) => self.scroll.saturating_sub(page),
            Key::Move(Move::PageDown) | Key::Char(' ') => (self.scroll + page).min(most),
            Key::Move(Move::First) => 0,
            Key::Move(Move::Last) => most,
            _ => self.scroll,
        };
    }

    fn digit(&mut self, now: u64, digit: char) {
        let Some((_, choice)) = self.choices.iter().find(|(own, _)| *own == digit) else { return };
        let counts = match *choice {
            Choice::Deny => return self.turn(Page::Reason(Line::new("", limits::REASON_BYTES))),
            Choice::Stop => self.is_quiet(now),
            _ => self.dead(now).is_none(),
        };
        if counts {
            self.pending = Some((Pending::Choice(*choice), now));
        }
    }

    /// A key in a line of text.
    fn typed(&mut self, key: Key) -> Option<Said> {
        match key {
            Key::Escape => self.turn(Page::Card),
            Key::Enter => return self.entered(),
            other => {
                if let Some(line) = self.line() {
                    line.press(other);
                }
            }
        }
        None
    }

    fn entered(&mut self) -> Option<Said> {
        match &mut self.page {
            Page::Reason(line) => {
                let why = line.text();
                let why = why.trim();
                let why = (!why.is_empty()).then(|| why.to_owned());
                Some(Said::Deny(Person::present(), why))
            }
            Page::Change(line, wrong) => match changed(&line.text(), self.card) {
                Ok(args) => Some(Said::Change(Person::present(), args)),
                Err(why) => {
                    *wrong = Some(why);
                    None
                }
            },
            _ => None,
        }
    }

    /// A moment without keys: what was pressed counts if it has waited long enough.
    fn settle(&mut self, now: u64) -> Option<Said> {
        let (pending, at) = self.pending?;
        if now.saturating_sub(at) < units::millis(limits::CARD_QUIET) {
            return None;
        }
        self.pending = None;
        match pending {
            Pending::Later => Some(Said::Later),
            Pending::Interrupt => {
                self.interrupted = true;
                Some(Said::Withdrawn)
            }
            Pending::Choice(choice) => self.chosen(choice),
        }
    }

    fn chosen(&mut self, choice: Choice) -> Option<Said> {
        match choice {
            Choice::Once => Some(Said::Allow(Person::present(), None)),
            Choice::Offer(at) => Some(Said::Allow(Person::present(), Some(at))),
            Choice::Each => Some(Said::Withdrawn),
            Choice::Stop => Some(Said::Stop(Person::present(), None)),
            Choice::Deny => Some(Said::Deny(Person::present(), None)),
            Choice::Change => {
                let text = editable(&self.card.args);
                let page = match text.len() > limits::EDITED_ARGUMENT_BYTES {
                    true => {
                        let why = "they are too long to be changed here; deny, and say what to do";
                        Page::Change(Line::default(), Some(why.into()))
                    }
                    false => Page::Change(Line::new(&text, limits::EDITED_ARGUMENT_BYTES), None),
                };
                self.turn(page);
                None
            }
        }
    }
}

/// Arguments as a line of JSON in which everything can be seen.
fn editable(args: &Value) -> String {
    let mut shown = String::new();
    let text = args.to_string();
    let exact = escape::strict_line(&text);
    if exact == text {
        return text;
    }
    for c in text.chars() {
        let one = c.to_string();
        if escape::strict_line(&one) == one {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown
}

/// Other arguments, if they are some.
pub(crate) fn changed(text: &str, card: &Card) -> Result<Value, String> {
    if holds_mask(text.as_bytes()) {
        return Err("a mask stands for what cannot be seen: put something in its place".into());
    }
    match json::parse(text.as_bytes()) {
        Ok(args) if args == card.args => Err("nothing was changed".into()),
        Ok(args) if args.is_object() => Ok(args),
        Ok(_) => Err("arguments are an object, `{..}`".into()),
        Err(error) => Err(error.message.to_string()),
    }
}

/// The answer to a line of a plain surface, which names the digit and the word that was shown. A
/// machine that types knows no word.
pub(crate) fn said_plainly(choice: Choice, rest: &str, card: &Card) -> Result<Said, String> {
    let why = rest.trim();
    let why = (!why.is_empty()).then(|| why.to_owned());
    Ok(match choice {
        Choice::Once => Said::Allow(Person::present(), None),
        Choice::Offer(at) => Said::Allow(Person::present(), Some(at)),
        Choice::Change => Said::Change(Person::present(), changed(rest, card)?),
        Choice::Deny => Said::Deny(Person::present(), why),
        Choice::Each => Said::Withdrawn,
        Choice::Stop => Said::Stop(Person::present(), why),
    })
}
