//! Other agents, as they come from their registry, connected to this build and driven by a scripted model: what they
//! may do happens, confined and recorded, and what they may not do never happened. And other clients of the protocol that
//! our server speaks.

#![expect(clippy::indexing_slicing, reason = "a missing key of JSON reads as null")]

mod protocol;
mod sandbox;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use capsule_testkit::{HttpRequest, HttpServer};
use serde_json::{Value, json};

use crate::clients::protocol::Protocol;
use crate::{TaskResult, cargo};

/// The package of Claude Code and the version that the hook was tried with.
const CLAUDE_CODE: &str = "@anthropic-ai/claude-code@2.1.332";
/// The package of Codex and the version that the hook was tried with.
const CODEX: &str = "@openai/codex@0.171.0";
/// What no agent may read.
const SECRET: &str = "a-private-key-of-ada";
/// How long an agent may take for all of its steps, in seconds.
const SECONDS: &str = "180";

/// Installs the clients of the protocol and has them speak to the server; likewise the agents, with a scripted model, unless
/// the protocol alone is asked for.
///
/// # Errors
/// When a package cannot be had, the binary does not build, or a client cannot be started.
pub(crate) fn run(root: &Path, protocol_only: bool) -> TaskResult<bool> {
    let mut build = cargo::command(root);
    cargo::run(build.args(["build", "--quiet", "--locked", "--package", "capsule-cli"]))?;
    let target = cargo::target_directory(root)?;
    let make =
        |name: &str| Client::make(&target.join("clients").join(name), target.join("debug/capsule"));
    let protocol = Protocol::install(target.join("clients/protocol"))?;
    let speaks = protocol.check(&make("protocol-client")?)?;
    if protocol_only {
        return Ok(speaks);
    }
    let packages = target.join("clients/packages");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&packages);
    cargo::run(npm.args([CLAUDE_CODE, CODEX]))?;
    let modules = packages.join("node_modules");
    let claude = find_program(&modules.join("@anthropic-ai"), "claude")?;
    let codex = find_program(&modules.join("@openai"), "codex")?;
    let checks = [
        speaks,
        make("claude-code")?.check_claude_code(&claude)?,
        make("claude-code-mcp")?.check_claude_code_by_mcp(&claude)?,
        make("codex")?.check_codex(&codex)?,
        make("confined-claude-code")?.check_confined_claude_code(&claude)?,
        make("confined-codex")?.check_confined_codex(&codex)?,
    ];
    Ok(checks.iter().all(|is_good| *is_good))
}

/// The program of this name in a directory, at any depth.
fn find_program(directory: &Path, name: &str) -> TaskResult<PathBuf> {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| at(&directory, &error))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_file() && path.file_name().is_some_and(|found| found == name) {
                return Ok(path);
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    Err(format!("{}: there is no program `{name}` for this machine", directory.display()))
}

/// An agent's home and workspace.
struct Client {
    home: PathBuf,
    workspace: PathBuf,
    capsule: PathBuf,
}

