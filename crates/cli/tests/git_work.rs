//! Ordinary work with git: a person's preferences, files that are hidden and tracked, working trees, submodules,
//! and the subcommands that write much.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput};

#[path = "git_work/hidden_files.rs"]
mod hidden_files;
#[path = "git_work/new_repositories.rs"]
mod new_repositories;
#[path = "git_work/ordinary.rs"]
mod ordinary;
#[path = "git_work/outside.rs"]
mod outside;
#[path = "git_work/preferences.rs"]
mod preferences;
#[path = "git_work/sessions.rs"]
mod sessions;
#[path = "git_work/stopped.rs"]
mod stopped;
#[path = "git_work/working_trees.rs"]
mod working_trees;

/// Changes of files are staged, and no person is asked.
const STAGED: &str = "version: 1
name: git
extends: builtin:base@1
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], hidden: allow, symlinks: inside } }
  fs.write: { decision: allow, paths: { allow: [\"**\"], hidden: allow, symlinks: inside } }
  git.status: allow
  git.diff: allow
  shell.run:
    form: command
    effects: { reads: allow, writes: allow, runs: allow, code: allow, deletes: allow, unknown: deny }
sandbox: { workspace: staged, level: workspace-write }
";

/// A workspace with a repository of the user's.
struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    /// One after these lines of a shell.
    fn new(lines: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(STAGED);
        let bed = Self { capsule, policy };
        bed.user("config --global user.name Ann");
        bed.user("config --global user.email ann@example.org");
        bed.user("config --global init.defaultBranch trunk");
        bed.user("config --global protocol.file.allow always");
        bed.host("git init -q; echo 1 > a; echo 2 > b; git add a b; git commit -qm one");
        bed.host(lines);
        bed
    }

    /// Git of the user, in the home directory.
    fn user(&self, words: &str) {
        let mut git = Command::new("git");
        git.args(words.split(' '))
            .current_dir(self.capsule.home())
            .env("HOME", self.capsule.home());
        assert!(git.status().unwrap().success(), "{words}");
    }

    /// The output of these lines on the host, in the workspace.
    #[track_caller]
    fn host(&self, lines: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-ec", lines]).current_dir(self.capsule.workspace());
        command.env("HOME", self.capsule.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{lines}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// A command line, in the sandbox.
    fn run(&self, line: &str) -> CommandOutput {
        self.run_with(&["--args", &serde_json::json!({ "command": line }).to_string()])
    }

    fn run_with(&self, args: &[&str]) -> CommandOutput {
        let head = ["call", "shell.run", "--policy", &self.policy];
        self.capsule.run(&[&head[..], args].concat())
    }

    /// The answer to a command line where no namespaces can be had, so that the workspace is copied.
    fn command_in_lower_tier(&self, line: &str) -> serde_json::Value {
        let lower = STAGED.replace("sandbox: {", "sandbox: { floor: landlock,");
        let policy = self.capsule.write_policy(&lower);
        let args = serde_json::json!({ "command": line }).to_string();
        let words = ["call", "shell.run", "--policy", &policy, "--args", &args];
        self.capsule.run_without_namespaces(&words).json()
    }

    /// The output of a command line that ends well.
    #[track_caller]
    fn printed(&self, line: &str) -> String {
        let done = self.run(line);
        let answer = done.json();
        let result = &answer["result"];
        assert_eq!(answer["status"], "ok", "{line}: {answer}");
        assert_eq!(result["exit_code"], 0, "{line}: {answer}");
        result["stdout"].as_str().unwrap_or_default().to_owned()
    }

    /// Applies the changes of the last run.
    #[track_caller]
    fn apply(&self) {
        let done = self.capsule.run(&["apply", "latest"]);
        assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    }
}

/// A file of the workspace.
fn content(bed: &Bed, path: &str) -> String {
    fs::read_to_string(bed.capsule.workspace().join(path)).unwrap()
}
