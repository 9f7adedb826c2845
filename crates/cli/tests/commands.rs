//! Commands: confined, bounded, cancelled, killed; as `exec`, as calls and as steps.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput, HttpServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const POLICY: &str = "version: 1
tools:
  fs.read: allow
  fs.write: allow
  shell.run:
    decision: allow
    executables: [cat, git, head, ls, perl, printf, sleep, env, pwd]
    limits: { timeout: 5s, timeout_max: 20s, stdout_max: 64KiB }
";

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// Output passes through, the status is the command's own.
#[test]
fn exec_is_transparent() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello\n");
    let policy = capsule.write_policy(POLICY);
    let exec = |words: &[&str]| {
        let mut line = vec!["exec", "--policy", &policy, "--"];
        line.extend(words);
        capsule.run(&line)
    };
    let ran = exec(&["cat", "a.txt"]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hello\n", ""));
    let ran = exec(&["perl", "-e", "print STDERR qq(bad\\n); exit 42"]).exits(42);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "bad\n"));
    let ran = exec(&["perl", "-e", "kill 9, $$; sleep 1"]).exits(137);
    assert!(ran.stderr.contains("exec.killed"), "{}", ran.stderr);
    let root = capsule.workspace().canonicalize().unwrap();
    assert_eq!(exec(&["pwd"]).exits(0).stdout, format!("{}\n", root.display()));
    let denied = exec(&["cat", "/etc/shadow"]).exits(3);
    assert!(denied.stderr.contains("path.outside-workspace") && denied.stderr.contains("hint"));
    assert_eq!(denied.stdout, "");
    let opened = exec(&["perl", "-e", "open(F, '<', '/etc/shadow') or print qq($!\\n)"]).exits(0);
    assert_eq!(opened.stdout, "No such file or directory\n");
    let nowhere = exec(&["sleep", "x"]);
    assert_eq!(nowhere.status, 1, "a status of the command, not of ours");
    let bytes = exec(&["perl", "-e", "binmode STDOUT; print chr(255)"]).exits(0);
    assert_eq!(bytes.stdout, "\u{fffd}");
}

/// With `--json` a program gets an object also where nothing could begin: with code and message,
/// and what people read on standard error.
#[test]
fn failures_are_objects_too() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan("- { id: one, tool: shell.run, args: { argv: [ls] } }\n");
    let bad = capsule.write_file("bad.yaml", "version: 1\ntoools: {}\n");
    let bad = bad.to_string_lossy().into_owned();
    let exec = |args: &[&str]| [&["exec", "--json"], args, &["--", "ls"]].concat().join("\n");
    let run = |args: &[&str]| [&["run", "--json"], args].concat().join("\n");
    for (line, code) in [
        (exec(&["--policy", &bad]), "policy.unknown-key"),
        (exec(&["--policy", "/nowhere.yaml"]), "policy.missing"),
        (exec(&["--policy", &policy, "--workspace", "/nowhere"]), "workspace.missing"),
        (run(&[&plan, "--policy", &bad]), "policy.unknown-key"),
        (run(&[&bad, "--policy", &policy]), "plan.missing-key"),
        (run(&[&plan, "--policy", &policy, "--workspace", "/nowhere"]), "workspace.missing"),
        ("show-run\n--json\nr-0000".into(), "run.unknown"),
    ] {
        let words: Vec<&str> = line.split('\n').collect();
        let ran = capsule.run(&words);
        let told = ran.json();
        assert_eq!(told["code"], code, "{line}: {told}");
        assert!(told["message"].as_str().is_some_and(|own| !own.is_empty()), "{line}: {told}");
        assert_eq!(told["exit"], ran.status, "{line}: {told}");
        assert!(ran.stderr.contains(code), "{line}: {}", ran.stderr);
    }
    let _ = capsule.run(&["exec", "--policy", &policy, "--json", "--", "ls"]).exits(0);
    let call = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert!(call["facts"]["walls"]["layers"].is_array(), "{}", call["facts"]);
}

/// II-4: with `--json` a program learns whether the command ran, and everything about it.
#[test]
fn exec_tells_programs_whether_it_ran() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let exec = |words: &[&str]| {
        let mut line = vec!["exec", "--json", "--policy", &policy, "--"];
        line.extend(words);
        capsule.run(&line)
    };
    let ran = exec(&["perl", "-e", "print 1; exit 3"]).exits(3).json();
    assert_eq!((&ran["ran"], &ran["result"]["exit_code"]), (&json!(true), &json!(3)));
    assert_eq!(ran["result"]["stdout"], "1");
    let denied = exec(&["sudo", "ls"]).exits(3).json();
    assert_eq!((&denied["ran"], &denied["status"]), (&json!(false), &json!("denied")));
    let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(shown["decision"]["rule"], "no-privilege-escalation");
}

/// FR-14: arguments, folder and input arrive as they were given.
#[test]
fn calls_give_folder_and_input() {
    let capsule = capsule();
    capsule.write_file("sub/a.txt", "x");
    let policy = capsule.write_policy(POLICY);
    let call = |args: Value| {
        let args = args.to_string();
        capsule.run(&["call", "shell.run", "--policy", &policy, "--args", &args]).json()
    };
    let listed = call(json!({ "argv": ["ls"], "cwd": "sub" }));
    assert_eq!(listed["result"]["stdout"], "a.txt\n");
    let echoed = call(json!({ "argv": ["cat"], "stdin": "from here\n" }));
    assert_eq!(echoed["result"]["stdout"], "from here\n");
    let odd = call(json!({ "argv": ["printf", "%s|", "a b", "$(id)", "`x`", "", "*", "'"] }));
    assert_eq!(odd["result"]["stdout"], "a b|$(id)|`x`||*|'|");
    let missing = call(json!({ "argv": ["ls"], "cwd": "nowhere" }));
    assert_eq!(
        (&missing["status"], &missing["code"]),
        (&json!("tool_error"), &json!("fs.not-found"))
    );
}

