//! Messages of JSON-RPC 2.0, each with one reading.

use capsule_base::{json, limits};
use serde_json::{Map, Value, json};

use crate::mcp::outlet::Outlet;

/// The message is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// The message is no message of JSON-RPC, or comes at the wrong time.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The server cannot do what it is there for.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// There is no such resource, in the revisions that begin with `initialize`.
pub(crate) const NO_RESOURCE: i64 = -32002;
/// The server has too much to do.
pub(crate) const BUSY: i64 = -32000;
/// The revision of the protocol is not known.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// Why a message is not taken, as its sender is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The answer to the request of this id; of a message without one the id is null.
    pub(crate) fn answer(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Some(map)) = (&self.data, error.as_object_mut()) {
            map.insert("data".into(), data.clone());
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    /// Wants an answer.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// Wants none.
    Notification { method: String, params: Map<String, Value> },
    /// Answers a request of ours; without a result it is an error.
    Response { id: String, result: Option<Value> },
}

/// A request that is to be answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    /// Where the answer goes.
    pub(crate) outlet: Outlet,
}

impl Request {
    /// A text among the metadata of the request.
    pub(crate) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// A text among the parameters.
    ///
    /// # Errors
    /// When it is missing, no text, or too long for a name.
    pub(crate) fn text(&self, name: &str) -> Result<&str, RpcError> {
        let text = self.params.get(name).and_then(Value::as_str);
        text.filter(|text| text.len() <= limits::NAME_CHARS)
            .ok_or_else(|| RpcError::params(format!("`{name}` is not the text that it has to be")))
    }
}

/// Reads a message.
///
/// # Errors
/// When the bytes are none, with the id that the sender can be told by, as far as there is one.
pub(crate) fn parse(bytes: &[u8]) -> Result<Message, (Value, RpcError)> {
    let value = json::parse(bytes).map_err(|error| {
        (
            Value::Null,
            RpcError::new(PARSE_ERROR, format!("the message cannot be read: {}", error.message)),
        )
    })?;
    let Value::Object(mut map) = value else {
        let why = "the message is no object; batches are not taken";
        return Err((Value::Null, RpcError::new(INVALID_REQUEST, why)));
    };
    let id = map.remove("id");
    let known_id = id.as_ref().filter(|id| is_id(id)).cloned().unwrap_or_default();
    let refuse = |why: &str| Err((known_id.clone(), RpcError::new(INVALID_REQUEST, why)));
    if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("`jsonrpc` is not `2.0`");
    }
    let Some(method) = map.remove("method") else {
        let (Some(Value::String(id)), true) =
            (id, map.contains_key("result") || map.contains_key("error"))
        else {
            return refuse("the message has no method, and answers no request of this server");
        };
        return Ok(Message::Response { id, result: map.remove("result") });
    };
    let Value::String(method) = method else { return refuse("`method` is no text") };
    let params = match map.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return refuse("`params` is no object"),
    };
    match id {
        None => Ok(Message::Notification { method, params }),
        Some(id) if is_id(&id) => Ok(Message::Request { id, method, params }),
        Some(_) => refuse("`id` is neither a whole number nor a text of at most 200 bytes"),
    }
}

/// Whether a value may name a request.
pub(crate) fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= limits::NAME_CHARS,
        id => id.is_i64() || id.is_u64(),
    }
}

/// The answer to the request of an id.
pub(crate) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused_with_the_id_that_it_has() {
        let deep =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":{}1{}}}", "[".repeat(80), "]".repeat(80));
        let cases: &[(&str, Value, i64)] = &[
            ("", Value::Null, PARSE_ERROR),
            ("{", Value::Null, PARSE_ERROR),
            (&deep, Value::Null, PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("7", Value::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a"), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":"x"}"#, json!("x"), INVALID_REQUEST),
        ];
        for (text, id, code) in cases {
            match parse(text.as_bytes()) {
                Err((found, error)) => assert_eq!((&found, error.code), (id, *code), "{text}"),
                Ok(message) => panic!("{text}: {message:?}"),
            }
        }
    }
}
