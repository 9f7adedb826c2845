//! The card: what a person is asked in a terminal, and what their keys say.

mod card_rows;
mod card_state;
mod choices;
mod diff;
mod explanation;
mod frame;
mod key_decoder;
mod plain_prompt;
mod terminal;
#[cfg(test)]
mod tests;
mod text_field;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use capsule_base::units;
use capsule_core::approval::{AnswerSurface, Card};
use capsule_runtime::{Cancel, NoPrompt, Prompt, PromptAnswer, PromptReply};
use rustix::fs::{FileType, fstat, stat};

pub(crate) use crate::card::card_rows::card_subject;
pub(crate) use crate::card::card_state::RulePatchLookup;
#[cfg(test)]
pub(crate) use crate::card::key_decoder::Motion;
pub(crate) use crate::card::key_decoder::{Decoder, Key, TerminalInput};
pub(crate) use crate::card::plain_prompt::read_line;
pub(crate) use crate::card::terminal::Terminal;
use crate::screen::Screen;

/// Cards in the terminal that the process belongs to.
struct TerminalPrompt {
    color: bool,
    plain: bool,
    cancel: Cancel,
    rule_patch: Box<RulePatchLookup>,
    once: bool,
}

/// Who is asked: the person at the terminal, or nobody. Nobody is there where it was said so, where
/// errors go to no terminal, where there is no standard input, and where programs talk to each other:
/// `--json` without a terminal to type in, or an environment that says that it is a build.
///
/// `once` says that the run is over after one call.
pub(crate) fn make_prompt(
    (unattended, once): (bool, bool),
    screen: &Screen,
    cancel: &Cancel,
    rules: Box<RulePatchLookup>,
) -> Box<dyn Prompt> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let talks = !screen.json || io::stdin().is_terminal();
    let sits = io::stderr().is_terminal() && has_input() && talks;
    if unattended || is_set("CAPSULE_UNATTENDED") || is_set("CI") || !sits {
        return Box::new(NoPrompt);
    }
    let dumb = std::env::var("TERM").map_or(true, |term| term.is_empty() || term == "dumb");
    Box::new(TerminalPrompt {
        color: screen.has_color(),
        plain: screen.layout().plain || dumb,
        cancel: cancel.clone(),
        rule_patch: rules,
        once,
    })
}

/// Every row of a card as text; none where something of it would be hidden.
pub(crate) fn text_of(card: &Card, columns: usize) -> Option<String> {
    let rows = card_rows::body_rows(card, columns, true);
    (!rows.hides_something).then(|| rows.into_text())
}

/// The lines in which a file will differ, as text.
pub(crate) fn diff_text(card: &Card, columns: usize) -> String {
    diff::diff_rows(card, columns).into_text()
}

/// Asks the person at the terminal for a line, if one is there.
pub(crate) fn choose(screen: &Screen, question: &str) -> Option<String> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let sits = io::stderr().is_terminal() && io::stdin().is_terminal() && !screen.json;
    if !sits || is_set("CAPSULE_UNATTENDED") || is_set("CI") {
        return None;
    }
    let terminal = Terminal::open()?;
    let _typed_before = terminal.discard_input();
    terminal.print(question).ok()?;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < LINE {
        line.extend(terminal.read(WAIT).ok()??);
    }
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

/// The longest line that is read, and how long somebody may take for it.
const LINE: usize = 256;
const WAIT: Duration = Duration::from_mins(10);

/// Whether there is any standard input. One that was closed is `/dev/null` by now.
fn has_input() -> bool {
    let (Ok(stat), Ok(null)) = (fstat(io::stdin()), stat("/dev/null")) else { return false };
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    !(is_device && stat.st_rdev == null.st_rdev)
}

impl Prompt for TerminalPrompt {
    fn is_attended(&mut self) -> bool {
        !self.cancel.is_set() && Terminal::open().is_some()
    }

    fn is_once(&self) -> bool {
        self.once
    }

    fn show(&mut self, card: &Card) -> PromptReply {
        let began = Instant::now();
        let (said, surface) = match Terminal::open() {
            None => (PromptAnswer::Withdrawn, AnswerSurface::Terminal),
            Some(terminal) => {
                if self.plain || !frame::fits(card, terminal.size()) {
                    (
                        plain_prompt::show(&terminal, card, &self.rule_patch, &self.cancel),
                        AnswerSurface::Plain,
                    )
                } else {
                    let how = (self.color, &self.cancel);
                    (
                        terminal::show(&terminal, card, &self.rule_patch, how),
                        AnswerSurface::Terminal,
                    )
                }
            }
        };
        PromptReply { answer: said, latency_ms: units::millis(began.elapsed()), surface }
    }
}
