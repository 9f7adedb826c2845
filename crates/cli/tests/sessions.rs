//! Sessions: calls of several processes that share a staged workspace, grants, budgets and a record.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use capsule_testkit::{Capsule, CommandOutput, Numbers, is_nightly};
use serde_json::{Value, json};

mod terminal;

use terminal::Terminal;

const POLICY: &str = "version: 1
name: sessions
budgets: { run: { calls: 60 } }
tools:
  fs.read: allow
  fs.write: allow
  fs.edit: allow
  shell.run:
    form: command
    executables:
      ls: allow
      cat: allow
      sleep: allow
      touch: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
      tee: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
      mkdir: { decision: ask, capabilities: [proc.exec, fs.write], writes: [\"**\"] }
";

/// What has questions wait for a person.
const WAITS: &str =
    "profiles: { waits: { decide: { \"*\": ask }, unattended: wait } }\nprofile: waits\n";

/// Calls of one session, each in a process of its own.
struct Calls {
    capsule: Capsule,
    policy: String,
}

impl Calls {
    fn new() -> Self {
        Self::under(POLICY)
    }

    fn under(policy: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(policy);
        Self { capsule, policy }
    }

    fn exec_command(&self, session: &str, words: &[&str]) -> Command {
        let mut args = vec!["exec", "--policy", &self.policy, "--session", session, "--"];
        args.extend(words);
        let mut command = self.capsule.command(&args);
        command.stdin(Stdio::null());
        command
    }

    fn exec(&self, session: &str, words: &[&str]) -> CommandOutput {
        self.exec_command(session, words).output().unwrap().into()
    }

    fn call(&self, session: &str, tool: &str, args: &Value) -> CommandOutput {
        let args = args.to_string();
        let words = [
            "call",
            tool,
            "--policy",
            &self.policy,
            "--session",
            session,
            "--args",
            &args,
            "--json",
        ];
        self.capsule.run(&words)
    }

    /// The open sessions.
    fn open(&self) -> Vec<Value> {
        let listed = self.capsule.run(&["session", "list", "--json"]).exits(0).json();
        listed["sessions"].as_array().unwrap().clone()
    }

    fn label(&self) -> String {
        self.open()[0]["session"].as_str().unwrap().to_owned()
    }

    fn report(&self, run: &str) -> Value {
        self.capsule.run(&["report", run, "--format", "json"]).exits(0).json()
    }

    fn names(&self, session: &str) -> BTreeSet<String> {
        let listed = self.exec(session, &["ls"]).exits(0).stdout;
        listed.lines().map(str::to_owned).collect()
    }

    fn is_in_workspace(&self, name: &str) -> bool {
        self.capsule.workspace().join(name).exists()
    }
}

/// A command that has to succeed.
#[track_caller]
fn succeed(output: CommandOutput) {
    drop(output.exits(0));
}

/// W18: what one process leaves is there for the next one, and in the workspace once it is applied.
#[test]
fn calls_of_several_processes_share_a_workspace() {
    let calls = Calls::new();
    let first = calls.exec("job:1", &["touch", "a"]).exits(0);
    assert!(first.stderr.contains("session: r-"), "{}", first.stderr);
    let second = calls.exec("job:1", &["ls", "a"]).exits(0);
    assert_eq!(second.stdout, "a\n");
    assert!(!second.stderr.contains("session"), "{}", second.stderr);
    // Two edits of one file do not stand in each other's way, and tools see what commands wrote.
    let write = json!({ "path": "b", "content": "one two\n", "mode": "create" });
    succeed(calls.call("job:1", "fs.write", &write));
    for (search, replace) in [("one", "1"), ("two", "2")] {
        let edit = json!({ "path": "b", "search": search, "replace": replace });
        succeed(calls.call("job:1", "fs.edit", &edit));
    }
    assert_eq!(calls.exec("job:1", &["cat", "b"]).exits(0).stdout, "1 2\n");
    // Another session, and a run of its own, see none of it.
    assert!(calls.names("job:2").is_empty());
    assert!(calls.names("none").is_empty());
    assert!(!calls.is_in_workspace("a"));
    let label = calls.open().into_iter().find(|session| session["name"] == "job:1").unwrap();
    let label = label["session"].as_str().unwrap();
    succeed(calls.capsule.run(&["apply", label]));
    assert_eq!(fs::read_to_string(calls.capsule.workspace().join("b")).unwrap(), "1 2\n");
    // It goes on behind that, and has nothing that waits.
    succeed(calls.exec("job:1", &["touch", "c"]));
    let changes = calls.capsule.run(&["changes", label]).exits(0);
    assert_eq!(changes.stdout, "A c  0 B\n");
    succeed(calls.capsule.run(&["discard", label]));
    assert_eq!(calls.names("job:1"), ["a", "b"].map(str::to_owned).into());
    succeed(calls.capsule.run(&["session", "end", label]));
    let replayed = calls.capsule.run(&["replay", label]).exits(0);
    assert!(replayed.stderr.contains("calls served from the record"), "{}", replayed.stderr);
    succeed(calls.capsule.run(&["verify"]));
    // What was applied can be taken back, also behind the end.
    succeed(calls.capsule.run(&["undo", label]));
    assert!(!calls.is_in_workspace("a") && !calls.is_in_workspace("b"));
}

/// A session ends by name, and what it staged waits like that of any run.
#[test]
fn the_changes_of_an_ended_session_wait() {
    let calls = Calls::new();
    let label = calls.capsule.run(&["session", "start", "--policy", &calls.policy]).exits(0);
    let label = label.stdout.trim().to_owned();
    succeed(calls.exec(&label, &["touch", "a"]));
    let end = calls.capsule.run(&["session", "end", &label, "--json"]).exits(0).json();
    assert_eq!((&end["calls"], &end["staged"]["paths"]), (&json!(1), &json!(1)));
    let over = calls.exec(&label, &["ls"]).exits(2);
    assert!(over.stderr.contains("[session.unknown]"), "{}", over.stderr);
    assert!(calls.open().is_empty());
    succeed(calls.capsule.run(&["apply", &label]));
    assert!(calls.is_in_workspace("a"));
}

/// At a terminal the calls of one shell belong together, and leave for the session holds in it.
#[test]
fn a_terminal_is_a_session() {
    let calls = Calls::new();
    let script = "\"$1\" exec --policy \"$2\" -- mkdir d && \"$1\" exec --policy \"$2\" -- mkdir e && \
                  \"$1\" exec --policy \"$2\" -- ls && \"$1\" grants list";
    let none = [("CAPSULE_SESSION", "")];
    let mut shell = Terminal::start_by(&calls.capsule, script, &[&calls.policy], &none);
    shell.card();
    assert!(
        shell.seen.contains("this session")
            || String::from_utf8_lossy(&shell.shown).contains("session")
    );
    shell.press("2");
    let (status, seen) = shell.end();
    assert_eq!(status, 0, "{seen}");
    // The second is not asked about, both are there, and the grant is listed.
    assert!(seen.contains("d") && seen.contains("e") && seen.contains("mkdir"), "{seen}");
    let report = calls.report(&calls.label());
    assert_eq!(report["calls"].as_array().unwrap().len(), 3);
    assert_eq!(report["summary"]["prompts"], 1);
    // Another terminal is another session.
    let script = "\"$1\" exec --policy \"$2\" -- ls";
    let (status, seen) = Terminal::start_by(&calls.capsule, script, &[&calls.policy], &none).end();
    assert_eq!(status, 0, "{seen}");
    assert!(!seen.lines().any(|line| line.trim() == "d"), "{seen}");
    assert_eq!(calls.open().len(), 2);
}

/// Without a terminal a command is a run of its own, unless a variable names a session.
#[test]
fn a_variable_names_the_session() {
    let mut calls = Calls::new();
    calls.capsule.set("CAPSULE_SESSION", "");
    let exec = |calls: &Calls, words: &[&str]| {
        let mut args = vec!["exec", "--policy", &calls.policy, "--"];
        args.extend(words);
        calls.capsule.run(&args)
    };
    succeed(exec(&calls, &["touch", "a"]));
    assert!(calls.open().is_empty());
    calls.capsule.set("CAPSULE_SESSION", "claude-code:7");
    succeed(exec(&calls, &["touch", "a"]));
    assert_eq!(exec(&calls, &["ls"]).exits(0).stdout, "a\n");
    assert_eq!(calls.open()[0]["name"], "claude-code:7");
    let wrong = calls.exec("r-0000", &["ls"]).exits(2);
    assert!(wrong.stderr.contains("[session.unknown]"), "{}", wrong.stderr);
    // The error tells how a name is spelled, and that way works.
    for name in ["my session", "nightly-build", "usual"] {
        let wrong = calls.exec(name, &["ls"]).exits(2).stderr;
        let way = format!("{name}:1");
        assert!(wrong.contains("[session.unknown]") && wrong.contains(&way), "{wrong}");
        succeed(calls.exec(&way, &["ls"]));
    }
    let wrong = calls.exec("auto", &["ls"]).exits(2);
    assert!(wrong.stderr.contains("terminal"), "{}", wrong.stderr);
}

/// Budgets count the calls of all processes.
#[test]
fn budgets_are_shared() {
    let calls = Calls::new();
    let policy = POLICY.replace("calls: 60", "calls: 3");
    let calls = Calls { policy: calls.capsule.write_policy(&policy), ..calls };
    for _ in 0..3 {
        succeed(calls.exec("job:1", &["ls"]));
    }
    let over = calls.exec("job:1", &["ls"]).exits(7);
    assert!(over.stderr.contains("[budget.calls]"), "{}", over.stderr);
}

/// A changed policy never joins a session: that one ends, and its changes wait.
#[test]
fn a_changed_policy_begins_another_session() {
    let calls = Calls::new();
    succeed(calls.exec("job:1", &["touch", "a"]));
    let before = calls.label();
    let changed = POLICY.replace("calls: 60", "calls: 61");
    assert_eq!(calls.capsule.write_policy(&changed), calls.policy);
    let by_id = calls.exec(&before, &["ls"]).exits(2);
    assert!(by_id.stderr.contains("[session.changed]"), "{}", by_id.stderr);
    let ran = calls.exec("job:1", &["ls"]);
    // What became of it is told, with the way to what it staged.
    let told = format!("session: {before} ended: its policy, profile or workspace changed");
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("capsule changes {before}")), "{}", ran.stderr);
    succeed(ran);
    let shown = calls.capsule.run(&["session", "show", &before]).exits(2);
    assert!(shown.stderr.contains(&format!("`capsule show-run {before}`")), "{}", shown.stderr);
    let after = calls.label();
    assert_ne!(before, after);
    assert_eq!(calls.open().len(), 1);
    succeed(calls.capsule.run(&["apply", &before]));
    assert!(calls.is_in_workspace("a"));
}

