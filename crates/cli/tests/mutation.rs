//! How much of a policy its examples and tests say anything about: rules that decide none of them,
//! and rules that can be others without one that notices.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::collections::BTreeSet;
use std::fs;

use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// A rule of every kind, and behind them, a line each, what notices when one of them is another.
const RULES: &str = r#"version: 1
name: whole
profile: careful
profiles:
  careful:
    decide: { fs.meta: allow, fs.read: allow, fs.write: ask, proc.exec: ask, net.egress: ask, "*": allow }
capabilities:
  fs.read: { risk: medium }
risk:
  escalate: [{ when: irreversible, to: high }]
  block_at: high
budgets: { run: { calls: 9, written: 30B }, loops: { same_call: 5 } }
never:
  - id: no-drafts
    capabilities: [fs.read, fs.write]
    paths: ["drafts/**", "*.draft"]
    except: ["drafts/open/**"]
    because: Not ready.
  - id: no-tool
    tool: shell.run
    argv: [[make, deploy], [make, release]]
    because: People do it.
lift:
  - { id: no-network-programs, because: There is none anyway. }
  - { id: no-machine-changes, because: It is a machine for that. }
tools:
  fs.read: { decision: allow, paths: { allow: ["src/**", "drafts/**", "*.draft"], deny: ["src/gen/**"], hidden: deny } }
  fs.write:
    paths: ["docs/**", "drafts/**", "*.draft"]
    limits: { bytes_max: 20B }
    rules:
      - { id: gen, paths: ["docs/gen/**"], decision: allow, because: Made anew. }
  fs.search: allow
  git.log: {}
  http.get:
    domains: [docs.example.org]
    private_ips: { allow: [10.0.0.0/8] }
    urls:
      allow:
        - { id: issues, url: "https://api.example.org/**", decision: allow }
        - "https://plain.example.org/**"
      deny:
        - "https://api.example.org/secret/**"
  shell.run:
    form: command
    env: { accept: [CI] }
    effects: { reads: allow, network: ask, system: deny }
    denied_tokens: [--privileged, { regex: "nc|ncat" }]
    executables:
      git:
        global_flags: { deny: [--bare] }
        subcommands:
          log: { decision: allow, flags: { deny: [--author] } }
          commit: { decision: ask, flags: { allow: [-m] } }
          stash: { subcommands: { list: allow, "*": { decision: deny, because: Only looking. } } }
          "*": { decision: deny, because: Only looking. }
      mytool: { decision: allow, writes: ["out/**"] }
      othertool: {}
      reboot: { decision: allow }
sandbox: { level: strict }
"#;