/// CAP-7, FR-17, NFR-11: time and output are bounded, and what was there until then is kept.
#[test]
fn commands_are_bounded() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let call = |args: Value| {
        let args = args.to_string();
        capsule.run(&["call", "shell.run", "--policy", &policy, "--args", &args])
    };
    let began = Instant::now();
    let late = call(json!({
        "argv": ["perl", "-e", "$| = 1; print qq(begun\\n); sleep 100"], "timeout": "2s"
    }))
    .exits(1)
    .json();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (&late["code"], &late["result"]["stdout"]),
        (&json!("exec.timeout"), &json!("begun\n"))
    );
    let print = "print 'a', 'x' x 199_998, 'z'";
    let long = call(json!({ "argv": ["perl", "-e", print] })).exits(0).json();
    let result = &long["result"];
    let (head, tail) =
        (result["stdout"].as_str().unwrap(), result["stdout_tail"].as_str().unwrap());
    assert_eq!((head.len(), tail.len()), (49_152, 16_384));
    assert!(head.starts_with("ax") && tail.ends_with("xz"));
    assert_eq!(
        (&result["stdout_bytes_total"], &result["truncated"]),
        (&json!(200_000), &json!(true))
    );
    let more = call(json!({ "argv": ["sleep", "0"], "timeout": "1h" })).exits(0).json();
    assert_eq!(more["status"], "ok", "more time than may be had is what may be had");
}

/// D17: a command finds exactly the environment that it is given.
#[test]
fn the_environment_is_made_for_the_command() {
    let mut capsule = capsule();
    capsule.set("TOKEN", "secret");
    capsule.set("LANG", "de_DE.UTF-8");
    let policy = capsule.write_policy(&format!(
        "{POLICY}    env: {{ pass: [LANG, MISSING], set: {{ CI: \"1\" }} }}\n"
    ));
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "env"]).exits(0);
    let mut names: Vec<&str> =
        ran.stdout.lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names.join(" "),
        "CI GIT_CONFIG_SYSTEM GIT_OPTIONAL_LOCKS GIT_PAGER GIT_TERMINAL_PROMPT GOMEMLIMIT HOME LANG NO_COLOR \
         PAGER PATH TERM TMPDIR"
    );
    assert!(ran.stdout.contains("LANG=de_DE.UTF-8"));
}