/// Calls under the policies of two places go on side by side: none ends the session of the other.
#[test]
fn calls_under_two_policies_are_two_sessions() {
    let calls = Calls::new();
    let other = calls.capsule.write_file("../other.yaml", POLICY);
    let other = other.to_str().unwrap();
    let under = |policy: &str, words: &[&str]| {
        let mut args = vec!["exec", "--session", "job:1", "--policy", policy, "--"];
        args.extend(words);
        let ran = calls.capsule.run(&args).exits(0);
        assert!(!ran.stderr.contains("ended"), "{}", ran.stderr);
        ran.stdout
    };
    let _ = under(&calls.policy, &["touch", "a"]);
    assert_eq!(under(other, &["ls"]), "");
    let _ = under(other, &["touch", "b"]);
    assert_eq!(under(&calls.policy, &["ls"]), "a\n");
    assert_eq!(under(other, &["ls"]), "b\n");
    assert_eq!(calls.open().len(), 2);
}

/// A session that is idle too long ends when a command looks at the store.
#[test]
fn an_idle_session_ends() {
    let calls = Calls::new();
    let start = ["session", "start", "--policy", &calls.policy, "--idle", "1s"];
    let label = calls.capsule.run(&start).exits(0).stdout.trim().to_owned();
    assert_eq!(calls.open().len(), 1);
    thread::sleep(Duration::from_millis(1_100));
    assert!(calls.open().is_empty());
    assert_eq!(calls.report(&label)["exit"], 0);
}