/// What is said of the decisions: tool, arguments, what is expected, and the slip that nothing else
/// notices.
const TESTS: &[(&str, &str, &str, &str)] = &[
    (
        "fs.read",
        "{ path: src/a }",
        "decision: allow, rule: fs.read, risk: medium",
        "capabilities.fs.read: `risk` is left out",
    ),
    ("fs.read", "{ path: README }", "code: path.not-allowed", "fs.read: `paths` become `**`"),
    (
        "fs.read",
        "{ path: src/gen/a }",
        "code: path.not-allowed",
        "`src/gen/**` is left out of `deny`",
    ),
    (
        "fs.read",
        "{ path: src/.a }",
        "code: path.hidden",
        "fs.read: `hidden`: `deny` becomes `allow`",
    ),
    ("fs.read", "{ path: drafts/a }", "rule: no-drafts", "`drafts/**` is left out of `paths`"),
    (
        "fs.read",
        "{ path: drafts/open/a }",
        "decision: allow",
        "`drafts/open/**` is left out of `except`",
    ),
    (
        "fs.write",
        "{ path: a.draft, content: x }",
        "rule: no-drafts",
        "`fs.write` is left out of `capabilities`",
    ),
    (
        "fs.write",
        "{ path: docs/a, content: x }",
        "decision: ask, rule: profile/careful",
        "fs.write/gen: `paths` become `**`",
    ),
    (
        "fs.write",
        "{ path: README, content: x }",
        "code: path.not-allowed",
        "fs.write: `paths` become `**`",
    ),
    (
        "fs.write",
        "{ path: docs/a, content: twenty-two-characters- }",
        "code: path.not-allowed",
        "`bytes_max` is left out",
    ),
    (
        "fs.write",
        "{ path: docs/a, content: thirty-one-characters-make-this }",
        "code: budget.written",
        "budgets: `written` is left out",
    ),
    (
        "fs.write",
        "{ path: docs/gen/a, content: x }",
        "decision: allow, rule: fs.write/gen",
        "fs.write/gen: `allow` becomes `deny`",
    ),
    ("fs.search", "{}", "decision: allow", "`fs.meta`: `allow` becomes `deny`"),
    ("git.log", "{}", "decision: ask, rule: profile/careful", "git.log: the rule is left out"),
    (
        "http.get",
        "{ url: \"https://docs.example.org/a\" }",
        "decision: ask",
        "http.get/docs.example.org: the rule is left out",
    ),
    (
        "http.get",
        "{ url: \"https://api.example.org/secret/a\" }",
        "decision: deny",
        "http.get/url-1: the rule is left out",
    ),
    (
        "http.get",
        "{ url: \"https://plain.example.org/a\" }",
        "decision: ask",
        "http.get/url-3: the rule is left out",
    ),
    (
        "http.get",
        "{ url: \"https://api.example.org/b\" }, resolves: [10.0.0.1]",
        "decision: allow",
        "`10.0.0.0/8` is left out of `allow`",
    ),
    ("shell.run", "{ command: CI=1 ls }", "decision: allow", "`accept` is emptied"),
    (
        "shell.run",
        "{ argv: [curl, \"https://example.org\"] }",
        "decision: ask",
        "lift no-network-programs: the rule is left out",
    ),
    (
        "shell.run",
        "{ argv: [halt] }",
        "rule: shell.run/effects.system",
        "effects.system: `deny` becomes `allow`",
    ),
    ("shell.run", "{ argv: [reboot] }", "code: risk.blocked", "`block_at`: `high` becomes `none`"),
    (
        "shell.run",
        "{ argv: [ls, --privileged] }",
        "code: exec.token-denied",
        "denied_tokens --privileged: the word is left out",
    ),
    (
        "shell.run",
        "{ argv: [ls, ncat] }",
        "code: exec.token-denied",
        "denied_tokens nc|ncat: the word is left out",
    ),
    (
        "shell.run",
        "{ argv: [make, deploy] }",
        "rule: no-tool",
        "`make deploy` is left out of `argv`",
    ),
    (
        "shell.run",
        "{ argv: [make, release] }",
        "rule: no-tool",
        "`make release` is left out of `argv`",
    ),
    (
        "shell.run",
        "{ argv: [git, --bare, log] }",
        "decision: deny",
        "global_flags.deny --bare: `deny` is emptied",
    ),
    (
        "shell.run",
        "{ argv: [git, log] }",
        "decision: allow, capabilities: [proc.exec]",
        "sandbox: `strict` becomes `workspace-write`",
    ),
    (
        "shell.run",
        "{ argv: [git, log, --author, a] }",
        "decision: deny",
        "flags.deny --author: `deny` is emptied",
    ),
    (
        "shell.run",
        "{ argv: [git, commit, -m, a] }",
        "decision: ask",
        "git.commit: `ask` becomes `allow`",
    ),
    (
        "shell.run",
        "{ argv: [git, commit, --amend] }",
        "code: exec.flag-denied",
        "git.commit flags.allow: the list is left out",
    ),
    (
        "shell.run",
        "{ argv: [git, stash, list] }",
        "decision: allow",
        "git.stash: the rule is left out",
    ),
    (
        "shell.run",
        "{ argv: [git, stash, pop] }",
        "decision: deny",
        "git.stash *: `deny` becomes `allow`",
    ),
    ("shell.run", "{ argv: [git, add, a] }", "decision: deny", "git.*: `deny` becomes `allow`"),
    (
        "shell.run",
        "{ argv: [mytool] }",
        "decision: allow, capabilities: [fs.write, fs.delete, proc.exec]",
        "mytool: `writes` is emptied",
    ),
    (
        "shell.run",
        "{ argv: [othertool] }",
        "decision: deny, rule: shell.run/othertool/effects.unknown",
        "othertool: the rule is left out",
    ),
];

fn with_tests<'t>(
    tests: impl IntoIterator<Item = &'t (&'t str, &'t str, &'t str, &'t str)>,
) -> String {
    let mut text = format!("{RULES}tests:\n");
    for (tool, args, expect, slip) in tests {
        text.push_str(&format!(
            "  - {{ name: '{slip}', call: {{ tool: {tool}, args: {args} }}, expect: {{ {expect} }} }}\n"
        ));
    }
    text
}

fn mutate(capsule: &Capsule, policy: &str, status: i32) -> Value {
    let line = ["policy", "test", "--mutate", "--json", "--policy", policy];
    capsule.run(&line).exits(status).json()["mutation"].clone()
}

