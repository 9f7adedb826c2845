//! The MCP server: what it answers to a client that is a script, and what is on record of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, run_in_parallel};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[path = "mcp/exfiltration.rs"]
mod exfiltration;
#[path = "mcp/hostile.rs"]
mod hostile;
#[path = "mcp/policy_changes.rs"]
mod policy_changes;
#[path = "mcp/resources.rs"]
mod resources;
#[path = "mcp/roots.rs"]
mod roots;

const POLICY: &str = "version: 1
name: mcp
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"] } }
  fs.list: allow
  fs.edit: { decision: allow, paths: { allow: [\"**\"], deny: [\"closed/**\"] } }
  fs.write: { decision: ask, paths: { allow: [\"**\"], deny: [\"closed/**\"] } }
  fs.search: deny
  shell.run:
    form: command
    executables:
      cat: allow
      sleep: allow
      touch: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"*.txt\"] }
";

/// A client at the other end of a server.
struct Client {
    capsule: Capsule,
    server: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    /// The last message of the server.
    last: Value,
}

impl Client {
    fn new() -> Self {
        Self::under(POLICY)
    }

    fn under(policy: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        capsule.write_file("a.txt", "one\ntwo\n");
        capsule.write_file("closed/b.txt", "three\n");
        let policy = format!("--policy={}", capsule.write_policy(policy));
        let command = capsule.command(&["mcp", "serve", &policy]);
        Self::of_server(capsule, command)
    }

    /// A client of the server that a command starts.
    fn of_server(capsule: Capsule, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let input = server.stdin.take();
        let output = server.stdout.take().map(BufReader::new);
        Self { capsule, server, input, output, last: Value::Null }
    }

    /// A client that began with `initialize`.
    fn begun(capabilities: &Value) -> Self {
        Self::new().begin(capabilities)
    }

    fn begin(mut self, capabilities: &Value) -> Self {
        let client = &mut self;
        client.send(&initialize("2025-11-25", capabilities).to_string());
        client.receive();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self
    }

    /// Sends a line, in which `$ID` is the id and `$STATE` the state of the last message of the server.
    fn send(&mut self, line: &str) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = line
            .replace("$ID", &text(&self.last["id"]))
            .replace("$STATE", &text(&self.last["result"]["requestState"]));
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        self.last = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        self.last.clone()
    }

    /// Ends the connection; gives the record.
    fn end(&mut self) -> Value {
        drop(self.input.take());
        assert!(self.server.wait().unwrap().success());
        let _ = self.capsule.run(&["verify"]).exits(0);
        self.record()
    }

    /// The report of the session.
    fn record(&self) -> Value {
        let runs = self.capsule.run(&["list-runs", "--json"]).exits(0).json();
        let runs = runs.as_array().unwrap();
        let is_session =
            |run: &&Value| run["name"].as_str().unwrap_or_default().starts_with("mcp:");
        let run = runs.iter().find(is_session).unwrap_or_else(|| panic!("{runs:?}"));
        let id = run["run"].as_str().unwrap();
        self.capsule.run(&["report", id, "--format", "json"]).exits(0).json()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends with its input, or has ended.
        let _ = self.server.wait();
    }
}

fn initialize(version: &str, capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": { "name": "script", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn call(id: u64, tool: &str, args: &Value) -> String {
    request(&json!(id), "tools/call", &json!({ "name": tool, "arguments": args }))
}

/// A call of a client whose requests speak for themselves.
fn stateless_call(id: u64, tool: &str, args: &Value, repeated: &Value) -> String {
    let mut params = json!({
        "name": tool,
        "arguments": args,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    params.as_object_mut().unwrap().extend(repeated.as_object().unwrap().clone());
    request(&json!(id), "tools/call", &params)
}

fn answer(action: &str, allow: bool) -> String {
    let content = json!({ "allow": allow });
    json!({ "jsonrpc": "2.0", "id": "$ID", "result": { "action": action, "content": content } })
        .to_string()
}

/// A line of the client, and what the next message of the server holds; nothing where none comes.
type Step = (String, Expected);

/// Places in a message, and a text that each holds.
type Expected = &'static [(&'static str, &'static str)];

/// Sends each line, and looks at the message that comes for it.
#[track_caller]
fn follow(client: &mut Client, what: &str, steps: &[Step]) {
    for (line, expected) in steps {
        client.send(line);
        if expected.is_empty() {
            continue;
        }
        let message = client.receive();
        for (pointer, value) in *expected {
            let found = message.pointer(pointer).cloned().unwrap_or_default();
            let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            assert!(found.contains(value), "{what}: {line}\n{pointer} is not {value}: {message}");
        }
    }
}

/// A line that wants no answer.
const NOTHING: &str = r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#;

fn cancel(id: u64) -> String {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string()
}

const STATUS: &str = "/result/structuredContent/status";
const CODE: &str = "/result/structuredContent/code";
const ERROR: &str = "/error/code";

/// FR-2, FR-3: every revision is answered in its own form, and a call is judged, carried out, recorded and replayed.
#[test]
fn tools_are_listed_and_called_under_the_policy() {
    let write = json!({ "path": "new.txt", "content": "x", "mode": "create" });
    let none = json!({});
    let versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2024-01-01"];
    run_in_parallel(versions, |version| {
        let mut client = Client::new();
        let steps: &[Step] = &[
            (request(&json!(1), "tools/list", &none), &[(ERROR, "-32600")]),
            (initialize(version, &none).to_string(), &[("/result/serverInfo/name", "capsule")]),
        ];
        follow(&mut client, version, steps);
        let given = client.last["result"]["protocolVersion"].as_str().unwrap();
        assert_eq!(given, if version == "2024-01-01" { "2025-11-25" } else { version });
        let steps: &[Step] = &[
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(), &[]),
            (request(&json!("t"), "tools/list", &none), &[("/id", "t")]),
        ];
        follow(&mut client, version, steps);
        let tools = client.last["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["fs_list", "fs_read", "fs_write", "fs_edit", "shell_run"]);
        let hints = |at: usize, hint: &str| tools[at]["annotations"][hint].as_bool().unwrap();
        assert!(
            hints(1, "readOnlyHint") && !hints(1, "destructiveHint") && !hints(1, "openWorldHint")
        );
        assert!(!hints(3, "readOnlyHint") && hints(3, "destructiveHint"));
        assert!(!hints(4, "readOnlyHint") && hints(4, "openWorldHint"));
        let steps: &[Step] = &[
            (
                call(3, "fs_read", &json!({ "path": "a.txt" })),
                &[
                    (STATUS, "ok"),
                    ("/result/structuredContent/result/text", "one\ntwo\n"),
                    ("/result/content/0/text", "one\\ntwo"),
                    ("/result/isError", "false"),
                ],
            ),
            (
                call(4, "fs_edit", &json!({ "path": "a.txt", "search": "two", "replace": "2" })),
                &[(STATUS, "ok")],
            ),
            (
                call(5, "shell_run", &json!({ "command": "cat a.txt" })),
                &[("/result/structuredContent/result/stdout", "one\n2\n")],
            ),
            (
                call(6, "shell_run", &json!({ "command": "touch c.txt; touch d.md" })),
                &[(STATUS, "")],
            ),
            (
                call(
                    7,
                    "fs_edit",
                    &json!({ "path": "closed/b.txt", "search": "three", "replace": "3" }),
                ),
                &[(STATUS, "denied"), (CODE, "path.not-allowed"), ("/result/isError", "true")],
            ),
            (
                call(8, "fs_read", &json!({ "path": "../policy.yaml" })),
                &[(STATUS, "denied"), (CODE, "path.outside-workspace")],
            ),
            (call(9, "fs_search", &none), &[(STATUS, "denied")]),
            (call(10, "rm", &none), &[(STATUS, "denied"), (CODE, "tool.unknown")]),
            (call(11, "shell_run", &json!({ "command": "rm -r ." })), &[(STATUS, "denied")]),
            (
                call(12, "fs_write", &write),
                &[
                    (STATUS, "denied"),
                    (CODE, "approval.waiting"),
                    ("/result/structuredContent/suggestion", "capsule approvals answer r-"),
                ],
            ),
            (
                call(13, "fs_read", &json!({ "file": 7 })),
                &[(STATUS, "tool_error"), (CODE, "args.invalid")],
            ),
            (
                request(&json!(14), "prompts/list", &none),
                &[("/result/prompts/0/name", "capsule-policy")],
            ),
            (
                request(&json!(15), "prompts/get", &json!({ "name": "capsule-policy" })),
                &[("/result/messages/0/content/text", "fs.edit")],
            ),
        ];
        follow(&mut client, version, steps);
        let workspace = client.capsule.workspace();
        assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\n2\n");
        assert_eq!(fs::read_to_string(workspace.join("closed/b.txt")).unwrap(), "three\n");
        assert!(!workspace.join("new.txt").exists() && !workspace.join("d.md").exists());
        let record = client.end();
        let calls = record["calls"].as_array().unwrap();
        // The parts of a list are calls of their own.
        assert_eq!(calls.len(), 13);
        let store = rusqlite::Connection::open(client.capsule.store()).unwrap();
        let of_client = "SELECT count(*) FROM tool_calls WHERE origin = 'mcp'";
        let count: i64 = store.query_row(of_client, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 13);
        let label = record["run"].as_str().unwrap();
        let replayed = client.capsule.run(&["replay", label]).exits(0);
        assert!(replayed.stderr.contains("nothing was executed"), "{replayed:?}");
    });
}

/// APR-4, APR-6: a question is answered by a form of the client, in either revision, or waits; only a plain yes allows, and
/// only what was asked about.
#[test]
fn a_question_is_answered_by_the_clients_form_or_waits() {
    let args = |name: &str| json!({ "path": name, "content": "x", "mode": "create" });
    let ask = |id| call(id, "fs_write", &args("new.txt"));
    const FORM: &[(&str, &str)] = &[
        ("/method", "elicitation/create"),
        ("/params/message", "new.txt"),
        ("/params/requestedSchema/properties/allow/type", "boolean"),
    ];
    const WANTS: &[(&str, &str)] = &[
        ("/result/resultType", "input_required"),
        ("/result/inputRequests/approval/method", "elicitation/create"),
    ];
    let given = json!({
        "requestState": "$STATE",
        "inputResponses": { "approval": { "action": "accept", "content": { "allow": true } } },
    });
    let stateless =
        |id, name: &str, repeated: &Value| stateless_call(id, "fs_write", &args(name), repeated);
    let none = json!({});
    let cases: Vec<(&str, Value, Vec<Step>, bool)> = vec![
        (
            "yes",
            json!({ "elicitation": {} }),
            vec![(ask(1), FORM), (answer("accept", true), &[(STATUS, "ok")])],
            true,
        ),
        (
            "no",
            json!({ "elicitation": { "form": {} } }),
            vec![(ask(1), FORM), (answer("accept", false), &[(CODE, "approval.denied")])],
            false,
        ),
        (
            "declined",
            json!({ "elicitation": {} }),
            vec![(ask(1), FORM), (answer("decline", true), &[(CODE, "approval.denied")])],
            false,
        ),
        (
            "dismissed",
            json!({ "elicitation": {} }),
            vec![(ask(1), FORM), (answer("cancel", true), &[(CODE, "approval.waiting")])],
            false,
        ),
        (
            "once",
            json!({ "elicitation": {} }),
            vec![
                (ask(1), FORM),
                (answer("accept", true), &[(STATUS, "ok")]),
                (call(2, "fs_write", &args("other.txt")), &[("/method", "elicitation/create")]),
                (answer("decline", false), &[(CODE, "approval.denied")]),
            ],
            true,
        ),
        (
            "an error",
            json!({ "elicitation": {} }),
            vec![
                (ask(1), FORM),
                (
                    r#"{"jsonrpc":"2.0","id":"$ID","error":{"code":-1,"message":"x"}}"#.into(),
                    &[(CODE, "approval.waiting")],
                ),
            ],
            false,
        ),
        (
            "another id",
            json!({ "elicitation": {} }),
            vec![
                (ask(1), FORM),
                (answer("accept", true).replace("$ID", "capsule-1-0"), &[]),
                (answer("decline", false), &[(CODE, "approval.denied")]),
            ],
            false,
        ),
        (
            "no forms",
            json!({ "elicitation": { "url": {} } }),
            vec![(ask(1), &[(CODE, "approval.waiting")])],
            false,
        ),
        ("no elicitation", json!({}), vec![(ask(1), &[(CODE, "approval.waiting")])], false),
        (
            "stateless yes",
            json!({}),
            vec![
                (stateless(1, "new.txt", &none), WANTS),
                (
                    stateless(2, "new.txt", &given),
                    &[(STATUS, "ok"), ("/id", "2"), ("/result/resultType", "complete")],
                ),
            ],
            true,
        ),
        (
            "stateless, something else",
            json!({}),
            vec![
                (stateless(1, "other.txt", &none), WANTS),
                (stateless(2, "new.txt", &given), &[(ERROR, "-32602")]),
            ],
            false,
        ),
        (
            "stateless, a guess",
            json!({}),
            vec![
                (stateless(1, "new.txt", &none), WANTS),
                (
                    stateless(
                        2,
                        "new.txt",
                        &json!({ "requestState": "capsule-0-0", "inputResponses": given["inputResponses"] }),
                    ),
                    &[(ERROR, "-32602")],
                ),
            ],
            false,
        ),
        (
            "stateless, no question",
            json!({}),
            vec![
                (
                    stateless_call(2, "fs_read", &json!({ "path": "a.txt" }), &none),
                    &[(STATUS, "ok")],
                ),
                (stateless(1, "new.txt", &json!({ "requestState": "x" })), &[(ERROR, "-32602")]),
            ],
            false,
        ),
        (
            "stateless, goes on",
            json!({}),
            vec![
                (stateless(1, "new.txt", &none), WANTS),
                (stateless_call(2, "fs_read", &json!({ "path": "a.txt" }), &none), &[]),
                (stateless(3, "new.txt", &given), &[("/id", "3"), (STATUS, "ok")]),
                (NOTHING.into(), &[("/id", "2"), (STATUS, "ok")]),
            ],
            true,
        ),
        (
            "stateless, given up",
            json!({}),
            vec![
                (stateless(1, "new.txt", &none), WANTS),
                (stateless_call(2, "fs_read", &json!({ "path": "a.txt" }), &none), &[]),
                (cancel(1), &[("/id", "2"), (STATUS, "ok")]),
            ],
            false,
        ),
        (
            "given up",
            json!({ "elicitation": {} }),
            vec![
                (ask(1), FORM),
                (
                    cancel(1),
                    &[("/method", "notifications/cancelled"), ("/params/requestId", "capsule-0-")],
                ),
                (call(2, "fs_read", &json!({ "path": "a.txt" })), &[("/id", "2"), (STATUS, "ok")]),
            ],
            false,
        ),
        (
            "lists meanwhile",
            json!({ "elicitation": {} }),
            vec![
                (ask(1), FORM),
                (
                    request(&json!(2), "tools/list", &none),
                    &[("/id", "2"), ("/result/tools/0/name", "fs_list")],
                ),
                (request(&json!(1), "prompts/list", &none), &[(ERROR, "-32600")]),
                (
                    request(&json!(3), "prompts/list", &none),
                    &[("/id", "3"), ("/result/prompts", "")],
                ),
            ],
            false,
        ),
    ];
    run_in_parallel(&cases, |(what, capabilities, steps, is_made)| {
        let mut client = Client::begun(capabilities);
        follow(&mut client, what, steps);
        drop(client.input.take());
        let made = client.capsule.workspace().join("new.txt");
        assert_eq!(made.exists(), *is_made, "{what}");
        assert!(client.server.wait().unwrap().success(), "{what}");
        let _ = client.capsule.run(&["verify"]).exits(0);
    });
}

/// F14: a message that is none, comes at the wrong time, is too long or too deep is refused by its own error, and the
/// next one is answered.
#[test]
fn hostile_messages_are_refused() {
    let none = json!({});
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(4_000_000));
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}",
        "{\"a\":".repeat(100_000)
    );
    let twice = call(1, "fs_read", &json!({ "path": "a.txt" }))
        .replace("\"path\":\"a.txt\"", "\"path\":\"a.txt\",\"path\":\"closed/b.txt\"");
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } });
    let bare = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let cases: Vec<(&str, String, Expected)> = vec![
        ("huge", long, &[(ERROR, "-32600"), ("/error/message", "at most 4000000 bytes")]),
        ("deep", deep, &[(ERROR, "-32700")]),
        ("no JSON", "Content-Length: 12".into(), &[(ERROR, "-32700"), ("/id", "null")]),
        ("a key twice", twice, &[(ERROR, "-32700")]),
        (
            "a batch",
            format!("[{}]", call(1, "fs_list", &json!({ "path": "." }))),
            &[(ERROR, "-32600")],
        ),
        (
            "no version",
            r#"{"id":1,"method":"tools/list"}"#.into(),
            &[(ERROR, "-32600"), ("/id", "1")],
        ),
        ("no method", r#"{"jsonrpc":"2.0","id":1}"#.into(), &[(ERROR, "-32600")]),
        (
            "an unknown method",
            request(&json!(1), "tools/delete\u{1b}[2J", &none),
            &[(ERROR, "-32601")],
        ),
        (
            "an id that is none",
            r#"{"jsonrpc":"2.0","id":[1],"method":"tools/list"}"#.into(),
            &[(ERROR, "-32600")],
        ),
        (
            "a long id",
            request(&json!("x".repeat(201)), "tools/list", &none),
            &[(ERROR, "-32600"), ("/id", "null")],
        ),
        (
            "parameters that are none",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}"#.into(),
            &[(ERROR, "-32600")],
        ),
        (
            "a name that is none",
            request(&json!(1), "tools/call", &json!({ "name": 7 })),
            &[(ERROR, "-32602")],
        ),
        (
            "a long name",
            request(&json!(1), "tools/call", &json!({ "name": "x".repeat(201) })),
            &[(ERROR, "-32602")],
        ),
        (
            "arguments that are none",
            request(&json!(1), "tools/call", &json!({ "name": "fs_read", "arguments": [] })),
            &[(ERROR, "-32602")],
        ),
        (
            "a page",
            request(&json!(1), "tools/list", &json!({ "cursor": "x" })),
            &[(ERROR, "-32602")],
        ),
        (
            "an unknown prompt",
            request(&json!(1), "prompts/get", &json!({ "name": "x" })),
            &[(ERROR, "-32602")],
        ),
        ("a second beginning", initialize("2025-11-25", &none).to_string(), &[(ERROR, "-32600")]),
        (
            "an unknown revision",
            request(&json!(1), "tools/list", &meta),
            &[(ERROR, "-32022"), ("/error/data/supported/0", "2026-07-28")],
        ),
        ("no capabilities", request(&json!(1), "tools/list", &bare), &[(ERROR, "-32602")]),
    ];
    let mut client = Client::begun(&none);
    for (what, line, expected) in &cases {
        follow(&mut client, what, &[(line.clone(), expected)]);
        follow(&mut client, what, &[(request(&json!("p"), "ping", &none), &[("/id", "p")])]);
    }
    // A notification wants no answer, and gets none.
    for silent in [
        "",
        r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","id":"capsule-0","result":{"action":"accept","content":{"allow":true}}}"#,
    ] {
        follow(&mut client, silent, &[(silent.into(), &[])]);
        follow(&mut client, silent, &[(request(&json!("p"), "ping", &none), &[("/id", "p")])]);
    }
    drop(client.input.take());
    assert!(client.server.wait().unwrap().success());
    assert!(!client.capsule.store().exists(), "nothing was called");
}

/// Whether a process of this machine has this command line.
fn is_running(line: &[u8]) -> bool {
    let mut entries = fs::read_dir("/proc").unwrap().flatten();
    entries.any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|found| found == line))
}

