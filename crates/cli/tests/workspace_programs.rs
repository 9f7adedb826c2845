//! Programs of the workspace, by their path: scripts, the interpreters of Python environments, links.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use capsule_testkit::{Capsule, write_program};

/// Allows project code, and asks about nothing.
const POLICY: &str = "version: 1
name: programs
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], hidden: allow, symlinks: inside } }
  shell.run:
    form: command
    effects: { reads: allow, writes: allow, runs: allow, code: allow, unknown: allow }
sandbox: { workspace: staged, level: workspace-write }
";

fn capsule() -> (Capsule, String) {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(POLICY);
    let script = "#!/bin/sh\necho \"$0 $*\"\n";
    for name in ["run.sh", "sub/inner.sh", ".env"] {
        let _ = capsule.write_program(name, script);
    }
    let _plain = capsule.write_file("plain.txt", script);
    let workspace = capsule.workspace();
    symlink("sub", workspace.join("linked")).unwrap();
    symlink("/usr/bin/id", workspace.join("id")).unwrap();
    symlink("run.sh", workspace.join("again")).unwrap();
    let outside = write_program(capsule.directory().join("outside.sh"), script);
    symlink(&outside, workspace.join("out")).unwrap();
    (capsule, policy)
}

/// W1, W2: a program is found by its path, from every directory, and only where a command may see it.
#[test]
fn programs_are_run_by_their_paths() {
    let (capsule, policy) = capsule();
    for (cwd, words, status, expected) in [
        ("", &["./run.sh", "a"][..], 0, "./run.sh a"),
        ("", &["sub/inner.sh"], 0, "sub/inner.sh"),
        ("sub", &["./inner.sh", "b"], 0, "./inner.sh b"),
        ("sub", &["../run.sh"], 0, "../run.sh"),
        ("linked", &["./inner.sh"], 0, "./inner.sh"),
        ("", &["./again"], 0, "./again"),
        ("", &["./id", "-u"], 0, ""),
        ("", &["env", "./run.sh", "c"], 0, "./run.sh c"),
        // Not there, no program, hidden, outside.
        ("", &["./nothing"], 1, "[exec.not-found]"),
        ("", &["./plain.txt"], 1, "[exec.not-found]"),
        ("", &["./.env"], 3, "[policy.never]"),
        ("", &["./out"], 3, "[path.outside-workspace]"),
        ("", &["../outside.sh"], 3, "[path.outside-workspace]"),
    ] {
        let mut args = vec!["exec", "--policy", &policy];
        if !cwd.is_empty() {
            args.extend(["--cwd", cwd]);
        }
        args.push("--");
        args.extend(words);
        let done = capsule.run(&args);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.status, status, "{cwd} {words:?}: {said}");
        assert!(said.contains(expected), "{cwd} {words:?}: {said}");
    }
}

/// What an earlier call of a session made is run as the program that it is by then.
#[test]
fn a_program_that_a_call_made_is_run() {
    let (capsule, policy) = capsule();
    let exec = |words: &[&str]| {
        let mut args = vec!["exec", "--policy", &policy, "--session", "job:1", "--"];
        args.extend(words);
        capsule.run(&args)
    };
    let _made = exec(&["cp", "run.sh", "made.sh"]).exits(0);
    assert_eq!(exec(&["./made.sh", "x"]).exits(0).stdout, "./made.sh x\n");
    assert!(!capsule.workspace().join("made.sh").exists());
}

/// W1: a Python environment runs, and one that a command makes can be applied.
#[test]
fn a_python_environment_works() {
    let (capsule, policy) = capsule();
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", ".venv"])
        .current_dir(capsule.workspace())
        .status()
        .unwrap();
    assert!(made.success());
    let print = "import sys; print(sys.prefix != sys.base_prefix)";
    let exec = |words: &[&str]| {
        let mut args = vec!["exec", "--policy", &policy, "--timeout", "100s", "--"];
        args.extend(words);
        capsule.run(&args)
    };
    assert_eq!(exec(&[".venv/bin/python", "-c", print]).exits(0).stdout, "True\n");
    assert_eq!(exec(&["env", ".venv/bin/python3", "-c", print]).exits(0).stdout, "True\n");
    let _made = exec(&["python3", "-m", "venv", "v"]).exits(0);
    let _applied = capsule.run(&["apply", "latest"]).exits(0);
    let target = fs::read_link(capsule.workspace().join("v/bin/python3")).unwrap();
    assert_eq!(target.to_str(), Some("/usr/bin/python3"));
}

