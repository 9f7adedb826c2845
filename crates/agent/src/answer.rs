//! How an answer is read out of its stream, whatever its format.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::TokenCount;
use serde_json::Value;

use crate::message::ModelAnswer;

/// The part of an answer that has been read.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    /// The text and the calls.
    pub(crate) answer: ModelAnswer,
    /// The tokens that the server counted.
    pub(crate) tokens: TokenCount,
    /// The block of the stream that is the last call, in a format that has blocks.
    pub(crate) open_call: Option<u64>,
    /// Whether the answer has come to its end.
    pub(crate) is_complete: bool,
}

/// The data of an event of a stream, as JSON.
pub(crate) fn event_json(event: &[u8]) -> Result<Value, CodedError> {
    serde_json::from_slice(event).map_err(|error| {
        CodedError::new(Code::ModelProtocol, format!("an event is no JSON: {error}"))
    })
}

/// The error where an answer is longer than the server lets it be: half a text or half a call is none.
pub(crate) fn cut_answer() -> CodedError {
    CodedError::new(Code::ModelProtocol, "the server cut the answer off, which was too long for it")
}

/// Makes sure that an answer may have a call at this place.
///
/// # Errors
/// Where that is one call more than are taken.
pub(crate) fn check_call_count(at: usize) -> Result<(), CodedError> {
    let most = limits::MODEL_CALLS;
    let too_many =
        || CodedError::new(Code::ModelProtocol, format!("the answer has more than {most} calls"));
    (at < most).then_some(()).ok_or_else(too_many)
}

/// The error that a server reports, in the formats of all of them.
pub(crate) fn error_text(value: &Value) -> Option<String> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let text = error.get("message").unwrap_or(error);
    Some(text.as_str().map_or_else(|| text.to_string(), str::to_owned))
}
