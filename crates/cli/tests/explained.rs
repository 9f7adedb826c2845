//! What `policy explain` tells people: every check that was asked, what it said, and which decided.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

const POLICY: &str = "version: 1
name: p
never: [{ id: no-drafts, capabilities: [fs.read], paths: [\"drafts/**\"], because: Not ready. }]
tools:
  fs.read: allow
  fs.write: { paths: [\"docs/**\"], rules: [{ id: gen, paths: [\"docs/gen/**\"], decision: allow }] }
  git.log: {}
  http.get: { domains: [docs.example.org] }
  shell.run:
    form: command
    effects: { reads: allow, writes: ask }
    executables:
      git: { subcommands: { log: { decision: allow, flags: { deny: [--author] } } } }
";

fn explain(capsule: &Capsule, policy: &str, more: &[&str], tool: &str, args: &Value) -> String {
    let args = args.to_string();
    let line = ["policy", "explain", "--policy", policy, "--tool", tool, "--args", &args];
    capsule.run(&[&line[..], more].concat()).exits(0).stdout
}

/// Whatever decides is one of the checks that are shown, and the only one that is said to.
#[test]
fn one_check_decides_and_is_shown() {
    let capsule = capsule();
    let own = capsule.write_policy(POLICY);
    let command = |text: &str| ("shell.run", json!({ "command": text }));
    for (tool, args) in [
        ("fs.read", json!({ "path": "a" })),
        ("fs.read", json!({ "path": "drafts/a" })),
        ("fs.read", json!({ "path": ".env" })),
        ("fs.read", json!({ "path": "/etc/passwd" })),
        ("fs.write", json!({ "path": "docs/a", "content": "x" })),
        ("fs.write", json!({ "path": "docs/gen/a", "content": "x" })),
        ("fs.edit", json!({ "path": "docs/a", "search": "x", "replace": "y" })),
        ("fs.delete", json!({ "path": "a" })),
        ("git.log", json!({})),
        ("http.get", json!({ "url": "https://docs.example.org/a" })),
        ("http.get", json!({ "url": "https://169.254.169.254/a" })),
        command("ls"),
        command("ls | sort > out.txt"),
        command("cat < .env"),
        command("git log --author a && git log"),
        command("git push"),
        command("cd /etc && ls"),
        command("touch a; rm -rf /"),
        command("A=1 ls"),
        command("sudo ls"),
    ] {
        for policy in [own.as_str(), "builtin:developer", "builtin:readonly", "builtin:base"] {
            let text = explain(&capsule, policy, &[], tool, &args);
            let decision: Value =
                serde_json::from_str(&explain(&capsule, policy, &["--json"], tool, &args)).unwrap();
            // As it reads without its wrapping.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let word = decision["decision"].as_str().unwrap();
            let rule = decision["rule"].as_str().unwrap_or("no rule");
            let at = decision["at"].as_str().map(|at| format!(" {at}")).unwrap_or_default();
            let decides = format!("{word}, which decides · {rule}{at} · ");
            assert_eq!(text.matches("which decides").count(), 1, "{policy} {args}: {text}");
            assert!(text.contains(&decides), "{policy} {args}: {decides}: {text}");
        }
    }
}

/// The checks stand in their order, with what each of them says; a part of a command has its own.
#[test]
fn every_check_is_shown() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let text = explain(&capsule, &policy, &[], "fs.read", &json!({ "path": "drafts/a" }));
    let names: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("checks"))
        .filter_map(|line| line.trim_start().strip_prefix(['✔', '✖', '?']))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["budgets", "never", "rule", "quota", "profile", "risk"], "{text}");
    for line in [
        "  ✖ never    deny, which decides · no-drafts policy.yaml:3:15 · `drafts/a`: Not",
        "  ✔ rule     allow · fs.read policy.yaml:5:3 · `fs.read` is allowed\n",
        "  ✔ profile  `supervised` denies nothing of what it needs\n",
        "  ✔ risk     below high, where calls are refused\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let parts = json!({ "command": "git log -n 3 && touch a > out.txt" });
    let text = explain(&capsule, &policy, &[], "shell.run", &parts);
    let parts: Vec<&str> = text.lines().filter(|line| line.starts_with("  part ")).collect();
    assert_eq!(parts, ["  part git log -n 3", "  part touch a", "  part > out.txt"], "{text}");
    assert!(
        text.contains("    ? rule     ask · shell.run/effects.writes policy.yaml:11:30"),
        "{text}"
    );
    // What was not understood was not asked about, and its place is shown.
    let text = explain(&capsule, &policy, &[], "shell.run", &json!({ "command": "ls | (cat)" }));
    assert!(text.contains("\n      ls | (cat)\n           ^\n"), "{text}");
    assert!(text.ends_with("no check was asked: what the call means is not known\n"), "{text}");
}

/// A recorded call is explained by the policy that it was judged by, or by another one.
#[test]
fn a_recorded_call_is_explained_in_the_same_way() {
    let capsule = capsule();
    capsule.write_file("a", "x");
    let policy = capsule.write_policy(POLICY);
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a"]).exits(0);
    let own = capsule.run(&["policy", "explain", "latest:1"]).exits(0).stdout;
    assert!(own.contains("✔ rule     allow, which decides · fs.read policy.yaml:5:3"), "{own}");
    let line = ["policy", "explain", "latest:1", "--policy", "builtin:base"];
    let other = capsule.run(&line).exits(0).stdout;
    assert!(other.contains("✖ rule     deny, which decides · no rule · the policy"), "{other}");
}
