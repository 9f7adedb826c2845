//! Requirements whose whole text takes a test of its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput, HttpServer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PROGRAMS: &str = "version: 1
tools:
  fs.search: allow
  fs.read: allow
  fs.write: { decision: allow, paths: [\"**\"] }
  shell.run: { decision: allow, executables: [cat, perl, pwd, sleep, sh] }
sandbox: { workspace: staged, level: workspace-write }
";

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

fn call(capsule: &Capsule, policy: &str, tool: &str, args: &Value) -> CommandOutput {
    let args = args.to_string();
    capsule.run(&["call", tool, "--unattended", "--policy", policy, "--args", &args])
}

fn perl(capsule: &Capsule, policy: &str, script: &str) -> CommandOutput {
    capsule.run(&["exec", "--policy", policy, "--", "perl", "-e", script])
}

fn text(result: &Value) -> &str {
    result.as_str().unwrap_or_default()
}

/// What the kernel tells of files that were opened since it was last asked.
struct Opened {
    queue: std::os::fd::OwnedFd,
    names: Vec<(i32, String)>,
}

impl Opened {
    /// Watches every file beneath a folder.
    fn beneath(root: &Path) -> Self {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let (mut waiting, mut names) = (vec![root.to_owned()], Vec::new());
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    let flags = WatchFlags::OPEN | WatchFlags::ACCESS;
                    let watch = inotify::add_watch(&queue, &path, flags).unwrap();
                    names.push((watch, path.to_string_lossy().into_owned()));
                }
            }
        }
        Self { queue, names }
    }

    fn since(&self) -> Vec<String> {
        let mut found = Vec::new();
        let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        while poll(&mut [PollFd::new(&self.queue, PollFlags::IN)], Some(&wait)).unwrap() > 0 {
            let mut buffer = [MaybeUninit::uninit(); 4_096];
            let mut reader = inotify::Reader::new(self.queue.as_fd(), &mut buffer);
            while let Ok(event) = reader.next() {
                assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
                let name = self.names.iter().find(|(watch, _)| *watch == event.wd());
                found.extend(name.map(|(_, name)| name.clone()));
            }
        }
        found
    }
}

/// FR-9: a search opens no file, whatever it looks for. The kernel says so, and says it of a read.
#[test]
fn a_search_opens_no_file() {
    let capsule = capsule();
    for n in 0..60 {
        capsule.write_file(&format!("d{}/f{n}.md", n % 6), "x".repeat(n));
    }
    let policy = capsule.write_policy(PROGRAMS);
    let opened = Opened::beneath(&capsule.workspace());
    assert_eq!(opened.names.len(), 60);
    for args in [
        json!({ "name": "*.md", "limit": 100 }),
        json!({ "name": "d1/*.md" }),
        json!({ "min_size": 10, "max_size": 20 }),
        json!({ "modified_after": "1d" }),
        json!({ "modified_before": "1980-01-01" }),
        json!({ "path": "d2" }),
    ] {
        let _ = call(&capsule, &policy, "fs.search", &args).exits(0);
        assert_eq!(opened.since(), [""; 0], "{args}");
    }
    let _ = call(&capsule, &policy, "fs.read", &json!({ "path": "d1/f1.md" })).exits(0);
    let seen = opened.since();
    assert!(!seen.is_empty() && seen.iter().all(|name| name.ends_with("d1/f1.md")), "{seen:?}");
}

