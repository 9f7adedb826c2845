//! A conversation with a model, in no provider's format.

use serde_json::{Value, json};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The user's words.
    User(String),
    /// The model's answer.
    Model(ModelAnswer),
    /// The result of a call of the model.
    ToolResult {
        /// The id that the model gave the call.
        id: String,
        /// The result, as text.
        text: String,
    },
}

/// An answer of a model: text, calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelAnswer {
    /// The text.
    pub(crate) text: String,
    /// The calls, in the order in which the model made them.
    pub(crate) calls: Vec<ModelCall>,
}

/// A call that a model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelCall {
    /// The id that the model gave it.
    pub(crate) id: String,
    /// The tool's name.
    pub(crate) tool: String,
    /// The arguments as the model wrote them: a JSON object if all is well.
    pub(crate) args: String,
}

impl ModelAnswer {
    /// The answer as it is recorded.
    pub(crate) fn to_json(&self) -> Value {
        let calls = self.calls.iter();
        let calls =
            calls.map(|call| json!({ "id": call.id, "tool": call.tool, "args": call.args }));
        json!({ "text": self.text, "calls": calls.collect::<Vec<_>>() })
    }
}
