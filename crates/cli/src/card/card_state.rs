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

use capsule_base::{escape, json, limits, units};
use capsule_core::approval::{Card, Person};
use capsule_redact::holds_mask;
use capsule_runtime::PromptAnswer;
use serde_json::Value;

use crate::card::choices::{Choice, choices};
use crate::card::key_decoder::{Key, Motion, TerminalInput};
use crate::card::text_field::TextField;

/// Says which rule an earlier call would make: the patch of the policy, or why there is none.
pub(crate) type RulePatchLookup = dyn Fn(&str) -> String;

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
    Coverage,
    /// The rule that an earlier yes would make, as a patch of the policy.
    Rule,
    /// A line for the reason of a denial.
    Reason(TextField),
    /// A line for other arguments, and what is wrong with them.
    Change(TextField, Option<String>),
}

/// What waits for a moment without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingKey {
    /// An answer.
    Choice(Choice),
    /// The question is taken back.
    Postpone,
    /// The run is interrupted.
    Interrupt,
}

/// Why nothing can be allowed at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowBlocked {
    /// Parts are not opened.
    NotExpanded,
    /// The end was not on the screen.
    EndNotShown,
    /// Something happened just now.
    Arming,
}

/// A card, and what was pressed.
pub(crate) struct CardState<'c> {
    card: &'c Card,
    choices: Vec<(char, Choice)>,
    page: Page,
    opened: bool,
    /// Whether the card as it is laid out leaves something out.
    hides_something: bool,
    /// Whether the end of the card was on the screen since it was opened.
    end_was_shown: bool,
    scroll: usize,
    /// How many lines there are, and how many of them are on the screen.
    extent: (usize, usize),
    /// When something last happened, in milliseconds.
    last_activity: u64,
    /// When a key was last pressed.
    last_key: Option<u64>,
    pending: Option<(PendingKey, u64)>,
    interrupted: bool,
    /// The patch of the policy, once somebody wanted to see it.
    patch: Option<String>,
}

