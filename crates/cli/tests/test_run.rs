//! `test.run`: the project's own test command.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("tests/one", "alpha\nbeta\n");
    capsule
}

fn call(capsule: &Capsule, policy: &str, args: &Value) -> Value {
    capsule.run(&["call", "test.run", "--policy", policy, "--args", &args.to_string()]).json()
}

fn policy(capsule: &Capsule, rule: &str) -> String {
    capsule.write_policy(&format!("version: 1\ntools:\n  test.run: {rule}\n"))
}

/// APR-8: the command is the policy's, and a call picks tests only where and how the policy lets it.
#[test]
fn the_policy_names_the_command_and_where_the_filter_stands() {
    let capsule = capsule();
    let own = policy(&capsule, "{ decision: allow, command: [cat, one], cwd: tests }");
    let answer = call(&capsule, &own, &json!({}));
    assert_eq!(answer["result"]["stdout"], "alpha\nbeta\n", "{answer}");
    assert_eq!(answer["result"]["command"], json!(["cat", "one"]));
    let refused = call(&capsule, &own, &json!({ "filter": "alpha" }));
    assert_eq!(refused["code"], "test.filter-denied", "{refused}");
    assert!(refused.get("result").is_none(), "{refused}");
    let own = policy(
        &capsule,
        "{ decision: allow, command: [grep, -r], filter: { args: [-e] }, cwd: tests }",
    );
    let answer = call(&capsule, &own, &json!({ "filter": "beta" }));
    assert_eq!(answer["result"]["command"], json!(["grep", "-r", "-e", "beta"]), "{answer}");
    assert_eq!(answer["result"]["stdout"], "one:beta\n");
    let own = policy(&capsule, "{ decision: allow, command: [echo], filter: { append: true } }");
    let answer = call(&capsule, &own, &json!({ "filter": "a b; id $(id)" }));
    assert_eq!(answer["result"]["stdout"], "a b; id $(id)\n", "{answer}");
    // By the name that agents know it by.
    let line = ["call", "run_tests", "--policy", &own, "--", "filter=x"];
    assert_eq!(capsule.run(&line).exits(0).json()["result"]["stdout"], "x\n");
}

#[test]
fn a_filter_is_never_an_option() {
    let capsule = capsule();
    let own = policy(&capsule, "{ decision: allow, command: [echo], filter: { append: true } }");
    for filter in ["", "-n", "--help", "a\nb", "a\u{0}b", "a\u{9b}b", &"x".repeat(600)] {
        let answer = call(&capsule, &own, &json!({ "filter": filter }));
        assert_eq!(answer["code"], "args.invalid", "{filter:?}: {answer}");
    }
    for args in [json!({ "argv": ["id"] }), json!({ "command": "id" }), json!({ "cwd": "/" })] {
        assert_eq!(call(&capsule, &own, &args)["code"], "args.invalid", "{args}");
    }
}

