//! Lines of a conversation: what the user said, and what a model answered.

use capsule_core::journal::{Event, ModelAnswered};
use capsule_core::outcome::CodedError;
use serde_json::Value;

use super::Console;
use crate::payloads::{PayloadLookup, payload_json};

impl Console {
    /// The lines of an event of a conversation. A request has none; the calls of an answer have their own.
    pub(super) fn conversation_lines(
        &self,
        event: &Event,
        payloads: &PayloadLookup<'_>,
    ) -> Vec<String> {
        match event {
            Event::UserMessage { text } => {
                let text: Option<String> = payload_json(payloads, Some(text));
                self.speech_lines("user", text.as_deref().unwrap_or("(not kept)"))
            }
            Event::ModelAnswered(ModelAnswered { code: None, answer, .. }) => {
                let answer: Option<Value> = payload_json(payloads, Some(answer));
                let text =
                    answer.as_ref().map(|answer| answer["text"].as_str().unwrap_or_default());
                match text.unwrap_or("(not kept)") {
                    "" => Vec::new(),
                    text => self.speech_lines("model", text),
                }
            }
            Event::ModelAnswered(ModelAnswered { code: Some(code), answer, .. }) => {
                let problem: Option<CodedError> = payload_json(payloads, Some(answer));
                let why =
                    problem.map_or_else(|| code.meaning().to_owned(), |problem| problem.message);
                self.speech_lines("model", &format!("no answer: {why} [{code}]"))
            }
            _ => Vec::new(),
        }
    }

    fn speech_lines(&self, speaker: &str, text: &str) -> Vec<String> {
        let mut lines = vec![format!("{speaker}:")];
        lines.extend(self.wrapped_bar(text.trim_end()));
        lines
    }
}