impl<'c> CardState<'c> {
    /// A card that appears now, with keys that were typed before it did or without.
    pub(crate) fn new(card: &'c Card, now: u64, typed_ahead: bool) -> Self {
        Self {
            card,
            choices: choices(card),
            page: Page::Card,
            opened: false,
            hides_something: false,
            end_was_shown: false,
            scroll: 0,
            extent: (0, 0),
            last_activity: now,
            last_key: typed_ahead.then_some(now),
            pending: None,
            interrupted: false,
            patch: None,
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
        let is_open = self.page == Page::Rule && self.patch.is_none();
        self.card.previously_allowed.as_deref().filter(|_| is_open)
    }

    /// Takes the patch of the policy, or why there is none.
    pub(crate) fn set_patch(&mut self, patch: String) {
        self.patch = Some(patch);
    }

    /// The patch of the policy.
    pub(crate) fn patch(&self) -> &str {
        self.patch.as_deref().unwrap_or_default()
    }

    /// The first line on the screen.
    pub(crate) const fn scroll(&self) -> usize {
        self.scroll
    }

    /// What waits for a moment without keys.
    pub(crate) fn pending(&self) -> Option<PendingKey> {
        self.pending.map(|(key, _)| key)
    }

    /// Whether the run is to be interrupted.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Takes how the page was laid out: how many lines it has, how many are on the screen, and whether
    /// some are left out. Call it before a page is painted.
    pub(crate) fn set_extent(&mut self, lines: usize, screen: usize, hides: bool) {
        self.extent = (lines, screen);
        self.scroll = self.scroll.min(lines.saturating_sub(screen));
        if self.page == Page::Card {
            self.hides_something = hides;
            self.end_was_shown |= !hides && screen > 0 && self.scroll + screen >= lines;
        }
    }

    /// Why nothing can be allowed now, if so.
    pub(crate) fn allow_blocked(&self, now: u64) -> Option<AllowBlocked> {
        if self.hides_something {
            Some(AllowBlocked::NotExpanded)
        } else if !self.end_was_shown {
            Some(AllowBlocked::EndNotShown)
        } else if now.saturating_sub(self.last_activity) < units::millis(limits::CARD_ARMING) {
            Some(AllowBlocked::Arming)
        } else {
            None
        }
    }

    /// Takes what came in; gives what was said, once something was.
    pub(crate) fn handle_input(&mut self, now: u64, input: TerminalInput) -> Option<PromptAnswer> {
        match input {
            TerminalInput::Nothing => return self.confirm_pending(now),
            TerminalInput::Disconnected => return Some(PromptAnswer::Withdrawn),
            TerminalInput::Resized => self.pending = None,
            TerminalInput::Paste(text) => {
                self.pending = None;
                self.last_key = Some(now);
                if let Some(line) = self.text_field() {
                    line.insert(&text);
                }
            }
            TerminalInput::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let said = self.handle_key(now, *key);
                    self.last_activity = now;
                    self.last_key = Some(now);
                    return said;
                }
                several => self.handle_burst(now, several),
            },
        }
        self.last_activity = now;
        None
    }

    /// Several keys at once: in a line they are text, elsewhere nothing.
    fn handle_burst(&mut self, now: u64, keys: &[Key]) {
        self.pending = None;
        self.last_key = Some(now);
        if let Some(line) = self.text_field() {
            for key in keys {
                line.handle_key(if *key == Key::Enter { Key::Char(' ') } else { *key });
            }
        }
    }

    const fn text_field(&mut self) -> Option<&mut TextField> {
        match &mut self.page {
            Page::Reason(line) | Page::Change(line, _) => Some(line),
            _ => None,
        }
    }

    /// Whether no key came for a while.
    fn is_quiet(&self, now: u64) -> bool {
        let quiet = units::millis(limits::CARD_QUIET);
        self.last_key.is_none_or(|at| now.saturating_sub(at) >= quiet)
    }

    fn handle_key(&mut self, now: u64, key: Key) -> Option<PromptAnswer> {
        if let Some((pending, _)) = self.pending {
            // Whoever holds Ctrl+C down means it; any other second key takes back the first.
            if (pending, key) != (PendingKey::Interrupt, Key::Interrupt) {
                self.pending = None;
            }
            return None;
        }
        if key == Key::Interrupt {
            self.pending = self.is_quiet(now).then_some((PendingKey::Interrupt, now));
            return None;
        }
        match &self.page {
            Page::Reason(_) | Page::Change(..) => self.handle_typed(key),
            Page::Card => {
                self.handle_card_key(now, key);
                None
            }
            _ => {
                self.handle_page_key(key);
                None
            }
        }
    }

    fn handle_card_key(&mut self, now: u64, key: Key) {
        let page = match key {
            Key::Escape | Key::End if self.is_quiet(now) => {
                self.pending = Some((PendingKey::Postpone, now));
                return;
            }
            Key::Char('v') => {
                self.opened = !self.opened;
                self.end_was_shown = false;
                self.scroll = 0;
                return;
            }
            Key::Char('e') => Page::Explain,
            Key::Char('d') if self.card.diff.is_some() => Page::Diff,
            Key::Char('p') if self.card.previously_allowed.is_some() => Page::Rule,
            Key::Char('g') if self.card.offers.iter().any(|offer| !offer.covered.is_empty()) => {
                Page::Coverage
            }
            Key::Char(digit) if digit.is_ascii_digit() => return self.handle_digit(now, digit),
            other => return self.scroll_by(other),
        };
        self.open_page(page);
    }

    fn handle_page_key(&mut self, key: Key) {
        match key {
            Key::Escape | Key::End | Key::Char('e' | 'd' | 'g' | 'p' | 'q') => {
                self.open_page(Page::Card)
            }
            other => self.scroll_by(other),
        }
    }

    fn open_page(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    fn scroll_by(&mut self, key: Key) {
        let (lines, screen) = self.extent;
        let most = lines.saturating_sub(screen);
        let page = screen.saturating_sub(1).max(1);
        self.scroll = match key {
            Key::Move(Motion::Up) => self.scroll.saturating_sub(1),
            Key::Move(Motion::Down) | Key::Enter => (self.scroll + 1).min(most),
            Key::Move(Motion::PageUp) => self.scroll.saturating_sub(page),
            Key::Move(Motion::PageDown) | Key::Char(' ') => (self.scroll + page).min(most),
            Key::Move(Motion::First) => 0,
            Key::Move(Motion::Last) => most,
            _ => self.scroll,
        };
    }

    fn handle_digit(&mut self, now: u64, digit: char) {
        let Some((_, choice)) = self.choices.iter().find(|(c, _)| *c == digit) else { return };
        let counts = match *choice {
            Choice::Deny => {
                return self.open_page(Page::Reason(TextField::new("", limits::REASON_BYTES)));
            }
            Choice::Stop => self.is_quiet(now),
            _ => self.allow_blocked(now).is_none(),
        };
        if counts {
            self.pending = Some((PendingKey::Choice(*choice), now));
        }
    }

    /// A key in a line of text.
    fn handle_typed(&mut self, key: Key) -> Option<PromptAnswer> {
        match key {
            Key::Escape => self.open_page(Page::Card),
            Key::Enter => return self.submit_text(),
            other => {
                if let Some(line) = self.text_field() {
                    line.handle_key(other);
                }
            }
        }
        None
    }

    fn submit_text(&mut self) -> Option<PromptAnswer> {
        match &mut self.page {
            Page::Reason(line) => {
                let why = line.text();
                let why = why.trim();
                let why = (!why.is_empty()).then(|| why.to_owned());
                Some(PromptAnswer::Deny(Person::present(), why))
            }
            Page::Change(line, wrong) => match parse_arguments(&line.text(), self.card) {
                Ok(args) => Some(PromptAnswer::ChangeArguments(Person::present(), args)),
                Err(why) => {
                    *wrong = Some(why);
                    None
                }
            },
            _ => None,
        }
    }

    /// A moment without keys: what was pressed counts if it has waited long enough.
    fn confirm_pending(&mut self, now: u64) -> Option<PromptAnswer> {
        let (pending, at) = self.pending?;
        if now.saturating_sub(at) < units::millis(limits::CARD_QUIET) {
            return None;
        }
        self.pending = None;
        match pending {
            PendingKey::Postpone => Some(PromptAnswer::Postpone),
            PendingKey::Interrupt => {
                self.interrupted = true;
                Some(PromptAnswer::Withdrawn)
            }
            PendingKey::Choice(choice) => self.answer_for(choice),
        }
    }

    fn answer_for(&mut self, choice: Choice) -> Option<PromptAnswer> {
        match choice {
            Choice::Once => Some(PromptAnswer::Allow(Person::present(), None)),
            Choice::Offer(at) => Some(PromptAnswer::Allow(Person::present(), Some(at))),
            Choice::StepByStep => Some(PromptAnswer::Withdrawn),
            Choice::Stop => Some(PromptAnswer::Stop(Person::present(), None)),
            Choice::Deny => Some(PromptAnswer::Deny(Person::present(), None)),
            Choice::Change => {
                let text = arguments_json(&self.card.args);
                let page = match text.len() > limits::EDITED_ARGUMENT_BYTES {
                    true => {
                        let why = "they are too long to be changed here; deny, and say what to do";
                        Page::Change(TextField::default(), Some(why.into()))
                    }
                    false => {
                        Page::Change(TextField::new(&text, limits::EDITED_ARGUMENT_BYTES), None)
                    }
                };
                self.open_page(page);
                None
            }
        }
    }
}

/// Arguments as a line of JSON in which everything can be seen.
fn arguments_json(args: &Value) -> String {
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
pub(crate) fn parse_arguments(text: &str, card: &Card) -> Result<Value, String> {
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
pub(crate) fn parse_plain_answer(
    choice: Choice,
    rest: &str,
    card: &Card,
) -> Result<PromptAnswer, String> {
    let why = rest.trim();
    let why = (!why.is_empty()).then(|| why.to_owned());
    Ok(match choice {
        Choice::Once => PromptAnswer::Allow(Person::present(), None),
        Choice::Offer(at) => PromptAnswer::Allow(Person::present(), Some(at)),
        Choice::Change => {
            PromptAnswer::ChangeArguments(Person::present(), parse_arguments(rest, card)?)
        }
        Choice::Deny => PromptAnswer::Deny(Person::present(), why),
        Choice::StepByStep => PromptAnswer::Withdrawn,
        Choice::Stop => PromptAnswer::Stop(Person::present(), why),
    })
}
