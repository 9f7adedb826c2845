//! The time that persons take for their answers, which is no time of a task.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capsule_core::approval::Card;
use capsule_tools::QuestionPrompt;

use crate::approval::{Prompt, PromptReply};

/// Adds the time that an answer takes.
fn timed<R>(time: &Cell<Duration>, ask: impl FnOnce() -> R) -> R {
    let since = Instant::now();
    let answer = ask();
    time.set(time.get().saturating_add(since.elapsed()));
    answer
}

/// A prompt that counts the time of its answers.
pub(crate) struct TimedPrompt {
    pub(crate) prompt: Box<dyn Prompt>,
    pub(crate) time: Rc<Cell<Duration>>,
}

impl Prompt for TimedPrompt {
    fn is_attended(&mut self) -> bool {
        self.prompt.is_attended()
    }

    fn is_once(&self) -> bool {
        self.prompt.is_once()
    }

    fn show(&mut self, card: &Card) -> PromptReply {
        let Self { prompt, time } = self;
        timed(time, || prompt.show(card))
    }
}

/// Questions of a model whose answers are timed.
pub(crate) struct TimedQuestions {
    pub(crate) prompt: Rc<dyn QuestionPrompt>,
    pub(crate) time: Rc<Cell<Duration>>,
}

impl QuestionPrompt for TimedQuestions {
    fn ask(&self, question: &str, choices: &[String]) -> Option<String> {
        timed(&self.time, || self.prompt.ask(question, choices))
    }
}
