//! Other agents, as they come from their registry, connected to this build and driven by a scripted model: what they
//! may do happens, confined and recorded, and what they may not do never happened. And other clients of the protocol that
//! our server speaks.

#![expect(clippy::indexing_slicing, reason = "a missing key of JSON reads as null")]

mod model;
mod protocol;
mod sandbox;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use capsule_testkit::HttpRequest;
use serde_json::{Value, json};

use crate::clients::model::{Step, WireFormat, serve};
use crate::clients::protocol::Protocol;
use crate::{TaskResult, cargo};

/// The package of Claude Code and the version that the hook was tried with.
const CLAUDE_CODE: &str = "@anthropic-ai/claude-code@2.1.332";
/// The package of Codex and the version that the hook was tried with.
const CODEX: &str = "@openai/codex@0.171.0";
/// The package of Gemini CLI and the version that the hook was tried with.
const GEMINI: &str = "@google/gemini-cli@0.61.0";
/// The package of opencode and the version that the hook was tried with.
const OPENCODE: &str = "opencode-ai@1.18.33";
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
    cargo::run(npm.args([CLAUDE_CODE, CODEX, GEMINI, OPENCODE]))?;
    let modules = packages.join("node_modules");
    let claude = find_program(&modules.join("@anthropic-ai"), "claude")?;
    let codex = find_program(&modules.join("@openai"), "codex")?;
    let checks = [
        speaks,
        make("claude-code")?.check_claude_code(&claude)?,
        make("claude-code-mcp")?.check_claude_code_by_mcp(&claude)?,
        make("codex")?.check_codex(&codex)?,
        make("gemini")?.check_gemini(&modules.join(".bin/gemini"))?,
        make("opencode")?.check_opencode(&modules.join(".bin/opencode"))?,
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
    fn steps(&self) -> Vec<Step> {
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
    fn mcp_steps(&self) -> Vec<Step> {
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

    /// What a model asks Gemini CLI for.
    fn gemini_steps(&self) -> Vec<Step> {
        let notes = self.workspace.join("notes.md");
        let command = |text: &str| ("run_shell_command", json!({ "command": text }));
        let edit = json!({
            "file_path": notes, "old_string": "pears", "new_string": "quinces", "instruction": "a step",
        });
        vec![
            command("ls"),
            ("read_file", json!({ "file_path": notes })),
            ("replace", edit),
            command("make -s -f test.mk test && echo made > made.txt"),
            command("git push origin main"),
            command("cat ~/.ssh/id_rsa"),
            command(&format!("cat {}", self.home.join(".ssh/id_rsa").display())),
            command("echo x > ../home/outside.txt"),
        ]
    }

    /// What a model asks opencode for.
    fn opencode_steps(&self) -> Vec<Step> {
        let notes = self.workspace.join("notes.md");
        let outside = self.home.join("outside.txt");
        let command = |text: &str| ("bash", json!({ "command": text, "description": "a step" }));
        vec![
            command("ls"),
            ("read", json!({ "filePath": notes })),
            ("edit", json!({ "filePath": notes, "oldString": "pears", "newString": "quinces" })),
            command("make -s -f test.mk test && echo made > made.txt"),
            command("git push origin main"),
            ("read", json!({ "filePath": self.home.join(".ssh/id_rsa") })),
            command("cat ~/.ssh/id_rsa"),
            ("write", json!({ "filePath": outside, "content": "x" })),
        ]
    }

    /// Connected by its hook, with its own tools.
    fn check_claude_code(&self, program: &Path) -> TaskResult<bool> {
        self.capsule(&["connect", "claude-code"])?;
        self.drive_claude_code(program, self.steps())
    }

    /// Connected so that it has the tools of our MCP server and no others.
    fn check_claude_code_by_mcp(&self, program: &Path) -> TaskResult<bool> {
        self.capsule(&["connect", "claude-code", "--level", "replace"])?;
        self.drive_claude_code(program, self.mcp_steps())
    }

    fn drive_claude_code(&self, program: &Path, steps: Vec<Step>) -> TaskResult<bool> {
        let words = ["-p", "go", "--output-format", "json"];
        self.drive((program, &words), (WireFormat::Messages, steps), |server| {
            Ok(vec![
                ("ANTHROPIC_BASE_URL", server),
                ("ANTHROPIC_API_KEY", "none".into()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
                ("DISABLE_AUTOUPDATER", "1".into()),
            ])
        })
    }

    fn check_codex(&self, program: &Path) -> TaskResult<bool> {
        let key = format!("cat {}", self.home.join(".ssh/id_rsa").display());
        let steps = [
            "ls",
            "echo 'quinces: 12' > notes.md",
            "make -s -f test.mk test && echo made > made.txt",
            "git push origin main",
            "cat ~/.ssh/id_rsa",
            &key,
            "echo x > ../outside.txt",
        ];
        let words = ["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "go"];
        let script = (WireFormat::Responses, codex_steps(&steps));
        self.drive((program, &words), script, |server| {
            self.write_setting(".codex/config.toml", &codex_config(&format!("{server}/v1")))?;
            self.capsule(&["connect", "codex"])?;
            Ok(vec![("SCRIPTED_KEY", "none".into())])
        })
    }

    fn check_gemini(&self, program: &Path) -> TaskResult<bool> {
        let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
        self.write_setting(".gemini/settings.json", &settings.to_string())?;
        self.capsule(&["connect", "gemini"])?;
        let words = ["-p", "go", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"];
        self.drive((program, &words), (WireFormat::Gemini, self.gemini_steps()), |server| {
            Ok(vec![
                ("GOOGLE_GEMINI_BASE_URL", server),
                ("GEMINI_API_KEY", "none".into()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
            ])
        })
    }

    fn check_opencode(&self, program: &Path) -> TaskResult<bool> {
        self.capsule(&["connect", "opencode"])?;
        let script = (WireFormat::ChatCompletions, self.opencode_steps());
        self.drive((program, &["run", "go"]), script, |server| {
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible", "name": "local",
                "options": { "baseURL": format!("{server}/v1"), "apiKey": "none" },
                "models": { "scripted": { "name": "scripted", "tool_call": true } },
            });
            let settings = json!({
                "provider": { "local": provider }, "model": "local/scripted",
                "small_model": "local/scripted", "autoupdate": false,
            });
            self.write_setting(".config/opencode/opencode.json", &settings.to_string())?;
            Ok(vec![("OPENCODE_DISABLE_MODELS_FETCH", "1".into())])
        })
    }

    /// Runs an agent with a model that takes these steps, and looks at what came of them. `configure` has the agent ask the
    /// server of the model, and gives the variables that it needs besides.
    fn drive(
        &self,
        (program, words): (&Path, &[&str]),
        (format, steps): (WireFormat, Vec<Step>),
        configure: impl FnOnce(String) -> TaskResult<Vec<(&'static str, String)>>,
    ) -> TaskResult<bool> {
        let version = self.output(Command::new(program).arg("--version"))?;
        println!("{} {}", program.display(), String::from_utf8_lossy(&version.stdout).trim());
        let count = steps.len();
        let server = serve(format, steps);
        let variables = configure(server.url(""))?;
        let mut agent = Command::new("timeout");
        agent.arg(SECONDS).arg(program).args(words);
        let done = self.output_with(&mut agent, |command| {
            command.envs(variables);
        })?;
        self.check(&done, &server.requests(), count)
    }

    /// Writes a file of settings in the home of the agent.
    fn write_setting(&self, name: &str, text: &str) -> TaskResult<()> {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.home))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| at(&path, &error))
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

/// These commands as Codex runs them.
fn codex_steps(commands: &[&str]) -> Vec<Step> {
    commands.iter().map(|command| ("exec_command", json!({ "cmd": command }))).collect()
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

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
