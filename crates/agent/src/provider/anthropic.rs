//! Anthropic's messages, streamed.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::ModelTool;
use serde_json::{Value, json};

use crate::answer::{PartialAnswer, check_call_count, cut_answer, error_text, event_json};
use crate::message::{Message, ModelAnswer, ModelCall, text_field};

/// The version of the interface.
pub(super) const VERSION: &str = "2023-06-01";

/// The body of a request.
pub(super) fn body(model: &str, system: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
    let tools = tools.iter().map(|tool| {
        let ModelTool { name, about, parameters } = tool;
        json!({ "name": name, "description": about, "input_schema": parameters })
    });
    json!({
        "model": model,
        "max_tokens": limits::MODEL_ANSWER_TOKENS,
        "system": system,
        "messages": turns(messages),
        "tools": tools.collect::<Vec<_>>(),
        "stream": true,
    })
}

/// The messages, those of one role in a row as one: all results of an answer's calls belong together.
fn turns(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::User(text) => ("user", vec![json!({ "type": "text", "text": text })]),
            Message::ToolResult { id, text } => {
                let block = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
                ("user", vec![block])
            }
            Message::Model(answer) => ("assistant", answer_blocks(answer)),
        };
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let turn = |(role, blocks): (&str, Vec<Value>)| json!({ "role": role, "content": blocks });
    turns.into_iter().map(turn).collect()
}

fn answer_blocks(answer: &ModelAnswer) -> Vec<Value> {
    // A block of text that holds none is an error for the server.
    let text = (!answer.text.is_empty()).then(|| json!({ "type": "text", "text": answer.text }));
    let calls = answer.calls.iter().map(|call| {
        // Arguments that are no object cannot be sent back; their result says what was wrong with them.
        let input = serde_json::from_str(&call.args).ok().filter(Value::is_object);
        let input = input.unwrap_or_else(|| json!({}));
        json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": input })
    });
    text.into_iter().chain(calls).collect()
}

/// Takes the next event of an answer.
pub(super) fn read_event(partial: &mut PartialAnswer, event: &[u8]) -> Result<(), CodedError> {
    let event = event_json(event)?;
    let index = event.get("index").and_then(Value::as_u64);
    let tokens = |usage: Option<&Value>, name| usage?.get(name)?.as_u64();
    let answer = &mut partial.answer;
    match event.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message_start" => {
            let usage = event.get("message").and_then(|message| message.get("usage"));
            partial.tokens.input = tokens(usage, "input_tokens");
        }
        "content_block_start" => {
            let block = event.get("content_block").unwrap_or(&Value::Null);
            if block.get("type").and_then(Value::as_str) == Some("tool_use") {
                partial.open_call = index;
                check_call_count(answer.calls.len())?;
                let (id, tool) = (text_field(block, "id"), text_field(block, "name"));
                answer.calls.push(ModelCall { id, tool, args: String::new() });
            }
        }
        "content_block_delta" => {
            let delta = event.get("delta").unwrap_or(&Value::Null);
            if let (Some(piece), Some(call)) = (
                delta.get("partial_json").and_then(Value::as_str),
                answer.calls.last_mut().filter(|_| index == partial.open_call),
            ) {
                call.args.push_str(piece);
            }
            answer.text.push_str(&text_field(delta, "text"));
        }
        "message_delta" => {
            partial.tokens.output = tokens(event.get("usage"), "output_tokens");
            let reason = event.get("delta").and_then(|delta| delta.get("stop_reason"));
            if reason.and_then(Value::as_str) == Some("max_tokens") {
                return Err(cut_answer());
            }
        }
        "message_stop" => partial.is_complete = true,
        "error" => {
            let text = error_text(&event).unwrap_or_default();
            return Err(CodedError::new(Code::ModelUnavailable, text));
        }
        // `ping`, the end of a block, and what later versions add.
        _ => {}
    }
    Ok(())
}