/// Waits until a process of this machine has this command line.
fn wait_until_running(line: &[u8]) {
    let began = Instant::now();
    while !is_running(line) {
        assert!(began.elapsed().as_secs() < 20, "the command does not start");
        thread::sleep(Duration::from_millis(10));
    }
}

/// EI-5: what is cancelled stops, and what waits behind it is served; an id that is in use is refused.
#[test]
fn a_cancelled_call_is_stopped() {
    let none = json!({});
    let mut client = Client::begun(&none);
    // The time names the process: a call that is cancelled before it began leaves no record.
    client.send(&call(1, "shell_run", &json!({ "command": "sleep 8.0625" })));
    wait_until_running(b"sleep\x008.0625\0");
    let steps: &[Step] = &[
        (
            call(1, "fs_list", &json!({ "path": "." })),
            &[(ERROR, "-32600"), ("/error/message", "goes on")],
        ),
        (request(&json!(2), "ping", &none), &[("/id", "2")]),
        (call(3, "fs_read", &json!({ "path": "a.txt" })), &[]),
        (call(4, "fs_list", &json!({ "path": "." })), &[]),
        (cancel(3), &[]),
        (cancel(1), &[("/id", "4"), (STATUS, "ok")]),
    ];
    let began = Instant::now();
    follow(&mut client, "cancelled", steps);
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    let record = client.end();
    assert_eq!(record["calls"].as_array().unwrap().len(), 2, "{record}");
    assert_eq!(record["calls"][0]["problem"]["code"], json!("exec.cancelled"), "{record}");
}

