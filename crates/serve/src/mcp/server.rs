//! Makes the calls of a client, one after another.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::bounded_text;
use serde_json::{Map, Value, json};
use url::Url;

use crate::mcp::connection::{Connection, Next, Reply};
use crate::mcp::elicitation::ClientPrompt;
use crate::mcp::host::{CallAnswer, McpHost};
use crate::mcp::kept_results::KeptResults;
use crate::mcp::message::{INVALID_REQUEST, Request, RpcError, result};
use crate::mcp::progress::Progress;
use crate::mcp::reception::answer_from_texts;
use crate::mcp::revision::Client;

/// Serves one client: makes its calls.
pub struct McpServer<'h> {
    host: &'h mut dyn McpHost,
    connection: Arc<Connection>,
}

impl<'h> McpServer<'h> {
    pub(crate) fn new(host: &'h mut dyn McpHost, connection: Arc<Connection>) -> Self {
        Self { host, connection }
    }

    /// Serves, with a thread of this name that reads what the client says.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn run_beside(
        self,
        name: &str,
        read: impl FnOnce() + Send + 'static,
    ) -> Result<(), CodedError> {
        thread::Builder::new().name(name.into()).spawn(read).map_err(|error| {
            CodedError::new(Code::EngineFault, format!("no thread can be started: {error}"))
        })?;
        self.run();
        Ok(())
    }

    /// Serves until nothing more comes and all is answered, or the process is asked to stop.
    fn run(mut self) {
        let mut refreshed = Instant::now();
        while !self.host.cancel().is_set() {
            match self.connection.next(limits::MCP_POLL) {
                Next::Request(request, client) => {
                    let answer = self.answer(&request, client);
                    let is_stopped = self.connection.finish(|id| match answer {
                        Ok(answer) => result(id, &answer),
                        Err(error) => error.answer(id),
                    });
                    // What the client stopped is over; what the user stopped is not.
                    if is_stopped {
                        (self.host.resumer())();
                    }
                }
                Next::Idle => {
                    self.host.rest();
                    if refreshed.elapsed() >= LOOK_EVERY {
                        refreshed = Instant::now();
                        self.refresh();
                    }
                }
                Next::Ended => return,
            }
        }
    }

    /// Answers a request in its turn, under the policy as it is by then.
    fn answer(&mut self, request: &Request, client: Client) -> Result<Value, RpcError> {
        if self.host.awaits_root() {
            let root = if client.has_roots { self.ask_for_root()? } else { None };
            self.host.take_root(root.as_deref());
            self.renew_offer();
        }
        self.refresh();
        match request.method.as_str() {
            "tools/call" => self.call_tool(request, client).map(|answer| client.complete(answer)),
            _ => answer_from_texts(request, client, &self.connection),
        }
    }

    /// Takes the policy as it is now, and tells the client where its tools are others.
    fn refresh(&mut self) {
        if self.host.refresh() {
            // What was seen under another policy is not given under this one.
            self.connection.results.clear();
            self.renew_offer();
        }
    }

    fn renew_offer(&self) {
        self.connection.set_awaits_root(self.host.awaits_root());
        if self.connection.offer.renew(self.host) {
            self.connection.listeners.tell_of_change();
        }
    }

    /// The directory that the client works in: the first one that it names. A client that does not answer in time has none.
    ///
    /// # Errors
    /// When the request was cancelled, or the client is not there any more: then nothing is done for it.
    fn ask_for_root(&self) -> Result<Option<PathBuf>, RpcError> {
        let question = ("roots/list", &json!({}));
        let reply = match self.connection.ask(question, 0, limits::MCP_PEER_TIME) {
            Reply::Given(reply) => reply.unwrap_or_default(),
            Reply::Abandoned if !self.connection.has_ended() => return Ok(None),
            Reply::Abandoned | Reply::Withdrawn => {
                let message = "the client did not say which directory it works in";
                return Err(RpcError::new(INVALID_REQUEST, message));
            }
        };
        let uri = reply.pointer("/roots/0/uri").and_then(Value::as_str).unwrap_or_default();
        let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file");
        let path = url.and_then(|url| url.to_file_path().ok());
        Ok(path.filter(|path| path.as_os_str().len() <= limits::PATH_BYTES))
    }

    fn call_tool(&mut self, request: &Request, client: Client) -> Result<Value, RpcError> {
        let tool = request.text("name")?;
        let args = match request.params.get("arguments") {
            None => Map::new(),
            Some(Value::Object(args)) => args.clone(),
            Some(_) => return Err(RpcError::params("`arguments` is no object")),
        };
        let prompt = ClientPrompt {
            connection: Arc::clone(&self.connection),
            card_text: self.host.card_text(),
            is_policy_changed: self.host.policy_watch(),
        };
        let generation = self.connection.results.generation();
        let progress = Progress::of(request);
        let args = Value::Object(args).to_string();
        let answer = self.host.call((tool, &args), Box::new(prompt));
        drop(progress);
        let answer = answer.unwrap_or_else(|problem| unable(&problem));
        let results = client.has_links.then_some((&self.connection.results, generation));
        Ok(call_result(answer, results))
    }
}

