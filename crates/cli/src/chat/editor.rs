//! The line editor between two turns: several lines, the history of this chat, and the names of its commands.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use signal_hook::consts::SIGTERM;

use crate::card::Terminal;
use crate::chat::slash;
use crate::signal;

/// How many messages can be called up again. They are kept in memory alone: a record masks what they hold of
/// secrets, and a file of the editor would not.
const HISTORY: usize = 200;
/// How often the process looks whether it was asked to end while a person types.
const LOOK: Duration = Duration::from_millis(100);

/// An input of a person at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A text, of one line or more.
    Text(String),
    /// Ctrl+C.
    Interrupted,
    /// Ctrl+D, or no terminal any more.
    End,
}

/// The editor.
pub(crate) struct LineEditor {
    editor: Editor<LineRules, MemHistory>,
    prompt: &'static str,
}

impl LineEditor {
    /// An editor on the terminal of this process; none where it cannot be used.
    pub(crate) fn open(is_plain: bool) -> Option<Self> {
        let config = Config::builder().auto_add_history(false).build();
        let mut history = MemHistory::with_config(&config);
        rustyline::history::History::set_max_len(&mut history, HISTORY).ok()?;
        let mut editor = Editor::with_history(config, history).ok()?;
        editor.set_max_history_size(HISTORY).ok()?;
        editor.set_helper(Some(LineRules));
        Some(Self { editor, prompt: if is_plain { "> " } else { "› " } })
    }

    /// Reads what a person types behind a text that is there already.
    pub(crate) fn read(&mut self, initial: &str) -> Line {
        let ending = EndWatch::start();
        let read = self.editor.readline_with_initial(self.prompt, (initial, ""));
        drop(ending);
        match read {
            Ok(text) => {
                let text = joined(&text);
                if !text.trim().is_empty() {
                    let _ = self.editor.add_history_entry(text.as_str());
                }
                Line::Text(text)
            }
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(_) => Line::End,
        }
    }
}

/// The text without the marks that say that its lines go on.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// The answers to what the editor asks while a person types.
struct LineRules;

impl Helper for LineRules {}
impl Highlighter for LineRules {}

impl Hinter for LineRules {
    type Hint = String;
}

impl Completer for LineRules {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or_default();
        Ok((0, slash::completions(typed)))
    }
}

impl Validator for LineRules {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match context.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

/// Ends the process where it is asked to while a person types: the editor does not look. The session is not held
/// then, and nothing is lost.
struct EndWatch {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EndWatch {
    fn start() -> Self {
        let (over, is_over) = mpsc::channel::<()>();
        let before =
            Terminal::open().and_then(|terminal| Some((tcgetattr(&terminal).ok()?, terminal)));
        let thread = thread::spawn(move || {
            while is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if signal::is_asked_to_end() {
                    return end_process(before);
                }
            }
        });
        Self { over: Some(over), thread: Some(thread) }
    }
}

/// Ends the process as the signal would have done, with the terminal as it was.
fn end_process(before: Option<(Termios, Terminal)>) {
    if let Some((modes, terminal)) = before {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &modes);
        let _ = terminal.print("\x1b[?2004l\r\n");
    }
    let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
}

impl Drop for EndWatch {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_end_of_a_line_goes() {
        assert_eq!(joined("one\\\ntwo\nthree \\ four"), "one\ntwo\nthree \\ four");
    }
}