/// FR-2: what was asked for before the end of the input is answered, calls that wait or go on included; a question has no
/// answer then.
#[test]
fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let mut client = Client::begun(&json!({ "elicitation": {} }));
    let write = json!({ "path": "new.txt", "content": "x", "mode": "create" });
    for line in [
        request(&json!(1), "tools/list", &json!({})),
        call(2, "shell_run", &json!({ "command": "sleep 0.4; touch last.txt" })),
        call(3, "fs_write", &write),
        call(4, "fs_read", &json!({ "path": "last.txt" })),
    ] {
        client.send(&line);
    }
    drop(client.input.take());
    for (id, status) in [(1, ""), (2, "ok"), (3, "denied"), (4, "ok")] {
        let answer = client.receive();
        let found = answer.pointer(STATUS).and_then(Value::as_str).unwrap_or_default();
        assert_eq!((&answer["id"], found), (&json!(id), status), "{answer}");
    }
    assert!(client.end()["calls"].as_array().unwrap().len() >= 3);
}

/// A client that goes, or a server that is asked to end, stops the call that goes on and seals the session.
#[test]
fn the_session_ends_with_its_client() {
    run_in_parallel([None, Some(Signal::TERM), Some(Signal::INT)], |signal| {
        let mut client = Client::begun(&json!({}));
        follow(
            &mut client,
            "read",
            &[(call(1, "fs_read", &json!({ "path": "a.txt" })), &[(STATUS, "ok")])],
        );
        client.send(&call(2, "shell_run", &json!({ "command": "sleep 8" })));
        let began = Instant::now();
        // The call has begun where a request behind it is refused for its id.
        follow(
            &mut client,
            "begun",
            &[(call(2, "fs_list", &json!({ "path": "." })), &[(ERROR, "-32600")])],
        );
        match signal {
            None => drop((client.input.take(), client.output.take())),
            Some(signal) => kill_process(Pid::from_child(&client.server), signal).unwrap(),
        }
        let _ = client.server.wait().unwrap();
        assert!(began.elapsed().as_secs() < 8, "{signal:?}");
        assert_eq!(client.record()["exit"], json!(0), "{signal:?}: {}", client.record());
        let open = client.capsule.run(&["session", "list"]).exits(0);
        assert!(open.stdout.contains("no session is open"), "{signal:?}: {open:?}");
        let _ = client.capsule.run(&["verify"]).exits(0);
    });
}

