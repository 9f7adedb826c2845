//! What a client of the MCP server says, a line each. Whatever that is, the server ends, each of its answers is a message of JSON-RPC with
//! an outcome, there are no more of them than lines, and the path gets no call but one whose tool is a text and whose arguments are
//! an object with one reading.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use capsule_base::{json as strict, limits};
use capsule_core::approval::Card;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Cancel, ModelTool, Prompt, offered_tools};
use capsule_serve::{CallAnswer, McpHost, PolicyWatch, serve_lines};
use serde_json::json;

use crate::policy;

pub(super) fn run(bytes: &[u8]) {
    let mut host = Host { calls: 0 };
    let output = Output::default();
    serve_lines(&mut host, Cursor::new(bytes.to_vec()), output.clone()).expect("it serves");
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(host.calls <= lines);
    let output = output.0.lock().expect("nothing panicked");
    let mut answers = 0;
    for message in output.split(|byte| *byte == b'\n').filter(|message| !message.is_empty()) {
        let answer = strict::parse(message).expect("a message is JSON");
        assert_eq!(answer["jsonrpc"], "2.0");
        if let Some(method) = answer.get("method") {
            assert!(method.as_str().is_some_and(|method| method.starts_with("notifications/")));
            continue;
        }
        answers += 1;
        assert!(answer.get("id").is_some());
        assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    }
    assert!(answers <= lines, "more answers than lines");
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nothing panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the host offers.
static TOOLS: LazyLock<Vec<ModelTool>> = LazyLock::new(|| {
    let text = "version: 1\nname: doors\ntools: { fs.read: { paths: { allow: [\"**\"] } }, fs.search: deny }\n";
    offered_tools(&policy(text), false)
});

/// A host that answers each call with what it was.
struct Host {
    calls: usize,
}

impl McpHost for Host {
    /// Another list after every call.
    fn offer(&self) -> Result<(Vec<ModelTool>, String), CodedError> {
        Ok((TOOLS.iter().take(self.calls % 2).cloned().collect(), "a policy".into()))
    }

    fn refresh(&mut self) -> bool {
        true
    }

    fn policy_watch(&self) -> PolicyWatch {
        Box::new(|| false)
    }

    fn awaits_root(&self) -> bool {
        false
    }

    fn take_root(&mut self, _root: Option<&Path>) {}

    fn card_text(&self) -> fn(&Card) -> Option<String> {
        |_| None
    }

    fn interrupter(&self) -> fn() {
        || ()
    }

    fn resumer(&self) -> fn() {
        || ()
    }

    fn cancel(&self) -> Cancel {
        Cancel::default()
    }

    fn call(
        &mut self,
        (tool, args): (&str, &str),
        _prompt: Box<dyn Prompt>,
    ) -> Result<CallAnswer, CodedError> {
        self.calls += 1;
        assert!(tool.len() <= limits::NAME_CHARS);
        let args = strict::parse(args.as_bytes()).expect("arguments have one reading");
        assert!(args.is_object());
        let value = json!({ "status": "denied", "tool": tool, "args": args });
        Ok(CallAnswer { value, is_error: false, call: Some(format!("r-1:{}", self.calls)) })
    }

    fn rest(&mut self) {}
}