/// W1: a link to a known program of the system is judged as that program; a file of the workspace by what it may be.
#[test]
fn links_to_known_programs_are_judged_as_those() {
    let (capsule, _) = capsule();
    let workspace = capsule.workspace();
    fs::create_dir_all(workspace.join("venv/bin")).unwrap();
    symlink("/usr/bin/python3", workspace.join("venv/bin/python")).unwrap();
    symlink("/usr/bin/perl", workspace.join("ls")).unwrap();
    symlink("/usr/lib/git-core/git-sh-prompt", workspace.join("cat")).unwrap();
    let _ = capsule.write_program("true", fs::read("/usr/bin/true").unwrap());
    capsule.write_file("hello.py", "print('hello')\n");
    let exec = |words: &[&str]| {
        let mut args = vec!["exec", "--unattended", "--policy", "builtin:developer", "--"];
        args.extend(words);
        capsule.run(&args)
    };
    assert_eq!(exec(&["venv/bin/python", "hello.py"]).exits(0).stdout, "hello\n");
    for words in [
        &["venv/bin/python", "-c", "print(1)"][..],
        &["./ls", "-e", "print 1"],
        &["./true"],
        &["./run.sh"],
    ] {
        let refused = exec(words).exits(4).stderr;
        assert!(refused.contains("[approval.needed]"), "{words:?}: {refused}");
    }
    assert_ne!(exec(&["./cat", "hello.py"]).status, 0);
}

/// W1: what a project installs is judged as what its interpreter loads by the same name, and no milder.
#[test]
fn installed_programs_count_as_the_projects() {
    let (capsule, _) = capsule();
    let hello = "#!/bin/sh\necho hello\n";
    for path in [
        ".venv/bin/pytest",
        "node_modules/.bin/tsc",
        "vendor/bin/phpunit",
        "bin/mine",
        "pytest",
        ".venv/bin/git",
    ] {
        let _ = capsule.write_program(path, hello);
    }
    for (words, status) in [
        (&[".venv/bin/pytest", "-q"][..], 0),
        (&["env", ".venv/bin/pytest"], 0),
        (&["node_modules/.bin/tsc", "--noEmit"], 0),
        (&["vendor/bin/phpunit"], 0),
        // Nothing is known of it, or it lies where anything may lie.
        (&["bin/mine"], 4),
        (&["./pytest"], 4),
        // The program of that name is judged, too.
        (&[".venv/bin/git", "clean", "-fd"], 4),
        (&[".venv/bin/git", "push"], 3),
    ] {
        let mut args = vec!["exec", "--unattended", "--policy", "builtin:developer", "--"];
        args.extend(words);
        let done = capsule.run(&args);
        assert_eq!(done.status, status, "{words:?}: {}{}", done.stdout, done.stderr);
    }
}

/// The developer's policy, whose commands have no network here.
fn offline_policy(capsule: &Capsule) -> String {
    let text = "version: 1\nextends: builtin:developer\nsandbox: { network: none }\n";
    capsule.write_policy(text)
}

/// W19: what may work without a network is asked about, and not said to be impossible.
#[test]
fn what_is_there_is_not_impossible() {
    let (capsule, _) = capsule();
    let policy = offline_policy(&capsule);
    capsule.write_file("requirements.txt", "./wheels/x.whl\n");
    capsule.write_file("lib/HEAD", "ref: refs/heads/main\n");
    for (words, code) in [
        (&["git", "clone", "lib", "copy"][..], "[approval.needed]"),
        (&["git", "clone", "./lib", "copy"], "[approval.needed]"),
        (&["pip", "install", "-r", "requirements.txt"], "[approval.needed]"),
        (&["git", "clone", "other", "copy"], "[exec.no-network]"),
        (&["git", "clone", "https://example.org/lib", "lib"], "[exec.no-network]"),
        (&["pip", "install", "requests"], "[exec.no-network]"),
    ] {
        let mut args = vec!["exec", "--unattended", "--policy", &policy, "--"];
        args.extend(words);
        let done = capsule.run(&args);
        assert!(done.stderr.contains(code), "{words:?}: {}", done.stderr);
    }
}