/// UNDO-2: where a part of the changes of a call cannot be made, since another program put something else there meanwhile, the
/// result says which, and the rest is made.
#[test]
fn what_cannot_be_applied_is_told() {
    let mut client = Client::begun(&json!({}));
    let workspace = client.capsule.workspace().to_owned();
    // The time names the process.
    let command = "touch c.txt; touch e.txt; sleep 3.0625";
    client.send(&call(1, "shell_run", &json!({ "command": command })));
    wait_until_running(b"sleep\x003.0625\0");
    fs::create_dir(workspace.join("c.txt")).unwrap();
    fs::write(workspace.join("c.txt/theirs"), "theirs").unwrap();
    let told = client.receive();
    assert_eq!(told["result"]["isError"], json!(true), "{told}");
    let not_applied = &told["result"]["structuredContent"]["not_applied"];
    assert!(not_applied.to_string().contains("c.txt"), "{told}");
    assert_eq!(fs::read_to_string(workspace.join("c.txt/theirs")).unwrap(), "theirs");
    let read = call(2, "fs_read", &json!({ "path": "a.txt" }));
    follow(&mut client, "after", &[(read, &[(STATUS, "ok")])]);
    let _ = client.end();
    let waiting = client.capsule.run(&["changes"]);
    assert!(!waiting.stdout.contains("c.txt"), "nothing waits: {waiting:?}");
}

