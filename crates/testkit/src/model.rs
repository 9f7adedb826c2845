//! A scripted model on loopback, in the formats that real ones are streamed in.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::binary::Capsule;
use crate::server::{HttpRequest, HttpServer};

/// The format that a scripted model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFormat {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// What a scripted model does with a request.
#[derive(Clone, Debug)]
pub enum ModelTurn {
    /// It answers with text.
    Say(String),
    /// It asks for calls: each a tool and the text of its arguments.
    Call(Vec<(String, String)>),
    /// The server refuses: a status line, more header lines, and a body.
    Refuse(&'static str, &'static str, String),
    /// The connection ends in the middle of a text.
    Cut,
    /// The server sends these bytes as its stream.
    Stream(Vec<u8>),
}

impl ModelTurn {
    /// One call.
    #[must_use]
    pub fn call(tool: &str, args: &Value) -> Self {
        Self::Call(vec![(tool.to_owned(), args.to_string())])
    }

    /// A text.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }
}

/// A scripted model that lives as long as this value.
#[derive(Debug)]
pub struct ModelServer {
    server: HttpServer,
    format: ModelFormat,
}

impl ModelServer {
    /// A model that does what `script` says of each request, from its body and its number from 0 on.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn start(
        format: ModelFormat,
        script: impl FnMut(&Value, usize) -> ModelTurn + Send + 'static,
    ) -> Self {
        let state = Mutex::new((script, 0));
        let answer = move |request: &HttpRequest, stream: &mut TcpStream| {
            let body = serde_json::from_slice(&request.body).unwrap_or_default();
            let turn = {
                let (script, number) = &mut *state.lock().unwrap();
                *number += 1;
                script(&body, *number - 1)
            };
            // A client may leave before the end.
            let _ = stream.write_all(&response(format, turn));
        };
        Self { server: HttpServer::start(answer), format }
    }

    /// A model that does these things, one with each request, and then says `done`.
    #[must_use]
    pub fn scripted(format: ModelFormat, turns: Vec<ModelTurn>) -> Self {
        let next = move |_: &Value, number: usize| {
            turns.get(number).cloned().unwrap_or_else(|| ModelTurn::say("done"))
        };
        Self::start(format, next)
    }

    /// The variables that name it, with a key.
    #[must_use]
    pub fn variables(&self, key: &str) -> Vec<(&'static str, String)> {
        let (base, name, target) = match self.format {
            ModelFormat::OpenAi => ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
            ModelFormat::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""),
        };
        vec![(base, self.server.url(target)), (name, key.to_owned())]
    }

    /// Surroundings in which this model is configured, with a key.
    #[must_use]
    pub fn configured(&self, binary: &str, key: &str) -> Capsule {
        let mut capsule = Capsule::new(binary);
        for (name, value) in self.variables(key) {
            capsule.set(name, &value);
        }
        capsule.set("CAPSULE_MODEL", "m-1");
        capsule
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.server.requests()
    }

    /// The bodies of the requests so far.
    ///
    /// # Panics
    /// When one is no JSON.
    #[must_use]
    pub fn bodies(&self) -> Vec<Value> {
        let requests = self.requests();
        requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }
}

/// The results of calls that the body of a request holds, in the order in which the model gets them.
///
/// # Panics
/// When it has no messages.
#[must_use]
pub fn results_of_calls(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    let openai = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["content"]);
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let anthropic =
        blocks.filter(|block| block["type"] == "tool_result").map(|block| &block["content"]);
    let texts = openai.chain(anthropic).map(|text| text.as_str().unwrap());
    texts.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text))).collect()
}

fn response(format: ModelFormat, turn: ModelTurn) -> Vec<u8> {
    let stream = match turn {
        ModelTurn::Refuse(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}");
            return format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                .into();
        }
        ModelTurn::Stream(bytes) => bytes,
        ModelTurn::Say(text) => match format {
            ModelFormat::OpenAi => openai_stream(&text, &[]),
            ModelFormat::Anthropic => anthropic_stream(&text, &[]),
        },
        ModelTurn::Call(calls) => match format {
            ModelFormat::OpenAi => openai_stream("", &calls),
            ModelFormat::Anthropic => anthropic_stream("", &calls),
        },
        ModelTurn::Cut => {
            let whole = match format {
                ModelFormat::OpenAi => openai_stream("half an answer", &[]),
                ModelFormat::Anthropic => anthropic_stream("half an answer", &[]),
            };
            let at = whole.windows(4).position(|bytes| bytes == b"half").unwrap();
            whole.split_at(at + 2).0.to_vec()
        }
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    [head.as_bytes(), &stream].concat()
}

/// A text in two pieces, as streams have it.
fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn openai_stream(text: &str, calls: &[(String, String)]) -> Vec<u8> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    deltas.extend(<[&str; 2]>::from(halves(text)).map(|half| json!({ "content": half })));
    for (index, (tool, args)) in calls.iter().enumerate() {
        let id = format!("call_{index}");
        let (first, second) = halves(args);
        let function = json!({ "name": tool, "arguments": first });
        let piece = json!({ "index": index, "id": id, "type": "function", "function": function });
        deltas.push(json!({ "tool_calls": [piece] }));
        let piece = json!({ "index": index, "function": { "arguments": second } });
        deltas.push(json!({ "tool_calls": [piece] }));
    }
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let chunk = |delta: &Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        json!({ "id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice] })
    };
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    chunks.push(chunk(&json!({}), json!(reason)));
    chunks.push(json!({ "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 7 } }));
    let mut stream: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    stream.push_str("data: [DONE]\n\n");
    stream.into_bytes()
}

fn anthropic_stream(text: &str, calls: &[(String, String)]) -> Vec<u8> {
    let usage = json!({ "input_tokens": 11, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "role": "assistant", "content": [], "usage": usage });
    let mut events =
        vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
    let mut block = |index: usize, block: Value, deltas: Vec<Value>| {
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    };
    if !text.is_empty() {
        let deltas = <[&str; 2]>::from(halves(text))
            .map(|half| json!({ "type": "text_delta", "text": half }));
        block(0, json!({ "type": "text", "text": "" }), deltas.to_vec());
    }
    for (index, (tool, args)) in calls.iter().enumerate() {
        let id = format!("toolu_{index}");
        let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": {} });
        let deltas = <[&str; 2]>::from(halves(args))
            .map(|half| json!({ "type": "input_json_delta", "partial_json": half }));
        block(index, call, deltas.to_vec());
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    events
        .push(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }));
    events.push(json!({ "type": "message_stop" }));
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect::<String>().into_bytes()
}