/// W19: what is offline by its words or its variables contacts no other computer, for the program that they are of.
#[test]
fn what_says_that_it_is_offline_needs_no_network() {
    let (capsule, _) = capsule();
    let policy = offline_policy(&capsule);
    for (text, decision) in [
        ("cargo fetch", "ask"),
        ("cargo fetch --offline", "allow"),
        ("CARGO_NET_OFFLINE=true cargo fetch", "allow"),
        ("env CARGO_NET_OFFLINE=true cargo update", "allow"),
        ("CARGO_NET_OFFLINE=false cargo fetch", "ask"),
        ("npm install", "ask"),
        ("npm install --offline", "allow"),
        ("npm_config_offline=true npm install", "allow"),
        ("npm_config_offline=true npm install https://example.org/x.tgz", "ask"),
        ("pip install --no-index --find-links wheels x", "allow"),
        ("PIP_NO_INDEX=1 pip install --find-links wheels x", "allow"),
        ("PIP_NO_INDEX=1 python3 -m pip install --find-links wheels x", "allow"),
        ("PIP_NO_INDEX=1 npm ci", "ask"),
        ("UV_OFFLINE=1 uv sync", "allow"),
        ("go mod download", "ask"),
        ("GOPROXY=off go mod download", "allow"),
        ("GOFLAGS=-mod=mod GOPROXY=off go mod download", "allow"),
        ("GOPROXY=https://example.org go mod download", "deny"),
        ("GOPROXY=off git clone https://example.org/x", "ask"),
    ] {
        let args = serde_json::json!({ "command": text }).to_string();
        let words =
            ["policy", "explain", "--policy", "builtin:developer", "--json", "--tool", "shell.run"];
        let told = capsule.run(&[&words[..], &["--args", &args]].concat()).json();
        assert_eq!(told["decision"], decision, "{text}: {told}");
    }
    for words in [&["npm", "install", "express"][..], &["pip", "install", "requests"]] {
        let mut args = vec!["exec", "--unattended", "--policy", &policy, "--"];
        args.extend(words);
        let told = capsule.run(&args).exits(3).stderr;
        assert!(told.contains("`--offline`") && told.contains("`GOPROXY=off`"), "{told}");
    }
}

/// W19: no person is asked about a program that is not there, or one that would need a network.
#[test]
fn an_impossible_command_is_not_asked_about() {
    let (capsule, _) = capsule();
    let policy = offline_policy(&capsule);
    for words in [
        &["./nothing"][..],
        &["no-such-program"],
        &["env", "./run.sh"],
        &["curl", "-s", "http://192.0.2.1:8123/"],
        &["env", "wget", "http://elsewhere.example/"],
        &["git", "fetch"],
        &["true && git pull | cat"],
        &["git", "fetch", "./elsewhere"],
    ] {
        let mut args = vec!["exec", "--unattended", "--policy", &policy, "--"];
        args.extend(words);
        let done = capsule.run(&args);
        let (status, code) = match words {
            ["env", "./run.sh"] | ["git", "fetch", "./elsewhere"] => (4, "[approval.needed]"),
            ["./nothing" | "no-such-program"] => (1, "[exec.not-found]"),
            _ => (3, "[exec.no-network]"),
        };
        assert!(done.stderr.contains(code), "{words:?}: {}", done.stderr);
        assert_eq!(done.status, status, "{words:?}: {}", done.stderr);
        let report = capsule.run(&["report", "latest", "--format", "json"]).json();
        assert_eq!(report["summary"]["prompts"], 0);
        // The decision is made again from the record, byte for byte.
        let _replayed = capsule.run(&["replay", "latest"]).exits(status);
        let explained = capsule.run(&["policy", "explain", "latest:1", "--json"]);
        assert_eq!(explained.json()["code"], done_code(code), "{}", explained.stdout);
        if code == "[exec.no-network]" {
            assert!(
                done.stderr.contains("effects.network · builtin:developer:"),
                "{}",
                done.stderr
            );
        }
    }
}