/// A server over HTTP.
struct Door {
    capsule: Capsule,
    server: Child,
    address: String,
    token: String,
}

impl Door {
    fn open() -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        capsule.write_file("a.txt", "one\ntwo\n");
        let policy = format!("--policy={}", capsule.write_policy(POLICY));
        let mut command = capsule.command(&["mcp", "serve", &policy, "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut line = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(name).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (address, token) = (line("serving: http://"), line("token: "));
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { capsule, server, address, token }
    }

    /// The headers of a client that may call, in the order in which a case replaces them.
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Host", self.address.clone()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".into()),
            ("Accept", "application/json, text/event-stream".into()),
        ]
    }

    fn send(&self, start: &str, headers: &[(&str, String)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut text = format!("{start} HTTP/1.1\r\n");
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        // A request that is refused early is not read to its end.
        let _ = stream.write_all(text.as_bytes());
        stream
    }

    /// The whole answer to a message, with a session if one is given.
    fn post(&self, session: &str, body: &str) -> String {
        let headers = [self.headers(), vec![("Mcp-Session-Id", session.to_owned())]].concat();
        read_all(self.send("POST /mcp", &headers, body))
    }

    fn begin(&self, capabilities: &Value) -> String {
        let answer = self.post("", &initialize("2025-11-25", capabilities).to_string());
        let id = answer.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: "));
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.server), Signal::TERM);
        let _ = self.server.wait();
    }
}

