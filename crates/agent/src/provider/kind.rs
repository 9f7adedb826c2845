//! The formats of providers.

use capsule_core::outcome::CodedError;
use capsule_runtime::ModelTool;
use serde_json::Value;

use super::{anthropic, openai};
use crate::answer::PartialAnswer;
use crate::message::Message;

/// The format that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most servers speak, Ollama and llama.cpp among them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

impl ProviderKind {
    /// The body of a request.
    pub(crate) fn body(
        self,
        model: &str,
        system: &str,
        tools: &[ModelTool],
        messages: &[Message],
    ) -> Value {
        match self {
            Self::OpenAi => openai::body(model, system, tools, messages),
            Self::Anthropic => anthropic::body(model, system, tools, messages),
        }
    }

    /// Takes the data of the next event of an answer.
    ///
    /// # Errors
    /// When the event is none of the format, says that something went wrong or that the answer was cut off, or
    /// asks for more calls than are taken.
    pub(crate) fn read_event(
        self,
        answer: &mut PartialAnswer,
        event: &[u8],
    ) -> Result<(), CodedError> {
        match self {
            Self::OpenAi => openai::read_event(answer, event),
            Self::Anthropic => anthropic::read_event(answer, event),
        }
    }
}
