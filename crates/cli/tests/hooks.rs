//! Hooks of other agents: each dialect's answers, what happens when anything goes wrong, and what is on record.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{
    Capsule, CommandOutput, Numbers, is_nightly, run_in_parallel, write_program,
};
use serde_json::{Value, json};

#[path = "hooks/exfiltration.rs"]
mod exfiltration;
#[path = "hooks/reach.rs"]
mod reach;
#[path = "hooks/replaced.rs"]
mod replaced;

const POLICY: &str = "version: 1
name: hooks
budgets: { run: { calls: 2000 } }
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], hidden: allow } }
  fs.search: allow
  fs.list: allow
  fs.write: { decision: allow, paths: { allow: [\"**\"], deny: [\"closed/**\"] } }
  fs.edit: allow
  fs.delete: ask
  shell.run:
    form: command
    executables:
      ls: allow
      cat: allow
      echo: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
      touch: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
      mkdir: { decision: ask, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
";

/// A dialect as its host sees it.
struct Host {
    name: &'static str,
    event: &'static str,
    shell: &'static str,
    /// A call that reads, by the name of a file.
    read: fn(&str) -> (&'static str, Value),
    /// Where a denial has its word and its reason.
    deny: [&'static str; 2],
    /// Where a changed argument is.
    rewritten: &'static str,
    /// What is printed for a call that is allowed as it is.
    allow: &'static str,
}

const DECISION: &str = "/hookSpecificOutput/permissionDecision";
const REASON: &str = "/hookSpecificOutput/permissionDecisionReason";

const HOSTS: [Host; 4] = [
    Host {
        name: "claude-code",
        event: "PreToolUse",
        shell: "Bash",
        read: |path| ("Read", json!({ "file_path": path })),
        deny: [DECISION, REASON],
        rewritten: "/hookSpecificOutput/updatedInput/command",
        allow: "\"permissionDecision\":\"allow\"",
    },
    Host {
        name: "codex",
        event: "PreToolUse",
        shell: "Bash",
        read: |path| ("view_image", json!({ "path": path })),
        deny: [DECISION, REASON],
        rewritten: "/hookSpecificOutput/updatedInput/command",
        allow: "",
    },
    Host {
        name: "gemini",
        event: "BeforeTool",
        shell: "run_shell_command",
        read: |path| ("read_file", json!({ "absolute_path": path })),
        deny: ["/decision", "/reason"],
        rewritten: "/hookSpecificOutput/tool_input/command",
        allow: "\"decision\":\"allow\"",
    },
    Host {
        name: "opencode",
        event: "tool.execute.before",
        shell: "bash",
        read: |path| ("read", json!({ "filePath": path })),
        deny: ["/decision", "/reason"],
        rewritten: "/args/command",
        allow: "\"decision\":\"allow\"",
    },
];

/// A workspace whose agent asks the hook of one dialect.
struct Agent<'h> {
    capsule: Capsule,
    policy: String,
    host: &'h Host,
}

impl<'h> Agent<'h> {
    fn new(host: &'h Host) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(POLICY);
        capsule.write_file("a.txt", "one\ntwo\n");
        Self { capsule, policy, host }
    }

    fn hook(&self) -> Command {
        let policy = format!("--policy={}", self.policy);
        self.capsule.command(&["hook", self.host.name, &policy])
    }

    /// What the doctor says of Claude Code; nothing where it is not connected.
    fn doctor(&self) -> String {
        let doctor = self.capsule.run(&["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == "agent: claude-code");
        found.map(|check| check["detail"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn input(&self, (tool, args): (&str, Value)) -> Value {
        json!({
            "session_id": "s-1",
            "cwd": self.capsule.workspace(),
            "hook_event_name": self.host.event,
            "tool_name": tool,
            "tool_input": args,
        })
    }

    fn ask(&self, call: (&str, Value)) -> CommandOutput {
        answered(self.hook(), self.input(call).to_string().as_bytes())
    }

    fn path(&self, name: &str) -> String {
        self.capsule.workspace().join(name).display().to_string()
    }

    /// The reason of a denial.
    #[track_caller]
    fn reason(&self, output: &CommandOutput) -> String {
        let answer = output.clone().exits(0).json();
        let [decision, reason] = self.host.deny;
        assert_eq!(answer.pointer(decision), Some(&json!("deny")), "{answer}");
        answer.pointer(reason).and_then(Value::as_str).unwrap().to_owned()
    }

    /// The line that the host gives its shell in place of a command.
    #[track_caller]
    fn rewritten(&self, command: &str) -> String {
        let output = self.ask((self.host.shell, json!({ "command": command, "description": "d" })));
        let answer = output.exits(0).json();
        answer
            .pointer(self.host.rewritten)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// What the host's shell says to a command.
    fn shell(&self, command: &str) -> CommandOutput {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.rewritten(command)]).current_dir(self.capsule.workspace());
        shell
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.capsule.home());
        shell.stdin(Stdio::null()).output().unwrap().into()
    }

    /// The numbers of the calls on record, in the order in which they are there.
    fn order(&self) -> Vec<usize> {
        let report = self.record();
        let calls = report["calls"].as_array().unwrap();
        calls.iter().map(|call| call["call"].as_u64().unwrap().try_into().unwrap()).collect()
    }

    fn record(&self) -> Value {
        self.capsule.run(&["report", "latest", "--format", "json"]).exits(0).json()
    }
}

/// What a hook says to an input.
fn answered(mut hook: Command, input: &[u8]) -> CommandOutput {
    hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = hook.spawn().unwrap();
    // A hook that has heard enough may answer first.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// EI-6, F14, F20: whatever a host sends and whatever is missing, the answer is a denial in the host's own form, with a
/// code and a way on.
#[test]
fn whatever_goes_wrong_is_a_denial() {
    type Case = (&'static str, fn(&Agent<'_>) -> CommandOutput, &'static str);
    fn with(agent: &Agent<'_>, change: impl Fn(&mut Value)) -> CommandOutput {
        let mut input = agent.input((agent.host.read)(&agent.path("a.txt")));
        change(&mut input);
        answered(agent.hook(), input.to_string().as_bytes())
    }
    let cases: &[Case] = &[
        ("nothing", |agent| answered(agent.hook(), b""), "hook.input"),
        ("malformed", |agent| answered(agent.hook(), b"{\"session_id\": \"x\", "), "hook.input"),
        ("not UTF-8", |agent| answered(agent.hook(), b"{\"session_id\": \"\xff\"}"), "hook.input"),
        ("no object", |agent| answered(agent.hook(), b"[1]"), "hook.input"),
        (
            "a key twice",
            |agent| answered(agent.hook(), b"{\"cwd\": \"/\", \"cwd\": \"/tmp\"}"),
            "hook.input",
        ),
        ("huge", |agent| answered(agent.hook(), &vec![b' '; 9_000_000]), "hook.input"),
        (
            "an unknown event",
            |agent| with(agent, |input| input["hook_event_name"] = json!("AfterAll")),
            "hook.input",
        ),
        ("no session", |agent| with(agent, |input| input["session_id"] = json!(7)), "hook.input"),
        (
            "a relative directory",
            |agent| with(agent, |input| input["cwd"] = json!("ws")),
            "hook.input",
        ),
        (
            "arguments that are none",
            |agent| with(agent, |input| input["tool_input"] = json!("x")),
            "hook.input",
        ),
        (
            "a directory that is not there",
            |agent| with(agent, |input| input["cwd"] = json!("/nowhere/at/all")),
            "workspace.missing",
        ),
        (
            "a session with a strange name",
            |agent| with(agent, |input| input["session_id"] = json!("a\nb")),
            "usage",
        ),
        (
            "an unknown tool",
            |agent| agent.ask(("mcp__mail__send", json!({ "to": "x" }))),
            "tool.unknown",
        ),
        (
            "no command",
            |agent| agent.ask((agent.host.shell, json!({ "cmd": "ls" }))),
            "hook.unjudged",
        ),
        (
            "no policy",
            |agent| {
                answered(
                    agent.capsule.command(&["hook", agent.host.name]),
                    agent
                        .input((agent.host.shell, json!({ "command": "ls" })))
                        .to_string()
                        .as_bytes(),
                )
            },
            "usage",
        ),
        (
            "a policy that is none",
            |agent| {
                let _ = agent.capsule.write_policy("version: 1\nname: x\nbogus: 1\n");
                agent.ask((agent.host.shell, json!({ "command": "ls" })))
            },
            "policy.unknown-key",
        ),
        (
            "a store that is none",
            |agent| {
                fs::create_dir_all(agent.capsule.store()).unwrap();
                agent.ask((agent.host.shell, json!({ "command": "ls" })))
            },
            "store.",
        ),
        (
            "a store that is locked",
            |agent| {
                let call = || (agent.host.read)(&agent.path("a.txt"));
                let _ = agent.ask(call()).exits(0);
                let lock = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); \
                            c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()";
                let mut other = Command::new("python3")
                    .args(["-c", lock])
                    .arg(agent.capsule.store())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let said = other.stdout.as_mut().unwrap().read(&mut [0; 8]).unwrap();
                assert!(said > 0, "the store was not locked");
                let output = agent.ask(call());
                drop(other.stdin.take());
                other.wait().unwrap();
                output
            },
            "hook.deadline",
        ),
        (
            "an outside file",
            |agent| agent.ask((agent.host.read)("/etc/passwd")),
            "path.outside-workspace",
        ),
        (
            "a zero byte",
            |agent| agent.ask((agent.host.shell, json!({ "command": "echo 'a\0b'" }))),
            "",
        ),
        (
            "a denied command",
            |agent| agent.ask((agent.host.shell, json!({ "command": "git push" }))),
            "",
        ),
    ];
    let rows = HOSTS.iter().flat_map(|host| cases.iter().map(move |case| (host, case)));
    run_in_parallel(rows.collect::<Vec<_>>(), |(host, (what, make, code))| {
        let agent = Agent::new(host);
        let output = make(&agent);
        let reason = agent.reason(&output);
        assert!(reason.contains(&format!("[{code}")), "{} {what}: {reason}", host.name);
        assert!(reason.contains("Instead: "), "{} {what}: {reason}", host.name);
    });
}

/// A host that never ends its input is answered long before it gives up itself, and so is one whose session another
/// process works in.
#[test]
fn a_hook_that_waits_answers_in_time() {
    run_in_parallel(&HOSTS, |host| {
        let agent = Agent::new(host);
        let began = Instant::now();
        let mut hook = agent.hook();
        hook.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = hook.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"{\"session_id\": ").unwrap();
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let output = CommandOutput {
            status: child.wait().unwrap().code().unwrap(),
            stdout,
            stderr: String::new(),
        };
        drop(input);
        assert!(agent.reason(&output).contains("[hook.deadline]"), "{}", output.stdout);
        assert!(began.elapsed() < Duration::from_secs(20), "{}", host.name);
    });
}

/// The line that `connect` writes denies where the hook cannot: it is missing, it crashes, it is killed because the
/// disk is full. The hosts let the call go ahead otherwise.
#[test]
fn the_line_of_the_hook_denies_what_the_hook_cannot() {
    for host in HOSTS.iter().filter(|host| host.name != "opencode") {
        let agent = Agent::new(host);
        let policy = format!("--policy={}", agent.policy);
        let _ = agent.capsule.run(&["connect", host.name, &policy]).exits(0);
        let settings = match host.name {
            "codex" => ".codex/hooks.json".to_owned(),
            name => format!(".{}/settings.json", name.trim_end_matches("-code")),
        };
        let settings = fs::read_to_string(agent.capsule.home().join(settings)).unwrap();
        let settings: Value = serde_json::from_str(&settings).unwrap();
        let line =
            settings["hooks"][host.event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
        let binary = env!("CARGO_BIN_EXE_capsule");
        assert!(line.starts_with(binary), "{line}");
        let script = agent.capsule.directory().join("crash");
        let script = write_program(script, "#!/bin/sh\nkill -9 $$\n");
        let lines = [
            ("crash", line.replace(binary, &script.display().to_string())),
            ("missing", line.replace(binary, "/nowhere/capsule")),
            ("full", format!("ulimit -f 1; {line}")),
        ];
        for (what, line) in lines {
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).env("HOME", agent.capsule.home());
            let input = agent.input((host.read)(&agent.path("a.txt")));
            let output = answered(shell, input.to_string().as_bytes());
            let is_denied =
                output.status == 2 && output.stderr.contains("Capsule denies this call");
            let is_answered = output.status == 0 && output.stdout.contains("\"deny\"");
            assert!(is_denied || is_answered, "{} {what}: {output:?}", host.name);
        }
    }
}

/// FR-2, FR-3: a call that is allowed runs confined if it is a command, and is on record either way, in one session.
#[test]
fn every_dialect_is_judged_and_recorded() {
    run_in_parallel(&HOSTS, |host| {
        let agent = Agent::new(host);
        let output = agent.ask((host.read)(&agent.path("a.txt"))).exits(0);
        assert!(
            output.stdout.contains(host.allow) && output.stdout.is_empty() == host.allow.is_empty(),
            "{output:?}"
        );
        let line = agent.rewritten("cat a.txt; echo 'it'\"'\"'s' > b.txt");
        assert!(line.contains(" exec --agent "), "{line}");
        let done = agent.shell("cat a.txt; echo 'it'\"'\"'s' > b.txt").exits(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("one\ntwo\n", ""));
        assert_eq!(fs::read_to_string(agent.path("b.txt")).unwrap(), "it's\n");
        // A script is judged by what stands in it, here as when it runs.
        fs::write(agent.path("both.sh"), "cat a.txt\ntouch c.txt\n").unwrap();
        assert_eq!(agent.shell("bash both.sh").exits(0).stdout, "one\ntwo\n");
        fs::write(agent.path("push.sh"), "cat a.txt\ngit push origin main\n").unwrap();
        let _ = agent.reason(&agent.ask((host.shell, json!({ "command": "sh push.sh" }))));
        let _ =
            agent.reason(&agent.ask((host.shell, json!({ "command": "git push origin main" }))));
        let _ = agent.reason(&agent.ask(("other", json!({}))));
        let sessions = agent.capsule.run(&["session", "list", "--json"]).exits(0).json();
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
        assert_eq!(sessions["sessions"][0]["name"], json!(format!("{}:s-1", host.name)));
        assert_eq!(sessions["sessions"][0]["staged"], json!(0));
        let session = sessions["sessions"][0]["session"].as_str().unwrap().to_owned();
        let report = agent.capsule.run(&["report", &session, "--format", "json"]).exits(0).json();
        let calls = report["calls"].as_array().unwrap();
        let tools: Vec<&str> = calls.iter().map(|call| call["tool"].as_str().unwrap()).collect();
        let other = format!("{}:other", host.name);
        assert_eq!(tools.first(), Some(&"fs.read"), "{tools:?}");
        assert!(tools.contains(&"shell.run") && tools.last() == Some(&other.as_str()), "{tools:?}");
        let _ = agent.capsule.run(&["session", "end", &session]).exits(0);
        let _ = agent.capsule.run(&["verify", &session]).exits(0);
        let _ = agent.capsule.run(&["replay", &session]).exits(0);
    });
}

/// What the host's own tools change is backed up before, so that an undo brings it back; none of several changes is
/// allowed where one is denied.
#[test]
fn what_a_host_changes_can_be_undone() {
    let agent = Agent::new(&HOSTS[0]);
    let path = agent.path("a.txt");
    let edit = json!({ "file_path": path, "old_string": "one", "new_string": "1" });
    assert!(agent.ask(("Edit", edit)).exits(0).stdout.contains("allow"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n", "the host does it");
    fs::write(&path, "1\ntwo\n").unwrap();
    let edits = json!([{ "old_string": "1", "new_string": "x" }, { "old_string": "two", "new_string": "y" }]);
    let output = agent.ask(("MultiEdit", json!({ "file_path": path, "edits": edits })));
    assert!(output.exits(0).stdout.contains("allow"));
    fs::write(&path, "x\ny\n").unwrap();
    let absent = json!([{ "old_string": "absent", "new_string": "x" }]);
    let output = agent.ask(("MultiEdit", json!({ "file_path": path, "edits": absent })));
    assert!(agent.reason(&output).contains("[hook.unjudged]"));
    let output =
        agent.ask(("Write", json!({ "file_path": agent.path("closed/x"), "content": "x" })));
    assert!(agent.reason(&output).contains("[path."), "{output:?}");
    // Files that programs of the host obey are asked about before the host writes them.
    let output =
        agent.ask(("Write", json!({ "file_path": agent.path("AGENTS.md"), "content": "x" })));
    assert!(agent.reason(&output).contains("capsule approvals answer"), "{output:?}");
    let output = agent.ask(("Grep", json!({ "pattern": "x", "path": agent.path(".") })));
    assert!(agent.reason(&output).contains("grep -rn"));
    let session =
        agent.capsule.run(&["session", "list", "--json"]).json()["sessions"][0]["session"].clone();
    let _ = agent.capsule.run(&["undo", session.as_str().unwrap()]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
}

/// A patch of Codex is judged file by file; where one of its files is closed, none of it is allowed.
#[test]
fn a_patch_is_judged_file_by_file() {
    let agent = Agent::new(&HOSTS[1]);
    let patch = |body: &str| {
        let text = format!("*** Begin Patch\n{body}*** End Patch\n");
        agent.ask(("apply_patch", json!({ "command": text })))
    };
    let update = "*** Update File: a.txt\n@@\n one\n-two\n+2\n";
    let output = patch(&format!("{update}*** Add File: n.txt\n+new\n")).exits(0);
    assert_eq!(output.stdout, "");
    let closed = patch(&format!("{update}*** Add File: closed/n.txt\n+new\n"));
    assert!(agent.reason(&closed).contains("closed/n.txt"), "{closed:?}");
    for wrong in ["*** Update File: a.txt\n@@\n-three\n+3\n", "*** Frobnicate: x\n", ""] {
        let output = patch(wrong);
        assert!(agent.reason(&output).contains("[hook.unjudged]"), "{output:?}");
    }
    let outside = patch("*** Add File: ../n.txt\n+new\n");
    assert!(agent.reason(&outside).contains("[path."), "{outside:?}");
    let deleted = patch("*** Delete File: a.txt\n");
    assert!(agent.reason(&deleted).contains("capsule approvals answer"), "{deleted:?}");
}

/// APR-4: a question waits for a person, whose yes is for the same call, once.
#[test]
fn a_question_waits_for_a_person() {
    let agent = Agent::new(&HOSTS[0]);
    let waits = agent.shell("mkdir made");
    assert_eq!(waits.status, 4, "{waits:?}");
    assert!(!agent.capsule.workspace().join("made").exists());
    let asked = agent.capsule.run(&["approvals", "list", "--json"]).exits(0).stdout;
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let asked = asked.to_string();
    let question = asked.split('"').find(|part| part.starts_with("r-") && part.contains(':'));
    let question = question.unwrap_or_else(|| panic!("{asked}"));
    let answer = ["approvals", "answer", question, "--allow", "once"];
    let _ = agent.capsule.run(&answer).exits(0);
    let _ = agent.shell("mkdir made").exits(0);
    assert!(agent.capsule.workspace().join("made").is_dir());
    assert_eq!(agent.shell("mkdir again").status, 4);
}

/// What a command of an agent changes is there for the agent's own tools when it ends; what is refused is dropped, and
/// the command says so.
#[test]
fn what_a_command_changes_is_applied_or_dropped() {
    let agent = Agent::new(&HOSTS[0]);
    let _ = agent.shell("echo ok > fine.txt").exits(0);
    assert!(agent.capsule.workspace().join("fine.txt").exists());
    let done = agent.shell("touch AGENTS.md fine2.txt");
    assert_eq!(done.status, 3, "{done:?}");
    assert!(done.stderr.contains("not applied: `AGENTS.md`"), "{done:?}");
    assert!(!agent.capsule.workspace().join("AGENTS.md").exists());
    assert!(agent.capsule.workspace().join("fine2.txt").exists());
    let _ = agent.shell("echo later > later.txt").exits(0);
    // A command beside others does not hold the session.
    let beside = json!({ "command": "ls", "run_in_background": true });
    let output = agent.ask(("Bash", beside)).exits(0);
    assert!(output.stdout.contains("--session=none"), "{output:?}");
}

/// All hooks of one session are recorded, whatever processes ask at once.
#[test]
fn hooks_at_once_are_all_recorded() {
    let agent = Agent::new(&HOSTS[0]);
    // A thousand from sixteen processes at once in the nightly part.
    let (threads, each) = if is_nightly() { (16, 63) } else { (6, 5) };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let output = agent.ask(("Read", json!({ "file_path": agent.path("a.txt") })));
                    assert!(output.stdout.contains("\"allow\""), "{output:?}");
                }
            });
        }
    });
    assert_eq!(agent.order(), (1..=threads * each).collect::<Vec<_>>());
    let _ = agent.capsule.run(&["verify"]).exits(0);
}

/// Hooks of one session are killed at any instant while others wait for their turn: what was allowed is on record, in order,
/// and the next one is answered.
#[test]
fn hooks_are_killed_among_others() {
    let agent = Agent::new(&HOSTS[0]);
    // Three hundred are killed in the nightly part.
    let each = if is_nightly() { 38 } else { 3 };
    let ask = |name: &str, kill_after: Option<u64>| {
        let mut hook = agent.hook();
        hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = hook.spawn().unwrap();
        let args = json!({ "file_path": agent.path(name), "content": "x" });
        let input = agent.input(("Write", args)).to_string();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        if let Some(instant) = kill_after {
            thread::sleep(Duration::from_millis(instant));
            let _ = child.kill();
        }
        let answer = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        // On a busy machine a hook says in time that it could not wait for its turn.
        let is_late =
            ["[hook.deadline]", "[session.busy]"].iter().any(|code| answer.contains(code));
        let is_allowed = answer.contains("\"allow\"");
        assert!(is_allowed || is_late || kill_after.is_some(), "{name}: {answer}");
        is_allowed
    };
    let of_thread = &|thread: u64| {
        let mut numbers = Numbers(thread);
        let mut ask_each = |number: usize| {
            let name = format!("t{thread}n{number}.txt");
            let instant = numbers.below(1_000).try_into().unwrap();
            ask(&name, number.is_multiple_of(2).then_some(instant)).then_some(name)
        };
        (0..each).filter_map(&mut ask_each).collect::<Vec<_>>()
    };
    let allowed: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> =
            (1..=16).map(|number| scope.spawn(move || of_thread(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ask("last.txt", None), "the next one is answered");
    let order = agent.order();
    assert_eq!(order, (1..=order.len()).collect::<Vec<_>>());
    let report = agent.record().to_string();
    let missing: Vec<_> = allowed.iter().filter(|name| !report.contains(name.as_str())).collect();
    assert!(missing.is_empty() && report.contains("last.txt"), "{missing:?}");
    let _ = agent.capsule.run(&["verify"]).exits(0);
}

/// The hook goes into the settings beside whatever is there, once, and out again.
#[test]
fn settings_keep_what_is_in_them() {
    let theirs = "{\n  \"model\": \"x\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": []}\n    ]\n  }\n}\n";
    let agent = Agent::new(&HOSTS[0]);
    let path = agent.capsule.home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, theirs).unwrap();
    let shown = agent.capsule.run(&["connect", "claude-code", "--print"]).exits(0);
    assert!(shown.stdout.contains("+") && shown.stdout.contains("hook claude-code"), "{shown:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    let done = agent.capsule.run(&["connect", "claude-code"]).exits(0);
    assert!(done.stderr.contains("level 2") && done.stderr.contains("not covered"), "{done:?}");
    let once = fs::read_to_string(&path).unwrap();
    assert!(
        once.starts_with("{\n  \"model\": \"x\"") && once.contains("\"matcher\": \"Bash\""),
        "{once}"
    );
    assert_eq!(once.matches("hook claude-code").count(), 1);
    assert_eq!(fs::read_to_string(path.with_extension("json.before-capsule")).unwrap(), theirs);
    let again = agent.capsule.run(&["connect", "claude-code"]).exits(0);
    assert!(again.stderr.contains("already"), "{again:?}");
    let told = agent.doctor();
    assert!(told.contains("its hook answers"), "{told}");
    let _ = agent.capsule.run(&["connect", "claude-code", "--undo"]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    for name in ["codex", "gemini", "opencode"] {
        let _ = agent.capsule.run(&["connect", name]).exits(0);
        let again = agent.capsule.run(&["connect", name]).exits(0);
        assert!(again.stderr.contains("already"), "{name}: {again:?}");
        let _ = agent.capsule.run(&["connect", name, "--undo"]).exits(0);
    }
    fs::write(&path, "// not ours\n{}").unwrap();
    let _ = agent.capsule.run(&["connect", "claude-code"]).exits(2);
}