/// The attempt, the first words of the request, the header that differs, the body, and the status of the answer.
type HttpCase<'c> = (&'c str, &'c str, (&'c str, String), &'c str, &'c str);

fn read_all(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // What was refused early may end with a reset.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// F14: over HTTP nothing is served but to the holder of the token, by the server's name, from no other page, within bounds.
#[test]
fn over_http_only_the_holder_of_the_token_is_served() {
    let door = Door::open();
    let list = request(&json!(1), "tools/list", &json!({}));
    let session = door.begin(&json!({}));
    let huge = "x".repeat(4_000_001);
    let other = || format!("Bearer {}", "0".repeat(64));
    let port = door.address.rsplit(':').next().unwrap();
    let cases: Vec<HttpCase<'_>> = vec![
        ("as it has to be", "POST /mcp", ("Origin", String::new()), &list, "200"),
        ("its page", "POST /mcp", ("Origin", format!("http://{}", door.address)), &list, "200"),
        ("its name", "POST /mcp", ("Host", format!("localhost:{port}")), &list, "200"),
        ("no token", "POST /mcp", ("Authorization", String::new()), &list, "401"),
        ("another token", "POST /mcp", ("Authorization", other()), &list, "401"),
        ("a part of it", "POST /mcp", ("Authorization", "Bearer ".into()), &list, "401"),
        ("another host", "POST /mcp", ("Host", "capsule.example".into()), &list, "421"),
        ("another port", "POST /mcp", ("Host", "127.0.0.1:1".into()), &list, "421"),
        ("no host", "POST /mcp", ("Host", String::new()), &list, "421"),
        ("another page", "POST /mcp", ("Origin", "http://a.example".into()), &list, "403"),
        ("a page of a file", "POST /mcp", ("Origin", "null".into()), &list, "403"),
        ("a form", "POST /mcp", ("Content-Type", "text/plain".into()), &list, "415"),
        ("chunks", "POST /mcp", ("Transfer-Encoding", "chunked".into()), &list, "501"),
        ("another path", "POST /", ("Origin", String::new()), &list, "404"),
        ("another method", "PUT /mcp", ("Origin", String::new()), "", "405"),
        ("a stream without a session", "GET /mcp", ("Mcp-Session-Id", String::new()), "", "400"),
        ("the stream of another", "GET /mcp", ("Mcp-Session-Id", "x".into()), "", "404"),
        ("a stream without the token", "GET /mcp", ("Authorization", other()), "", "401"),
        ("a huge body", "POST /mcp", ("Origin", String::new()), &huge, "413"),
        ("a huge head", "POST /mcp", ("X", "x".repeat(20_000)), &list, "431"),
        ("no JSON", "POST /mcp", ("Origin", String::new()), "{", "400"),
        ("no session", "POST /mcp", ("Mcp-Session-Id", String::new()), &list, "400"),
        ("another session", "POST /mcp", ("Mcp-Session-Id", "x".into()), &list, "404"),
        ("the end of another session", "DELETE /mcp", ("Mcp-Session-Id", "x".into()), "", "404"),
    ];
    for (what, start, (name, value), body, status) in cases {
        let mut headers = [door.headers(), vec![("Mcp-Session-Id", session.clone())]].concat();
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
        let answer = read_all(door.send(start, &headers, body));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
    }
    for address in ["0.0.0.0:0", "192.0.2.1:0", "localhost", ":0"] {
        let refused = door.capsule.run(&["mcp", "serve", "--listen", address]);
        assert_eq!(refused.status, 2, "{address}: {refused:?}");
    }
    assert!(!door.capsule.store().exists(), "nothing was called");
}