/// NFR-10: a search of a workspace of 20,000 files answers within two seconds.
#[test]
fn a_search_answers_in_time() {
    let capsule = capsule();
    let root = capsule.workspace();
    for folder in 0..200 {
        let folder = root.join(format!("src/d{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            fs::write(folder.join(format!("f{file}.rs")), "").unwrap();
        }
    }
    let policy = capsule.write_policy(PROGRAMS);
    for (args, found) in [
        (json!({ "name": "f7.rs", "limit": 100 }), 100),
        (json!({ "name": "nothing-is-called-so" }), 0),
        (json!({ "modified_before": "1980-01-01" }), 0),
    ] {
        let result = call(&capsule, &policy, "fs.search", &args).exits(0).json()["result"].clone();
        assert_eq!(result["entries"].as_array().map(Vec::len), Some(found), "{args}");
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
        let at = |name: &str| shown[name].as_u64().unwrap();
        let micros = at("finished_at") - at("started_at");
        assert!(micros <= 2_000_000, "{args}: {micros} µs");
        // Where the time was not enough, it would say so.
        assert!(micros > 1_900_000 || result["partial"] == json!(false), "{result}");
    }
}

/// FR-18: a command runs in the workspace, and does not leave it by a folder that is named, by a link, or by
/// going elsewhere itself.
#[test]
fn a_command_does_not_leave_the_workspace() {
    let capsule = capsule();
    fs::write(capsule.directory().join("beside.txt"), "theirs").unwrap();
    fs::create_dir(capsule.directory().join("elsewhere")).unwrap();
    capsule.write_file("sub/in.txt", "ours");
    symlink("../elsewhere", capsule.workspace().join("out")).unwrap();
    symlink("/etc", capsule.workspace().join("etc")).unwrap();
    let policy = capsule.write_policy(PROGRAMS);
    let words = capsule.directory().join("words.yaml");
    fs::write(&words, PROGRAMS.replace("shell.run: {", "shell.run: { form: command,")).unwrap();
    let words = words.to_string_lossy().into_owned();
    let around = capsule.directory().to_string_lossy().into_owned();
    for cwd in ["..", "/", "/etc", "sub/../..", "out", "etc", "~", &around] {
        let args = json!({ "argv": ["pwd"], "cwd": cwd });
        let refused = call(&capsule, &policy, "shell.run", &args).json();
        assert_eq!(refused["status"], "denied", "{cwd}: {refused}");
        assert!(text(&refused["code"]).starts_with("path."), "{cwd}: {refused}");
        let refused =
            capsule.run(&["exec", "--policy", &policy, "--cwd", cwd, "--", "pwd"]).exits(3);
        assert_eq!(refused.stdout, "", "{cwd}");
    }
    for command in ["cd .. && pwd", "cd / && pwd", "cd sub && cd ../.. && pwd", "cd out && pwd"] {
        let refused = call(&capsule, &words, "shell.run", &json!({ "command": command })).exits(3);
        assert!(text(&refused.json()["code"]).starts_with("path."), "{command}");
    }
    // By itself, a program gets to no file of the host, and leaves none there.
    for script in [
        "chdir '..'; print join ' ', glob('*'); open F, '>', 'escaped'",
        "print join ' ', glob('../*'); open F, '>', '../escaped'",
        "chdir 'out' and print glob('*'); open F, '>', 'out/escaped'",
        "chdir '/'; open F, '<', 'etc/shadow' and print <F>",
        "open F, '<', 'etc/shadow' and print <F>",
    ] {
        let ran = perl(&capsule, &policy, script);
        for theirs in ["beside", "theirs", "root:"] {
            assert!(!ran.stdout.contains(theirs), "{script}: {}", ran.stdout);
        }
        let _ = capsule.run(&["discard", "latest"]);
    }
    let found = Command::new("find").args([&around, "-name", "escaped"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    // Where it begins is the workspace, or a folder of it that is named.
    let _ = perl(&capsule, &policy, "open F, '>', 'made' or die; print F 'x'").exits(0);
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert!(capsule.workspace().join("made").is_file());
    let named = ["exec", "--policy", &policy, "--cwd", "sub", "--", "cat", "in.txt"];
    assert_eq!(capsule.run(&named).exits(0).stdout, "ours");
}

/// FR-22, FR-20: what is of high risk is blocked, whatever a rule says, and no person is asked.
#[test]
fn high_risk_is_blocked() {
    let capsule = capsule();
    capsule.write_file("large", "");
    let large = fs::File::options().write(true).open(capsule.workspace().join("large")).unwrap();
    // More than is kept for an undo, so that nothing brings it back.
    large.set_len(1 << 31).unwrap();
    let policy = |more: &str| {
        format!(
            "version: 1
tools:
  fs.write: {{ decision: allow, paths: [\"**\"] }}
  fs.delete: {{ decision: allow, paths: [\"**\"] }}
  shell.run: {{ decision: allow, executables: {{ perl: {{ decision: allow, writes: [\"**\"] }} }} }}
sandbox: {{ workspace: staged }}
{more}"
        )
    };
    let high = "capabilities: { proc.exec: { risk: high } }\n";
    let changed = "risk: { escalate: [{ when: irreversible, to: high }] }\n";
    let script = json!({ "argv": ["perl", "-e", "open F, '>', 'ran'"] });
    let large = json!({ "path": "large" });
    for (more, tool, args) in
        [(high, "shell.run", &script), (changed, "fs.delete", &large), ("", "fs.delete", &large)]
    {
        // What is staged is discarded at will: only a tool that works directly is irreversible.
        let workspace = if tool == "shell.run" { "staged" } else { "direct" };
        let own = format!("workspace: {workspace}");
        let path = capsule.write_policy(&policy(more).replace("workspace: staged", &own));
        let blocked = call(&capsule, &path, tool, args).exits(3).json();
        assert_eq!(blocked["code"], "risk.blocked", "{more}{tool}: {blocked}");
        assert_eq!(blocked["liftable"], false);
        let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
        assert_eq!(shown["decision"]["risk"], "high", "{shown}");
        assert!(shown["started_at"].is_null() && shown.get("approval").is_none(), "{shown}");
    }
    assert!(capsule.workspace().join("large").exists());
    // The same is of medium risk without what raises it, and runs.
    let path = capsule.write_policy(&policy(""));
    let _ = call(&capsule, &path, "shell.run", &script).exits(0);
    let shown = capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(shown["decision"]["risk"], "medium", "{shown}");
}

/// SAF-4: a command has 30 seconds, 10 MB of output and 50 processes at most, where the policy says nothing
/// else; and it works in the workspace.
#[test]
fn commands_have_the_limits_of_the_safety_text() {
    let within = |script: &'static str, asked: &'static str, policy: &'static str| {
        thread::spawn(move || {
            let capsule = capsule();
            let policy = capsule.write_policy(policy);
            let args = json!({ "argv": ["perl", "-e", script], "timeout": asked });
            let began = Instant::now();
            let answer = call(&capsule, &policy, "shell.run", &args).json();
            (answer, began.elapsed())
        })
    };
    let plain = "version: 1\ntools:\n  shell.run: { decision: allow, executables: [perl] }\n";
    let loud = "version: 1\ntools:\n  shell.run: { decision: allow, executables: [perl], \
                limits: { stdout_max: 10MB } }\n";
    let late = within("sleep 120", "120s", plain);
    let soon = within("sleep 120", "10s", plain);
    let flood = within("print 'x' x 1_000_000 for 1..11", "20s", loud);
    let crowd = "$| = 1; my $n = 0; for (1..200) { my $p = fork; last unless defined $p; \
                 if (!$p) { sleep 8; exit } $n++ } print $n; sleep 1";
    let few = "my $n = 0; for (1..40) { my $p = fork // die; if (!$p) { sleep 1; exit } $n++ } \
               1 while wait > 0; print $n";
    let (crowd, few) = (within(crowd, "10s", plain), within(few, "10s", plain));

    let (answer, took) = late.join().unwrap();
    assert_eq!(answer["code"], "exec.timeout", "{answer}");
    assert!(text(&answer["reason"]).contains("ended after 30"), "{answer}");
    assert_eq!(answer["result"]["clamped"], true);
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(60), "{took:?}");
    let (answer, took) = soon.join().unwrap();
    assert_eq!(answer["code"], "exec.timeout", "{answer}");
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(30), "{took:?}");

    let (answer, _) = flood.join().unwrap();
    let result = &answer["result"];
    assert_eq!(result["stdout_bytes_total"], 11_000_000, "{}", answer["reason"]);
    assert_eq!(text(&result["stdout"]).len() + text(&result["stdout_tail"]).len(), 10_000_000);
    assert_eq!(result["truncated"], true);

    let (answer, _) = crowd.join().unwrap();
    let result = &answer["result"];
    assert_eq!(result["limits_reached"], json!(["processes"]), "{answer}");
    let made: u64 = text(&result["stdout"]).parse().unwrap_or(0);
    assert!(made < 50, "{answer}");
    let (answer, _) = few.join().unwrap();
    assert_eq!(
        (&answer["status"], &answer["result"]["stdout"]),
        (&json!("ok"), &json!("40")),
        "{answer}"
    );

    // More is had only by naming it, and of output not at all.
    let capsule = capsule();
    let more = capsule.write_policy(&loud.replace("10MB", "11MB"));
    let ran = capsule.run(&["policy", "check", "--policy", &more]).exits(2);
    assert!(ran.stderr.contains("policy.yaml:3:"), "{}", ran.stderr);
}

/// CAP-12: a denial, an error of a tool and an error of the runtime are three classes, each with a code, a
/// reason and an exit of its own; what no policy opens is closed; and nothing waits without end.
#[test]
fn what_goes_wrong_has_one_of_three_classes() {
    let capsule = capsule();
    for path in ["a.txt", ".hidden", ".env", ".ssh/id", "target.pem"] {
        capsule.write_file(path, "x");
    }
    Command::new("mkfifo").arg(capsule.workspace().join("pipe")).status().unwrap();
    let slow = HttpServer::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        thread::sleep(Duration::from_secs(30));
    });
    let policy = capsule.write_policy(&format!(
        "version: 1
tools:
  fs.read: allow
  fs.edit: {{ decision: allow, paths: [\"**\"] }}
  http.get:
    decision: allow
    urls: {{ allow: [\"http://127.0.0.1:{0}/**\", \"http://localhost:{0}/**\"],
             private_ips: {{ allow: [127.0.0.1] }} }}
    limits: {{ timeout: 2s }}
  shell.run: {{ decision: allow, executables: [perl, cat], limits: {{ timeout: 2s }} }}
",
        slow.port()
    ));
    let private = capsule.directory().join("private.yaml");
    fs::write(
        &private,
        "version: 1\ntools:\n  http.get: { decision: allow, domains: [localhost] }\n",
    )
    .unwrap();
    let private = private.to_string_lossy().into_owned();
    let secret = capsule.directory().join("secret.yaml");
    let text = "version: 1
tools: { http.get: { decision: allow, urls: [{ id: own, url: \"https://example.org/**\" }] } }
secrets: { T: { from: env, only_for: [http.get/own], as: { header: Authorization } } }
";
    fs::write(&secret, text).unwrap();
    let secret = secret.to_string_lossy().into_owned();
    let url = |path: &str| json!({ "url": slow.url(path) });
    let path = |path: &str| json!({ "path": path });
    let rows = [
        // What nobody opened, and what is closed by itself.
        ("denied", 3, &policy, "fs.write", json!({ "path": "a", "content": "x" })),
        ("denied", 3, &policy, "fs.read", path("../a.txt")),
        ("denied", 3, &policy, "fs.read", path(".hidden")),
        ("denied", 3, &policy, "fs.read", path(".env")),
        ("denied", 3, &policy, "fs.read", path(".ssh/id")),
        ("denied", 3, &policy, "fs.read", path("target.pem")),
        ("denied", 3, &policy, "shell.run", json!({ "argv": ["sh", "-c", "id"] })),
        (
            "denied",
            3,
            &private,
            "http.get",
            json!({ "url": format!("http://localhost:{}/", slow.port()) }),
        ),
        // What the tool could not do, within its time.
        ("tool_error", 1, &policy, "fs.read", path("missing")),
        ("tool_error", 1, &policy, "fs.read", json!({ "pathh": "a.txt" })),
        (
            "tool_error",
            1,
            &policy,
            "fs.edit",
            json!({ "path": "a.txt", "search": "y", "replace": "z" }),
        ),
        ("tool_error", 1, &policy, "fs.read", path("pipe")),
        ("tool_error", 1, &policy, "http.get", url("/slow")),
        ("tool_error", 1, &policy, "shell.run", json!({ "argv": ["perl", "-e", "sleep 60"] })),
        ("tool_error", 1, &policy, "shell.run", json!({ "argv": ["cat", "pipe"] })),
        // What the runtime could not do.
        ("runtime_error", 10, &secret, "http.get", json!({ "url": "https://example.org/" })),
    ];
    for (class, exit, policy, tool, args) in rows {
        let began = Instant::now();
        let answer = call(&capsule, policy, tool, &args).exits(exit).json();
        assert!(began.elapsed() < Duration::from_secs(20), "{tool} {args}");
        assert_eq!(answer["status"], class, "{tool} {args}: {answer}");
        for field in ["code", "reason"] {
            assert!(answer[field].is_string(), "{tool} {args}: {answer}");
        }
        let denied = class == "denied";
        assert_eq!(answer.get("liftable").is_some(), denied, "{answer}");
        let counts = &capsule.run(&["report", "latest", "--json"]).exits(0).json()["summary"];
        assert_eq!(counts["denied"], json!(u64::from(denied)), "{tool} {args}: {counts}");
        assert_eq!(counts["failed"], json!(u64::from(!denied)), "{tool} {args}: {counts}");
    }
    let args = json!({ "argv": ["cat", "a.txt"] }).to_string();
    let below = ["call", "shell.run", "--policy", &policy, "--args", &args];
    let answer = capsule.run_without_sandbox(&below).exits(8).json();
    assert_eq!(
        (&answer["status"], &answer["code"]),
        (&json!("runtime_error"), &json!("sandbox.below-floor"))
    );
    // Without a policy that can be read, nothing is open at all.
    let broken = capsule.write_policy("version: 1\ntools: { fs.read: alow }\n");
    let _ = call(&capsule, &broken, "fs.read", &path("a.txt")).exits(2);
}

/// CAP-11, EI-3: a report of a plan, of a single call and of a command shows each call with a sign and a
/// word, its results and errors, and sums up files, hosts, programs, time and denials; also as JSON.
#[test]
fn every_kind_of_run_has_its_report() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello\n");
    capsule.write_file(".env", "x");
    let server = HttpServer::fixed("200 OK", "", "fetched");
    let policy = capsule.write_policy(&format!(
        "version: 1
tools:
  fs.read: allow
  fs.write: {{ decision: allow, paths: [\"**\"] }}
  http.get: {{ decision: allow, urls: {{ allow: [\"http://127.0.0.1:{}/**\"],
              private_ips: {{ allow: [127.0.0.1] }} }} }}
  shell.run: {{ decision: allow, executables: [cat] }}
",
        server.port()
    ));
    let plan = capsule.write_plan(&format!(
        "steps:
  - {{ id: read, tool: fs.read, args: {{ path: a.txt }} }}
  - {{ id: write, tool: fs.write, args: {{ path: b.txt, content: x }} }}
  - {{ id: fetch, tool: http.get, args: {{ url: \"{}\" }} }}
  - {{ id: run, tool: shell.run, args: {{ argv: [cat, missing] }}, on_error: continue }}
  - {{ id: secret, tool: fs.read, args: {{ path: .env }} }}
",
        server.url("/x")
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(3);
    let shown = capsule.run(&["report", "latest"]).exits(0).stdout;
    assert!(shown.starts_with(ran.stdout.trim_end()), "{shown}");
    for line in [
        "1 ✔ ok",
        "2 ✔ ok",
        "3 ✔ ok",
        "4 ⚠ failed",
        "5 ✖ DENIED",
        "stderr: cat: missing",
        "The program ended with status 1",
        "no-credentials",
        "3 ok · 1 failed · 1 denied",
        "files 1 read 1 written · hosts 1 · programs 1 · prompts 0",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let summary = &report["summary"];
    let expected = json!({ "files_read": ["a.txt"], "files_written": ["b.txt"],
        "hosts": ["127.0.0.1"], "programs": ["cat"], "denied": 1, "ok": 3, "failed": 1 });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&summary[name], value, "{name}: {summary}");
    }
    assert!(summary["micros"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(report["calls"][2]["result"]["text"], "fetched");
    let detail = capsule.run(&["show-run", "latest:fetch"]).exits(0).stdout;
    assert!(detail.contains("\"text\": \"fetched\""), "{detail}");

    let single: [(&[&str], i32, &str, Value); 4] = [
        (
            &["exec", "--policy", &policy, "--", "cat", "a.txt"],
            0,
            "✔ ok",
            json!({ "programs": ["cat"], "files_read": ["a.txt"], "ok": 1, "denied": 0 }),
        ),
        (
            &["exec", "--policy", &policy, "--", "cat", "/etc/shadow"],
            3,
            "✖ DENIED",
            json!({ "programs": [], "denied": 1, "ok": 0 }),
        ),
        (
            &["call", "fs.read", "--policy", &policy, "--args", "{\"path\": \"a.txt\"}"],
            0,
            "✔ ok",
            json!({ "files_read": ["a.txt"], "ok": 1 }),
        ),
        (
            &["call", "fs.read", "--policy", &policy, "--args", "{\"path\": \"no\"}"],
            1,
            "✖ FAILED",
            json!({ "files_read": [], "failed": 1, "denied": 0 }),
        ),
    ];
    for (words, exit, sign, sums) in single {
        let _ = capsule.run(words).exits(exit);
        let shown = capsule.run(&["report", "latest"]).exits(0).stdout;
        assert!(shown.contains(&format!(" 1 {sign}")), "{words:?}: {shown}");
        let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
        for (name, value) in sums.as_object().unwrap() {
            assert_eq!(&report["summary"][name], value, "{words:?} {name}");
        }
        assert!(report["summary"]["micros"].as_u64().unwrap() > 0);
    }
}

/// Processes of which this home is in the environment, each with its parent.
fn of_home(home: &Path) -> Vec<u32> {
    let wanted = format!("HOME={}", home.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|own| own == wanted.as_bytes())
    })
    .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

/// II-3, NFR-4: a command is carried out by another process than the one that decides, and no child of it.
/// SRS-C5: when the command is over, however it ended, nothing of ours runs on.
#[test]
fn another_process_carries_out_and_nothing_stays() {
    let capsule = capsule();
    let policy = capsule.write_policy(PROGRAMS);
    for ending in [Signal::INT, Signal::TERM, Signal::KILL] {
        let word = format!("capsule-apart-{}-{}", std::process::id(), ending.as_raw());
        let script = format!("$0 = '{word}'; sleep 60");
        let mut child = capsule
            .command(&["call", "shell.run", "--policy", &policy, "--", "perl", "-e", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let named = || {
            let all = fs::read_dir("/proc").unwrap().flatten();
            let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            pids.find(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.starts_with(word.as_bytes())
            })
        };
        wait_until("the command", || named().is_some());
        // From the program up to the process that decides: at least the executor stands between.
        let mut above: Vec<u32> = Vec::new();
        let mut at = named();
        while let Some(pid) = at.filter(|pid| *pid > 1) {
            above.push(pid);
            at = parent(pid);
        }
        let deciding = above.iter().position(|pid| *pid == child.id());
        assert!(deciding.is_none_or(|place| place >= 2), "{above:?}, {}", child.id());
        let executors: Vec<PathBuf> = above
            .iter()
            .filter(|pid| **pid != child.id())
            .filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok())
            .filter(|exe| exe.file_name() == Some("capsule".as_ref()))
            .collect();
        assert!(!executors.is_empty(), "{above:?}");
        assert!(!of_home(&capsule.home()).is_empty());

        kill_process(Pid::from_child(&child), ending).unwrap();
        let _ = child.wait().unwrap();
        wait_until("its end", || named().is_none() && of_home(&capsule.home()).is_empty());
    }
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "pwd"]).exits(0);
    wait_until("its end", || of_home(&capsule.home()).is_empty());
}

/// NFR-9: without any network everything works that needs none: plans, commands, reports, replays,
/// verification and checks of policies.
#[test]
fn everything_works_offline() {
    let capsule = capsule();
    capsule.write_file("a.txt", "hello\n");
    let policy = capsule.write_policy(PROGRAMS);
    let plan = capsule.write_plan(
        "- { tool: fs.read, args: { path: a.txt } }
- { tool: fs.write, args: { path: b.txt, content: x } }
- { tool: shell.run, args: { argv: [cat, a.txt] } }
",
    );
    let offline = |args: &[&str]| {
        let inner = capsule.command(args);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).arg(inner.get_program());
        command.args(inner.get_args()).current_dir(capsule.workspace()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null());
        CommandOutput::from(command.output().unwrap())
    };
    let steps: &[&[&str]] = &[
        &["init"],
        &["policy", "check", "--policy", &policy],
        &["policy", "explain", "--policy", &policy, "--", "cat", "a.txt"],
        &["plan", "check", &plan],
        &["run", &plan, "--policy", &policy],
        &["exec", "--policy", &policy, "--", "cat", "a.txt"],
        &["list-runs"],
        &["report", "latest"],
        &["replay", "latest"],
        &["verify"],
        &["audit", "export", "--format", "jsonl"],
    ];
    for args in steps {
        let _ = offline(args).exits(0);
    }
}

/// APR-5, APR-10: capabilities are few, coarse and named once; a person reads them in words; what stood there
/// is kept before every change; and whether a command is isolated is found out and said.
#[test]
fn what_approvals_left_open_is_settled() {
    let capsule = capsule();
    capsule.write_file("docs/a.md", "old");
    let schema = capsule.run(&["policy", "schema"]).exits(0).json().to_string();
    const NAMES: [&str; 9] = [
        "fs.meta",
        "fs.read",
        "fs.write",
        "fs.delete",
        "net.egress",
        "proc.exec",
        "proc.unconfined",
        "data.user",
        "secrets.access",
    ];
    // A name of a capability that a policy does not know is refused, with all that there are.
    let wrong = capsule.write_policy(
        "version: 1\nprofile: a\nprofiles: { a: { decide: { fs.everything: ask } } }\n",
    );
    let told = capsule.run(&["policy", "check", "--policy", &wrong]).exits(2).stderr;
    for name in NAMES {
        assert!(schema.contains(&format!("\"{name}\"")), "{name}");
        assert!(told.contains(&format!("`{name}`")), "{name}: {told}");
    }
    let policy = capsule.write_policy(
        "version: 1
profile: waits
profiles: { waits: { decide: { fs.write: ask, proc.exec: ask, \"*\": allow }, unattended: wait } }
tools:
  fs.write: { paths: [\"docs/**\"] }
  shell.run: { executables: { cat: {} } }
audit: { checkpoint: { on: [approval] } }
",
    );
    let _ = capsule.run(&["init"]).exits(0);
    let args = json!({ "path": "docs/a.md", "content": "new" });
    let _ = call(&capsule, &policy, "fs.write", &args);
    let _ = capsule
        .run(&["call", "fs.write", "--policy", &policy, "--args", &args.to_string()])
        .exits(4);
    let card = capsule.run(&["approvals", "show", "latest:1"]).exits(0).stdout;
    for words in
        ["fs.write docs/a.md", "create or change files", "medium", "an undo record is kept before"]
    {
        assert!(card.contains(words), "{words}: {card}");
    }
    let _ = capsule.run(&["approvals", "answer", "latest:1", "--allow", "once"]);
    let _ = capsule.run(&["resume", "latest"]);
    // The same by a policy that allows it: what stood there is kept before, without being asked for.
    let allows = capsule.write_policy(
        "version: 1\ntools:\n  fs.write: { decision: allow, paths: [\"docs/**\"] }\n",
    );
    let _ =
        call(&capsule, &allows, "fs.write", &json!({ "path": "docs/a.md", "content": "newer" }))
            .exits(0);
    let _ = capsule.run(&["undo", "latest"]).exits(0);
    assert_ne!(fs::read_to_string(capsule.workspace().join("docs/a.md")).unwrap(), "newer");
    // With a sandbox and without one, what holds is said by the run itself and by the doctor.
    let runs = capsule
        .write_policy("version: 1\ntools:\n  shell.run: { decision: allow, executables: [cat] }\n");
    let plan = capsule.write_plan("- { tool: shell.run, args: { argv: [cat, docs/a.md] } }\n");
    let run = ["run", &plan, "--policy", &runs];
    let held = capsule.run(&run).exits(0).stdout;
    assert!(held.contains("sandbox    ✔ held namespaces landlock seccomp"), "{held}");
    let bare = capsule.run_without_sandbox(&run).exits(8);
    assert!(format!("{}{}", bare.stdout, bare.stderr).contains("sandbox.below-floor"), "{bare:?}");
}

/// D1, NFR-1: the sockets of container engines are not there for a command: who reaches them is root on the
/// host. The same program reaches each of them without us.
#[test]
fn container_engines_are_out_of_reach() {
    let capsule = capsule();
    let policy = capsule.write_policy(PROGRAMS);
    let sockets = [
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/containerd/containerd.sock",
        "/run/user/0/docker.sock",
    ];
    let reach = format!(
        "use Socket; for my $path (qw({})) {{ my $s; my $is_open = socket($s, PF_UNIX, SOCK_STREAM, 0) \
         && connect($s, sockaddr_un($path)); print $is_open ? 'reached' : 'held', \" $path\\n\" }}",
        sockets.join(" ")
    );
    // A /run of its own, in which each of them listens.
    let listen = format!(
        "perl -e 'use Socket; use File::Path; my @all; \
         for my $path (qw({})) {{ File::Path::make_path($path =~ s{{/[^/]+$}}{{}}r); \
         socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die; bind($s, sockaddr_un($path)) or die qq($path $!); \
         listen($s, 9) or die; push @all, $s; }} \
         if (my $pid = fork) {{ my $status = system(@ARGV); kill 9, $pid; exit($status >> 8) }} sleep 600' \
         \"$@\"; exit",
        sockets.join(" ")
    );
    let free = capsule.in_place("/run", &listen).args(["perl", "-e", &reach]).output().unwrap();
    let free = CommandOutput::from(free).exits(0).stdout;
    let words = ["exec", "--policy", &policy, "--", "perl", "-e", &reach];
    let held = capsule.run_in_place("/run", &listen, &words).exits(0).stdout;
    for path in sockets {
        assert!(free.contains(&format!("reached {path}\n")), "{path} is there: {free}");
        assert!(held.contains(&format!("held {path}\n")), "{path}: {held}");
    }
}