impl Client {
    fn make(root: &Path, capsule: PathBuf) -> TaskResult<Self> {
        if root.exists() {
            fs::remove_dir_all(root).map_err(|error| at(root, &error))?;
        }
        let made = Self { home: root.join("home"), workspace: root.join("workspace"), capsule };
        let key = made.home.join(".ssh/id_rsa");
        let files = [
            (key, SECRET),
            (made.workspace.join("notes.md"), "pears: 12\n"),
            (made.workspace.join("test.mk"), "test:\n\t@grep -q quinces notes.md && echo passed\n"),
        ];
        for (path, text) in files {
            let directory = path.parent().unwrap_or(root);
            fs::create_dir_all(directory)
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| at(&path, &error))?;
        }
        made.output(Command::new("git").args(["init", "--quiet"]))?;
        Ok(made)
    }

    /// Runs a command in the workspace, with the home of the agent.
    fn output(&self, command: &mut Command) -> TaskResult<Output> {
        self.output_with(command, |_| {})
    }

    fn capsule(&self, args: &[&str]) -> TaskResult<Output> {
        self.output(Command::new(&self.capsule).args(args))
    }

    /// What a model asks Claude Code for, one call after the other.
    fn steps(&self) -> Vec<(&'static str, Value)> {
        let notes = self.workspace.join("notes.md");
        let key = self.home.join(".ssh/id_rsa");
        let command = |text: &str| ("Bash", json!({ "command": text, "description": "a step" }));
        vec![
            command("ls"),
            ("Read", json!({ "file_path": notes })),
            ("Edit", json!({ "file_path": notes, "old_string": "pears", "new_string": "quinces" })),
            command("make -s -f test.mk test && echo made > made.txt"),
            command("git push origin main"),
            ("Read", json!({ "file_path": key })),
            command("cat ~/.ssh/id_rsa"),
            ("Write", json!({ "file_path": self.home.join("outside.txt"), "content": "x" })),
        ]
    }

    /// What a model asks the tools of our MCP server for that take the place of Claude Code's.
    fn mcp_steps(&self) -> Vec<(&'static str, Value)> {
        let command = |text: &str| ("mcp__capsule__shell_run", json!({ "command": text }));
        let read = |path: &str| ("mcp__capsule__fs_read", json!({ "path": path }));
        let edit = json!({ "path": "notes.md", "search": "pears", "replace": "quinces" });
        let outside = json!({ "path": "../home/outside.txt", "content": "x", "mode": "create" });
        vec![
            ("mcp__capsule__fs_list", json!({ "path": "." })),
            read("notes.md"),
            ("mcp__capsule__fs_edit", edit),
            command("make -s -f test.mk test && echo made > made.txt"),
            command("git push origin main"),
            read(&self.home.join(".ssh/id_rsa").display().to_string()),
            command("cat ~/.ssh/id_rsa"),
            ("mcp__capsule__fs_write", outside),
        ]
    }

    /// Connected by its hook, with its own tools.
    fn check_claude_code(&self, program: &Path) -> TaskResult<bool> {
        let version = self.output(Command::new(program).arg("--version"))?;
        println!("{}", String::from_utf8_lossy(&version.stdout).trim());
        self.capsule(&["connect", "claude-code"])?;
        self.drive_claude_code(program, self.steps())
    }

    /// Connected so that it has the tools of our MCP server and no others.
    fn check_claude_code_by_mcp(&self, program: &Path) -> TaskResult<bool> {
        self.capsule(&["connect", "claude-code", "--level", "replace"])?;
        self.drive_claude_code(program, self.mcp_steps())
    }

    /// Runs Claude Code with a model that takes these steps, and looks at what came of them.
    fn drive_claude_code(
        &self,
        program: &Path,
        steps: Vec<(&'static str, Value)>,
    ) -> TaskResult<bool> {
        let count = steps.len();
        let server = serve_messages(steps);
        let mut agent = Command::new("timeout");
        agent.arg(SECONDS).arg(program).args(["-p", "go", "--output-format", "json"]);
        let variables = |command: &mut Command| {
            command.env("ANTHROPIC_BASE_URL", server.url(""));
            command.env("ANTHROPIC_API_KEY", "none");
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            command.env("DISABLE_AUTOUPDATER", "1");
        };
        let done = self.output_with(&mut agent, variables)?;
        self.check(&done, &server.requests(), count)
    }

    fn check_codex(&self, program: &Path) -> TaskResult<bool> {
        let version = self.output(Command::new(program).arg("--version"))?;
        println!("{}", String::from_utf8_lossy(&version.stdout).trim());
        let steps = [
            "ls",
            "echo 'quinces: 12' > notes.md",
            "make -s -f test.mk test && echo made > made.txt",
            "git push origin main",
            "cat ~/.ssh/id_rsa",
            &format!("cat {}", self.home.join(".ssh/id_rsa").display()),
            "echo x > ../outside.txt",
        ];
        let count = steps.len();
        let server = serve_responses(&steps);
        let directory = self.home.join(".codex");
        let path = directory.join("config.toml");
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(&path, codex_config(&server.url("/v1"))))
            .map_err(|error| at(&path, &error))?;
        self.capsule(&["connect", "codex"])?;
        let mut agent = Command::new("timeout");
        agent.arg(SECONDS).arg(program).args(["exec", "--dangerously-bypass-hook-trust"]);
        agent.args(["--skip-git-repo-check", "go"]);
        let done = self.output_with(&mut agent, |command| {
            command.env("SCRIPTED_KEY", "none");
        })?;
        self.check(&done, &server.requests(), count)
    }

    /// The same with more variables.
    fn output_with(
        &self,
        command: &mut Command,
        set: impl FnOnce(&mut Command),
    ) -> TaskResult<Output> {
        self.prepare(command);
        set(command);
        command.output().map_err(|error| format!("{command:?}: {error}"))
    }

    /// Has a command run in the workspace, with the home of the agent.
    fn prepare(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir(&self.workspace).stdin(Stdio::null());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("CAPSULE_SESSION", "none");
    }

    /// Puts the notes back as they were in the beginning.
    fn write_notes(&self) -> TaskResult<()> {
        let path = self.workspace.join("notes.md");
        fs::write(&path, "pears: 12\n").map_err(|error| at(&path, &error))
    }

    /// Whether what may happen did, what may not did not, and the record has all of it.
    fn check(&self, done: &Output, requests: &[HttpRequest], steps: usize) -> TaskResult<bool> {
        let bodies: Vec<_> =
            requests.iter().map(|request| String::from_utf8_lossy(&request.body)).collect();
        // An MCP server has ended its session; what was applied has runs of its own.
        let listed = self.capsule(&["list-runs", "--json"])?;
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        let is_session = |run: &&Value| run["kind"] == "session";
        let session = listed.as_array().and_then(|runs| runs.iter().find(is_session));
        let session = session.and_then(|run| run["label"].as_str()).unwrap_or("latest").to_owned();
        let report = self.capsule(&["report", &session, "--format", "json"])?;
        let report: Value = serde_json::from_slice(&report.stdout).unwrap_or_default();
        let calls = report["calls"].as_array().cloned().unwrap_or_default();
        let denied = calls.iter().filter(|call| call["status"] == "denied").count();
        let read = |name: &str| fs::read_to_string(self.workspace.join(name)).unwrap_or_default();
        let edited = (read("notes.md"), read("made.txt"));
        let undone = self.capsule(&["undo", &session])?;
        let verified = self.capsule(&["verify", &session])?;
        let is_good = tell(&[
            (done.status.success(), "the agent ended badly"),
            (calls.len() >= steps, "the record lacks a call"),
            (denied == 4, "not exactly four calls were denied"),
            (edited == ("quinces: 12\n".into(), "made\n".into()), "what may be changed was not"),
            (bodies.iter().any(|body| body.contains("passed")), "the test did not run"),
            (!bodies.iter().any(|body| body.contains(SECRET)), "the model was sent a private key"),
            (
                !self.home.join("outside.txt").exists(),
                "a file outside of the workspace was written",
            ),
            (
                undone.status.success() && read("notes.md") == "pears: 12\n",
                "the undo did not restore",
            ),
            (verified.status.success(), "the record does not verify"),
        ]);
        if !is_good {
            println!("{}\n{report:#}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(is_good)
    }
}

/// Says of each fault whether it is there; gives whether none is.
fn tell(faults: &[(bool, &str)]) -> bool {
    for (holds, what) in faults {
        println!("{} {what}", if *holds { "no:" } else { "YES:" });
    }
    faults.iter().all(|(holds, _)| *holds)
}

/// A server whose model takes these steps, one in each answer, in the format of Anthropic.
fn serve_messages(steps: Vec<(&'static str, Value)>) -> HttpServer {
    let next = AtomicUsize::new(0);
    HttpServer::start(move |request, stream| {
        // A client may leave before the end.
        let _ = stream_answer(request, stream, &steps, &next);
    })
}

/// A server whose model runs these commands, one in each answer, in the format of responses.
fn serve_responses(steps: &[&str]) -> HttpServer {
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let next = AtomicUsize::new(0);
    HttpServer::start(move |request, stream| {
        // A client may leave before the end.
        let _ = stream_response(request, stream, &steps, &next);
    })
}

/// Settings in which Codex asks a server on loopback, and no sandbox of its own confines what ours does.
fn codex_config(server: &str) -> String {
    format!(
        r#"model = "scripted"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.local]
name = "local"
base_url = "{server}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"#
    )
}

/// Answers a request for a response with the next command, as a stream.
fn stream_response(
    request: &HttpRequest,
    stream: &mut TcpStream,
    steps: &[String],
    next: &AtomicUsize,
) -> std::io::Result<()> {
    if !request.target.contains("/responses") {
        return send(stream, "application/json", &json!({ "data": [], "models": [] }).to_string());
    }
    let step = next.fetch_add(1, Ordering::SeqCst);
    let item = match steps.get(step) {
        Some(text) => json!({
            "type": "function_call", "id": format!("fc_{step}"), "call_id": format!("call_{step}"),
            "name": "exec_command", "arguments": json!({ "cmd": text }).to_string(),
        }),
        None => json!({
            "type": "message", "id": "m_1", "role": "assistant",
            "content": [{ "type": "output_text", "text": "all done" }],
        }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let whole = json!({ "id": format!("r_{step}"), "output": [&item], "usage": usage });
    let events = [
        json!({ "type": "response.created", "response": { "id": format!("r_{step}") } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": whole }),
    ];
    send_events(stream, &events)
}

/// Answers a request for messages with the next step, as a stream.
fn stream_answer(
    request: &HttpRequest,
    stream: &mut TcpStream,
    steps: &[(&str, Value)],
    next: &AtomicUsize,
) -> std::io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if request.target.contains("count_tokens") || !request.target.contains("/messages") {
        return send(
            stream,
            "application/json",
            &json!({ "input_tokens": 1, "data": [] }).to_string(),
        );
    }
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let step = has_tools.then(|| next.fetch_add(1, Ordering::SeqCst));
    let (block, delta, reason) = match step.and_then(|step| Some((step, steps.get(step)?))) {
        Some((step, (tool, input))) => (
            json!({ "type": "tool_use", "id": format!("toolu_{step}"), "name": tool, "input": {} }),
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
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    send_events(stream, &events)
}

fn send_events(stream: &mut TcpStream, events: &[Value]) -> std::io::Result<()> {
    let event = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    send(stream, "text/event-stream", &events.iter().map(event).collect::<String>())
}

fn send(stream: &mut TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
