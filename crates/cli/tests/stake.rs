//! APR-11: how much unpulled and uncommitted work is at stake, and what a workspace is that can be thrown
//! away.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::{Value, json};

const STAGED: &str = "version: 1
tools:
  fs.read: allow
  fs.write: allow
  shell.run: { executables: { touch: { decision: allow, writes: [\"**\"] } } }
";

const DIRECT: &str = "version: 1
tools:
  fs.read: allow
  fs.write: allow
sandbox: { workspace: direct }
";

fn git(capsule: &Capsule, folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", capsule.home())
        .output()
        .unwrap();
    assert!(done.status.success(), "git {words:?}: {done:?}");
}

fn write(capsule: &Capsule, policy: &str, path: &str, more: &[&str]) -> CommandOutput {
    let args = json!({ "path": path, "content": "new\n" }).to_string();
    let mut line = vec!["call", "fs.write", "--policy", policy, "--args", &args];
    line.extend(more);
    capsule.run(&line)
}

/// What is staged and not applied is told by the header of every later run in the same workspace, and by
/// `changes`.
#[test]
fn what_waits_is_told() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(STAGED);
    let touch = |name: &str| {
        let line = ["exec", "--policy", &policy, "--", "touch", name, &format!("{name}2")];
        let _ = capsule.run(&line).exits(0);
        capsule.run(&["list-runs", "--json"]).json()[0]["label"].as_str().unwrap().to_owned()
    };
    let waiting = || capsule.run(&["changes", "--json"]).exits(0).json()["staged"].clone();
    let header = || {
        let report = capsule.run(&["report", "latest"]).exits(0).stdout;
        let line = report.lines().find(|line| line.starts_with("waiting")).map(str::to_owned);
        line.unwrap_or_default()
    };
    assert_eq!(waiting(), json!([]), "there is no store yet");
    let first = touch("a");
    assert_eq!(header(), "", "its own changes do not wait for itself");
    let second = touch("b");
    assert!(header().contains("1 run staged 2 paths here that nobody applied"), "{}", header());
    let _ = touch("c");
    assert!(header().contains("2 runs staged 4 paths"), "{}", header());
    let told = waiting();
    assert_eq!(told.as_array().unwrap().len(), 3, "{told}");
    assert!(
        told.as_array().unwrap().iter().all(|own| own["paths"] == 2 && own["refused"] == false)
    );
    let shown = capsule.run(&["changes"]).exits(0).stdout;
    assert!(
        shown.contains(&format!("staged     {first} · 2 changes · capsule changes {first}")),
        "{shown}"
    );
    assert!(shown.contains("git        no repository"), "{shown}");
    // In another workspace nothing waits.
    let other = capsule.directory().join("other");
    fs::create_dir(&other).unwrap();
    let there = capsule.run(&["--workspace", other.to_str().unwrap(), "changes"]).exits(0).stdout;
    assert!(there.contains("staged     nothing waits"), "{there}");
    // What is applied or dropped waits no more.
    let _ = capsule.run(&["apply", &first]).exits(0);
    let _ = capsule.run(&["discard", &second]).exits(0);
    assert_eq!(waiting().as_array().unwrap().len(), 1);
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let json = touch("d");
    assert!(header().contains("1 run staged 2 paths"), "{}", header());
    let _ = capsule.run(&["replay", &json]).exits(0);
    let opened = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(opened["opened"]["entry"]["unpulled"], json!({ "runs": 1, "paths": 2 }));
}

/// What a run wrote and no commit has is told, whatever the repository would have git do meanwhile; and
/// asking leaves nothing.
#[test]
fn what_is_in_no_commit_is_told() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(DIRECT);
    let root = capsule.workspace();
    git(&capsule, &root, &["init", "-q"]);
    capsule.write_file("a", "old\n");
    capsule.write_file("b", "old\n");
    git(&capsule, &root, &["add", "."]);
    git(&capsule, &root, &["commit", "-qm", "first"]);
    let plan = capsule.write_plan(
        "version: 1
steps:
  - { tool: fs.write, args: { path: a, content: new } }
  - { tool: fs.write, args: { path: dir/new, content: new } }
",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    let runs = || capsule.run(&["list-runs", "--json"]).json().as_array().unwrap().len();
    let before = runs();
    let evil = "#!/bin/sh\ntouch EVIL\n";
    let _ = capsule.write_program(".git/evil", evil);
    git(&capsule, &root, &["config", "core.fsmonitor", ".git/evil"]);
    let told = capsule.run(&["changes", "latest"]).exits(0);
    assert!(told.stdout.contains("M a  3 B") && told.stdout.contains("A dir/new  3 B"), "{told:?}");
    assert!(told.stdout.contains("2 of 2 paths are in no commit"), "{told:?}");
    assert!(
        told.stderr.contains("3 changes in the workspace itself · capsule undo r-"),
        "{told:?}"
    );
    let told = capsule.run(&["changes", "latest", "--json"]).exits(0).json();
    assert_eq!(told["uncommitted"], json!(["a", "dir/new"]));
    let all = capsule.run(&["changes", "--json"]).exits(0).json();
    assert_eq!(all["repository"]["paths"], json!(["a", "dir/"]));
    assert_eq!(all["repository"]["clean"], false);
    let shown = capsule.run(&["changes"]).exits(0).stdout;
    assert!(
        shown.contains(
            "2 paths are in no commit · its commits are on no other branch that git knows of"
        ),
        "{shown}"
    );
    assert!(!root.join("EVIL").exists() && runs() == before);
    let beside: Vec<_> = fs::read_dir(capsule.store().parent().unwrap())
        .unwrap()
        .map(|own| own.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("store.db"))
        .collect();
    assert_eq!(beside, Vec::<String>::new(), "asking leaves nothing");
    git(&capsule, &root, &["config", "--unset", "core.fsmonitor"]);
    git(&capsule, &root, &["add", "."]);
    git(&capsule, &root, &["commit", "-qm", "second"]);
    let told = capsule.run(&["changes", "latest"]).exits(0).stdout;
    assert!(told.contains("all of it is in a commit"), "{told}");
}

/// APR-9, APR-11: an autonomous run wants a workspace that can be thrown away: one whose changes are
/// staged, or a clean copy of a repository.
#[test]
fn a_disposable_workspace_is_staged_or_a_clean_copy() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let root = capsule.workspace();
    let autonomous = |policy: &str| policy.replace("tools:", "profile: autonomous\ntools:");
    let policy = capsule.write_policy(&autonomous(STAGED));
    let _ = write(&capsule, &policy, "a", &[]).exits(0);
    let _ = capsule.run(&["discard", "latest"]).exits(0);
    let policy = capsule.write_policy(&autonomous(DIRECT));
    let refused = |why: &str| {
        let runs = capsule.run(&["list-runs", "--json"]).json();
        let ran = write(&capsule, &policy, "a", &[]).exits(8);
        assert!(
            ran.stderr.contains("profile.requires") && ran.stderr.contains(why),
            "{why}: {ran:?}"
        );
        assert_eq!(capsule.run(&["list-runs", "--json"]).json(), runs, "nothing began");
    };
    refused("it is no repository");
    // The original, and a copy of it.
    let origin = capsule.directory().join("origin");
    fs::create_dir(&origin).unwrap();
    git(&capsule, &origin, &["init", "-q"]);
    fs::write(origin.join("a"), "old\n").unwrap();
    git(&capsule, &origin, &["add", "."]);
    git(&capsule, &origin, &["commit", "-qm", "first"]);
    fs::remove_dir(&root).unwrap();
    git(&capsule, capsule.directory(), &["clone", "-q", "origin", "ws"]);
    capsule.write_file("mine", "m");
    refused("1 path in it is in no commit");
    git(&capsule, &root, &["add", "."]);
    git(&capsule, &root, &["commit", "-qm", "mine"]);
    refused("1 ahead");
    git(&capsule, &root, &["checkout", "-qb", "other"]);
    refused("follows none");
    git(&capsule, &root, &["checkout", "-q", "main"]);
    git(&capsule, &root, &["reset", "-q", "--hard", "origin/main"]);
    let done: Value = write(&capsule, &policy, "a", &["--json"]).exits(0).json();
    assert_eq!(done["status"], "ok");
    assert_eq!(fs::read(root.join("a")).unwrap(), b"new\n");
    // Now it is not clean any more; what was changed is undone, and it is.
    refused("1 path in it is in no commit");
    let _ = capsule.run(&["undo", done["run"].as_str().unwrap()]).exits(0);
    let _ = write(&capsule, &policy, "a", &[]).exits(0);
}