/// W19: no person is asked about a program that wants a terminal, which commands are not given, or about one that removes
/// what is not there; where it may work, a person is.
#[test]
fn no_terminal_and_no_target_are_not_asked_about() {
    let (capsule, _) = capsule();
    let git = |words: &[&str]| {
        let ran = Command::new("git").current_dir(capsule.workspace()).args(words).output();
        assert!(ran.unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "plain.txt"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "one"]);
    git(&["branch", "topic"]);
    git(&["branch", "packed"]);
    git(&["pack-refs", "--all"]);
    let exec = |policy: &str, command: &str| {
        let args = ["exec", "--unattended", "--session", "job:1", "--policy", policy, "--"];
        capsule.run(&[&args[..], &[command]].concat())
    };
    let asked = "[approval.needed]";
    for (command, code) in [
        ("vim plain.txt", "[policy.denied]"),
        ("timeout 5 vim plain.txt", "[policy.denied]"),
        ("git rebase -i HEAD", "[policy.denied]"),
        ("git add -p", "[policy.denied]"),
        ("GIT_SEQUENCE_EDITOR=true git rebase -i HEAD", asked),
        ("echo y | git add -p", asked),
        ("vim -es plain.txt", asked),
        ("rm nothing", "[fs.not-found]"),
        ("rm -r nothing other", "[fs.not-found]"),
        ("rmdir nothing", "[fs.not-found]"),
        ("rm nothing plain.txt", asked),
        ("rm -f nothing", asked),
        ("rm -rf nothing", asked),
        ("rm plain.txt", asked),
        ("git branch -D nobranch", "[git.failed]"),
        ("git branch -D topic", asked),
        ("git branch -D packed nobranch", asked),
        ("git stash drop", "[git.failed]"),
        ("git fetch origin", "[git.failed]"),
        ("git pull", "[git.failed]"),
        ("git fetch ./sub", asked),
        ("git fetch https://git.example/x.git", asked),
    ] {
        let done = exec("builtin:developer", command);
        assert!(done.stderr.contains(code), "{command}: {}", done.stderr);
    }
    // What an earlier call of the session made is there.
    for (make, take) in [
        ("touch made.txt", "rm made.txt"),
        ("git branch made", "git branch -D made"),
        ("echo x >> plain.txt && git stash", "git stash drop"),
    ] {
        assert_eq!(exec("builtin:developer", make).status, 0, "{make}");
        let done = exec("builtin:developer", take);
        assert!(done.stderr.contains(asked), "{take}: {}", done.stderr);
    }
    git(&["remote", "add", "origin", "https://git.example/x.git"]);
    let done = exec("builtin:developer", "git fetch origin");
    assert!(done.stderr.contains(asked), "{}", done.stderr);
    // Where nobody would be asked, it fails as it does anywhere.
    let text = "version: 1\nextends: builtin:developer\ntools: { shell.run: { effects: { deletes: allow } } }\n";
    let open = capsule.write_policy(text);
    let done = exec(&open, "rm nothing");
    assert!(done.stderr.contains("cannot remove 'nothing'"), "{}", done.stderr);
}

fn done_code(code: &str) -> &str {
    match code {
        "[approval.needed]" => "policy.asked",
        code => code.trim_matches(['[', ']']),
    }
}

/// W11: data that packages put outside of `/usr` is there for the programs that they belong to, and no more.
#[test]
fn programs_find_their_data() {
    let (capsule, policy) = capsule();
    let exec = |words: &[&str]| {
        let mut args = vec!["exec", "--unattended", "--policy", &policy, "--"];
        args.extend(words);
        capsule.run(&args)
    };
    capsule.write_file("count.php", "<?php echo mb_strlen('\u{e4}');\n");
    assert_eq!(exec(&["php", "count.php"]).exits(0).stdout, "1");
    let private = "<?php foreach (['/etc/passwd-', '/etc/shadow', '/etc/maven/settings.xml', '/var/lib/dpkg'] \
                   as $path) if (file_exists($path)) echo $path;\n";
    capsule.write_file("private.php", private);
    assert_eq!(exec(&["php", "private.php"]).exits(0).stdout, "");
}
