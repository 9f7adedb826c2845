//! How an answer is read out of its stream, whatever its format.

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_runtime::TokenCount;
use serde_json::Value;

use crate::message::ModelAnswer;

/// Reads an answer out of the events of its stream.
pub(crate) trait AnswerReader {
    /// Takes the data of the next event.
    ///
    /// # Errors
    /// When the event is none of the format, says that something went wrong, or asks for more calls than
    /// are taken.
    fn take(&mut self, event: &[u8]) -> Result<(), CodedError>;

    /// Whether the answer has come to its end.
    fn is_complete(&self) -> bool;

    /// The answer, and what it cost.
    fn finish(self: Box<Self>) -> (ModelAnswer, TokenCount);
}

/// What an event of a stream says, as JSON.
pub(crate) fn event_json(event: &[u8]) -> Result<Value, CodedError> {
    serde_json::from_slice(event).map_err(|error| {
        CodedError::new(Code::ModelProtocol, format!("an event is no JSON: {error}"))
    })
}

/// What a server says went wrong, in the formats of all of them.
pub(crate) fn error_text(value: &Value) -> Option<String> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let text = error.get("message").unwrap_or(error);
    Some(text.as_str().map_or_else(|| text.to_string(), str::to_owned))
}
