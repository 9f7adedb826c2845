//! A conversation with a model, in no provider's format.

use serde_json::{Value, json};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
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
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The calls, in the order in which the model made them.
    pub calls: Vec<ModelCall>,
}

/// A call that a model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelCall {
    /// The id that the model gave it.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model wrote them: a JSON object if all is well.
    pub args: String,
}

impl ModelAnswer {
    /// An answer that was recorded; a call or a text that is not there is an empty one.
    pub(crate) fn from_json(value: &Value) -> Self {
        let calls = value.get("calls").and_then(Value::as_array);
        let call = |call| ModelCall {
            id: text_field(call, "id"),
            tool: text_field(call, "tool"),
            args: text_field(call, "args"),
        };
        let calls = calls.into_iter().flatten().map(call).collect();
        Self { text: text_field(value, "text"), calls }
    }

    /// The answer as it is recorded.
    pub(crate) fn to_json(&self) -> Value {
        let calls = self.calls.iter();
        let calls =
            calls.map(|call| json!({ "id": call.id, "tool": call.tool, "args": call.args }));
        json!({ "text": self.text, "calls": calls.collect::<Vec<_>>() })
    }
}

/// Says of the calls of the last answer that have no result why not: models expect one of each.
pub(crate) fn answer_open_calls(messages: &mut Vec<Message>, why: &str) {
    let last = messages.iter().rposition(|message| matches!(message, Message::Model(_)));
    let Some((last, Message::Model(answer))) = last.and_then(|at| Some((at, messages.get(at)?)))
    else {
        return;
    };
    let made = messages.len() - last - 1;
    let open = answer
        .calls
        .iter()
        .skip(made)
        .map(|call| Message::ToolResult { id: call.id.clone(), text: missing_result(why) });
    let open: Vec<Message> = open.collect();
    messages.extend(open);
}

/// A file that the user attached, as the model is given it: what came of the call.
pub(crate) fn attached_message(result: &str) -> Message {
    Message::User(format!("The user attached this file to the conversation:\n{result}"))
}

/// The text for a model in place of a result.
pub(crate) fn missing_result(why: &str) -> String {
    json!({ "status": "runtime_error", "reason": why }).to_string()
}

/// The text of a field; an empty one where there is none.
pub(crate) fn text_field(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
