//! OpenAI's chat completions, streamed.

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_runtime::ModelTool;
use serde_json::{Value, json};

use crate::answer::{PartialAnswer, check_call_count, cut_answer, error_text, event_json};
use crate::message::{Message, ModelCall, text_field};

/// The body of a request.
pub(super) fn body(model: &str, system: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
    let system = json!({ "role": "system", "content": system });
    let messages: Vec<Value> =
        std::iter::once(system).chain(messages.iter().map(message)).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    // An empty list is an error for some servers.
    if let (false, Some(map)) = (tools.is_empty(), body.as_object_mut()) {
        map.insert("tools".into(), tools.iter().map(tool).collect());
    }
    body
}

fn tool(tool: &ModelTool) -> Value {
    let ModelTool { name, about, parameters } = tool;
    json!({
        "type": "function",
        "function": { "name": name, "description": about, "parameters": parameters },
    })
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::ToolResult { id, text } => {
            json!({ "role": "tool", "tool_call_id": id, "content": text })
        }
        Message::Model(answer) => {
            let mut message = json!({ "role": "assistant", "content": answer.text });
            let calls = answer.calls.iter().map(|call| {
                let function = json!({ "name": call.tool, "arguments": call.args });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            if let (false, Some(map)) = (answer.calls.is_empty(), message.as_object_mut()) {
                map.insert("tool_calls".into(), calls.collect());
            }
            message
        }
    }
}

/// Takes the next chunk of an answer.
pub(super) fn read_event(partial: &mut PartialAnswer, event: &[u8]) -> Result<(), CodedError> {
    if event == b"[DONE]" {
        partial.is_complete = true;
        return Ok(());
    }
    let chunk = event_json(event)?;
    if let Some(text) = error_text(&chunk) {
        return Err(CodedError::new(Code::ModelUnavailable, text));
    }
    let tokens = |name| chunk.get("usage")?.get(name)?.as_u64();
    partial.tokens.input = tokens("prompt_tokens").or(partial.tokens.input);
    partial.tokens.output = tokens("completion_tokens").or(partial.tokens.output);
    let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
        return Ok(());
    };
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    if reason == Some("length") {
        return Err(cut_answer());
    }
    // Not every server ends with `[DONE]`.
    partial.is_complete |= reason.is_some();
    let Some(delta) = choice.get("delta") else { return Ok(()) };
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        read_call(&mut partial.answer.calls, call)?;
    }
    partial.answer.text.push_str(&text_field(delta, "content"));
    Ok(())
}

/// Takes a piece of a call.
fn read_call(calls: &mut Vec<ModelCall>, piece: &Value) -> Result<(), CodedError> {
    let (id, function) = (text_field(piece, "id"), piece.get("function").unwrap_or(&Value::Null));
    let at = match piece.get("index").and_then(Value::as_u64) {
        Some(index) => usize::try_from(index).unwrap_or(usize::MAX),
        // Some servers send each call whole, and leave its place out.
        None => match calls.iter().position(|call| call.id == id) {
            Some(at) if !id.is_empty() => at,
            _ => calls.len(),
        },
    };
    check_call_count(at)?;
    if at >= calls.len() {
        calls.resize(at + 1, ModelCall::default());
    }
    if let Some(call) = calls.get_mut(at) {
        if call.id.is_empty() {
            call.id = id;
        }
        call.tool.push_str(&text_field(function, "name"));
        call.args.push_str(&text_field(function, "arguments"));
    }
    Ok(())
}
