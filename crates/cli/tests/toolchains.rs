//! Toolchains and package caches of the home directory: rustup, pyenv, nvm and others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput, write_program};

/// Allows project code, and asks about nothing.
fn policy(toolchains: &str) -> String {
    format!(
        "version: 1
name: toolchains
tools:
  fs.read: {{ decision: allow, paths: {{ allow: [\"**\"], hidden: allow, symlinks: inside }} }}
  shell.run:
    form: command
    effects: {{ reads: allow, writes: allow, runs: allow, code: allow, unknown: allow, opens: allow }}
    limits: {{ timeout: 300s, timeout_max: 600s, memory: 4GiB }}
sandbox: {{ workspace: staged, level: workspace-write }}
toolchains: {toolchains}
"
    )
}

struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    fn new(toolchains: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(&policy(toolchains));
        Self { capsule, policy }
    }

    fn exec(&self, words: &[&str]) -> CommandOutput {
        let args = ["exec", "--policy", &self.policy, "--"];
        self.capsule.run(&[&args, words].concat())
    }

    /// The label of the newest run.
    fn last_run(&self) -> String {
        let runs = self.capsule.run(&["list-runs"]).exits(0).stdout;
        runs.split_whitespace().find(|word| word.starts_with("r-")).unwrap().to_owned()
    }

    /// Writes a program of a toolchain into the home directory.
    fn write_program(&self, path: &str, content: &[u8]) -> PathBuf {
        write_program(self.capsule.home().join(path), content)
    }

    fn write_home(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.capsule.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

const HELLO: &[u8] = b"#!/bin/sh\necho \"hello from $0\"\n";

/// W3: programs of a toolchain are found by name and by path, variables and `PATH` are true, and the record
/// names what was shown.
#[test]
fn programs_of_toolchains_are_found() {
    let bed = Bed::new("[pyenv, local-bin, ~/tools, sdkman]");
    let home = bed.capsule.home();
    let python = fs::read("/usr/bin/python3").unwrap();
    let _ = bed.write_program(".pyenv/versions/3.9.1/bin/python3", &python);
    let python = bed.write_program(".pyenv/versions/3.11.9/bin/python3", &python);
    let _ = bed.write_home(".pyenv/version", b"3.11\n");
    let _ = bed.write_program(".local/bin/mine", HELLO);
    let _ = bed.write_program("tools/bin/custom", HELLO);
    let _ = bed.write_program(".sdkman/candidates/java/21/bin/java-like", HELLO);
    symlink("21", home.join(".sdkman/candidates/java/current")).unwrap();
    bed.capsule.write_file("which.py", "import os, sys\nprint(sys.executable, os.environ['PYENV_ROOT'], os.environ['JAVA_HOME'], os.environ['PATH'])\n");
    let done = bed.exec(&["python3", "which.py"]).exits(0);
    let words: Vec<&str> = done.stdout.split_whitespace().collect();
    assert_eq!(words[0], python.to_str().unwrap(), "{}", done.stdout);
    assert_eq!(words[1], home.join(".pyenv").to_str().unwrap());
    assert_eq!(words[2], home.join(".sdkman/candidates/java/current").to_str().unwrap());
    assert!(words[3].ends_with(":/sbin") && words[3].contains("3.11.9/bin:"), "{}", done.stdout);
    for name in ["mine", "custom", "java-like"] {
        let done = bed.exec(&[name]).exits(0);
        assert!(done.stdout.contains("hello from"), "{name}: {}", done.stdout);
    }
    let path = home.join("tools/bin/custom");
    let done = bed.exec(&[path.to_str().unwrap()]).exits(0);
    assert!(done.stdout.contains("hello from"), "{}", done.stdout);
    let runs = bed.capsule.run(&["show-run", &bed.last_run(), "--json"]).exits(0);
    assert!(
        runs.stdout.contains(home.join(".pyenv/versions").to_str().unwrap()),
        "{}",
        runs.stdout
    );
}

/// W1: the environment of a Python interpreter of pyenv, made on the host and made by a command.
#[test]
fn an_environment_leads_to_a_toolchain() {
    let bed = Bed::new("[well-known]");
    let python = fs::read("/usr/bin/python3").unwrap();
    let python = bed.write_program(".pyenv/versions/3.11.9/bin/python3", &python);
    let made = Command::new(&python)
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(bed.capsule.workspace())
        .status();
    assert!(made.unwrap().success());
    bed.capsule.write_file("test_it.py", "import sys, unittest\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        print(sys.prefix)\n");
    let done = bed.exec(&[".venv/bin/python3", "-m", "unittest", "test_it"]).exits(0);
    assert!(done.stdout.contains("/ws/.venv"), "{}", done.stdout);
    let made = bed.exec(&["python3", "-m", "venv", "--without-pip", "made"]).exits(0);
    assert!(!made.stderr.contains("not to be applied"), "{}", made.stderr);
    let _ = bed.capsule.run(&["apply", &bed.last_run()]).exits(0);
    let link = fs::read_link(bed.capsule.workspace().join("made/bin/python3")).unwrap();
    assert!(link.starts_with(bed.capsule.home().join(".pyenv")), "{link:?}");
    let _ = bed.exec(&["made/bin/python3", "-m", "unittest", "test_it"]).exits(0);
    // Without the toolchain the link leads out.
    let bare = bed.capsule.write_policy(&policy("[]"));
    let args = ["exec", "--policy", &bare, "--", ".venv/bin/python3", "-V"];
    assert_eq!(bed.capsule.run(&args).status, 3);
}

/// W3: node of nvm runs the tests of a project.
#[test]
fn node_of_nvm_runs_tests() {
    let bed = Bed::new("[nvm]");
    let node = bed
        .write_program(".nvm/versions/node/v18.20.1/bin/node", &fs::read("/usr/bin/node").unwrap());
    let _ = bed.write_home(".nvm/alias/default", b"18\n");
    bed.capsule.write_file(
        "a.test.js",
        "require('node:test')('a', () => { console.log(process.execPath) })\n",
    );
    let done = bed.exec(&["node", "--test"]).exits(0);
    assert!(done.stdout.contains("pass 1"), "{}", done.stdout);
    bed.capsule.write_file("a.js", "console.log(process.execPath)\n");
    assert_eq!(bed.exec(&["node", "a.js"]).exits(0).stdout.trim(), node.to_str().unwrap());
}

/// W3: cargo builds and tests a crate with a dependency out of the registry of the home directory, which it
/// unpacks there; the host's registry stays as it is.
#[test]
fn cargo_builds_from_the_registry() {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(sysroot.stdout).unwrap();
    let bed = Bed::new(&format!("[cargo, \"{}\"]", sysroot.trim()));
    let registry = bed.capsule.home().join(".cargo/registry");
    copy_crate(&registry, "itoa");
    let _ = bed.write_home(".cargo/credentials.toml", b"[registry]\ntoken = \"cio-secret\"\n");
    bed.capsule.write_file("Cargo.toml", "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\n");
    bed.capsule.write_file(
        "src/lib.rs",
        "#[test]\nfn prints() { assert_eq!(itoa::Buffer::new().format(7), \"7\"); }\n",
    );
    let done = bed.exec(&["cargo", "test", "--offline"]).exits(0);
    assert!(done.stdout.contains("1 passed"), "{}{}", done.stdout, done.stderr);
    assert!(!registry.join("src").exists(), "the host's registry was written to");
    let _ = bed.exec(&["cargo", "build", "--offline"]).exits(0);
    // The record is replayed where the toolchain is gone.
    fs::remove_dir_all(bed.capsule.home().join(".cargo")).unwrap();
    let _ = bed.capsule.run(&["replay", &bed.last_run()]).exits(0);
}

/// Copies a crate of this machine's registry, packed, with its part of the index.
fn copy_crate(to: &Path, name: &str) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"));
    let script = r#"set -e
        cd "$1/registry"
        index=$(find index -path "*/.cache/*/$3" -o -path 'index/*/config.json')
        for file in $index $(find cache -name "$3-[0-9]*.crate"); do
          mkdir -p "$2/$(dirname "$file")"
          cp "$file" "$2/$file"
        done"#;
    let done = Command::new("sh").args(["-c", script, "sh"]).arg(home).arg(to).arg(name).status();
    assert!(done.unwrap().success());
}

/// A command changes nothing of a toolchain: a program stays as it is, and what is written into a cache is
/// gone with the call. Settings and credentials beside them are not there.
#[test]
fn nothing_of_a_toolchain_is_changed_or_told() {
    let bed = Bed::new("[cargo, maven, npm-cache, ~/tools]");
    let _ = bed.write_program(".cargo/bin/tool", HELLO);
    let _ = bed.write_home(".cargo/registry/index/x", b"index");
    let _ = bed.write_home(".m2/repository/a.jar", b"jar");
    let _ = bed.write_home(".npm/_cacache/x", b"x");
    let _ = bed.write_program("tools/bin/custom", HELLO);
    let secrets = [
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".m2/settings.xml",
        ".m2/settings-security.xml",
        ".npmrc",
        ".npm/_logs/x",
        "tools/lib/.npmrc",
        "tools/id_rsa",
        "tools/.aws/credentials",
        ".ssh/id_rsa",
        "notes.txt",
    ];
    for secret in secrets {
        let _ = bed.write_home(secret, b"secret-token-value");
    }
    let script = r#"
import os, sys
home = open("home.txt").read()
for name in sys.argv[1:]:
    try:
        text = open(home + "/" + name).read()
        print("told", name) if "secret" in text else print("read", name)
    except OSError as error:
        print("closed", name)
for name in [".cargo/bin/tool", "tools/bin/custom", ".cargo/registry/index/x", ".cargo/registry/index/new", ".m2/repository/a.jar", ".cargo/new"]:
    try:
        with open(home + "/" + name, "a") as file:
            file.write("changed")
        print("wrote", name)
    except OSError as error:
        print("refused", name)
for name in [".cargo/bin/tool", "tools/bin/custom"]:
    for act in (os.remove, lambda path: os.chmod(path, 0o777), lambda path: os.rename(path, path + "2")):
        try:
            act(home + "/" + name)
            print("changed", name)
        except OSError as error:
            pass
"#;
    bed.capsule.write_file("try.py", script);
    let home = bed.capsule.home();
    let _ = bed.capsule.write_file("home.txt", home.to_str().unwrap());
    let mut words = vec!["python3", "try.py"];
    words.extend(secrets);
    words.extend([".cargo/registry/index/x", ".m2/repository/a.jar"]);
    for _ in 0..2 {
        let done = bed.exec(&words).exits(0);
        assert!(!done.stdout.contains("told"), "{}", done.stdout);
        assert!(!done.stdout.contains("changed"), "{}", done.stdout);
        for name in secrets {
            assert!(done.stdout.contains(&format!("closed {name}\n")), "{name}: {}", done.stdout);
        }
        for line in [
            "read .cargo/registry/index/x",
            "refused .cargo/bin/tool",
            "refused tools/bin/custom",
            "wrote .cargo/registry/index/x",
            "wrote .cargo/registry/index/new",
            "wrote .m2/repository/a.jar",
            "wrote .cargo/new",
        ] {
            assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
        }
    }
    for (path, expected) in [
        (".cargo/bin/tool", HELLO),
        ("tools/bin/custom", HELLO),
        (".cargo/registry/index/x", b"index"),
        (".m2/repository/a.jar", b"jar"),
    ] {
        assert_eq!(fs::read(home.join(path)).unwrap(), expected, "{path}");
    }
    assert!(!home.join(".cargo/new").exists() && !home.join(".cargo/registry/index/new").exists());
    // A tool of ours reads no more than before.
    let args = format!("{{\"path\": \"{}\"}}", home.join(".m2/repository/a.jar").display());
    assert_eq!(
        bed.capsule.run(&["call", "--policy", &bed.policy, "fs.read", "--args", &args]).status,
        3
    );
}

/// A directory that must not be shown is refused, with its reason; one that is not there is noted.
#[test]
fn a_directory_that_must_not_be_shown_is_refused() {
    let bed = Bed::new("[]");
    let home = bed.capsule.home();
    for directory in [".ssh", ".aws", ".gnupg", "open/bin", "inner", ".local/share/capsule"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    fs::set_permissions(home.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(home.join("file"), "x").unwrap();
    for (name, target) in [
        ("to-ssh", ".ssh"),
        ("to-root", "/"),
        ("to-home", "."),
        ("to-open", "open/bin"),
        (".deno/bin", "../.ssh"),
    ] {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        symlink(target, home.join(name)).unwrap();
    }
    let workspace = bed.capsule.workspace();
    let (workspace, above) =
        (workspace.to_str().unwrap(), bed.capsule.directory().to_str().unwrap());
    for (entry, expected) in [
        ("~/.ssh", "the base policy hides"),
        ("~/.aws", "the base policy hides"),
        ("~/.gnupg", "the base policy hides"),
        ("~/to-ssh", "the base policy hides"),
        ("deno", "the base policy hides"),
        ("/", "it holds"),
        ("~/to-root", "it holds"),
        ("~", "the home directory"),
        ("~/to-home", "the home directory"),
        ("~/.local", "Capsule's own files"),
        (workspace, "the workspace"),
        (above, "it holds"),
        ("/proc/self", "/proc"),
        ("~/open", "everybody may change"),
        ("~/open/bin", "everybody may change"),
        ("~/to-open", "everybody may change"),
        ("~/file", "is not a directory"),
        ("~/inner/../.ssh", "without `..`"),
        ("rustpu", "did you mean `rustup`?"),
    ] {
        let policy = bed.capsule.write_policy(&policy(&format!("[\"{entry}\"]")));
        for command in [
            &["policy", "check", "--policy", &policy][..],
            &["exec", "--policy", &policy, "--", "ls"],
        ] {
            let done = bed.capsule.run(command);
            let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                done.status == 2 && said.contains("policy.toolchain"),
                "{entry}: {} {said}",
                done.status
            );
            assert!(said.contains(expected), "{entry}: {said}");
        }
    }
    for entry in ["~/nothing", "nvm"] {
        let policy = bed.capsule.write_policy(&policy(&format!("[\"{entry}\"]")));
        let done = bed.capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
        assert!(done.stderr.contains("is not there"), "{entry}: {}", done.stderr);
        let _ = bed.capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    }
    // A policy that came with the workspace names no directories of the home directory.
    let inside = bed.capsule.write_file(".capsule/policy.yaml", policy("[~/inner]"));
    let done =
        bed.capsule.run(&["exec", "--policy", inside.to_str().unwrap(), "--", "ls"]).exits(2);
    assert!(done.stderr.contains("lies in the workspace"), "{}", done.stderr);
}

/// `doctor` lists the toolchains that are there, and `init` names them in a comment before they are used.
#[test]
fn toolchains_are_listed_before_they_are_added() {
    let bed = Bed::new("[]");
    let _ = bed.write_program(".pyenv/versions/3.11.9/bin/python3", HELLO);
    fs::create_dir_all(bed.capsule.home().join(".cargo/bin")).unwrap();
    fs::set_permissions(bed.capsule.home().join(".cargo/bin"), fs::Permissions::from_mode(0o777))
        .unwrap();
    let told = bed.capsule.run(&["doctor"]).stdout;
    assert!(told.contains("toolchain: pyenv") && told.contains("toolchain: cargo"), "{told}");
    assert!(told.contains("everybody may change"), "{told}");
    let told = bed.capsule.run(&["init"]).exits(0);
    assert!(told.stdout.contains("found toolchain `pyenv`"), "{}", told.stdout);
    let text = fs::read_to_string(bed.capsule.workspace().join(".capsule/policy.yaml")).unwrap();
    assert!(text.contains("\n# toolchains: [pyenv]\n"), "{text}");
    let used = text.replace("# toolchains:", "toolchains:");
    let policy = bed.capsule.write_file(".capsule/policy.yaml", used);
    let _ = bed.capsule.run(&["policy", "check", "--policy", policy.to_str().unwrap()]).exits(0);
}

/// Package caches hold addresses from which something was fetched, some with a token in them: no command reads those,
/// and the rest of the cache is read and written as before.
#[test]
fn addresses_in_caches_are_hidden() {
    let bed = Bed::new("[cargo, uv-cache, go, composer-cache, miniconda]");
    let hidden = [
        ".cargo/git/db/x-0123/FETCH_HEAD",
        ".cargo/git/db/x-0123/logs/HEAD",
        ".cargo/git/checkouts/x-0123/abc/.git/FETCH_HEAD",
        ".cargo/registry/index/github.com-1/.git/FETCH_HEAD",
        ".cache/uv/git-v0/db/0123/FETCH_HEAD",
        "go/pkg/mod/cache/vcs/0123/config",
        "go/pkg/mod/cache/vcs/0123.info",
        ".cache/composer/vcs/x/config",
        "miniconda3/pkgs/urls.txt",
    ];
    let shown = [
        ".cargo/git/db/x-0123/HEAD",
        ".cargo/git/checkouts/x-0123/abc/src/lib.rs",
        ".cargo/registry/cache/x/a.crate",
        ".cache/uv/wheels/x",
        "go/pkg/mod/a@v1/a.go",
        ".cache/composer/files/x.zip",
        "miniconda3/pkgs/x/info.json",
    ];
    for path in hidden.iter().chain(&shown) {
        let _ = bed.write_home(path, b"https://ann:TOKEN@example.org\n");
    }
    let home = bed.capsule.home();
    let read = |path: &str| {
        let path = home.join(path);
        let line = format!(
            "open(F, '<', '{0}') ? print <F> : print qq(closed\n); open(D, '>', '{0}.new') or print qq(read-only\n)",
            path.display()
        );
        bed.capsule.write_file("read.pl", line);
        bed.exec(&["perl", "read.pl"])
    };
    for path in hidden {
        let done = read(path);
        assert!(done.stdout.starts_with("closed\n"), "{path}: {}{}", done.stdout, done.stderr);
    }
    // The rest of a cache is read, and written in the layer of the call.
    for path in shown {
        let done = read(path);
        assert!(done.stdout.contains("TOKEN@"), "{path}: {}{}", done.stdout, done.stderr);
        let is_read_only = done.stdout.contains("read-only");
        assert_eq!(is_read_only, path.starts_with("miniconda3"), "{path}: {}", done.stderr);
        assert!(!home.join(format!("{path}.new")).exists());
    }
}
