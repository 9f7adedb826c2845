//! A whole agent in a container of Docker: the same scenarios, with a daemon of its own and an image that is built by
//! the real `Dockerfile` from a base that is made of programs of this machine.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

mod agents;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents::scenarios::{capsule, failures, run_line, wall_failures};
use agents::{leftover_processes, signal};
use capsule_testkit::{Capsule, CommandOutput};
use rustix::process::Signal;
use tempfile::TempDir;
use terminal::Terminal;

/// Programs of the image.
const PROGRAMS: &[&str] = &[
    "sh", "cat", "cp", "chmod", "ls", "mkdir", "mv", "rm", "touch", "readlink", "getent", "wc",
    "xargs", "sed", "sort", "tr", "grep", "sleep", "setsid", "stty", "tty", "env", "perl",
];

/// The walls of an agent that a container does not have, and why. The list only shrinks: a gap that is closed fails the
/// test.
const GAPS: &[(&str, &str)] = &[
    ("io_uring_setup", "this version of Docker's filter lets it pass"),
    (
        "ptrace of the first process",
        "it is Docker's, and of the agent's user: a hostile agent may outlive a wrapper that is killed",
    ),
    ("vsock", "this version of Docker's filter lets it pass"),
    ("audit socket", "Docker's filter knows no protocols; what would be sent is refused"),
    ("read /home", "the base of the image has the directory, which is empty"),
    ("read /sys/firmware", "Docker covers it with an empty directory"),
    ("read /sys/kernel/debug", "the directory is there, and nothing is mounted on it"),
    ("write /dev/x", "its `/dev` is in memory, and vanishes with the container"),
];

/// A daemon, until this process ends.
struct Daemon {
    child: Child,
    directory: TempDir,
}

impl Daemon {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let option = |name: &str, path: &Path| {
            let mut text = OsString::from(format!("--{name}="));
            text.push(path);
            text
        };
        let child = Command::new("dockerd")
            .arg(option("data-root", &path("data")))
            .arg(option("exec-root", &path("exec")))
            .arg(option("pidfile", &path("pid")))
            .arg(format!("--host=unix://{}", path("socket").display()))
            .arg("--storage-driver=vfs")
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("log")).unwrap())
            .spawn()
            .expect("dockerd, of the package docker.io, is needed");
        let daemon = Self { child, directory };
        let end = Instant::now() + Duration::from_secs(60);
        while daemon.docker(&["version"]).status != 0 {
            let log = fs::read_to_string(daemon.directory.path().join("log")).unwrap();
            assert!(Instant::now() < end, "the daemon does not answer: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        daemon
    }

    fn host(&self) -> String {
        format!("unix://{}", self.directory.path().join("socket").display())
    }

    fn docker(&self, words: &[&str]) -> CommandOutput {
        Command::new("docker").args(words).env("DOCKER_HOST", self.host()).output().unwrap().into()
    }

    /// A base of programs of this machine, in which `cargo` gives the program that was built for the tests; and
    /// then the image, as `docker compose build` makes it.
    fn build_image(&self) {
        let root = self.directory.path().join("root");
        for name in
            ["etc", "tmp", "usr/bin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "run", "var"]
        {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        for name in ["bin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{name}"), root.join(name)).unwrap();
        }
        let copy = "for p in \"$@\"; do f=$(readlink -f \"$(command -v \"$p\")\"); cp \"$f\" \"$R/usr/bin/${p##*/}\"; \
                    ldd \"$f\" 2>/dev/null | grep -o '/[^ ]*' | while read l; do mkdir -p \"$R${l%/*}\"; cp -L \"$l\" \"$R$l\"; done; done";
        let program = capsule().0.command(&[]).get_program().to_owned();
        let shell = |line: &str, words: &[&OsStr]| {
            let mut command = Command::new("sh");
            command.args(["-ec", line, "sh"]).args(words).env("R", &root);
            assert!(command.env("DOCKER_HOST", self.host()).status().unwrap().success(), "{line}");
        };
        let programs = PROGRAMS.iter().map(OsStr::new).chain([program.as_os_str()]);
        shell(copy, &programs.collect::<Vec<_>>());
        let cargo = "#!/bin/sh\nmkdir -p target/release && cat /usr/bin/capsule > target/release/capsule && \
                     exec chmod 755 target/release/capsule\n";
        fs::write(root.join("usr/bin/cargo"), cargo).unwrap();
        shell(
            "chmod 755 \"$R/usr/bin/cargo\"; tar -C \"$R\" -c . | docker import - base >/dev/null",
            &[],
        );
        let context = self.directory.path().join("context");
        fs::create_dir(&context).unwrap();
        for name in ["Dockerfile", "compose.yaml"] {
            fs::copy(Path::new("../..").join(name), context.join(name)).unwrap();
        }
        let arguments = ["BUILDER=base", "BASE=base", "PACKAGES="];
        let built: CommandOutput = Command::new("docker-compose")
            .current_dir(&context)
            .arg("build")
            .args(arguments.iter().flat_map(|argument| ["--build-arg", argument]))
            .env("DOCKER_HOST", self.host())
            .output()
            .expect("docker-compose, of the package of this name, is needed")
            .into();
        assert_eq!(built.status, 0, "{built:?}");
    }

    fn containers(&self) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let names = self.docker(&["ps", "--all", "--quiet"]).exits(0).stdout;
            if names.is_empty() || Instant::now() >= end {
                return names;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        signal(&self.child, Signal::TERM);
        let _ = self.child.wait();
    }
}

