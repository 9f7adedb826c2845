//! A scripted model on loopback, in the wire formats of the agents: it takes one step in each answer.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use capsule_testkit::{HttpRequest, HttpServer};
use serde_json::{Value, json};

/// A call of a tool, with its arguments.
pub(super) type Step = (&'static str, Value);

/// The wire format of a model, as the target of its requests shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireFormat {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    ChatCompletions,
    /// Google's generated contents.
    Gemini,
}

/// A server whose model takes these steps, and says that all is done after the last.
pub(super) fn serve(format: WireFormat, steps: Vec<Step>) -> HttpServer {
    let next = AtomicUsize::new(0);
    HttpServer::start(move |request, stream| {
        // A client may leave before the end.
        let _ = answer(request, stream, (format, &steps), &next);
    })
}

fn answer(
    request: &HttpRequest,
    stream: &mut TcpStream,
    (format, steps): (WireFormat, &[Step]),
    next: &AtomicUsize,
) -> std::io::Result<()> {
    if !format.is_turn(&request.target) {
        // A list of models, or a count of tokens.
        let body = json!({ "input_tokens": 1, "totalTokens": 1, "data": [], "models": [] });
        return send(stream, "application/json", &body.to_string());
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // A request without tools is for a title or the like.
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let number = if has_tools { next.fetch_add(1, Ordering::SeqCst) } else { steps.len() };
    let events: String = match format {
        WireFormat::Messages => messages_events(number, steps.get(number), &body["model"]),
        WireFormat::Responses => responses_events(number, steps.get(number)),
        WireFormat::ChatCompletions => chat_events(number, steps.get(number)),
        WireFormat::Gemini => gemini_events(steps.get(number)),
    }
    .iter()
    .map(|event| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    })
    .collect();
    send(stream, "text/event-stream", &events)
}

impl WireFormat {
    /// Whether a request to this target is for an answer of the model.
    fn is_turn(self, target: &str) -> bool {
        match self {
            Self::Messages => target.contains("/messages") && !target.contains("count_tokens"),
            Self::Responses => target.contains("/responses"),
            Self::ChatCompletions => target.contains("/chat/completions"),
            Self::Gemini => target.contains(":streamGenerateContent"),
        }
    }
}

fn messages_events(number: usize, step: Option<&Step>, model: &Value) -> Vec<Value> {
    let (block, delta, reason) = match step {
        Some((tool, input)) => (
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        None => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "all done" }),
            "end_turn",
        ),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let stop = json!({ "stop_reason": reason, "stop_sequence": null });
    vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": stop, "usage": usage }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses_events(number: usize, step: Option<&Step>) -> Vec<Value> {
    let item = match step {
        Some((tool, args)) => json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": tool, "arguments": args.to_string(),
        }),
        None => json!({
            "type": "message", "id": "m_1", "role": "assistant",
            "content": [{ "type": "output_text", "text": "all done" }],
        }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let whole = json!({ "id": format!("r_{number}"), "output": [&item], "usage": usage });
    vec![
        json!({ "type": "response.created", "response": { "id": format!("r_{number}") } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": whole }),
    ]
}

fn chat_events(number: usize, step: Option<&Step>) -> Vec<Value> {
    let (delta, reason) = match step {
        Some((tool, args)) => {
            let function = json!({ "name": tool, "arguments": args.to_string() });
            let id = format!("call_{number}");
            let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        None => (json!({ "role": "assistant", "content": "all done" }), "stop"),
    };
    let chunk = |choice: Value| {
        let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
        json!({
            "id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [choice], "usage": usage,
        })
    };
    vec![
        chunk(json!({ "index": 0, "delta": delta, "finish_reason": null })),
        chunk(json!({ "index": 0, "delta": {}, "finish_reason": reason })),
    ]
}

fn gemini_events(step: Option<&Step>) -> Vec<Value> {
    let part = match step {
        Some((tool, args)) => json!({ "functionCall": { "name": tool, "args": args } }),
        None => json!({ "text": "all done" }),
    };
    let content = json!({ "role": "model", "parts": [part] });
    let candidate = json!({ "index": 0, "content": content, "finishReason": "STOP" });
    let usage = json!({ "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 });
    vec![json!({ "candidates": [candidate], "usageMetadata": usage })]
}

fn send(stream: &mut TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