/// How often an idle server looks whether the policy was changed; each call looks, too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A call that could not be judged or recorded.
fn unable(problem: &CodedError) -> CallAnswer {
    let status = capsule_core::outcome::Status::from(problem.code.class());
    let value = json!({
        "status": status,
        "code": problem.code,
        "reason": problem.message,
        "suggestion": problem.suggestion,
    });
    CallAnswer { value, is_error: true, call: None }
}

/// The result of a call: as text, and as it is. Where that is too long, without what it is that makes it so: what is small
/// says what became of the call. A client that knows links gets one to the whole.
fn call_result(answer: CallAnswer, results: Option<(&KeptResults, u64)>) -> Value {
    let CallAnswer { mut value, is_error, call } = answer;
    let text = bounded_text(&value);
    // A text that was cut is longer, by what it says of that.
    let is_cut = text.len() > limits::MODEL_RESULT_BYTES;
    let mut content = vec![json!({ "type": "text", "text": text })];
    if let (true, Some((results, generation)), Some(call)) = (is_cut, results, call) {
        content.extend(results.keep(generation, &call, value.to_string()));
    }
    if is_cut && let Some(map) = value.as_object_mut() {
        map.retain(|_, field| field.to_string().len() <= MOST_OF_A_FIELD);
        map.insert("truncated".into(), true.into());
    }
    json!({
        "content": content,
        "structuredContent": value,
        "isError": is_error,
    })
}

/// How long a field may be that a cut result keeps, in bytes: an eighth of a result, which has six small fields at most.
const MOST_OF_A_FIELD: usize = limits::MODEL_RESULT_BYTES / 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_keeps_what_became_of_the_call() {
        let long = "x".repeat(limits::MODEL_RESULT_BYTES);
        let small = json!({ "status": "tool_error", "code": "exec.failed", "not_applied": { "dropped": ["a"] } });
        let mut value = small.clone();
        value["result"] = json!({ "stdout": long });
        let whole = value.to_string();
        let answer = CallAnswer { value, is_error: true, call: Some("r-1:2".into()) };
        let results = KeptResults::default();
        let shown = call_result(answer.clone(), Some((&results, 0)));
        let mut kept = small;
        kept["truncated"] = true.into();
        assert_eq!(shown.get("structuredContent"), Some(&kept));
        let uri = shown.pointer("/content/1/uri").and_then(Value::as_str).unwrap_or_default();
        let read = results.read(uri).unwrap_or_default();
        assert_eq!(read.pointer("/contents/0/text"), Some(&whole.into()));
        assert_eq!(call_result(answer, None).pointer("/content/1"), None);
    }
}
