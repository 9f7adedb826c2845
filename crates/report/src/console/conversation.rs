//! Lines of a conversation: what the user said, and what a model answered.

use capsule_core::journal::{Event, ModelAnswered};
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
            Event::UserAnswered { text: exchange } => {
                let exchange: Option<Value> = payload_json(payloads, Some(exchange));
                let part = |name| exchange.as_ref().and_then(|exchange| exchange[name].as_str());
                let question = part("question").unwrap_or("(not kept)");
                let mut lines = self.speech_lines("model asks", question);
                lines.extend(self.speech_lines("user", part("answer").unwrap_or("(no answer)")));
                lines
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
                let problem: Option<Value> = payload_json(payloads, Some(answer));
                let part = |name| problem.as_ref().and_then(|problem| problem[name].as_str());
                let shown = part("text").map(|text| self.speech_lines("model", text));
                let why = part("message").unwrap_or_else(|| code.meaning());
                let why = format!("no answer: {why} [{code}]");
                shown.into_iter().flatten().chain(self.speech_lines("model", &why)).collect()
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
