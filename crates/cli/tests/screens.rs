//! What people read on a screen: lists, hints, and where something is wrong.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

const COMMANDS: &str = "version: 1
name: commands
tools:
  fs.write: { decision: allow, paths: [\"**\"] }
  shell.run: { form: command, effects: { reads: allow, opens: allow, writes: allow } }
sandbox: { workspace: staged, level: workspace-write }
";

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.txt", "hello\nworld\n");
    capsule.write_file("sub/b.txt", "hello\n");
    capsule
}

fn command(capsule: &Capsule, policy: &str, text: &str) -> CommandOutput {
    let args = json!({ "command": text }).to_string();
    capsule.run(&["call", "shell.run", "--policy", policy, "--args", &args])
}

fn report(capsule: &Capsule, run: &str) -> Value {
    capsule.run(&["report", run, "--format", "json"]).exits(0).json()
}

/// CAP-11: the summary of a run counts the programs of pipelines and lists, the files that they name and
/// the files of their redirections.
#[test]
fn commands_count_their_programs_and_files() {
    let capsule = capsule();
    let policy = capsule.write_policy(COMMANDS);
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("cat a.txt", &["cat"], &["a.txt"], &[]),
        ("cat a.txt | wc -l > n.txt", &["cat", "wc"], &["a.txt"], &["n.txt"]),
        ("wc -l < a.txt", &["wc"], &["a.txt"], &[]),
        ("cd sub && cat b.txt >> ../c.txt", &["cat"], &["sub/b.txt"], &["c.txt"]),
        ("head -1 a.txt; tail -1 sub/b.txt", &["head", "tail"], &["a.txt", "sub/b.txt"], &[]),
        ("true || cat a.txt", &["true"], &[], &[]),
        ("cat *.txt", &["cat"], &["a.txt"], &[]),
        ("ls sub", &["ls"], &[], &[]),
    ];
    for (text, programs, read, written) in cases {
        let _ = command(&capsule, &policy, text).exits(0);
        let summary = &report(&capsule, "latest")["summary"];
        assert_eq!(summary["programs"], json!(programs), "{text}");
        assert_eq!(summary["files_read"], json!(read), "{text}");
        assert_eq!(summary["files_written"], json!(written), "{text}");
        let _ = capsule.run(&["discard", "latest"]);
    }
    // A list by words, through `exec`, counts in the same way.
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "cat", "a.txt"]).exits(0);
    let summary = &report(&capsule, "latest")["summary"];
    assert_eq!(summary["files_read"], json!(["a.txt"]));
    assert_eq!(summary["ok"], json!(1));
    let told = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(told.contains("files 1 read 0 written · hosts 0 · programs 1"), "{told}");
}

