//! Keys while a turn goes on: Esc and Ctrl+C end it, and what else is typed waits for the next prompt.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use capsule_core::approval::Card;
use capsule_runtime::{Cancel, Prompt, PromptReply, QuestionPrompt};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::card::{Decoder, Key, Terminal, TerminalInput};
use crate::chat::question;
use crate::chat::view::ChatView;
use crate::signal;

/// How long a look at the keys takes at most, which is how long a card waits for the terminal.
const LOOK: Duration = Duration::from_millis(50);
/// How long the keys are left alone between two looks, while something else wants the terminal.
const PAUSE: Duration = Duration::from_millis(5);
/// The most that is kept of what is typed, in bytes.
const MAX_TYPED: usize = 16 << 10;

/// The keys of the turns of a chat. When it is dropped, the terminal is as it was.
pub(crate) struct TurnKeys {
    watch: Arc<KeyWatch>,
    thread: Option<JoinHandle<()>>,
}

/// The terminal, which the thread that reads keys and the questions to the person use by turns.
struct KeyWatch {
    terminal: Terminal,
    before: Termios,
    typed: Mutex<String>,
    /// Whether a turn goes on.
    is_on: AtomicBool,
    /// Whether something else wants the terminal.
    is_wanted: AtomicBool,
}

impl TurnKeys {
    /// Keys that nothing reads yet; none where there is no terminal.
    pub(crate) fn open() -> Option<Self> {
        let terminal = Terminal::open()?;
        let before = tcgetattr(&terminal).ok()?;
        let (typed, is_on, is_wanted) = Default::default();
        let watch = Arc::new(KeyWatch { terminal, before, typed, is_on, is_wanted });
        Some(Self { watch, thread: None })
    }

    /// Reads them from now on: a turn begins.
    pub(crate) fn start(&mut self) {
        self.stop();
        self.watch.is_on.store(true, Ordering::Relaxed);
        self.watch.enter();
        let watched = Arc::clone(&self.watch);
        self.thread = Some(thread::spawn(move || watched.run()));
    }

    /// Reads them no more: the turn is over. Gives what was typed.
    pub(crate) fn stop(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            self.watch.is_on.store(false, Ordering::Relaxed);
            let _ = thread.join();
            self.watch.leave();
        }
        std::mem::take(&mut *self.watch.typed())
    }

    /// A prompt that has the terminal for itself while it asks.
    pub(crate) fn behind(&self, prompt: Box<dyn Prompt>) -> Box<dyn Prompt> {
        Box::new(PausingPrompt { watch: Arc::clone(&self.watch), prompt })
    }

    /// Shows questions of the model, below what a view shows.
    pub(crate) fn questions(&self, view: ChatView, cancel: Cancel) -> Rc<dyn QuestionPrompt> {
        Rc::new(TerminalQuestions { watch: Arc::clone(&self.watch), view, cancel })
    }
}

impl Drop for TurnKeys {
    fn drop(&mut self) {
        self.stop();
    }
}

impl KeyWatch {
    /// Has the terminal give every key as it comes, and show none.
    fn enter(&self) {
        let mut mode = self.before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &mode);
    }

    fn leave(&self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }

    fn typed(&self) -> MutexGuard<'_, String> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut decoder = Decoder::default();
        while self.is_on.load(Ordering::Relaxed) {
            if self.is_wanted.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
                continue;
            }
            // Held while it reads: what wants the terminal waits for it.
            let mut typed = self.typed();
            let inputs = match self.terminal.read(LOOK) {
                Ok(Some(bytes)) => decoder.push(&bytes),
                Ok(None) => decoder.flush().into_iter().collect(),
                Err(_) => return signal::interrupt(),
            };
            for input in inputs {
                take(input, &mut typed);
            }
        }
    }

    /// Gives the terminal to a question, and takes it back.
    fn lend<R>(&self, ask: impl FnOnce() -> R) -> R {
        if !self.is_on.load(Ordering::Relaxed) {
            return ask();
        }
        self.is_wanted.store(true, Ordering::Relaxed);
        let mut typed = self.typed();
        // It was typed to the turn, before the question was seen.
        typed.clear();
        self.leave();
        let answer = ask();
        self.enter();
        self.is_wanted.store(false, Ordering::Relaxed);
        answer
    }
}

/// Takes what was typed.
fn take(input: TerminalInput, typed: &mut String) {
    let keys = match input {
        TerminalInput::Keys(keys) => keys,
        TerminalInput::Paste(text) => return push(typed, &text),
        TerminalInput::Disconnected => return signal::interrupt(),
        TerminalInput::Resized | TerminalInput::Nothing => return,
    };
    for key in keys {
        match key {
            Key::Escape | Key::Interrupt => signal::interrupt(),
            Key::Enter if typed.trim() == "/stop" => {
                typed.clear();
                signal::interrupt();
            }
            Key::Enter => push(typed, "\n"),
            Key::Char(c) => push(typed, c.encode_utf8(&mut [0; 4])),
            Key::Backspace => drop(typed.pop()),
            Key::Delete | Key::Move(_) | Key::End | Key::Other => {}
        }
    }
}

fn push(typed: &mut String, text: &str) {
    if typed.len() + text.len() <= MAX_TYPED {
        typed.push_str(text);
    }
}

/// A prompt that has the terminal for itself.
struct PausingPrompt {
    watch: Arc<KeyWatch>,
    prompt: Box<dyn Prompt>,
}

impl Prompt for PausingPrompt {
    fn is_attended(&mut self) -> bool {
        self.prompt.is_attended()
    }

    fn is_once(&self) -> bool {
        self.prompt.is_once()
    }

    fn show(&mut self, card: &Card) -> PromptReply {
        let Self { watch, prompt } = self;
        watch.lend(|| prompt.show(card))
    }
}

/// Questions of the model, answered at the terminal.
struct TerminalQuestions {
    watch: Arc<KeyWatch>,
    view: ChatView,
    cancel: Cancel,
}

impl QuestionPrompt for TerminalQuestions {
    fn ask(&self, question: &str, choices: &[String]) -> Option<String> {
        self.view.interrupt_text();
        let Self { watch, cancel, .. } = self;
        watch.lend(|| question::ask(&watch.terminal, (question, choices), cancel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_kept_and_bounded() {
        let mut typed = String::new();
        take(TerminalInput::Keys(vec![Key::Char('a'), Key::Char('ü'), Key::Backspace]), &mut typed);
        take(TerminalInput::Paste("b\nc".into()), &mut typed);
        take(TerminalInput::Keys(vec![Key::Enter, Key::Move(crate::card::Motion::Up)]), &mut typed);
        assert_eq!(typed, "ab\nc\n");
        take(TerminalInput::Paste("x".repeat(MAX_TYPED)), &mut typed);
        assert_eq!(typed, "ab\nc\n");
    }
}