/// C19: what becomes protected while a run goes on is hidden from its next command.
#[test]
fn a_protected_file_that_appears_later_is_hidden() {
    let capsule = capsule();
    capsule.write_file("a/keep.txt", "x");
    let policy = capsule.write_policy(
        "version: 1
never: [{ id: mine, capabilities: [fs.read, fs.meta], paths: [\"**/*.secret\"], because: Secret. }]
tools:
  fs.write: allow
  shell.run: { decision: allow, executables: [perl] }
",
    );
    let look = "for (glob('a/* new/*')) { open(F, '<', $_) && defined(<F>) and print qq($_ ) }";
    let plan = capsule.write_plan(&format!(
        "- {{ tool: shell.run, args: {{ argv: [perl, -e, \"{look}\"] }}, expect: {{ stdout: \"a/keep.txt \" }} }}
- {{ tool: fs.write, args: {{ path: a/late.secret, content: s }} }}
- {{ tool: fs.write, args: {{ path: new/later.secret, content: s }} }}
- {{ tool: fs.write, args: {{ path: new/open.txt, content: s }} }}
- {{ tool: shell.run, args: {{ argv: [perl, -e, \"{look}\"] }}, expect: {{ stdout: \"a/keep.txt new/open.txt \" }} }}
- {{ tool: fs.write, args: {{ path: a/late.secret, content: t, mode: overwrite }} }}
- {{ tool: shell.run, args: {{ argv: [perl, -e, \"{look}\"] }}, expect: {{ stdout: \"a/keep.txt new/open.txt \" }} }}
"
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
}

/// Where there are no namespaces, nothing runs, and the reason is said.
#[test]
fn without_namespaces_nothing_runs() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let ran = capsule.run_without_namespaces(&["exec", "--policy", &policy, "--", "ls"]).exits(8);
    for word in ["sandbox.below-floor", "capsule doctor"] {
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("floor: landlock"), "no denial advises less: {}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

/// A run whose view cannot be built says why at each of its commands, not only at the first.
#[test]
fn without_a_view_every_command_says_why() {
    const PROGRAMS: usize = 300;
    const NO_ROOM: &str = "could not show a ";
    let capsule = capsule();
    let program = |n| format!("      p{n}: {{ decision: allow, path: /srv/p{n} }}\n");
    let policy = capsule.write_policy(&format!(
        "version: 1\ntools:\n  shell.run:\n    executables:\n      ls: {{ decision: allow }}\n{}",
        (0..PROGRAMS).map(program).collect::<String>()
    ));
    let plan = capsule.write_plan(
        "- { id: one, tool: shell.run, args: { argv: [ls] }, on_error: continue }
- { id: two, tool: shell.run, args: { argv: [ls] }, on_error: continue }
",
    );
    // The view holds each program open. With so few open files there is room for what Capsule itself has open,
    // and none for the last of the view: a program for root, a device for others.
    let said = (300..360).find_map(|files| {
        let place = format!(
            "n=0; while [ $n -lt {PROGRAMS} ]; do echo '#!/bin/sh' > /srv/p$n; chmod 755 /srv/p$n; n=$((n+1)); \
             done; ulimit -n {files}"
        );
        let line = ["run", &plan, "--policy", &policy, "--json"];
        let ran = capsule.run_in_place("/srv", &place, &line).json();
        let said = [&ran["calls"][0]["problem"], &ran["calls"][1]["decision"]].map(Value::clone);
        let message = said[0]["message"].as_str().unwrap_or_default();
        message.contains(NO_ROOM).then_some(said)
    });
    let [one, two] = said.expect("some number of open files is too small for the view alone");
    assert_eq!(
        (&one["code"], &two["code"]),
        (&json!("sandbox.failed"), &json!("sandbox.below-floor"))
    );
    for said in [&one["message"], &two["reason"]] {
        let told = said.as_str().unwrap();
        assert!(told.contains(NO_ROOM) && told.contains(": Too many open files"), "{said}");
    }
}

/// E25: another port of an address that is named is another address.
#[test]
fn another_port_is_another_address() {
    let (named, other) =
        (HttpServer::fixed("200 OK", "", "yes"), HttpServer::fixed("200 OK", "", "no"));
    let capsule = capsule();
    let policy = capsule.write_policy(&format!(
        "version: 1\ntools:\n  http.get:\n    decision: allow\n    urls: [\"http://127.0.0.1:{}/**\"]\n    \
         private_ips: {{ allow: [127.0.0.1] }}\n",
        named.port()
    ));
    let get = |url: String| {
        let args = json!({ "url": url }).to_string();
        capsule.run(&["call", "http.get", "--policy", &policy, "--args", &args]).status
    };
    assert_eq!(get(named.url("/")), 0);
    assert_eq!(get(other.url("/")), 3);
    assert_eq!(get(format!("http://[::1]:{}/", named.port())), 3);
    assert_eq!(other.requests(), []);
}

fn start(capsule: &Capsule, args: &[&str]) -> Child {
    capsule
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Processes whose command line holds this word.
fn processes(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) && !line.contains("capsule exec") && !line.contains("capsule run") {
            found.push(line);
        }
    }
    found
}

/// Perl that gives its process this name. The word stands in two halves, so that no command line
/// holds it before the script has come this far.
fn called(word: &str) -> String {
    let (first, second) = word.split_at(word.len() / 2);
    format!("$0 = '{first}' . '{second}'")
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run of one call is listed by what the call is about.
#[test]
fn runs_of_one_call_are_listed_by_it() {
    let capsule = capsule();
    let policy = capsule.write_policy("version: 1\ntools: { fs.read: allow, fs.grep: allow }\n");
    capsule.write_file("a.txt", "text\n");
    for (tool, args) in [
        ("fs.read", json!({ "path": "a.txt" })),
        ("fs.grep", json!({ "pattern": "t.x", "glob": "*.txt" })),
    ] {
        let args = args.to_string();
        let _ = capsule.run(&["call", tool, "--policy", &policy, "--args", &args]).exits(0);
    }
    let list = capsule.run(&["list-runs"]).exits(0).stdout;
    for name in ["  fs.read a.txt\n", "  fs.grep t.x in *.txt\n"] {
        assert!(list.contains(name), "{list}");
    }
}

/// G8: `kill -9` leaves no process behind, and the next look at the runs says so.
#[test]
fn a_killed_run_leaves_nothing_and_says_so() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for round in 0..5 {
        let word = format!("capsule-kill-test-{}-{round}", std::process::id());
        let script = format!("fork; fork; $0 = '{word}'; sleep 60");
        let mut child =
            start(&capsule, &["exec", "--policy", &policy, "--", "perl", "-e", &script]);
        wait_until("the command starts", || processes(&word).len() >= 4);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        wait_until("everything ends", || processes(&word).is_empty());
    }
    let list = capsule.run(&["list-runs"]).exits(0);
    assert_eq!(list.stdout.matches("1 unknown").count(), 5, "{}", list.stdout);
    let report = capsule.run(&["report", "latest"]).exits(0);
    assert!(report.stdout.contains("UNKNOWN") && report.stdout.contains("never written"));
    let sql = rusqlite::Connection::open(capsule.store()).unwrap();
    let unknown: i64 = sql
        .query_row("SELECT count(*) FROM tool_results WHERE status = 'unknown'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(unknown, 5);
    let verified = capsule.run(&["verify"]).exits(0);
    assert!(verified.stdout.contains("5 not sealed"), "{}", verified.stdout);
    let replay = capsule.run(&["replay", "latest"]).exits(5);
    assert!(replay.stderr.contains("before it was sealed"), "{}", replay.stderr);
}

/// What the kernel lists as the executor of this process, once it is there.
fn executor_of(process: u32) -> u32 {
    let children = format!("/proc/{process}/task/{process}/children");
    let mut found = None;
    wait_until("there is an executor", || {
        let all = fs::read_to_string(&children).unwrap_or_default();
        found = all.split_whitespace().filter_map(|own| own.parse().ok()).find(|own: &u32| {
            let words = fs::read(format!("/proc/{own}/cmdline")).unwrap_or_default();
            words.starts_with(b"capsule-executor\0")
        });
        found.is_some()
    });
    found.unwrap()
}

/// Whether the memory of a process holds these bytes; what cannot be read does not.
fn holds(process: u32, sought: &[u8]) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{process}/mem")).unwrap();
    let mut own = maps.lines().filter(|line| !line.contains("[v")).map(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let (to, _) = rest.split_once(' ').unwrap();
        let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        memory.read_at(&mut bytes, from).map(|read| bytes[..read].to_vec()).unwrap_or_default()
    });
    let sought = regex::escape(std::str::from_utf8(sought).unwrap());
    let sought = regex::bytes::Regex::new(&sought).unwrap();
    own.any(|bytes| sought.is_match(&bytes))
}

/// The executor of one command, which is a copy of the program that was started, has nothing of the
/// environment of the user in it, shows its own name, and goes where that program goes.
#[test]
fn the_copy_that_runs_a_command_has_nothing_of_the_user() {
    let mut capsule = capsule();
    let canary = format!("canary-{}", std::process::id());
    capsule.set("CAPSULE_TEST_CANARY", &canary);
    let policy = capsule.write_policy(POLICY);
    let time = format!("4.0{}", std::process::id());
    let mut child = start(&capsule, &["exec", "--policy", &policy, "--", "sleep", &time]);
    let executor = executor_of(child.id());
    wait_until("the command starts", || !processes(&format!("sleep {time}")).is_empty());
    let words = fs::read(format!("/proc/{executor}/cmdline")).unwrap();
    assert!(words.starts_with(b"capsule-executor\0"), "{}", String::from_utf8_lossy(&words));
    assert!(words["capsule-executor".len()..].iter().all(|byte| *byte == 0));
    let name = fs::read_to_string(format!("/proc/{executor}/comm")).unwrap();
    assert_eq!(name, "capsule-executo\n");
    match fs::File::open(format!("/proc/{executor}/mem")) {
        Ok(_) => {
            assert!(holds(child.id(), canary.as_bytes()), "this is where it would be found");
            assert!(!holds(executor, canary.as_bytes()));
        }
        // Nobody but root can look into it.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_until("it goes, too", || !Path::new(&format!("/proc/{executor}")).exists());
}

/// What the loader was told to put into the program is in no executor: that one is started anew.
#[test]
fn what_the_user_preloads_is_not_copied() {
    let mut capsule = capsule();
    capsule.set("LD_LIBRARY_PATH", "/nowhere/capsule-test-libraries");
    let policy = capsule.write_policy(POLICY);
    let time = format!("3.0{}", std::process::id());
    let mut child = start(&capsule, &["exec", "--policy", &policy, "--", "sleep", &time]);
    let executor = executor_of(child.id());
    wait_until("the command starts", || !processes(&format!("sleep {time}")).is_empty());
    let words = fs::read(format!("/proc/{executor}/cmdline")).unwrap();
    assert!(words.starts_with(b"capsule-executor\0__capsule-executor\0"), "{words:?}");
    if fs::File::open(format!("/proc/{executor}/mem")).is_ok() {
        assert!(holds(child.id(), b"capsule-test-libraries"), "this is where it would be found");
        assert!(!holds(executor, b"capsule-test-libraries"));
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

/// That the executor begins on another processor does not keep commands from any.
#[test]
fn commands_may_use_all_processors() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace("pwd]", "pwd, nproc]"));
    let mut all = std::process::Command::new("nproc");
    let all = all.env_remove("OMP_NUM_THREADS").env_remove("OMP_THREAD_LIMIT").output().unwrap();
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "nproc"]).exits(0);
    assert_eq!(ran.stdout.as_bytes(), all.stdout);
}

/// NFR-11: the time of a command is kept even where the deciding process is stopped, or held up by
/// whoever reads its output; and Ctrl+C is heard then.
#[test]
fn time_is_kept_whoever_waits() {
    let capsule = capsule();
    let policy = capsule.write_policy(&POLICY.replace("timeout: 5s", "timeout: 2s"));
    let word = format!("capsule-time-test-{}", std::process::id());
    let named = called(&word);
    let sleeper = format!("{named}; sleep 60");
    let writer = format!("{named}; $| = 1; print 'x' x 99, qq(\\n) while $n++ < 9000; sleep 60");
    for (script, stopped) in [(&sleeper, true), (&writer, false)] {
        let mut child = start(&capsule, &["exec", "--policy", &policy, "--", "perl", "-e", script]);
        wait_until("the command starts", || !processes(&word).is_empty());
        if stopped {
            signal(&child, Signal::STOP);
        }
        let began = Instant::now();
        wait_until("the command is ended", || processes(&word).is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        signal(&child, if stopped { Signal::CONT } else { Signal::INT });
        let ended = child.wait().unwrap().code();
        assert!(matches!(ended, Some(1 | 130)), "{ended:?}");
    }
}

/// FR-17: a limit that a command ran into is named in its result and in the reason.
#[test]
fn limits_that_were_reached_are_named() {
    let capsule = capsule();
    let small = POLICY.replace("limits: { ", "limits: { tmp: 256MB, ");
    assert_ne!(small, POLICY);
    let policy = capsule.write_policy(&small);
    let fill =
        "$b = q(x) x 1_000_000; for $n (1..400) { open F, qq(>/tmp/$n); syswrite F, $b } exit 3";
    let plan = capsule.write_plan(&format!(
        "- {{ id: fill, tool: shell.run, args: {{ argv: [perl, -e, {}] }} }}\n",
        json!(fill)
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(1);
    let words: Vec<&str> = ran.stdout.split(['\n', '│']).map(str::trim).collect();
    let why = "ended with status 3; it ran into its limit of /tmp.";
    assert!(words.join(" ").contains(why), "{}", ran.stdout);
    let shown = capsule.run(&["show-run", "latest:fill", "--json"]).exits(0).json();
    assert_eq!(shown["result"]["limits_reached"], json!(["tmp"]));
}

/// The lines of a report as one, whatever the width made of them.
fn words(text: &str) -> String {
    text.split(['\n', '│']).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// FR-17: whatever ended a call, the limits that it ran into are named where people look: in the line of
/// the run, in its report and with the call; in both tiers.
#[test]
fn limits_are_named_on_every_screen() {
    for floor in ["namespaces", "landlock"] {
        let capsule = capsule();
        // Each runs into its own limit, however slow the machine is.
        let limits = "{ timeout: 60s, processes_max: 12, stdout_max: 1KB, cpu: 1s }";
        let policy = capsule.write_policy(&format!(
            "version: 1\nsandbox: {{ floor: {floor} }}\ntools:\n  shell.run:\n    decision: allow
    executables: [perl]\n    limits: {limits}\n"
        ));
        let crowd = "for (1..40) { my $pid = fork; exit 1 if !defined $pid; $pid or sleep 60 }";
        for (script, time, name) in [
            (crowd, "60s", "processes"),
            ("print 'x' x 5000", "60s", "output"),
            ("sleep 60", "1s", "time"),
            ("1 while 1", "60s", "processor time"),
        ] {
            let args = json!({ "argv": ["perl", "-e", script], "timeout": time });
            let line = ["run", &plan_with(&capsule, &args), "--policy", &policy];
            let ran = in_tier(&capsule, floor, &line);
            let reported = capsule.run(&["report", "latest"]).exits(0).stdout;
            let shown = capsule.run(&["show-run", "latest:one"]).exits(0).stdout;
            for (screen, told) in
                [("run", &ran.stdout), ("report", &reported), ("show-run", &shown)]
            {
                let told = words(told);
                let said = told.split("reached: ").nth(1).is_some_and(|own| own.contains(name));
                assert!(said, "{floor} {screen}: {name}: {told}");
            }
        }
    }
}

/// What a command leaves running is ended with it, and told where people look; in both tiers.
#[test]
fn daemons_are_named_on_every_screen() {
    for floor in ["namespaces", "landlock"] {
        let capsule = capsule();
        let policy = capsule.write_policy(&format!(
            "version: 1\nsandbox: {{ floor: {floor} }}\ntools:\n  shell.run:\n    decision: allow
    executables: [perl]\n"
        ));
        let daemon = "use POSIX; if (my $pid = fork) { waitpid $pid, 0; exit } setsid; fork and exit; sleep 60";
        let line = ["run", &plan_of(&capsule, daemon), "--policy", &policy];
        let ran = in_tier(&capsule, floor, &line).exits(0);
        let reported = capsule.run(&["report", "latest"]).exits(0).stdout;
        let shown = capsule.run(&["show-run", "latest:one"]).exits(0).stdout;
        for (told, said) in [
            (&ran.stdout, "left running, and ended: 1 process"),
            (&reported, "left running, and ended: 1 process"),
            (&shown, "left running 1 process, ended with the command"),
        ] {
            assert!(words(told).contains(said), "{floor}: {told}");
        }
        let shown = capsule.run(&["show-run", "latest:one", "--json"]).exits(0).json();
        assert_eq!(shown["result"]["left_running"], 1, "{shown}");
        let line = ["exec", "--policy", &policy, "--", "perl", "-e", daemon];
        let told = in_tier(&capsule, floor, &line).exits(0).stderr;
        let note = "note: left running, and ended with the command: 1 process";
        assert!(told.contains(note), "{floor}: {told}");
        let _ = capsule.run(&["replay", "latest"]).exits(0);
    }
}

/// Runs the binary where the tier of that name is the highest that there is.
fn in_tier(capsule: &Capsule, floor: &str, words: &[&str]) -> CommandOutput {
    match floor {
        "landlock" => capsule.run_without_namespaces(words),
        _ => capsule.run(words),
    }
}

fn plan_of(capsule: &Capsule, script: &str) -> String {
    plan_with(capsule, &json!({ "argv": ["perl", "-e", script] }))
}

fn plan_with(capsule: &Capsule, args: &Value) -> String {
    capsule.write_plan(&format!("- {{ id: one, tool: shell.run, args: {args} }}\n"))
}

/// A program that goes on when one of its processes was ended for the memory of all keeps the end
/// that it has itself, and is not said to have been ended.
#[test]
fn who_lived_on_when_memory_ran_out_keeps_its_status() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\ntools:\n  shell.run:\n    decision: allow\n    executables: [perl]
    limits: { timeout: 20s, memory: 128MiB }\n",
    );
    let script = "$| = 1; for (1..6) { fork or do { $x = 'x' x 50_000_000; sleep 2; exit } } \
                  1 while wait > 0; print 'done'";
    let ran = capsule.run(&["run", &plan_of(&capsule, script), "--policy", &policy]);
    let call = capsule.run(&["show-run", "latest:one", "--json"]).exits(0).json();
    assert_eq!(call["result"]["limits_reached"], json!(["memory"]), "{call}");
    // Where the kernel ends all at once, or nobody counts but by looking, it was ended with them.
    let lived = call["result"]["stdout"] == "done";
    assert_eq!(call["result"]["exit_code"], if lived { json!(0) } else { json!(null) }, "{call}");
    assert_eq!(ran.status, i32::from(!lived), "{}", ran.stdout);
    if lived {
        let told = words(&ran.stdout);
        assert!(told.contains("limit reached: memory (a process of it was ended)"), "{told}");
    } else {
        assert_eq!(call["problem"]["code"], "exec.memory");
    }
}

/// FR-17: a file that is as large as one may be is named, also where the program ignored the signal.
#[test]
fn a_full_file_is_named() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\ntools:\n  shell.run:\n    decision: allow\n    executables:
      perl: { writes: ['**'] }\n    limits: { timeout: 20s, timeout_max: 60s, file: 256MB }\n",
    );
    let script = "$SIG{XFSZ} = 'IGNORE'; open F, '>', 'large'; seek F, 255_999_990, 0; \
                  syswrite F, 'x' x 10; print syswrite(F, 'x') // int $!";
    let args = json!({ "argv": ["perl", "-e", script] }).to_string();
    let _ = capsule.run(&["call", "shell.run", "--policy", &policy, "--args", &args]);
    let call = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(call["result"]["stdout"], "27", "EFBIG: {call}");
    assert_eq!(call["result"]["limits_reached"], json!(["file-size"]), "{call}");
}

/// Ctrl+C ends the running call, seals the run, and exits with 130.
#[test]
fn interrupting_seals_the_run() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let word = format!("capsule-interrupt-test-{}", std::process::id());
    let script = format!("$| = 1; print 'partly'; {}; sleep 60", called(&word));
    let plan = capsule.write_plan(&format!(
        "- {{ id: first, tool: shell.run, args: {{ argv: [perl, -e, \"{script}\"], timeout: 20s }} }}
- {{ id: second, tool: shell.run, args: {{ argv: [ls] }} }}\n"
    ));
    let began = Instant::now();
    let child = start(&capsule, &["run", &plan, "--policy", &policy]);
    wait_until("the command starts", || !processes(&word).is_empty());
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(15));
    wait_until("everything ends", || processes(&word).is_empty());
    let transcript = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        transcript.contains("exec.cancelled")
            && transcript.contains("interrupted")
            && transcript.contains("CANCELLED")
            && transcript.contains("0 failed · 0 denied · 1 cancelled"),
        "{transcript}"
    );
    assert_eq!(capsule.run(&["replay", "latest"]).exits(130).stdout, transcript);
    let shown = capsule.run(&["show-run", "latest:first", "--json"]).exits(0).json();
    assert_eq!(
        (&shown["ending"], &shown["result"]["stdout"]),
        (&json!("cancelled"), &json!("partly"))
    );
}

/// G16: errors, timeouts, denials, cut and binary outputs replay as what they were.
#[test]
fn every_kind_of_ending_replays() {
    let capsule = capsule();
    capsule.write_file("b.bin", [0u8, 255, 1].repeat(100));
    let policy = capsule.write_policy(POLICY);
    let step = |script: &str| {
        let time = if script.starts_with("sleep") { "1s" } else { "20s" };
        format!(
            "- {{ tool: shell.run, args: {{ argv: [perl, -e, \"{script}\"], timeout: {time} }}, on_error: continue }}\n"
        )
    };
    let plan = capsule.write_plan(
        &[
            step("print 'x' x 100_000"),
            step("binmode STDOUT; print chr(255) x 10"),
            step("exit 7"),
            step("kill 11, 0"),
            step("sleep 30"),
            step("print STDERR 'e' x 100_000; exit 1"),
            "- { tool: fs.read, args: { path: b.bin } }\n".into(),
            "- { tool: fs.read, args: { path: nothing }, on_error: continue }\n".into(),
            "- { tool: fs.read, args: { path: .env }, expect: { denied: true } }\n".into(),
            "- { tool: fs.write, args: { path: out.txt, content: new } }\n".into(),
        ]
        .concat(),
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    fs::remove_dir_all(capsule.workspace()).unwrap();
    fs::create_dir(capsule.workspace()).unwrap();
    for _ in 0..3 {
        assert_eq!(capsule.run(&["replay", "latest"]).exits(0).stdout, ran.stdout);
    }
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let endings: Vec<&str> = report["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|call| call["ending"].as_str())
        .collect();
    assert!(endings.contains(&"timed-out") && endings.contains(&"failed"), "{endings:?}");
    assert!(report["calls"][1]["result"].get("stdout_base64").is_some());
}

/// G23, F17: control sequences and odd characters reach neither terminal nor report.
#[test]
fn hostile_text_is_inert_on_the_screen() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\u{200b}\u{9b}31m";
    capsule.write_file("a.txt", hostile);
    let plan = capsule.write_plan(&format!(
        "- {{ id: a, name: n, tool: fs.read, args: {{ path: {} }}, on_error: continue }}
- {{ id: b, tool: shell.run, args: {{ argv: [perl, -e, 'print STDERR \"\\x1b[2Jhi\"; exit 1', {}] }}, on_error: continue }}
- {{ id: c, tool: fs.read, args: {{ path: a.txt }}, expect: {{ text: other }}, on_error: continue }}\n",
        json!(format!("x{}", "\u{202e}y")),
        json!("\u{1b}[31m"),
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]);
    let shown = capsule.run(&["show-run", "latest:c"]);
    for text in [&ran.stdout, &ran.stderr, &shown.stdout] {
        let bad = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}' || *c == '\u{200b}');
        assert_eq!(bad, None, "{text}");
    }
    assert!(ran.stdout.contains("⟨U+202E⟩"), "{}", ran.stdout);
    assert!(
        shown.stdout.contains("⟨U+001B⟩") || shown.stdout.contains("\\u001b"),
        "{}",
        shown.stdout
    );
}

/// CAP-10: a replayed command ends with its own status, like the command did; a replayed call ends
/// as calls do.
#[test]
fn a_replayed_command_keeps_its_status() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for (script, status) in [("exit 200", 200), ("kill 9, $$; sleep 1", 137), ("exit 0", 0)] {
        let words = ["perl", "-e", script];
        let line = [&["exec", "--policy", &policy, "--"], &words[..]].concat();
        let _ = capsule.run(&line).exits(status);
        let _ = capsule.run(&["replay", "latest"]).exits(status);
        let line = [&["call", "shell.run", "--policy", &policy, "--"], &words[..]].concat();
        let _ = capsule.run(&line).exits(i32::from(status != 0));
        let _ = capsule.run(&["replay", "latest"]).exits(i32::from(status != 0));
    }
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "cat", "/etc/shadow"]).exits(3);
    let _ = capsule.run(&["replay", "latest"]).exits(3);
    let list = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let kinds: Vec<&str> =
        list.as_array().unwrap().iter().map(|run| run["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["exec", "call", "exec", "call", "exec", "call", "exec"]);
}

const SECRETS: &str = "version: 1
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [\"no/ghp_*\"] } }
  fs.search: allow
  fs.list: allow
  fs.write: { decision: allow, paths: [\"out/ghp_*\"] }
  http.get: { decision: allow, urls: [\"https://example.invalid/ghp_*/**\", \"https://*.example.invalid/q\"] }
  shell.run:
    decision: allow
    executables: [printf]
    denied_tokens: [{ regex: \"^ghp_b\" }]
";

/// CAP-10, G10: a secret that is masked in the record changes nothing in a replay, not even where
/// the policy decided on it: what was decided is in the record.
#[test]
fn calls_with_secrets_replay() {
    let capsule = capsule();
    capsule.write_file("a.txt", "x");
    let policy = capsule.write_policy(SECRETS);
    let token = format!("ghp_{}", "a".repeat(36));
    let refused = format!("ghp_{}", "b".repeat(36));
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA";
    for (tool, args) in [
        ("shell.run", json!({ "argv": ["printf", token] })),
        ("shell.run", json!({ "argv": ["printf", "x\nghp_".to_owned() + &"a".repeat(36)] })),
        ("shell.run", json!({ "argv": ["printf", "%s", key, "and more"] })),
        ("shell.run", json!({ "argv": ["printf", refused] })),
        ("shell.run", json!({ "argv": ["printf", "x"], "stdin": token })),
        ("fs.read", json!({ "path": format!("docs/{token}") })),
        ("fs.read", json!({ "path": format!("no/{token}") })),
        ("fs.read", json!({ "path": format!("/{token}") })),
        ("fs.list", json!({ "path": token })),
        ("fs.search", json!({ "name": token })),
        ("fs.write", json!({ "path": format!("out/{token}"), "content": token })),
        ("fs.write", json!({ "path": format!("other/{token}"), "content": "x" })),
        ("http.get", json!({ "url": format!("https://x.example.invalid/q?t={token}") })),
        ("http.get", json!({ "url": format!("https://example.invalid/{token}/x") })),
        ("http.get", json!({ "url": format!("https://example.invalid/x/{token}") })),
        ("http.get", json!({ "url": format!("https://{token}.example.invalid/q") })),
        ("http.get", json!({ "url": "https://x.example.invalid/q", "headers": { "X-T": token } })),
        ("fs.read", json!({ (token.clone()): 1 })),
    ] {
        let args = args.to_string();
        let ran = capsule.run(&["call", tool, "--policy", &policy, "--args", &args]);
        assert!(ran.status < 10, "{tool} {args}\n{}{}", ran.stdout, ran.stderr);
        let replayed = capsule.run(&["replay", "latest"]);
        assert_eq!(replayed.status, ran.status, "{tool} {args}\n{}", replayed.stderr);
        assert!(replayed.stderr.contains("nothing was executed"), "{}", replayed.stderr);
        // What explains the call says what was said then.
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
        let explained = capsule.run(&["policy", "explain", "latest:1", "--json"]).exits(0).json();
        assert_eq!(shown["decision"], explained, "{tool} {args}");
    }
    // Undo records hold raw bytes and never leave the store; nothing else holds a secret.
    let store = rusqlite::Connection::open(capsule.store()).unwrap();
    let leaks: i64 = store
        .query_row(
            "SELECT (SELECT count(*) FROM payloads WHERE class <> 'undo' AND
                         (instr(bytes, ?1) OR instr(bytes, ?2)))
                  + (SELECT count(*) FROM events WHERE instr(bytes, ?1) OR instr(bytes, ?2))",
            [token.as_bytes(), refused.as_bytes()],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(leaks, 0, "a secret is in the store");
}

/// CAP-10, G10: plans whose inputs and texts hold secrets replay too.
#[test]
fn plans_with_secrets_replay() {
    let capsule = capsule();
    let policy = capsule.write_policy(SECRETS);
    let token = format!("ghp_{}", "a".repeat(36));
    let plan = capsule.write_plan(&format!(
        "version: 1
inputs: {{ token: {{ default: none }} }}
steps:
  - {{ id: own, tool: shell.run, args: {{ argv: [printf, {token}] }} }}
  - {{ id: input, tool: shell.run, args: {{ argv: [printf, {{ $ref: inputs.token }}] }} }}
  - {{ id: file, tool: fs.write, args: {{ path: {{ $concat: [out/, {{ $ref: inputs.token }}] }}, content: x, mode: create }} }}
  - {{ id: denied, tool: fs.read, args: {{ path: {{ $concat: [no/, {{ $ref: inputs.token }}] }} }}, expect: {{ denied: true }} }}
  - {{ id: url, tool: http.get, args: {{ url: {{ $url: {{ base: \"https://x.example.invalid/q\", query: {{ t: {{ $ref: inputs.token }} }} }} }} }}, on_error: continue }}
"
    ));
    let input = format!("token={token}");
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--input", &input]).exits(0);
    let replayed = capsule.run(&["replay", "latest"]).exits(0);
    assert_eq!(replayed.stdout, ran.stdout);
    let policy = capsule.write_policy(&format!("{SECRETS}# {token}\n"));
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--input", &input]).exits(1);
    assert_eq!(capsule.run(&["replay", "latest"]).exits(1).stdout, ran.stdout);
}

/// Arguments on standard input that are no text are the asker's mistake.
#[test]
fn arguments_that_are_no_text_are_refused() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let mut child = capsule
        .command(&["call", "fs.read", "--policy", &policy, "--args", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"path\":\"\xff\"}").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("not UTF-8") && stderr.contains("[usage]"), "{stderr}");
}

/// JSON for programs shows what it holds: nothing in it hides or turns around.
#[test]
fn json_hides_nothing() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let text = "a\u{202e}b\u{2066}c\u{200b}d\u{85}e\u{e0041}f\u{1b}g\u{e000}日本";
    capsule.write_file("a.txt", text);
    let args = json!({ "path": "a.txt" }).to_string();
    let ran = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", &args]).exits(0);
    let shown = capsule.run(&["report", "latest", "--json"]).exits(0);
    for printed in [&ran, &shown] {
        let bad =
            printed.stdout.chars().find(|c| *c != '\n' && capsule_base::escape::is_hostile(*c));
        assert_eq!(bad, None, "{}", printed.stdout);
        assert!(printed.stdout.contains("日本"), "{}", printed.stdout);
    }
    assert_eq!(ran.json()["result"]["text"], text);
    assert_eq!(shown.json()["calls"][0]["result"]["text"], text);
}

/// CAP-11: files that were not read are not counted, and what nobody's rule decided names no rule.
#[test]
fn reports_count_what_happened() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "- { tool: fs.read, args: { path: nothing }, on_error: continue }
- { tool: fs.read, args: { path: /etc/passwd } }
",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(3);
    assert!(ran.stdout.contains("files 0 read"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("rule path.outside-workspace"), "{}", ran.stdout);
}

/// CAP-1: small commands keep what their help says.
#[test]
fn small_commands_are_exact() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    fs::create_dir(capsule.directory().join("other")).unwrap();
    let other = capsule.directory().join("other").to_string_lossy().into_owned();
    let made = capsule.run(&["init", "--workspace", &other, "--json"]).exits(0).json();
    let files = ["schema/plan.v1.json", "schema/policy.v1.json", "policy.yaml"];
    let files = files.map(|file| format!("{other}/.capsule/{file}"));
    assert_eq!(made["wrote"], json!(files));
    assert!(files.iter().all(|file| Path::new(file).is_file()), "{files:?}");
    assert!(!capsule.workspace().join(".capsule").exists());
    let again = capsule.run(&["init", "--workspace", &other, "--json"]).exits(0).json();
    assert_eq!(again["kept"].as_array().unwrap().len(), 1);
    let long = format!("docs/{}", "long-name-".repeat(20));
    let args = json!({ "path": format!("/{long}") }).to_string();
    let line = ["policy", "explain", "--policy", &policy, "--tool", "fs.read", "--args", &args];
    let explained = capsule.run(&line).exits(0).stdout;
    assert!(explained.lines().all(|line| line.chars().count() <= 80), "{explained}");
    let lines = "{\"id\":1,\"tool\":\"fs.read\",\"args\":{\"path\":\"a\"}}\nnonsense\n\
                 {\"id\":3,\"tool\":\"fs.read\",\"args\":{\"path\":\"b\"}}\n";
    let batch = ["policy", "explain", "--policy", &policy, "--batch", "-"];
    let batch = capsule.run_with(&batch, lines).exits(2).stdout;
    let ids: Vec<Value> = batch
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| json!([line["id"], line["error"].is_string()]))
        .collect();
    assert_eq!(json!(ids), json!([[1, false], [null, true], [3, false]]));
    let known = capsule.run(&["explain-code", "policy.allowed", "--json"]).exits(0).json();
    assert_eq!((&known["move"], &known["class"]), (&json!("nobody"), &json!("ok")));
    let code = capsule.run(&["explain-code", "path.outside"]).exits(2);
    assert!(code.stderr.contains("did you mean `path.outside-workspace`"), "{}", code.stderr);
}

/// NFR-6: output that passes through is masked too, wherever its pieces are cut.
#[test]
fn output_that_passes_through_is_masked() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let script =
        "$| = 1; print 'token ghp_'; select undef, undef, undef, 0.2; print 'a' x 36, qq( end\\n)";
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "perl", "-e", script]).exits(0);
    assert!(
        ran.stdout.starts_with("token «token:github:40:") && ran.stdout.ends_with("» end\n"),
        "{}",
        ran.stdout
    );
}

/// Lines appear while the command runs, not only at its end.
#[test]
fn output_streams() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let script = "$| = 1; print qq(first\\n); sleep 3; print qq(second\\n)";
    let began = Instant::now();
    let mut child = start(&capsule, &["exec", "--policy", &policy, "--", "perl", "-e", script]);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "second\n");
    assert!(child.wait().unwrap().success());
}

/// D22, house rule 21: `doctor` tries every wall, and says what holds.
#[test]
fn doctor_tries_the_walls() {
    let capsule = capsule();
    let ran = capsule.run(&["doctor"]).exits(0);
    for says in [
        "landlock",
        "seccomp",
        "network namespace",
        "a file outside is not read",
        "limit: memory",
        "what is written is staged",
        "store",
    ] {
        assert!(ran.stdout.contains(says), "{says}:\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("missing"), "{}", ran.stdout);
    let json = capsule.run(&["doctor", "--json"]).exits(0).json();
    assert_eq!(json["ok"], true);
    let checks = json["checks"].as_array().unwrap();
    let cpu = checks.iter().find(|own| own["name"] == "limit: processor time").unwrap();
    let told = cpu["detail"].as_str().unwrap();
    let helps = told.contains("for an exact sum: a control group of version 2");
    assert_eq!(
        (cpu["hold"] == "held", !helps),
        (told == "cgroup v2", told == "cgroup v2"),
        "{cpu}"
    );
    assert!(!ran.stdout.contains("workspace: owners"), "{}", ran.stdout);
    if rustix::process::geteuid().is_root() {
        let theirs = capsule.write_file("of/others", "x");
        std::os::unix::fs::chown(theirs, Some(1_000), None).unwrap();
        let told = capsule.run(&["doctor"]).exits(0).stdout;
        let says =
            "files of another user: 1 (`of/others`), which commands cannot change; run Capsule";
        assert!(told.contains("workspace: owners") && told.contains(says), "{told}");
    }
}