/// Tests that fail are an error of the tool, with their output; so are those that do not end.
#[test]
fn what_comes_of_the_tests_is_told() {
    let capsule = capsule();
    let _ = capsule.write_program("check", "#!/bin/sh\necho one failed >&2\nexit 3\n");
    let own = policy(&capsule, "{ decision: allow, command: [sh, ./check] }");
    let answer = call(&capsule, &own, &json!({}));
    assert_eq!(answer["code"], "exec.exit-nonzero", "{answer}");
    assert_eq!(answer["result"]["exit_code"], 3);
    assert_eq!(answer["result"]["stderr"], "one failed\n");
    let own =
        policy(&capsule, "{ decision: allow, command: [sleep, 60], limits: { timeout: 300ms } }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "exec.timeout");
    let own = policy(&capsule, "{ decision: allow, command: [no-such-program] }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "exec.not-found");
    let own = policy(&capsule, "{ decision: allow, command: [cat], cwd: nowhere }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "fs.not-found");
    let own = policy(&capsule, "{ decision: allow, command: [cat], cwd: tests/one }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "path.invalid");
    let own = policy(&capsule, "{ decision: ask, command: [cat] }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "approval.needed");
    let own = policy(&capsule, "{ command: [cat] }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "approval.needed");
}

/// A31: hostile tests are held by the same walls, and see nothing that is protected.
#[test]
fn tests_are_confined_like_commands() {
    let capsule = capsule();
    capsule.write_file(".env", "TOKEN\n");
    let own = policy(&capsule, "{ decision: allow, command: [cp, tests/one, made] }");
    let answer = call(&capsule, &own, &json!({}));
    assert_eq!(answer["code"], "exec.exit-nonzero", "{answer}");
    assert!(!capsule.workspace().join("made").exists());
    let own = policy(&capsule, "{ decision: allow, command: [cat, .env] }");
    let answer = call(&capsule, &own, &json!({}));
    assert!(!answer.to_string().contains("TOKEN"), "{answer}");
    let staged = capsule.write_policy(
        "version: 1
tools:
  test.run: { decision: allow, command: [cp, tests/one, made] }
sandbox: { workspace: staged, level: workspace-write }
",
    );
    let answer = call(&capsule, &staged, &json!({}));
    assert_eq!(answer["result"]["changes"][0]["path"], "made", "{answer}");
    assert!(!capsule.workspace().join("made").exists());
    let protected = capsule.write_policy(
        "version: 1
tools:
  test.run: { decision: allow, command: [cp, tests/one, .envrc] }
sandbox: { workspace: staged, level: workspace-write }
",
    );
    assert_eq!(call(&capsule, &protected, &json!({}))["code"], "change.refused");
}

/// A program is named plainly, or by its place.
#[test]
fn a_program_may_be_named_by_its_place() {
    let capsule = capsule();
    let own = policy(&capsule, "{ decision: allow, command: [/usr/bin/env, echo, hi] }");
    let answer = call(&capsule, &own, &json!({}));
    assert_eq!(answer["result"]["stdout"], "hi\n", "{answer}");
    let own = policy(&capsule, "{ decision: allow, command: [/nowhere/check] }");
    assert_eq!(call(&capsule, &own, &json!({}))["code"], "exec.not-found");
}

#[test]
fn a_rule_that_is_wrong_is_refused_and_a_doubtful_one_noted() {
    let capsule = capsule();
    for (rule, code) in [
        ("allow", "policy.missing-key"),
        ("{ command: [] }", "policy.wrong-type"),
        ("{ command: [-x] }", "policy.wrong-type"),
        ("{ command: [./check] }", "policy.wrong-type"),
        ("{ command: [cat], cwd: .. }", "policy.unknown-value"),
        ("{ command: [cat], filter: { args: [] } }", "policy.unknown-value"),
        ("{ command: [cat], filter: {} }", "policy.missing-key"),
        ("{ command: [cat], filter: { append: true, args: [-k] } }", "policy.unknown-value"),
        ("{ command: [cat], env: { pass: [LD_PRELOAD] } }", "policy.env-dangerous"),
        ("{ command: [cat], paths: [\"**\"] }", "policy.unknown-key"),
        ("{ command: [cat], examples: { allow: [{ filtr: x }] } }", "policy.example-failed"),
    ] {
        let own = policy(&capsule, rule);
        let ran = capsule.run(&["policy", "check", "--policy", &own, "--json"]).exits(2);
        assert!((ran.stdout + &ran.stderr).contains(code), "{rule} wants {code}");
    }
    let own = policy(&capsule, "{ decision: allow, command: [bash, -c, x] }");
    let ran = capsule.run(&["policy", "check", "--policy", &own]).exits(0);
    assert!((ran.stdout + &ran.stderr).contains("run in a shell"));
}

/// CAP-10.
#[test]
fn a_test_run_replays_exactly() {
    let capsule = capsule();
    let own = policy(&capsule, "{ decision: allow, command: [cat], filter: { append: true } }");
    let plan = capsule.write_plan(
        "version: 1
steps:
  - { id: one, tool: test.run, args: { filter: tests/one } }
  - { id: two, tool: test.run, args: { filter: nothing }, on_error: continue }
",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &own]);
    fs::remove_dir_all(capsule.workspace().join("tests")).unwrap();
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}
