//! Makes the calls of a client, one after another.

use std::sync::Arc;
use std::thread;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::approval::Card;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Cancel, ModelTool, Prompt, bounded_text};
use serde_json::{Map, Value, json};

use crate::mcp::connection::{Connection, Next};
use crate::mcp::elicitation::ClientPrompt;
use crate::mcp::message::{Request, RpcError, result};
use crate::mcp::progress::Progress;

/// What came of a call, for the client.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    /// The result as a model gets it: `status`, and what belongs to it.
    pub value: Value,
    /// Whether the call did not go as asked.
    pub is_error: bool,
}

/// Makes the calls of a client.
pub trait McpHost {
    /// The tools that may be called.
    fn tools(&self) -> Vec<ModelTool>;

    /// What a model may do under the policy, in plain words.
    fn policy_text(&self) -> String;

    /// The whole of a card as text that cannot act; none where a part of it cannot be shown.
    fn card_text(&self) -> fn(&Card) -> Option<String>;

    /// Stops the call that goes on, from any thread.
    fn interrupter(&self) -> fn();

    /// Lets the next call go on after one that was stopped.
    fn resumer(&self) -> fn();

    /// Says that the process is asked to stop.
    fn cancel(&self) -> Cancel;

    /// Makes a call, of a tool by the name and the arguments that the client gave. The prompt asks the client's user, of
    /// this call and of those behind it.
    ///
    /// # Errors
    /// When it cannot be judged or recorded: then nothing ran.
    fn call(
        &mut self,
        call: (&str, &str),
        prompt: Box<dyn Prompt>,
    ) -> Result<CallAnswer, CodedError>;

    /// No call has come for a moment: what is held for the next one is given back.
    fn rest(&mut self);
}

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
        while !self.host.cancel().is_set() {
            match self.connection.next(limits::MCP_POLL) {
                Next::Request(request, client) => {
                    let answer = self.call_tool(&request);
                    let is_stopped = self.connection.finish(|id| match answer {
                        Ok(answer) => result(id, &client.complete(answer)),
                        Err(error) => error.answer(id),
                    });
                    // What the client stopped is over; what the user stopped is not.
                    if is_stopped {
                        (self.host.resumer())();
                    }
                }
                Next::Idle => self.host.rest(),
                Next::Ended => return,
            }
        }
    }

    fn call_tool(&mut self, request: &Request) -> Result<Value, RpcError> {
        let tool = request.text("name")?;
        let args = match request.params.get("arguments") {
            None => Map::new(),
            Some(Value::Object(args)) => args.clone(),
            Some(_) => return Err(RpcError::params("`arguments` is no object")),
        };
        let prompt = ClientPrompt {
            connection: Arc::clone(&self.connection),
            card_text: self.host.card_text(),
        };
        let progress = Progress::of(request);
        let args = Value::Object(args).to_string();
        let answer = self.host.call((tool, &args), Box::new(prompt));
        drop(progress);
        Ok(call_result(answer.unwrap_or_else(|problem| unable(&problem))))
    }
}

/// A call that could not be judged or recorded.
fn unable(problem: &CodedError) -> CallAnswer {
    let status = capsule_core::outcome::Status::from(problem.code.class());
    let value = json!({
        "status": status,
        "code": problem.code,
        "reason": problem.message,
        "suggestion": problem.suggestion,
    });
    CallAnswer { value, is_error: true }
}

/// The result of a call: as text, and as it is. Where that is too long, without what it is that makes it so: what is small
/// says what became of the call.
fn call_result(answer: CallAnswer) -> Value {
    let CallAnswer { mut value, is_error } = answer;
    let text = bounded_text(&value);
    // A text that was cut is longer, by what it says of that.
    if text.len() > limits::MODEL_RESULT_BYTES
        && let Some(map) = value.as_object_mut()
    {
        map.retain(|_, field| field.to_string().len() <= MOST_OF_A_FIELD);
        map.insert("truncated".into(), true.into());
    }
    json!({
        "content": [{ "type": "text", "text": text }],
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
        let shown = call_result(CallAnswer { value, is_error: true });
        let mut kept = small;
        kept["truncated"] = true.into();
        assert_eq!(shown.get("structuredContent"), Some(&kept));
    }
}