/// FR-2, APR-4: over HTTP a call is judged, made and recorded; a question comes on the stream of its request.
#[test]
fn tools_are_called_over_http() {
    let door = Door::open();
    let first = door.begin(&json!({}));
    let session = door.begin(&json!({ "elicitation": {} }));
    let read = call(1, "fs_read", &json!({ "path": "a.txt" }));
    let replaced = door.post(&first, &read);
    assert!(replaced.starts_with("HTTP/1.1 404 "), "{replaced}");
    let done = door.post(&session, &read);
    assert!(
        done.contains("one\\ntwo") && done.contains("Content-Type: application/json"),
        "{done}"
    );
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(door.post(&session, note).starts_with("HTTP/1.1 202 "));
    let args = json!({ "path": "new.txt", "content": "x", "mode": "create" });
    let headers = [door.headers(), vec![("Mcp-Session-Id", session.clone())]].concat();
    let stream = door.send("POST /mcp", &headers, &call(2, "fs_write", &args));
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = || {
        let line = lines.find(|line| line.starts_with("data: ")).unwrap();
        serde_json::from_str::<Value>(line.trim_start_matches("data: ")).unwrap()
    };
    let asked = next();
    assert_eq!(asked["method"], json!("elicitation/create"), "{asked}");
    let yes = answer("accept", true).replace("$ID", asked["id"].as_str().unwrap());
    assert!(door.post(&session, &yes).starts_with("HTTP/1.1 202 "));
    let written = next();
    assert_eq!(written.pointer(STATUS), Some(&json!("ok")), "{written}");
    assert!(door.capsule.workspace().join("new.txt").exists());
    let stateless = stateless_call(3, "fs_read", &json!({ "path": "a.txt" }), &json!({}));
    assert!(door.post("", &stateless).contains("\"resultType\":\"complete\""));
    let headers = [door.headers(), vec![("Mcp-Session-Id", session.clone())]].concat();
    let ended = read_all(door.send("DELETE /mcp", &headers, ""));
    assert!(ended.starts_with("HTTP/1.1 204 "), "{ended}");
    assert!(door.post(&session, &read).starts_with("HTTP/1.1 404 "));
    kill_process(Pid::from_child(&door.server), Signal::TERM).unwrap();
    let began = Instant::now();
    while door.capsule.run(&["session", "list"]).stdout.contains("mcp:") {
        assert!(began.elapsed().as_secs() < 20, "the session does not end");
    }
    let _ = door.capsule.run(&["verify"]).exits(0);
}
