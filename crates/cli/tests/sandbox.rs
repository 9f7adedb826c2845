//! A whole agent in the sandbox: every scenario of the requirement text, as rows (SBX-1 … SBX-12).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

mod agents;
mod terminal;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agents::leftover_processes;
use agents::scenarios::{capsule, failures, run_line, wall_failures};
use capsule_testkit::{
    CommandOutput, HttpServer, ModelFormat, ModelServer, ModelTurn, write_program,
};
use serde_json::json;
use terminal::Terminal;

#[test]
fn every_scenario_holds() {
    let failed = failures(&[], &[]);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// SBX-2: every wall that a hostile agent meets; there is no gap.
#[test]
fn every_wall_holds() {
    let failed = wall_failures(&[], &[], &[]);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// SBX-4: what is made inside is the host's, and only that.
#[test]
fn new_files_are_in_the_workspace_of_the_host() {
    let (capsule, outside) = capsule();
    let line = "umask 027; echo session > session_context.txt; echo x > $HOME/x; echo y > /tmp/y; rm notes.txt";
    let _ = run_line(&capsule, &[], line).exits(0);
    let made = capsule.workspace().join("session_context.txt");
    assert_eq!(fs::read_to_string(made).unwrap(), "session\n");
    assert!(!capsule.workspace().join("notes.txt").exists());
    assert!(!capsule.home().join("x").exists());
    assert_eq!(fs::read_to_string(outside).unwrap(), "secret");
}

/// SBX-1: from the directory of the script, from another one, and through links.
#[test]
fn the_script_starts_from_anywhere() {
    let (capsule, _) = capsule();
    let script = fs::canonicalize("../../bin/capsule-sandbox").unwrap();
    let binary = capsule.command(&[]).get_program().to_owned();
    let links = capsule.directory().join("links");
    fs::create_dir(&links).unwrap();
    symlink(&script, links.join("one")).unwrap();
    symlink("one", links.join("capsule-sandbox")).unwrap();
    let installed = capsule.directory().join("installed/bin");
    fs::create_dir_all(&installed).unwrap();
    fs::copy(&script, installed.join("capsule-sandbox")).unwrap();
    symlink(&binary, installed.join("capsule")).unwrap();
    for (start, directory, given) in [
        (script.clone(), capsule.workspace(), true),
        (script, installed.clone(), true),
        (links.join("capsule-sandbox"), capsule.workspace(), true),
        (installed.join("capsule-sandbox"), capsule.workspace(), false),
        (PathBuf::from("./capsule-sandbox"), installed, false),
    ] {
        let mut command = Command::new(&start);
        command.args(["sh", "-c", "pwd; touch here"]).current_dir(&directory).env_clear();
        let inner = capsule.command(&[]);
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if given {
            command.env("CAPSULE", &binary);
        }
        let ran: CommandOutput = command.stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(ran.exits(0).stdout, "/workspace\n", "{start:?}");
        fs::remove_file(directory.join("here")).unwrap();
    }
}

/// SBX-7: a server on the host's loopback, as that of local models, and a client inside.
#[test]
fn the_hosts_loopback_is_reached_where_the_network_is_open() {
    let (capsule, _) = capsule();
    let server = HttpServer::fixed("200 OK", "", "models");
    let port = server.url("/").rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let line = format!(
        "import urllib.request as r; print(r.urlopen('http://host.docker.internal:{port}/api').read().decode())"
    );
    let run = |options: &[&str]| {
        capsule.run(&[&["sandbox"], options, &["--", "/usr/bin/python3", "-c", &line]].concat())
    };
    assert_eq!(run(&[]).exits(0).stdout, "models\n");
    let closed = run(&["--network", "none"]).exits(1);
    assert!(closed.stderr.contains("URLError"), "{closed:?}");
}

/// SBX-6: standard input is the agent's, and its output comes as it is made.
#[test]
fn streams_that_are_no_terminal_are_passed_on() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let (capsule, _) = capsule();
    let ran = capsule.run_with(&["sandbox", "--", "cat"], "typed\n").exits(0);
    assert_eq!(ran.stdout, "typed\n");
    let line = "echo first; read answer; echo \"got $answer\"; echo wrong >&2";
    let mut child = capsule
        .command(&["sandbox", "--", "sh", "-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    shown.read_line(&mut text).unwrap();
    assert_eq!(text, "first\n", "before anything is typed");
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    shown.read_line(&mut text).unwrap();
    assert_eq!(text, "first\ngot yes\n");
    let ended: CommandOutput = child.wait_with_output().unwrap().into();
    assert!(ended.stderr.contains("wrong\n"), "{ended:?}");
}

/// SBX-6: prompts, colours, the size of the window and the keys of signals, by a terminal that is not the user's.
#[test]
fn an_agent_has_a_private_terminal() {
    let (capsule, _) = capsule();
    let script = "tty; stty size; trap 'echo resized $(stty size)' WINCH; trap 'echo interrupted' INT; \
                  printf '\\033[1;31mred\\033[0m\\n'; printf 'name? '; read name; echo \"hello $name\"; \
                  until [ -e go ]; do sleep 0.1; done; exit 5";
    let mut terminal = Terminal::start(&capsule, &["sandbox", "--", "sh", "-c", script]);
    terminal.until("/dev/pts/0");
    terminal.until("30 80");
    terminal.until("\x1b[1;31mred\x1b[0m");
    terminal.until("name? ");
    terminal.press("Ada\r");
    terminal.until("hello Ada");
    terminal::size(&terminal.slave, (100, 40));
    terminal.until("resized 40 100");
    terminal.press("\x03");
    terminal.until("interrupted");
    fs::write(capsule.workspace().join("go"), "").unwrap();
    assert!(terminal.is_given_back());
    assert_eq!(terminal.end().0, 5);
}

/// SBX-6: Ctrl+Z stops the agent and the wrapper, and both go on.
#[test]
fn an_agent_is_a_job_of_the_shell() {
    let (capsule, _) = capsule();
    let by = "set -m; \"$@\"; echo stopped $?; read key; fg >/dev/null; echo ended $?";
    let line = "trap 'echo goes on' CONT; echo begun; sleep 1000 & wait; wait; exit 4";
    let mut terminal = Terminal::start_by(&capsule, by, &["sandbox", "--", "sh", "-c", line], &[]);
    terminal.until("begun");
    terminal.press("\x1a");
    terminal.until("stopped 148");
    assert!(terminal.is_given_back());
    terminal.press("\r");
    terminal.until("goes on");
    terminal.press("\x03");
    terminal.until("ended 130");
    let _ = terminal.end();
}

/// SBX-12: without a command, our own chat begins, inside.
#[test]
fn without_a_command_our_chat_begins() {
    let server = ModelServer::scripted(ModelFormat::OpenAi, vec![ModelTurn::say("Good day.")]);
    let (mut capsule, _) = capsule();
    for (name, value) in server.variables("key-of-the-model") {
        capsule.set(name, &value);
    }
    capsule.set("CAPSULE_MODEL", "model-1");
    let mut terminal = Terminal::start(&capsule, &["sandbox", "--policy", "builtin:assistant"]);
    terminal.until("/workspace");
    terminal.until("› ");
    terminal.type_slowly("hello\r");
    terminal.until("Good day.");
    terminal.type_slowly("/quit\r");
    assert_eq!(terminal.end().0, 0);
    assert!(!capsule.store().exists(), "its record is inside");
}

/// SBX-10, SBX-12, SBX-3: our own tools do inside what they do outside, by the same provider of the user's list.
#[test]
fn our_chat_works_inside_with_the_same_tools() {
    let turns = || {
        vec![
            ModelTurn::call("fs_read", &json!({ "path": "notes.txt" })),
            ModelTurn::call("shell_run", &json!({ "argv": ["cat", "deep/er/a.txt"] })),
            ModelTurn::call(
                "fs_write",
                &json!({ "path": "answer.txt", "content": "written", "mode": "create" }),
            ),
            ModelTurn::say("done"),
        ]
    };
    let policy = "version: 1\ntools:\n  fs.read: { decision: allow, paths: [\"**\"] }\n  \
                  fs.write: { decision: allow, paths: [\"**\"] }\n  \
                  shell.run: { executables: { cat: allow } }\n";
    let mut bodies = Vec::new();
    for is_inside in [false, true] {
        let server = ModelServer::scripted(ModelFormat::OpenAi, turns());
        let (mut capsule, _) = capsule();
        for (name, value) in server.variables("key-of-the-model") {
            capsule.set(name, &value);
        }
        capsule.set("CAPSULE_MODEL", "model-1");
        let policy = capsule.write_file(".capsule/chat.yaml", policy).display().to_string();
        let policy = if is_inside { ".capsule/chat.yaml" } else { policy.as_str() };
        let chat = ["chat", "--policy", policy, "--task", "do it"];
        let ran = match is_inside {
            true => capsule.run(&[&["sandbox", "--", "capsule"], &chat[..]].concat()),
            false => capsule.run(&chat),
        };
        let ran = ran.exits(0);
        assert!(ran.stdout.contains("done"), "{ran:?}");
        let written = fs::read_to_string(capsule.workspace().join("answer.txt")).unwrap();
        assert_eq!(written, "written");
        let tools: Vec<_> = server.bodies().iter().map(|body| body["tools"].clone()).collect();
        let results: Vec<_> =
            server.bodies().last().map(capsule_testkit::results_of_calls).unwrap();
        assert_eq!(results.len(), 3, "{results:?}");
        bodies.push((tools, results.iter().map(|it| it["status"].clone()).collect::<Vec<_>>()));
    }
    assert_eq!(bodies[0], bodies[1]);
}

/// APR-10: Capsule knows that it is inside, and that its sandbox works there.
#[test]
fn the_doctor_knows_that_it_is_inside() {
    let (capsule, _) = capsule();
    let report = capsule.run(&["sandbox", "--", "capsule", "doctor", "--json"]).exits(0).json();
    let checks = report["checks"].as_array().unwrap();
    let detail = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    let isolation = detail("isolation");
    assert_eq!(isolation["hold"], "held");
    assert_eq!(isolation["detail"], "Capsule itself runs in a sandbox of `capsule sandbox`");
    assert_eq!(detail("tier")["hold"], "held");
}

/// What cannot be had is refused in one line that says what to do, and nothing begins.
#[test]
fn refusals_say_what_to_do() {
    let (capsule, _) = capsule();
    for (words, status, text) in [
        (&["sandbox", "--", "no-such-program"][..], 1, "there is no program `no-such-program`"),
        (&["sandbox", "--env", "NOT_SET", "--", "true"], 2, "not set"),
        (&["sandbox", "--workspace", "/", "--", "true"], 2, "no workspace"),
        (&["sandbox", "--workspace", "/nowhere", "--", "true"], 2, "cannot be opened"),
        (&["sandbox", "--policy", "x.yaml"], 2, "cannot be read"),
    ] {
        let ran = capsule.run(words).exits(status);
        assert!(ran.stderr.contains(text), "{words:?}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{words:?}: {ran:?}");
    }
    let mut home = capsule.command(&["sandbox", "--", "true"]);
    let ran: CommandOutput =
        home.current_dir(capsule.home()).stdin(Stdio::null()).output().unwrap().into();
    assert!(ran.exits(2).stderr.contains("everything of yours"));
    // SBX-11, where there is no Docker, and where nothing listens.
    let path = capsule.directory().join("programs");
    fs::create_dir(&path).unwrap();
    let docker = |path: &std::path::Path| {
        let mut command = capsule.command(&["sandbox", "--backend", "docker", "--", "true"]);
        command.env("PATH", path).env("DOCKER_HOST", "unix:///nowhere").stdin(Stdio::null());
        CommandOutput::from(command.output().unwrap())
    };
    let ran = docker(&path).exits(8);
    assert!(ran.stderr.contains("Docker is required"), "{ran:?}");
    let _ = write_program(path.join("docker"), "#!/bin/sh\nexit 1\n");
    let ran = docker(&path).exits(8);
    assert!(ran.stderr.contains("does not answer") && ran.stderr.contains("start it"), "{ran:?}");
    let ran = capsule.run_without_namespaces(&["sandbox", "--", "true"]).exits(8);
    assert!(ran.stderr.contains("user namespace"), "{ran:?}");
}

/// An agent that makes namespaces of its own: what it mounts there uncovers no setting of the kernel and no control group.
const NAMESPACES_OF_ITS_OWN: &str = r#"
import ctypes, os
kernel = ctypes.CDLL(None, use_errno=True)
os.makedirs("at")
born, is_born = os.pipe()
mapped, is_mapped = os.pipe()
USERS, FILES, PROCESSES, GROUPS = 0x10000000, 0x20000, 0x20000000, 0x02000000

def looks(kind, path):
    if kernel.mount(b"none", b"at", kind.encode(), 0, None) != 0:
        return "refused" if ctypes.get_errno() in (1, 13) else "failed"
    return "open" if os.access("at/" + path, os.W_OK) else "refused"

child = os.fork()
if child == 0:
    assert kernel.unshare(USERS | FILES | PROCESSES) == 0
    os.write(is_born, b"x")
    os.read(mapped, 1)
    kernel.unshare(GROUPS)
    if os.fork() == 0:
        print("proc", looks("proc", "sys/kernel/core_pattern"), flush=True)
        print("groups", looks("cgroup2", "cgroup.procs"), flush=True)
        os._exit(0)
    os.wait()
    os._exit(0)
os.read(born, 1)
places = [f"{root}/{child}" for root in ("/run/capsule/processes", "/proc")]
place = next(place for place in places if os.path.exists(place))
for name, text in (("setgroups", "deny"), ("uid_map", f"{os.getuid()} {os.getuid()} 1"),
                   ("gid_map", f"{os.getgid()} {os.getgid()} 1")):
    with open(f"{place}/{name}", "w") as setting:
        setting.write(text)
print("mapped", flush=True)
os.write(is_mapped, b"x")
os.wait()
"#;

#[test]
fn a_namespace_inside_uncovers_nothing() {
    let (capsule, _) = capsule();
    capsule.write_file("inside.py", NAMESPACES_OF_ITS_OWN);
    let ran = capsule.run(&["sandbox", "--", "/usr/bin/python3", "inside.py"]).exits(0);
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["groups refused", "mapped", "proc refused"], "{ran:?}");
}

/// A directory as a stream would lead to what lies beside the workspace.
#[test]
fn a_directory_is_no_stream() {
    let (capsule, _) = capsule();
    let mut command = capsule.command(&["sandbox", "--", "true"]);
    let directory = fs::File::open(capsule.home()).unwrap();
    let ran: CommandOutput = command.stdin(directory).output().unwrap().into();
    assert!(ran.exits(8).stderr.contains("one of them is a directory"));
}

/// What an agent makes for Capsule is said at its end, and a link in its place is refused before.
#[test]
fn a_layer_that_an_agent_makes_is_not_missed() {
    let (capsule, _) = capsule();
    let layer = capsule.workspace().join(".capsule");
    let run = |line: &str| run_line(&capsule, &[], line);
    assert!(!run("true").exits(0).stderr.contains("the agent made"));
    fs::remove_dir_all(&layer).unwrap();
    assert!(run("mkdir .capsule; exit 3").exits(3).stderr.contains("the agent made"));
    fs::remove_dir_all(&layer).unwrap();
    symlink("deep", &layer).unwrap();
    assert!(run("true").exits(2).stderr.contains("is a link"));
}

/// The mounts of this process that are Capsule's.
fn leftover_mounts() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(" capsule ")).map(str::to_owned).collect()
}

/// SBX-9: whatever ends the wrapper, at whatever moment: no process, no mount and no file of the agent stays.
#[test]
fn nothing_is_left_of_an_agent_that_is_killed() {
    let (capsule, _) = capsule();
    let mounts = leftover_mounts();
    let files = || {
        let mut names: Vec<_> =
            fs::read_dir(capsule.directory()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    for round in 0_u64..51 {
        let mark = format!("9{}{round:04}", std::process::id());
        let line = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
        let mut child = capsule
            .command(&["sandbox", "--", "sh", "-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before the first process to after the last one was started.
        std::thread::sleep(std::time::Duration::from_micros(round * round * 45));
        match round % 3 {
            0 => child.kill().unwrap(),
            1 => agents::signal(&child, rustix::process::Signal::TERM),
            // A shell that is about to start a program may miss one. The third ends the agent.
            _ => {
                while child.try_wait().unwrap().is_none() {
                    agents::signal(&child, rustix::process::Signal::INT);
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            }
        }
        child.wait().unwrap();
        assert_eq!(leftover_processes(&mark), Vec::<String>::new(), "round {round}");
    }
    assert_eq!(leftover_mounts(), mounts);
    assert_eq!(files(), before);
}