fn survivors(mutation: &Value) -> BTreeSet<String> {
    let rows = mutation["rows"].as_array().unwrap().iter();
    let survived = rows.filter(|row| row["fate"] == "survived");
    let named = |row: &Value| format!("{}: {}", row["rule"], row["change"]).replace('"', "");
    survived.map(named).collect()
}

/// Every slip is tried, and each of the tests is there for one of them.
#[test]
fn a_slip_is_noticed_by_the_test_that_is_there_for_it() {
    let capsule = capsule();
    let policy = capsule.write_policy(&with_tests(TESTS));
    let mutation = mutate(&capsule, &policy, 0);
    assert_eq!(survivors(&mutation), BTreeSet::new());
    let fates = mutation["rows"].as_array().unwrap().iter().map(|row| &row["fate"]);
    assert!(fates.clone().all(|fate| fate == "noticed"), "{mutation}");
    assert_eq!(mutation["mutants"], fates.count());
    let _ = run_in_parallel(TESTS.iter().enumerate(), |(index, (.., slip))| {
        let capsule = self::capsule();
        let others = TESTS.iter().enumerate().filter(|(other, _)| *other != index);
        let policy = capsule.write_policy(&with_tests(others.map(|(_, test)| test)));
        let survived = survivors(&mutate(&capsule, &policy, 2));
        assert!(survived.iter().any(|own| own.contains(slip)), "{slip}: {survived:?}");
    });
}

/// What is shipped says of every rule what it decides.
#[test]
fn shipped_policies_notice_every_slip() {
    let capsule = capsule();
    let _ = capsule.run(&["init"]).exits(0);
    let starter = ".capsule/policy.yaml";
    for policy in ["builtin:readonly", "builtin:assistant", "builtin:developer", starter] {
        let mutation = mutate(&capsule, policy, 0);
        assert_eq!(survivors(&mutation), BTreeSet::new(), "{policy}");
        assert!(mutation["mutants"].as_u64().unwrap() > 10, "{policy}: {mutation}");
    }
    // The base policy by itself names no tool: of what flows from one program into another, the first
    // is denied already, since no rule names it. What this machine's programs obey is found on this machine,
    // and no call of a test spells it; `every_listed_file_is_protected` has it.
    let base = survivors(&mutate(&capsule, "builtin:base", 2));
    let elsewhere = ["no-remote-code: ", "no-host-configuration: "];
    let shown = |own: &String| elsewhere.iter().any(|rule| own.starts_with(rule));
    assert!(base.iter().all(shown), "{base:?}");
}

