//! A conversation that goes on: its messages are read from the record of the session.

use capsule_runtime::{HistoryEntry, ModelSession, SessionError, TokenCount, UnsentResults};
use serde_json::Value;

use crate::context::Omission;
use crate::message::{
    Message, ModelAnswer, answer_open_calls, attached_message, missing_result, text_field,
};

/// The result of a call whose result was lost.
const RESULT_LOST: &str = "the turn ended before the result could be given: the call may have been made, or may wait for an \
     approval; look at what is there before it is made again";

/// A conversation as the record has it.
#[derive(Default)]
pub(crate) struct RecordedConversation {
    pub(crate) messages: Vec<Message>,
    /// How many of them the last request had.
    pub(crate) sent: usize,
    pub(crate) has_begun: bool,
    /// The tokens of all of its answers.
    pub(crate) tokens: Vec<TokenCount>,
    /// The answer that no request has followed.
    answer: Option<ModelAnswer>,
    /// The messages of the user that no request has sent.
    unsent: Vec<String>,
}

impl RecordedConversation {
    /// Reads the conversation of a session.
    ///
    /// # Errors
    /// When the record cannot be read, or a part of it was erased.
    pub(crate) fn read(session: &ModelSession<'_>) -> Result<Self, SessionError> {
        let mut read = Self::default();
        session.visit_history(|entry| read.take(entry))?;
        let Self { messages, answer, unsent, .. } = &mut read;
        let answer = answer.take();
        let calls = answer.iter().flat_map(|answer| &answer.calls);
        let named: Vec<_> =
            calls.clone().map(|call| (call.tool.as_str(), call.args.as_str())).collect();
        let UnsentResults { of_calls, attached } = session.unsent_results(&named)?;
        let results = calls.zip(of_calls).map(|(call, text)| Message::ToolResult {
            id: call.id.clone(),
            text: text.unwrap_or_else(|| missing_result(RESULT_LOST)),
        });
        let results: Vec<Message> = results.collect();
        messages.extend(answer.map(Message::Model));
        messages.extend(results);
        answer_open_calls(messages, RESULT_LOST);
        messages.extend(attached.iter().map(|text| attached_message(text)));
        messages.extend(unsent.drain(..).map(Message::User));
        Ok(read)
    }

    fn take(&mut self, entry: HistoryEntry) {
        match entry {
            HistoryEntry::UserMessage(text) => self.unsent.push(text),
            HistoryEntry::Requested(added) => self.take_request(&added),
            HistoryEntry::Answered { answer, is_complete: true, tokens } => {
                self.answer = Some(ModelAnswer::from_json(&answer));
                self.tokens.push(tokens);
            }
            HistoryEntry::Answered { answer, .. } => {
                let text = text_field(&answer, "text");
                let shown = ModelAnswer { text, calls: Vec::new() };
                self.answer = (!shown.text.is_empty()).then_some(shown);
            }
        }
    }

    fn take_request(&mut self, added: &Value) {
        // The instructions are sent with the first request: another conversation begins.
        if added.get("instructions").is_some() {
            *self = Self { tokens: std::mem::take(&mut self.tokens), ..Self::default() };
        }
        let new = added.get("messages").and_then(Value::as_array);
        for message in new.into_iter().flatten() {
            self.messages.extend(match message {
                _ if message.get("user").is_some() => {
                    Some(Message::User(text_field(message, "user")))
                }
                _ if message.get("result_of").is_some() => {
                    let (id, text) =
                        (text_field(message, "result_of"), text_field(message, "text"));
                    Some(Message::ToolResult { id, text })
                }
                _ => match message.get("model").filter(|answer| !answer.is_null()) {
                    Some(answer) => Some(Message::Model(ModelAnswer::from_json(answer))),
                    None => self.answer.take().map(Message::Model),
                },
            });
        }
        if let Some(omitted) = added.get("left_out") {
            let messages = std::mem::take(&mut self.messages);
            self.messages = Omission::from_json(omitted).apply(messages);
        }
        self.unsent.clear();
        (self.sent, self.has_begun) = (self.messages.len(), true);
    }
}