/// A process that is killed behind the seal leaves what the session remembered: nothing is written behind the seal,
/// and the name opens another session. So it is where the store is another one by now.
#[test]
fn what_a_sealed_session_remembered_opens_nothing() {
    let calls = Calls::new();
    succeed(calls.exec("job:1", &["touch", "a"]));
    let label = calls.label();
    let remembered = format!("{}.sessions", calls.capsule.store().display());
    let file = fs::read_dir(&remembered).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(&file).unwrap();
    succeed(calls.capsule.run(&["session", "end", &label]));
    let events = calls.report(&label)["records"].as_array().unwrap().len();
    fs::write(&file, &kept).unwrap();
    succeed(calls.exec("job:1", &["ls"]));
    assert_ne!(calls.label(), label);
    assert_eq!(calls.report(&label)["records"].as_array().unwrap().len(), events);
    succeed(calls.capsule.run(&["verify"]));
    for entry in fs::read_dir(calls.capsule.store().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
    succeed(calls.exec("job:1", &["ls"]));
    assert_eq!(calls.open().len(), 1);
}

/// Many processes at once: each waits for its turn, and nothing is lost.
#[test]
fn processes_take_turns() {
    let calls = Calls::new();
    let names: Vec<String> = (0..16).map(|number| format!("f{number}")).collect();
    let children: Vec<Child> = names
        .iter()
        .map(|name| calls.exec_command("job:1", &["touch", name]).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(calls.open().len(), 1);
    assert_eq!(calls.names("job:1"), names.into_iter().collect());
    let report = calls.report(&calls.label());
    let numbers: Vec<u64> = report["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["call"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=17).collect::<Vec<u64>>());
    succeed(calls.capsule.run(&["session", "end", &calls.label()]));
    succeed(calls.capsule.run(&["replay", "latest"]));
}

/// A process is killed at any moment: the session goes on, each later call is recorded, and the record replays.
#[test]
fn a_killed_process_ends_no_session() {
    let calls = Calls::under(&POLICY.replace("calls: 60", "calls: 6000"));
    let times = if is_nightly() { 300 } else { 12 };
    succeed(calls.exec("job:1", &["touch", "first"]));
    let label = calls.label();
    for time in 0..times {
        let name = format!("k{time}");
        let text = format!("touch {name}; sleep 0.01; ls; touch {name}b");
        let args = json!({ "command": text }).to_string();
        let words =
            ["call", "shell.run", "--policy", &calls.policy, "--session", "job:1", "--args", &args];
        let mut child = calls
            .capsule
            .command(&words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before it opens the store to behind its end.
        thread::sleep(Duration::from_millis(time * 13 % 150));
        let _ = child.kill();
        child.wait().unwrap();
        let after = calls.exec("job:1", &["touch", "first"]);
        assert_eq!(after.status, 0, "{time}: {}", after.stderr);
    }
    assert_eq!(calls.label(), label, "the session went on");
    succeed(calls.capsule.run(&["session", "end", &label]));
    succeed(calls.capsule.run(&["replay", &label]));
    succeed(calls.capsule.run(&["verify"]));
    // What a killed call left is refused, and what others made is as they made it.
    let changes = calls.capsule.run(&["changes", &label, "--json"]).exits(0).json();
    let changes = changes["changes"].as_array().unwrap();
    let first = changes.iter().find(|change| change["path"] == "first").unwrap();
    assert!(first["refused"].is_null(), "{first}");
}

/// Starts sixteen processes at once on the session, each a call that is at its four files for a while, and kills each at
/// any instant. Gives the names of their files, and whether the process had come to its end.
fn kill_sixteen(calls: &Calls, round: usize, numbers: &mut Numbers) -> Vec<(String, bool)> {
    let start = |number| {
        let name = format!("r{round}n{number}");
        let script = format!(
            "for ('a' .. 'd') {{ open my $f, '>', \"{name}$_\"; select undef, undef, undef, 0.01 }}"
        );
        let mut command = calls.exec_command("job:1", &["perl", "-e", &script]);
        (name, command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut children: Vec<(String, Child)> = (0..16).map(start).collect();
    let mut killed = Vec::new();
    while !children.is_empty() {
        // From before the first opens the store to when the last are through.
        thread::sleep(Duration::from_millis(numbers.below(250).try_into().unwrap()));
        let (name, mut child) = children.swap_remove(numbers.below(children.len()));
        let _ = child.kill();
        killed.push((name, child.wait().unwrap().success()));
    }
    killed
}

/// Processes of a session are killed while others wait for their turn: what came to its end is recorded, in order, and
/// applied; what did not is refused whole; and the session goes on.
#[test]
fn processes_are_killed_among_others() {
    let perl = "perl: { decision: allow, capabilities: [proc.exec, fs.write], writes: [\"**\"] }";
    let policy = POLICY.replace("calls: 60", "calls: 6000");
    let calls = Calls::under(&policy.replace("ls: allow", &format!("ls: allow\n      {perl}")));
    let mut numbers = Numbers(35);
    succeed(calls.exec("job:1", &["touch", "first"]));
    let label = calls.label();
    let mut killed = Vec::new();
    for round in 0..if is_nightly() { 19 } else { 1 } {
        killed.extend(kill_sixteen(&calls, round, &mut numbers));
        let after = calls.exec("job:1", &["touch", "first"]);
        assert_eq!(after.status, 0, "{round}: {}", after.stderr);
    }
    assert_eq!(calls.label(), label, "the session went on");
    let report = calls.report(&label);
    let recorded = report["calls"].as_array().unwrap();
    let order: Vec<u64> = recorded.iter().map(|call| call["call"].as_u64().unwrap()).collect();
    assert_eq!(order, (1..=order.len().try_into().unwrap()).collect::<Vec<u64>>());
    let is_recorded = |name: &str| report.to_string().contains(&format!("{name}$_"));
    succeed(calls.capsule.run(&["session", "end", &label]));
    succeed(calls.capsule.run(&["replay", &label]));
    succeed(calls.capsule.run(&["verify"]));
    let changes = calls.capsule.run(&["changes", &label, "--json"]).exits(0).json();
    let changes = changes["changes"].as_array().unwrap();
    let refused = changes.iter().filter(|change| !change["refused"].is_null());
    let without = refused.flat_map(|change| ["--without", change["path"].as_str().unwrap()]);
    let apply: Vec<&str> = ["apply", &label].into_iter().chain(without).collect();
    succeed(calls.capsule.run(&apply));
    for (name, has_ended) in killed {
        let made = ["a", "b", "c", "d"].map(|part| calls.is_in_workspace(&format!("{name}{part}")));
        assert!(made.iter().all(|part| *part == made[0]), "{name}: {made:?}");
        assert!(!has_ended || made[0] && is_recorded(&name), "{name}");
    }
}

/// A question that no person was there for does not end the session; the same call, made again, uses its answer.
#[test]
fn an_answer_is_used_by_the_repeated_call() {
    let calls = Calls::under(&format!("{POLICY}{WAITS}"));
    let answer = |name: &str, words: &[&str]| {
        let mut args = vec!["approvals", "answer", name];
        args.extend(words);
        calls.capsule.run(&args)
    };
    succeed(calls.exec("job:1", &["touch", "before"]));
    let label = calls.label();
    let asked = calls.exec("job:1", &["mkdir", "d"]).exits(4).stderr;
    assert!(
        asked.contains("then make the call again") && asked.contains("[approval.waiting]"),
        "{asked}"
    );
    // Others go on, and the same question is no second one.
    succeed(calls.exec("job:1", &["ls"]));
    assert!(calls.exec("job:1", &["mkdir", "d"]).exits(4).stderr.contains("[approval.waiting]"));
    drop(calls.exec("job:1", &["mkdir", "e"]).exits(4));
    let listed = calls.capsule.run(&["approvals", "list", "--json"]).exits(0).json();
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 2, "{listed}");
    // It may be named by each of the calls that asked it.
    let said = answer(&format!("{label}:4"), &["--allow", "once"]).exits(0);
    assert!(said.stderr.contains("make the call again in the session"), "{}", said.stderr);
    let resumed = calls.capsule.run(&["resume", &label]).exits(2);
    assert!(resumed.stderr.contains("[approval.not-waiting]"), "{}", resumed.stderr);
    succeed(calls.exec("job:1", &["mkdir", "d"]));
    // Once is once.
    succeed(calls.exec("job:1", &["ls", "d"]));
    let again = calls.exec("job:1", &["mkdir", "d"]).exits(4).stderr;
    assert!(again.contains("[approval.waiting]"), "{again}");
    succeed(answer(&format!("{label}:5"), &["--deny", "-m", "no e"]));
    assert!(calls.exec("job:1", &["mkdir", "e"]).exits(3).stderr.contains("no e"));
    succeed(calls.capsule.run(&["session", "end", &label]));
    succeed(calls.capsule.run(&["replay", &label]));
    succeed(calls.capsule.run(&["verify"]));
    let listed = calls.capsule.run(&["approvals", "list", "--json"]).exits(0).json();
    assert_eq!(listed["approvals"], json!([]), "nothing waits in a session that ended");
}

/// A yes to a program text is one to what the text says: an agent that changes it meanwhile is asked again.
#[test]
fn an_answer_is_to_the_text_that_was_shown() {
    let programs =
        POLICY.replace("      ls: allow", "      ls: allow\n      python3: ask\n      perl: ask");
    let calls = Calls::under(&format!("{programs}{WAITS}"));
    let names: Vec<String> = (10..80).map(|n| format!("d{n}")).collect();
    for name in &names {
        calls.capsule.write_file(name, "x");
    }
    fs::create_dir(calls.capsule.workspace().join("pkg")).unwrap();
    let many = format!("cat {} && python3 w.py", names.join(" "));
    for (words, file) in [
        (&["python3", "w.py"][..], "w.py"),
        (&["python3", "./w.py", "x"], "w.py"),
        (&["perl", "w.py"], "w.py"),
        (&["python3 w.py && python3 w.py"], "w.py"),
        (&["python3", "pkg"], "pkg/__main__.py"),
        (&[&many], "w.py"),
    ] {
        calls.capsule.write_file(file, "print(1)\n");
        let ask = || calls.exec("job:1", words).exits(4).stderr;
        let waiting = || {
            let listed = calls.capsule.run(&["approvals", "list", "--json"]).exits(0).json();
            let all = listed["approvals"].as_array().unwrap().clone();
            let open = all.iter().filter(|asked| asked["standing"] == "waiting");
            open.map(|asked| asked["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert!(ask().contains("[approval.waiting]"));
        let [id] = &waiting()[..] else { panic!("{:?}", waiting()) };
        let shown = calls.capsule.run(&["approvals", "show", id]).exits(0).stdout;
        assert!(
            shown.contains("print(1)") && shown.contains(&format!("{file}, 9 bytes")),
            "{shown}"
        );
        succeed(calls.capsule.run(&["approvals", "answer", id, "--allow", "once"]));
        calls.capsule.write_file(file, "print(2)\n");
        assert!(ask().contains("[approval.waiting]"), "{words:?}");
        let [other] = &waiting()[..] else { panic!("{:?}", waiting()) };
        assert_ne!(id, other);
        succeed(calls.capsule.run(&["approvals", "answer", other, "--deny"]));
    }
    let label = calls.label();
    succeed(calls.capsule.run(&["session", "end", &label]));
    succeed(calls.capsule.run(&["replay", &label]));
}