/// CAP-11: a step that runs a list shows every command that was reached, each with its own end.
#[test]
fn a_list_shows_each_of_its_commands() {
    let capsule = capsule();
    let policy = capsule.write_policy(COMMANDS);
    let plan = capsule.write_plan(
        "steps:
  - id: list
    tool: shell.run
    args: { command: \"head -1 a.txt > n.txt && cat n.txt; cat missing && ls\" }
    on_error: continue
  - { id: after, tool: shell.run, args: { command: wc -l a.txt } }
",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    let shown = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "1 ⚠ failed list shell.run head -1 a.txt > n.txt && cat n.txt; cat missing && ls",
        "✔ ok head -1 a.txt 1>n.txt",
        "A n.txt",
        "✔ ok cat n.txt",
        "✖ FAILED cat missing",
        "2 ✔ ok after shell.run wc -l a.txt",
        "1 ok · 1 failed · 0 denied",
    ] {
        assert!(shown.contains(line), "{line}\n{}", ran.stdout);
    }
    assert!(!shown.contains("ok ls"), "what was not reached: {}", ran.stdout);
    let shown = capsule.run(&["show-run", "latest:list"]).exits(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in ["cat n.txt; cat missing && ls", "\"part\": 1", "\"part\": 2", "\"part\": 3"] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let shown = capsule.run(&["show-run", "latest:list", "--json"]).exits(0).json();
    assert_eq!(shown["parts"].as_array().map(Vec::len), Some(3));
    // The same commands, made by a call by itself: the list is no call that succeeded.
    let _ = command(&capsule, &policy, "cat a.txt && cat missing").exits(1);
    let summary = &report(&capsule, "latest")["summary"];
    assert_eq!((&summary["ok"], &summary["failed"]), (&json!(1), &json!(1)));
}

/// A replay and a report say the status that the process ends with.
#[test]
fn the_status_that_is_shown_is_the_one_that_it_ends_with() {
    let capsule = capsule();
    let policy = capsule.write_policy(COMMANDS);
    let argvs: [(&[&str], i32); 5] = [
        (&["ls", "missing"], 2),
        (&["cat", "missing"], 1),
        (&["cat", "a.txt"], 0),
        (&["grep", "nothing", "a.txt"], 1),
        (&["cat", "/etc/shadow"], 3),
    ];
    for (argv, status) in argvs {
        let words = [&["exec", "--unattended", "--policy", policy.as_str(), "--"], argv].concat();
        let _ = capsule.run(&words).exits(status);
        for command in ["replay", "report"] {
            let ran = capsule.run(&[command, "latest"]);
            let shown = format!("· exit {status}\n");
            assert!(ran.stdout.contains(&shown), "{argv:?} {command}: {}", ran.stdout);
            assert_eq!(ran.status, if command == "replay" { status } else { 0 }, "{argv:?}");
        }
    }
    // A list ends with the status of its last command.
    let _ = command(&capsule, &policy, "cat a.txt; ls missing").exits(1);
    let ran = capsule.run(&["replay", "latest"]).exits(1);
    assert!(ran.stdout.contains("· exit 1\n"), "{}", ran.stdout);
}

/// What a failed call did not change is offered for no undo, and what it did change is.
#[test]
fn an_undo_is_offered_where_there_is_something_to_undo() {
    const FILES: &str = "version: 1
tools:
  fs.write: { decision: allow, paths: [\"**\"] }
  fs.edit: { decision: allow, paths: [\"**\"] }
  fs.read: { decision: allow, paths: [\"**\"] }
  fs.delete: { decision: allow, paths: [\"**\"] }
";
    let capsule = capsule();
    let policy = capsule.write_policy(FILES);
    let large = "x".repeat(100_000);
    let write = json!({ "path": "a.txt", "content": large }).to_string();
    let edit = json!({ "path": "a.txt", "search": "a", "replace": large }).to_string();
    let plan = "inputs: { text: { type: string } }
steps: [{ tool: fs.write, args: { path: a.txt, content: { $ref: inputs.text } } }]
";
    let plan = capsule.write_plan(plan);
    // The workspace is a disk that is full.
    let full = |args: &[&str]| {
        let script = "mount -t tmpfs -o size=16k none \"$0\" && echo a > \"$0/a.txt\" && \
            cd \"$0\" && exec \"$@\"";
        let inner = capsule.command(args);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(capsule.workspace()).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(capsule.workspace()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        CommandOutput::from(command.output().unwrap())
    };
    let calls: [&[&str]; 2] = [
        &["call", "fs.write", "--policy", &policy, "--args", &write],
        &["call", "fs.edit", "--policy", &policy, "--args", &edit],
    ];
    for call in calls {
        let ran = full(call);
        assert_eq!(ran.status, 1, "{}\n{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("recorded as"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("capsule undo"), "{}", ran.stderr);
        let shown = capsule.run(&["report", "latest"]).exits(0).stdout;
        assert!(!shown.contains("undo"), "{shown}");
    }
    let text = format!("text={large}");
    let ran = full(&["run", &plan, "--policy", &policy, "--input", &text]);
    assert_eq!(ran.status, 1, "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("next: capsule report"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("capsule undo"), "{}", ran.stderr);
    // What did happen is offered, and the command that is shown works.
    let small = json!({ "path": "a.txt", "content": "new" }).to_string();
    let ran = capsule.run(&["call", "fs.write", "--policy", &policy, "--args", &small]).exits(0);
    let (_, undo) = ran.stderr.split_once("· capsule ").unwrap();
    let (_, undo) = undo.split_once("· capsule ").unwrap();
    let words: Vec<&str> = undo.split_whitespace().collect();
    let _ = capsule.run(&words).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("a.txt")).unwrap(), "hello\nworld\n");
}

/// A run is listed by the command that it was, in columns that hold the longest word.
#[test]
fn runs_are_listed_by_their_command_in_columns() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.read: allow
  fs.write: { decision: ask, paths: [\"**\"] }
  shell.run: { form: command, effects: { reads: allow } }
",
    );
    let exec = ["exec", "--unattended", "--policy", policy.as_str(), "--"];
    let _ = capsule.run(&[&exec[..], &["ls", "-l", "two words"]].concat());
    let _ = command(&capsule, &policy, "cat a.txt | wc -l");
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", "{\"pathh\": \"x\"}"]);
    let args = "{\"path\": \"x\", \"content\": \"y\"}";
    let _ = capsule.run(&["call", "fs.write", "--unattended", "--policy", &policy, "--args", args]);
    let _ = capsule.run(&[&exec[..], &["cat", "/etc/shadow"]].concat());
    let told = capsule.run(&["list-runs"]).exits(0).stdout;
    let lines: Vec<&str> = told.lines().collect();
    let wanted = [
        ("denied", "1 call, 1 denied", "cat /etc/shadow"),
        ("approval needed", "1 call, 1 asked", "fs.write x"),
        ("a tool failed", "1 call ", "fs.read"),
        ("ok", "1 call ", "cat a.txt | wc -l"),
        ("a tool failed", "1 call ", "ls -l 'two words'"),
    ];
    assert_eq!(lines.len(), wanted.len(), "{told}");
    let column =
        |line: &str, text: &str| line.find(text).unwrap_or_else(|| panic!("{text}: {told}"));
    for (line, (word, calls, name)) in lines.iter().zip(wanted) {
        assert!(line.ends_with(name), "{name}: {told}");
        assert!(!line.contains("1 calls"), "{told}");
        let places = [column(line, word), column(line, calls), column(line, name)];
        let first =
            [column(lines[0], "denied"), column(lines[0], "1 call"), column(lines[0], "cat")];
        assert_eq!(places, first, "{told}");
    }
    let denied = capsule.run(&["list-runs", "--denied", "--json"]).exits(0).json();
    assert_eq!(denied.as_array().map(Vec::len), Some(1), "bad arguments are no denial: {denied}");
    let shown = capsule.run(&["report", lines[2].split(' ').next().unwrap()]).exits(0).stdout;
    assert!(!shown.contains("DENIED") && !shown.contains("can allow it"), "{shown}");
    assert!(shown.contains("0 denied") && shown.contains("(args.invalid)"), "{shown}");
}

/// A hidden folder looks empty, so that programs which walk a tree do not fail at it; what is in it cannot
/// be named, so that none takes it for deleted.
#[test]
fn programs_walk_past_what_init_wrote() {
    let mut capsule = capsule();
    capsule.set("NO_COLOR", "1");
    capsule.write_file("t/x.test.mjs", "import test from 'node:test'; test('x', () => {});");
    capsule.write_file(
        "test_a.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n",
    );
    capsule.write_file("secret/deep/key.txt", "hello");
    let _ = capsule.run(&["init"]).exits(0);
    let policy = capsule.write_policy(
        "version: 1
lift: [{ id: no-shells, because: for this test }]
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [\"secret/**\"] } }
  shell.run: { executables: {
    node: allow, python3: allow, git: allow, grep: allow,
    find: allow, ls: allow, perl: allow, du: allow, cat: allow } }
",
    );
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=n@example.org"]).args(args);
        let done = command.current_dir(capsule.workspace()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "a.txt"]);
    git(&["commit", "-qm", "one"]);
    let walks: &[&[&str]] = &[
        &["node", "--test"],
        &["node", "-e", "console.log(require('fs').readdirSync('.', { recursive: true }).length)"],
        &["python3", "-m", "unittest", "discover"],
        &[
            "python3",
            "-c",
            "import os; def_ = [x for x in os.walk('.', onerror=lambda e: exit(e.errno))]",
        ],
        &["git", "status", "--short"],
        &["git", "ls-files", "--others"],
        &["grep", "-r", "hello", "."],
        &["find", ".", "-name", "*.txt"],
        &["ls", "-R"],
        &["du", "-s", "."],
        &["perl", "-MFile::Find", "-e", "find(sub {}, '.')"],
    ];
    for argv in walks {
        let words = [&["exec", "--unattended", "--policy", policy.as_str(), "--"], *argv].concat();
        let ran = capsule.run(&words).exits(0);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!told.contains("denied") && !told.contains("EACCES"), "{argv:?}: {told}");
        assert!(!told.contains("key.txt") || !argv.contains(&"grep"), "{argv:?}: {told}");
    }
    let open = "my $r = open(my $f, '<', '.capsule/policy.yaml'); print $r ? 'read' : $!";
    let words = ["exec", "--policy", policy.as_str(), "--", "perl", "-e", open];
    assert_eq!(capsule.run(&words).exits(0).stdout, "Permission denied");
}

/// F19: a policy that lies in a workspace is taken by no command unless it is named, and each says how to
/// name it.
#[test]
fn a_policy_in_the_workspace_counts_only_when_it_is_named() {
    let capsule = capsule();
    let _ = capsule.run(&["init"]).exits(0);
    let plan = capsule.write_plan("steps: [{ tool: fs.list, args: { path: . } }]\n");
    let commands: &[&[&str]] = &[
        &["exec", "--", "ls"],
        &["call", "fs.list", "--args", "{\"path\": \".\"}"],
        &["run", &plan],
        &["policy", "check"],
        &["policy", "show"],
        &["policy", "show", "--resolved"],
        &["policy", "test"],
        &["policy", "explain", "--", "ls"],
        &["plan", "preflight", &plan],
    ];
    for words in commands {
        let ran = capsule.run(words).exits(2);
        assert!(ran.stderr.contains("no policy is named"), "{words:?}: {}", ran.stderr);
        let (_, named) = ran.stderr.split_once("`--policy ").unwrap();
        let named = named.split('`').next().unwrap();
        // The way that it names works.
        let split = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let (own, rest) = words.split_at(split);
        let _ = capsule.run(&[own, &["--policy", named], rest].concat()).exits(0);
    }
    // From a folder below, and from another one.
    let mut below = capsule.command(&["exec", "--", "ls"]);
    let ran =
        CommandOutput::from(below.current_dir(capsule.workspace().join("sub")).output().unwrap())
            .exits(2);
    assert!(ran.stderr.contains("/.capsule/policy.yaml`"), "{}", ran.stderr);
    let mut away = capsule.command(&["exec", "--", "ls"]);
    let ran = CommandOutput::from(away.current_dir(capsule.home()).output().unwrap()).exits(2);
    assert!(ran.stderr.contains("`capsule init` writes one"), "{}", ran.stderr);
    // A layer is no policy, so nobody is told to name it.
    capsule.write_file(".capsule/policy.yaml", "layer: workspace\n");
    let ran = capsule.run(&["exec", "--", "ls"]).exits(2);
    assert!(!ran.stderr.contains("--policy .capsule"), "{}", ran.stderr);
}

/// Two policies of one name in two folders are two policies: each is compared with its own runs.
#[test]
fn policies_are_told_apart_by_their_place() {
    let capsule = capsule();
    let other = capsule.directory().join("other");
    fs::create_dir_all(other.join("docs")).unwrap();
    let start = |folder: &std::path::Path| {
        let mut init = capsule.command(&["init"]);
        let _ = CommandOutput::from(init.current_dir(folder).output().unwrap()).exits(0);
        let mut policy = fs::read_to_string(folder.join(".capsule/policy.yaml")).unwrap();
        policy.push_str(if folder == other { "# other\n" } else { "" });
        fs::write(folder.join(".capsule/policy.yaml"), policy).unwrap();
    };
    let run = |folder: &std::path::Path, args: &[&str]| {
        let mut command = capsule.command(args);
        CommandOutput::from(command.current_dir(folder).output().unwrap())
    };
    start(&capsule.workspace());
    start(&other);
    let list =
        ["call", "fs.list", "--policy", ".capsule/policy.yaml", "--args", "{\"path\": \".\"}"];
    for _ in 0..6 {
        let _ = run(&other, &list).exits(0);
    }
    // Nothing was run by this one, whatever the other one needed.
    let checked =
        run(&capsule.workspace(), &["policy", "check", "--policy", ".capsule/policy.yaml"]);
    assert!(checked.clone().exits(0).stdout.contains("0 notes"), "{checked:?}");
    let told = run(&other, &["policy", "check", "--policy", ".capsule/policy.yaml"]).exits(0);
    assert!(told.stderr.contains("of the last 6 runs did not need"), "{}", told.stderr);
    // Each is unchanged since its own first run.
    let first = run(&capsule.workspace(), &list).exits(0);
    let label = first.stderr.split_whitespace().nth(2).unwrap().to_owned();
    let _ = run(&other, &list).exits(0);
    let _ = run(&capsule.workspace(), &list).exits(0);
    let shown = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(shown.contains(&format!("unchanged since {label}")), "{shown}");
}

/// A program that cannot be run where it lies is named as that, with what helps, and nobody reads an
/// error number.
#[test]
fn programs_that_cannot_be_shown_are_named() {
    let capsule = capsule();
    let _ = capsule.write_program(".venv/bin/pytest", "#!/bin/sh\necho hi\n");
    for (text, place) in [
        ("test.run: { decision: allow, command: [.venv/bin/pytest] }", "policy.yaml:3:"),
        ("test.run: { decision: allow, command: [./run.sh] }", "policy.yaml:3:"),
        ("shell.run: { executables: { pytest: { path: .venv/bin/pytest } } }", "policy.yaml:3:"),
        ("shell.run: { executables: { pytest: { path: ~/bin/pytest } } }", "policy.yaml:3:"),
        ("shell.run: { executables: { pytest: { path: /opt/../bin/pytest } } }", "policy.yaml:3:"),
    ] {
        let policy = capsule.write_policy(&format!("version: 1\ntools:\n  {text}\n"));
        let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
        for told in
            ["policy.wrong-type", place, "does not say where a program is", "/usr/bin/python3"]
        {
            assert!(ran.stderr.contains(told), "{text}: {told}\n{}", ran.stderr);
        }
    }
    for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
        cannot_be_shown(&capsule, folder);
    }
}

/// A program may lie in any other folder, such as one that commands see anyway.
#[test]
fn programs_run_from_any_other_folder() {
    let capsule = capsule();
    for folder in ["/etc/ssl/certs", "/srv", "/run", "/opt", "/usr/share/doc", "/var/lib"] {
        let tool = format!("{folder}/tools/tool");
        let policy = capsule.write_policy(&format!(
            "version: 1\ntools:\n  shell.run: {{ decision: allow, executables: {{ ls: allow, tool: {{ path: \
             {tool} }} }} }}\n"
        ));
        let made = format!(
            "mkdir {folder}/tools; printf '#!/bin/sh\\necho ran\\n' > {tool}; chmod 755 {tool}"
        );
        for (name, said) in [("tool", "ran\n"), ("ls", "")] {
            let line = ["exec", "--policy", &policy, "--", name, "empty"];
            capsule.write_file("empty/.keep", "");
            assert_eq!(
                capsule.run_in_place(folder, &made, &line).exits(0).stdout,
                said,
                "{folder}"
            );
        }
    }
    // One that is covered is empty for each command, and the policy's program in it is not found.
    let made = "mkdir /usr/local/etc/tools; cp /bin/true /usr/local/etc/tools/tool";
    let policy = capsule.write_policy(
        "version: 1\ntools:\n  shell.run: { decision: allow, executables: { ls: allow, tool: { path: \
         /usr/local/etc/tools/tool } } }\n",
    );
    let exec = |name: &str| {
        let line = ["exec", "--policy", &policy, "--", name];
        capsule.run_in_place("/usr/local/etc", made, &line)
    };
    let _ = exec("ls").exits(0);
    let gone = exec("tool").exits(1);
    assert!(gone.stderr.contains("which has a `/usr/local/etc` of its own"), "{}", gone.stderr);
}

/// Tries a program that lies beneath a folder of which each command has its own.
fn cannot_be_shown(capsule: &Capsule, folder: &str) {
    let elsewhere = tempfile::tempdir_in(folder).unwrap();
    let tool = elsewhere.path().join("tool");
    fs::copy("/bin/true", &tool).unwrap();
    let shown = tool.display();
    let policy = capsule.write_policy(&format!(
        "version: 1\ntools:\n  test.run: {{ decision: allow, command: [{shown}] }}\n  shell.run:\n    \
         executables:\n      ls: allow\n      tool: {{ decision: allow, path: {shown} }}\n      \
         gone: {{ decision: allow, path: /opt/gone/tool }}\n"
    ));
    let checked = capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    let own = folder.strip_suffix("/shm").unwrap_or(folder);
    let told = format!("a command has a `{own}` of its own");
    assert!(checked.stderr.contains(&told), "{}", checked.stderr);
    let exec = |name: &str| capsule.run(&["exec", "--policy", &policy, "--", name]);
    let tests = capsule.run(&["call", "test.run", "--policy", &policy]).exits(1);
    assert_eq!(tests.json()["code"], "exec.not-found");
    for ran in [exec("tool").exits(1), tests] {
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(&format!("which has a `{own}` of its own")), "{told}");
        assert!(!told.contains("File exists") && !told.contains("os error"), "{told}");
    }
    let gone = exec("gone").exits(1);
    assert!(gone.stderr.contains("there is no program at `/opt/gone/tool`"), "{}", gone.stderr);
    // None of them keeps another program from running.
    let _ = exec("ls").exits(0);
}

/// UC-4, SAF-6: a denial names what the policy leaves open, says that this is the way that is meant, and
/// never how to open more.
#[test]
fn denials_name_what_is_open() {
    let capsule = capsule();
    let _ = capsule.run(&["init"]).exits(0);
    let starter = ".capsule/policy.yaml";
    let explain = |policy: &str, argv: &[&str]| {
        let words =
            ["policy", "explain", "--json", "--policy", policy, "--tool", "shell.run", "--"];
        capsule.run(&[&words, argv].concat()).json()
    };
    let cases: &[(&str, &[&str], &str)] = &[
        (starter, &["sed", "-i", "s/a/b/", "docs/a.md"], "`fs.edit` (in `docs/**`)"),
        (starter, &["sed", "-i", "s/a/b/", "a.txt"], "`fs.edit` (in `docs/**`)"),
        (starter, &["touch", "docs/a.md"], "`fs.write` (in `docs/**`)"),
        (starter, &["tail", "a.txt"], "`fs.read`"),
        (starter, &["rm", "a.txt"], "it names `cat`, `head`, `ls`, `git`"),
        ("builtin:developer", &["rm", "-rf", "/"], "by a path relative to the workspace"),
        ("builtin:developer", &["rm", "-rf", "/etc/x"], "by a path relative to the workspace"),
        ("builtin:developer", &["rm", "-rf", ".."], "by a path relative to the workspace"),
        ("builtin:developer", &["rm", "-rf", "."], "name the files or the folder"),
    ];
    for (policy, argv, way) in cases {
        let told = explain(policy, argv);
        assert_eq!(told["decision"], "deny", "{argv:?}: {told}");
        let suggestion = told["suggestion"].as_str().unwrap();
        assert!(suggestion.contains(way), "{argv:?}: {suggestion}");
        assert!(!suggestion.contains("main.rs"), "{argv:?}: {suggestion}");
    }
    for argv in [&["rm", "-rf", "/"][..], &["rm", "-rf", ".."], &["dd", "if=a.txt", "of=/dev/sda"]]
    {
        assert_eq!(explain("builtin:developer", argv)["risk"], "high", "{argv:?}");
    }
    assert_eq!(explain("builtin:developer", &["rm", "a.txt"])["risk"], "medium");
    let ran = capsule.run(&[
        "call",
        "shell.run",
        "--policy",
        "builtin:developer",
        "--",
        "rm",
        "-rf",
        "/",
    ]);
    let note = ran.exits(3).json()["note"].as_str().unwrap().to_owned();
    let (contract, meant) = note.split_at(note.find(" The suggestion").unwrap());
    assert_eq!(
        contract,
        "This is the user's policy, not a fault. Do not look for another way to do the same thing."
    );
    assert_eq!(meant, " The suggestion is what the policy leaves open instead.");
}

/// What is no YAML is told where it stands, with what to write instead.
#[test]
fn slips_in_yaml_are_told_where_they_are() {
    let capsule = capsule();
    let base = "version: 1\nname: x\ntools:\n";
    let cases: &[(&str, &str, &str)] = &[
        ("  fs.read:\n\tdecision: allow\n", "policy.yaml:5:1", "indent with blanks"),
        ("  fs.read: allow\n\tfs.list: allow\n", "policy.yaml:5:1", "indent with blanks"),
        ("  fs.read: allow\n\n\tfs.list: allow\n", "policy.yaml:6:1", "indent with blanks"),
        ("  fs.read: {\n \tdecision: allow }\n", "policy.yaml:5:2", "indent with blanks"),
        ("\tfs.read: allow\n", "policy.yaml:4:1", "indent with blanks"),
        ("  fs.read: { paths: [**/*.py] }\n", "policy.yaml:4:22", "in quotes: `\"**/*.py\"`"),
        (
            "  fs.read:\n    paths:\n      - **/*.py\n",
            "policy.yaml:6:9",
            "in quotes: `\"**/*.py\"`",
        ),
        ("  fs.read:\n    paths:\n      - *.md\n", "policy.yaml:6:9", "in quotes: `\"*.md\"`"),
        ("  fs.read: { paths: [\"**\", !x/**] }\n", "policy.yaml:4:28", "stands in quotes"),
        ("  fs.read: { paths: [@x/**] }\n", "policy.yaml:4:22", "in quotes: `\"@x/**\"`"),
    ];
    for (text, place, hint) in cases {
        let policy = capsule.write_policy(&format!("{base}{text}"));
        let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
        for told in [place, hint] {
            assert!(ran.stderr.contains(told), "{text}: {told}\n{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("anchor"), "{}", ran.stderr);
    }
    let policy = capsule
        .write_policy("version: 1\nworkspace: { root: nix/da }\ntools: { fs.read: allow }\n");
    let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(ran.stderr.contains("policy.yaml:2:20"), "{}", ran.stderr);
    for (named, near) in [
        ("builtin:dev", "builtin:developer"),
        ("builtin:develper", "builtin:developer"),
        ("builtin:assist", "builtin:assistant"),
        ("builtin:reado", "builtin:readonly"),
    ] {
        let near = format!("did you mean `{near}`?");
        let ran = capsule.run(&["policy", "check", "--policy", named]).exits(2);
        assert!(ran.stderr.contains(&near), "{named}: {}", ran.stderr);
        let policy = capsule.write_policy(&format!("version: 1\nextends: {named}\n"));
        let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
        assert!(ran.stderr.contains(&near), "{named}: {}", ran.stderr);
    }
}

/// What is hidden from the list of what is in no commit is counted as that.
#[test]
fn every_path_in_no_commit_is_listed_or_said_to_be_hidden() {
    let capsule = capsule();
    let _ = capsule.run(&["init"]).exits(0);
    let git = Command::new("git").args(["init", "-q"]).current_dir(capsule.workspace()).status();
    assert!(git.unwrap().success());
    capsule.write_file(".env", "A=1\n");
    let told = capsule.run(&["changes"]).exits(0).stdout;
    assert!(told.contains("3 paths are in no commit"), "{told}");
    let listed = told.lines().filter(|line| line.contains("(untracked)")).count();
    assert_eq!(listed, 2, "{told}");
    assert!(told.contains("and 1 more path with names that"), "{told}");
    let json = capsule.run(&["changes", "--json"]).exits(0).json();
    assert_eq!(json["repository"]["left_out"], 1);
}

/// The help says which options every command has, and how commands end.
#[test]
fn help_has_its_own_options_and_exit_codes() {
    let capsule = capsule();
    for flag in ["-h", "--help"] {
        let help = capsule.run(&["exec", flag]).exits(0).stdout;
        let (own, global) = help.split_once("Global options:").unwrap();
        for option in ["--policy", "--cwd", "--timeout", "--unattended"] {
            assert!(own.contains(option) && !global.contains(option), "{option}: {help}");
        }
        for option in ["--workspace", "--json", "--color", "--plain", "--store"] {
            assert!(global.contains(option) && !own.contains(option), "{option}: {help}");
        }
    }
    for words in [&["--help"][..], &["help"], &["man"]] {
        let told = capsule.run(words).exits(0).stdout;
        for line in
            ["Exit codes", "denied by the policy", "the record is not what was written", "130"]
        {
            assert!(told.contains(line), "{words:?}: {line}");
        }
    }
}