/// What survived is named with its rule, its place and its words; nothing is tried where the
/// policy's own tests fail, and no file is written.
#[test]
fn survivors_are_told() {
    let capsule = capsule();
    let text = "version: 1\nname: p\ntools:\n  fs.read: allow\n  fs.search: allow\n";
    let tests = |expect: &str| {
        format!(
            "{text}tests:\n  - {{ name: t, call: {{ tool: fs.read, args: {{ path: a }} }}, expect: {{ {expect} }} }}\n"
        )
    };
    let policy = capsule.write_policy(&tests("decision: allow"));
    let before = (files(&capsule), fs::read(&policy).unwrap());
    let run = ["policy", "test", "--mutate", "--policy", &policy];
    let told = capsule.run(&run).exits(2).stdout;
    for line in [
        "survived fs.search: `allow` becomes `deny`  policy.yaml:5:14\n",
        "1 of 2 were noticed",
        "policy.mutant-survived",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let json = capsule.run(&["policy", "test", "--mutate", "--json", "--policy", &policy]);
    let json = json.exits(2).json();
    assert_eq!((&json["ok"], &json["failed"]), (&json!(false), &json!(0)));
    let survivor = &json["mutation"]["rows"][1];
    assert_eq!(survivor["code"], "policy.mutant-survived", "{survivor}");
    assert_eq!(survivor["at"], "policy.yaml:5:14");
    assert_eq!((files(&capsule), fs::read(&policy).unwrap()), before);

    let policy = capsule.write_policy(&tests("decision: deny"));
    let told = capsule.run(&["policy", "test", "--mutate", "--policy", &policy]).exits(2).stdout;
    assert!(told.contains("not tried until") && !told.contains("survived"), "{told}");
}

fn files(capsule: &Capsule) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![capsule.directory().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            names.push(entry.path().to_string_lossy().into_owned());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    names.sort();
    names
}

/// What another policy hands on is not this author's, and a profile that is chosen holds.
#[test]
fn only_the_own_text_is_changed() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1
name: over
extends: builtin:readonly
never: [{ id: no-src, capabilities: [fs.read], paths: [\"src/**\"], because: Not ours. }]
tests:
  - { name: t, call: { tool: fs.read, args: { path: src/a } }, expect: { rule: no-src } }
  - { name: u, call: { tool: fs.read, args: { path: a } }, expect: { decision: allow } }
",
    );
    let mutation = mutate(&capsule, &policy, 0);
    assert_eq!(mutation["mutants"], 1, "{mutation}");
    let line = ["policy", "test", "--coverage", "--json", "--policy", &policy];
    let coverage = capsule.run(&line).exits(0).json()["coverage"].clone();
    assert_eq!((&coverage["rules"], &coverage["decided"]), (&json!(1), &json!(1)), "{coverage}");
    let policy = capsule.write_policy(
        "version: 1
name: p
tools: { fs.write: { } }
tests: [{ name: t, call: { tool: fs.write, args: { path: a, content: x } }, expect: { decision: ask } }]
",
    );
    assert_eq!(mutate(&capsule, &policy, 0)["mutants"], 1);
    // Under this one the test itself fails, so that there is nothing to try.
    let chosen = ["policy", "test", "--mutate", "--json", "--profile", "readonly", "--policy"];
    let chosen: Vec<&str> = chosen.into_iter().chain([policy.as_str()]).collect();
    assert_eq!(capsule.run(&chosen).exits(2).json()["mutation"], Value::Null);
}

/// More than can be tried is refused, and none is tried.
#[test]
fn work_is_bounded() {
    let capsule = capsule();
    let paths: Vec<String> = (0..2_001).map(|number| format!("\"a{number}\"")).collect();
    let policy = capsule.write_policy(&format!(
        "version: 1\nname: p\nnever:\n  - {{ id: a, because: b, capabilities: [fs.read], paths: [{}] }}\n",
        paths.join(", ")
    ));
    let ran = capsule.run(&["policy", "test", "--mutate", "--policy", &policy]).exits(2);
    assert!(ran.stderr.contains("can be changed in 2002 ways"), "{}", ran.stderr);
}

/// Each rule is listed with its place and how many of the examples and tests it decides; whether all
/// of them do changes no exit status.
#[test]
fn rules_that_decide_are_told() {
    let capsule = capsule();
    let policy = capsule.write_policy(&with_tests(TESTS));
    let line = ["policy", "test", "--coverage", "--json", "--policy", &policy];
    let coverage = capsule.run(&line).exits(0).json()["coverage"].clone();
    let rows = coverage["rows"].as_array().unwrap();
    let row = |rule: &str| {
        rows.iter().find(|row| row["rule"] == rule).unwrap_or_else(|| panic!("{rule}: {coverage}"))
    };
    for (rule, at, by) in [
        ("no-drafts", "14:9", json!(2)),
        ("lift no-network-programs", "24:11", json!(1)),
        ("fs.read", "27:3", json!(5)),
        ("fs.write/gen", "32:15", json!(1)),
        ("http.get/docs.example.org", "36:15", json!(1)),
        ("http.get/url-1", "43:11", json!(1)),
        ("shell.run/effects.system", "47:44", json!(1)),
        ("shell.run denied_tokens nc|ncat", "48:35", json!(1)),
        ("shell.run/git global_flags.deny --bare", "51:32", json!(1)),
        ("shell.run/git.commit flags.allow", "54:43", json!(1)),
        ("shell.run/git.stash *", "55:48", json!(1)),
        ("shell.run/othertool", "58:7", json!(1)),
        ("shell.run/reboot", "59:7", json!(0)),
        ("profile/careful", "5:3", json!(4)),
        ("risk", "11:13", json!(1)),
        ("budgets", "12:10", Value::Null),
    ] {
        let own = row(rule);
        assert_eq!(own["by"], by, "{own}");
        assert_eq!(own["at"], format!("policy.yaml:{at}"), "{own}");
    }
    let decided = rows.iter().filter(|row| row["decided"] == true).count();
    assert_eq!(
        (&coverage["rules"], &coverage["decided"]),
        (&json!(rows.len() - 1), &json!(decided))
    );
    let bare = capsule.write_policy(RULES);
    let told = capsule.run(&["policy", "test", "--coverage", "--policy", &bare]).exits(0).stdout;
    assert!(told.contains("rules      0 of"), "{told}");
    assert!(told.contains("- no-drafts  policy.yaml:14:9  decides none"), "{told}");
    assert!(told.contains("· budgets  policy.yaml:12:10  hangs on"), "{told}");
}