/// SBX-5, and every row of the table; SBX-6, SBX-9 and SBX-11 as far as they are Docker's.
#[test]
fn a_container_holds_the_scenarios() {
    let daemon = Daemon::start();
    let host = daemon.host();
    let mut capsule = capsule().0;
    capsule.set("DOCKER_HOST", &host);
    // SBX-11: the image is not built.
    let ran = run_line(&capsule, &["--backend", "docker"], "true").exits(8);
    assert!(
        ran.stderr.contains("not built") && ran.stderr.contains("docker compose build"),
        "{ran:?}"
    );
    daemon.build_image();
    let failed = failures(&["--backend", "docker"], &[("DOCKER_HOST", &host)]);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let failed = wall_failures(&["--backend", "docker"], &[("DOCKER_HOST", &host)], GAPS);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // SBX-5.
    let ran =
        run_line(&capsule, &["--backend", "docker"], "ls /app; pwd; capsule --version").exits(0);
    assert_eq!(ran.stdout, format!("capsule\n/workspace\ncapsule {}\n", env!("CARGO_PKG_VERSION")));
    // SBX-9: nothing is left of those.
    assert_eq!(daemon.containers(), "");
    has_what_a_container_gives(&daemon);
    keeps_a_terminal(&capsule);
    ends_with_the_wrapper(&capsule, &daemon);
}

/// Capsule in a container that it did not start: the levels of the page on machines.
fn has_what_a_container_gives(daemon: &Daemon) {
    let doctor = |options: &[&str]| {
        let words =
            [&["run", "--rm", "--tmpfs=/tmp:mode=1777"], options, &["capsule-sandbox", "doctor"]]
                .concat();
        let said = daemon.docker(&words);
        let is_told = |line: &&str| line.contains(" tier ") || line.contains("missing");
        said.stdout.lines().filter(is_told).collect::<Vec<_>>().join("\n")
    };
    let closed = doctor(&[]);
    assert!(closed.contains("landlock:") && closed.contains("--security-opt"), "{closed}");
    let opened = ["--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined"];
    let opened = doctor(&opened);
    assert!(opened.contains("held") && opened.ends_with("namespaces"), "{opened}");
}

fn keeps_a_terminal(capsule: &Capsule) {
    let line = "printf '\\033[1;31mred\\033[0m\\n'; stty size; read name; echo \"hello $name\"; sleep 100; exit 5";
    let words = ["sandbox", "--backend", "docker", "--", "sh", "-c", line];
    let mut terminal = Terminal::start(capsule, &words);
    terminal.until("\x1b[1;31mred\x1b[0m");
    terminal.until("30 80");
    terminal.press("Ada\r");
    terminal.until("hello Ada");
    terminal.press("\x03");
    assert_eq!(terminal.end().0, 130);
}

/// Whatever ends the wrapper, the container is removed.
fn ends_with_the_wrapper(capsule: &Capsule, daemon: &Daemon) {
    let leases = capsule.store().with_file_name("leases");
    for round in 0_u64..51 {
        let mark = format!("8{}{round:04}", std::process::id());
        let line = format!("sleep {mark} & exec sleep {mark}");
        let mut child = capsule
            .command(&["sandbox", "--backend", "docker", "--", "sh", "-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * round * 3 / 5));
        match round % 3 {
            0 | 1 => child.kill().unwrap(),
            _ => signal(&child, Signal::TERM),
        }
        child.wait().unwrap();
        assert_eq!(leftover_processes(&mark), Vec::<String>::new(), "round {round}");
    }
    assert_eq!(daemon.containers(), "");
    // What a wrapper left that was killed before its container had begun, the next one removes.
    let _ = run_line(capsule, &["--backend", "docker"], "true").exits(0);
    assert_eq!(fs::read_dir(leases).unwrap().count(), 0);
}
