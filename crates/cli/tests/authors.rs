//! What authors of policies are given: a policy as it decides, two policies compared.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::fs;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

const POLICY: &str = r#"version: 1
name: docs
never:
  - id: no-drafts
    capabilities: [fs.read]
    paths: ["drafts/**"]
    except: ["drafts/open/**"]
    because: Not ready.
lift:
  - { id: no-network-programs, because: This machine has a proxy. }
tools:
  fs.read: { decision: allow, paths: { allow: ["**"], deny: ["out/**"] } }
  fs.write:
    paths: ["docs/**"]
    rules:
      - { id: gen, paths: ["docs/gen/**"], decision: allow, because: Made anew. }
  http.get:
    urls:
      allow: [{ id: issues, url: "https://api.example.org/**", decision: allow }]
      deny: [{ id: secret, url: "https://api.example.org/secret/**", because: Not for us. }]
  shell.run:
    executables:
      git:
        subcommands:
          log: allow
          stash: { decision: allow, subcommands: { pop: deny } }
          "*": { decision: deny, because: Only looking. }
      cat: allow
    denied_tokens: [--privileged]
sandbox: { require: true }
"#;

fn resolved(capsule: &Capsule, policy: &str) -> Value {
    capsule.run(&["policy", "show", "--resolved", "--json", "--policy", policy]).exits(0).json()
}

fn rule<'v>(shown: &'v Value, section: &str, name: &str) -> &'v Value {
    let rules = shown["rules"].as_array().unwrap();
    let own = rules.iter().find(|own| own["section"] == section && own["rule"] == name);
    own.unwrap_or_else(|| panic!("{section} {name}: {shown}"))
}

fn says(rule: &Value, name: &str) -> Value {
    let says = rule["says"].as_array().unwrap();
    says.iter().find(|own| own["name"] == name).map_or(Value::Null, |own| own["values"].clone())
}

/// Every rule that holds is shown with its place, those of the base policy and those of the machine
/// among them.
#[test]
fn a_policy_is_shown_as_it_decides() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let shown = resolved(&capsule, &policy);
    let file = shown["file"].as_str().unwrap().to_owned();
    for (section, name, word, line) in [
        ("never", "no-drafts", json!("deny"), 4),
        ("lift", "no-network-programs", Value::Null, 10),
        ("tools", "fs.read", json!("allow"), 12),
        ("tools", "fs.write", Value::Null, 13),
        ("tools", "fs.write/gen", json!("allow"), 16),
        ("tools", "http.get/issues", json!("allow"), 19),
        ("tools", "http.get/secret", json!("deny"), 20),
        ("tools", "shell.run/git.log", json!("allow"), 25),
        ("tools", "shell.run/git.stash.pop", json!("deny"), 26),
        ("tools", "shell.run/git.*", json!("deny"), 27),
        ("tools", "shell.run/cat", json!("allow"), 28),
        ("sandbox", "sandbox", Value::Null, 30),
    ] {
        let own = rule(&shown, section, name);
        assert_eq!(own["decision"], word, "{own}");
        let at = own["at"].as_str().unwrap();
        assert!(at.starts_with(&format!("{file}:{line}:")), "{section} {name}: {at}");
    }
    let drafts = rule(&shown, "never", "no-drafts");
    assert_eq!(says(drafts, "paths"), json!(["drafts/**"]));
    assert_eq!(says(drafts, "except"), json!(["drafts/open/**"]));
    assert_eq!(says(drafts, "because"), json!(["Not ready."]));
    assert_eq!(says(rule(&shown, "tools", "fs.read"), "not"), json!(["out/**"]));
    let credentials = rule(&shown, "never", "no-credentials")["at"].as_str().unwrap().to_owned();
    assert!(credentials.starts_with("builtin:base:"), "{credentials}");
    let own = says(rule(&shown, "never", "no-own-files"), "paths").to_string();
    assert!(own.contains("store.db"), "{own}");
    // A rule that is dropped does not hold.
    let denials = shown["rules"].as_array().unwrap().iter().filter(|own| own["section"] == "deny");
    assert!(denials.into_iter().all(|own| own["rule"] != "no-network-programs"));
    let audit = rule(&shown, "audit", "audit");
    assert_eq!((&audit["at"], says(audit, "payloads")), (&Value::Null, json!(["full"])));
    let signed = json!(["every 64 events", "approval", "denial", "run-end"]);
    assert_eq!(says(audit, "checkpoint"), signed);
    let text = capsule.run(&["policy", "show", "--resolved", "--policy", &policy]).exits(0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80 + 40), "{text}");
    for line in
        ["  shell.run/git.log allow  ", "    denied_tokens --privileged", "  fs.write (by the"]
    {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}

/// What a policy extends is shown in its place.
#[test]
fn what_is_inherited_is_shown_where_it_stands() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\nname: e\nextends: builtin:developer\nprofile: mine\nprofiles:\n  mine: { decide: { fs.read: ask }, unattended: fail, requires: { sandbox: enforced } }\nbudgets: { run: { calls: 7 }, loops: { same_call: 3 } }\nrisk: { block_at: none }\ncapabilities: { fs.read: { label: look } }\n",
    );
    let shown = resolved(&capsule, &policy);
    let at = |section: &str, name: &str| rule(&shown, section, name)["at"].clone();
    let inherited = at("sandbox", "sandbox");
    assert!(inherited.as_str().unwrap().starts_with("builtin:developer:"), "{inherited}");
    for (section, name, line) in
        [("profile", "mine", 6), ("budgets", "budgets", 7), ("risk", "risk", 8)]
    {
        let own = at(section, name);
        assert!(
            own.as_str().unwrap().contains(&format!("policy.yaml:{line}:")),
            "{section}: {own}"
        );
    }
    let profile = rule(&shown, "profile", "mine");
    assert_eq!(says(profile, "unattended"), json!(["fail"]));
    assert_eq!(says(profile, "requires"), json!(["sandbox enforced"]));
    let words = says(profile, "decide").to_string();
    assert!(words.contains("fs.read ask") && words.contains("proc.exec deny"), "{words}");
    assert_eq!(says(rule(&shown, "budgets", "budgets"), "run"), json!(["7 calls"]));
    let risk = rule(&shown, "risk", "risk");
    assert_eq!(says(risk, "block_at"), json!(["none"]));
    assert_eq!(says(risk, "labels"), json!(["fs.read: look"]));
}

/// Whatever decides can be found in what is shown.
#[test]
fn each_rule_that_decides_is_shown() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for policy in [policy.as_str(), "builtin:developer", "builtin:assistant", "builtin:readonly"] {
        let shown = resolved(&capsule, policy);
        let rules = shown["rules"].as_array().unwrap();
        let argv = |line: &str| json!({ "argv": line.split(' ').collect::<Vec<_>>() });
        let mut found = 0;
        for (tool, args) in [
            ("fs.read", json!({ "path": "a.md" })),
            ("fs.read", json!({ "path": ".env" })),
            ("fs.read", json!({ "path": "drafts/a" })),
            ("fs.write", json!({ "path": "docs/gen/x", "content": "x" })),
            ("http.get", json!({ "url": "https://api.example.org/secret/x" })),
            ("shell.run", argv("git log")),
            ("shell.run", argv("git stash pop")),
            ("shell.run", argv("git push")),
            ("shell.run", argv("sudo ls")),
            ("shell.run", argv("curl x")),
            ("shell.run", argv("cat a.md")),
        ] {
            let args = args.to_string();
            let line = ["policy", "explain", "--json", "--policy", policy, "--tool", tool];
            let line: Vec<&str> = line.into_iter().chain(["--args", &args]).collect();
            let decision = capsule.run(&line).exits(0).json();
            let Some(rule) = decision["rule"].as_str().filter(|own| !own.starts_with("profile/"))
            else {
                continue;
            };
            found += 1;
            // A subcommand that only `*` names goes by its own name.
            let wide = rule.rsplit_once('.').map(|(program, _)| format!("{program}.*"));
            let is = |own: &Value| own["rule"] == rule || own["rule"].as_str() == wide.as_deref();
            assert!(rules.iter().any(is), "{policy} {args}: {decision}");
        }
        assert!(found >= 4, "{policy}: {found}");
    }
}

/// Without `--resolved` the text is shown, and reads as the same policy.
#[test]
fn a_policy_is_shown_as_written() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let shown = capsule.run(&["policy", "show", "--policy", &policy]).exits(0).stdout;
    let (head, text) = shown.split_once('\n').unwrap();
    assert!(head.starts_with("# ") && head.contains("sha256"), "{head}");
    assert_eq!(text.trim_end(), POLICY.trim_end());
    let json = capsule.run(&["policy", "show", "--json", "--policy", &policy]).exits(0).json();
    assert_eq!(json["text"], POLICY);
    assert!(head.contains(json["sha256"].as_str().unwrap()), "{head} {json}");
    let base = capsule.run(&["policy", "show", "--policy", "builtin:base"]).exits(0).stdout;
    assert!(base.contains("no-credentials"), "{base}");
    let missing = capsule.run(&["policy", "show"]).exits(2).stderr;
    assert!(missing.contains("no policy is named"), "{missing}");
}

fn other(capsule: &Capsule, changes: &[(&str, &str)]) -> String {
    let mut text = String::from(POLICY);
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let path = capsule.directory().join("other.yaml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn diff(capsule: &Capsule, a: &str, b: &str, more: &[&str]) -> Value {
    let line: Vec<&str> = ["policy", "diff", "--json", a, b].iter().chain(more).copied().collect();
    capsule.run(&line).exits(0).json()
}

#[test]
fn rules_that_differ_are_told_and_moved_ones_are_not() {
    let capsule = capsule();
    let a = capsule.write_policy(POLICY);
    let moved = other(&capsule, &[("name: docs\n", "# A comment.\nname: docs\n\n")]);
    let quiet = diff(&capsule, &a, &moved, &[]);
    assert_eq!(quiet["rules"], json!({ "added": [], "removed": [], "changed": [] }));
    let b = other(
        &capsule,
        &[
            ("log: allow", "log: ask\n          show: allow"),
            ("      cat: allow\n", ""),
            ("paths: [\"docs/**\"]", "paths: [\"docs/**\", \"notes/**\"]"),
        ],
    );
    let changes = diff(&capsule, &a, &b, &[]);
    let names = |part: &str, inner: &str| -> Vec<String> {
        let rules = changes["rules"][part].as_array().unwrap().iter();
        let own = |own: &Value| if inner.is_empty() { own.clone() } else { own[inner].clone() };
        rules.map(|rule| own(rule)["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("added", ""), ["shell.run/git.show"]);
    assert_eq!(names("removed", ""), ["shell.run/cat"]);
    assert_eq!(names("changed", "after"), ["fs.write", "shell.run/git.log"]);
    let text = capsule.run(&["policy", "diff", &a, &b]).exits(0).stdout;
    for line in ["+ tools shell.run/git.show allow", "+ paths notes/**", "allow -> ask"] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(!text.contains("decisions"), "{text}");
}

#[test]
fn decisions_that_differ_are_told_for_calls_and_for_runs() {
    let capsule = capsule();
    capsule.write_file("a.md", "text");
    let a = capsule.write_policy(POLICY);
    let b =
        other(&capsule, &[("log: allow", "log: deny"), ("deny: [\"out/**\"]", "deny: [\"a.md\"]")]);
    let calls = [
        json!({ "id": 1, "tool": "shell.run", "args": { "argv": ["git", "log"] } }),
        json!({ "id": 2, "tool": "shell.run", "args": { "argv": ["git", "push"] } }),
        json!({ "id": "three", "tool": "fs.read", "args": { "path": "out/x" } }),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    capsule.write_file("calls.jsonl", &lines);
    let batch = diff(&capsule, &a, &b, &["--batch", "calls.jsonl"]);
    assert_eq!(batch["calls"], 3);
    let ids: Vec<&Value> =
        batch["differences"].as_array().unwrap().iter().map(|own| &own["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!("three")], "{batch}");
    assert_eq!(batch["differences"][0]["after"]["decision"], "deny");
    // A line that is no call is told, and the rest is compared nevertheless.
    let line = ["policy", "diff", &a, &b, "--json", "--batch", "-"];
    let wrong = capsule.run_with(&line, &format!("nonsense\n{lines}")).exits(2);
    assert_eq!(wrong.json()["left_out"], 1);
    assert_eq!(wrong.json()["calls"], 3);
    assert!(wrong.stderr.contains("line 1"), "{}", wrong.stderr);

    let call = ["call", "fs.read", "--policy", &a, "--", "path=a.md"];
    let _ = capsule.run(&call).exits(0);
    let runs = diff(&capsule, &a, &b, &["--runs", "latest"]);
    let own = &runs["differences"][0];
    assert_eq!(
        (&own["before"]["decision"], &own["after"]["decision"]),
        (&json!("allow"), &json!("deny"))
    );
    assert!(own["id"].as_str().unwrap().ends_with(":1"), "{own}");
    let text = capsule.run(&["policy", "diff", &a, &b, "--runs", "latest"]).exits(0).stdout;
    assert!(text.contains("1 of 1 calls differ"), "{text}");
}

/// A profile that is chosen is shown and compared in place of the policy's own.
#[test]
fn a_profile_can_be_chosen() {
    let capsule = capsule();
    let a = capsule.write_policy("version: 1\nname: a\ntools: { fs.read: {}, fs.write: {} }\n");
    let b = capsule.directory().join("b.yaml");
    fs::write(&b, "version: 1\nname: b\ntools: { fs.read: {}, fs.write: { decision: allow } }\n")
        .unwrap();
    let b = b.to_str().unwrap();
    let show = ["policy", "show", "--resolved", "--json", "--policy", &a];
    let own = capsule.run(&show).exits(0).json();
    let chosen = capsule.run(&[&show[..], &["--profile", "readonly"]].concat()).exits(0).json();
    assert_eq!((&own["profile"], &chosen["profile"]), (&json!("supervised"), &json!("readonly")));
    let words = says(rule(&chosen, "profile", "readonly"), "decide").to_string();
    assert!(words.contains("fs.write deny"), "{words}");
    let _ = capsule.run(&["policy", "show", "--policy", &a, "--profile", "readonly"]).exits(2);
    let wrong = [&show[..], &["--profile", "nobody"]].concat();
    assert!(capsule.run(&wrong).exits(2).stderr.contains("has no profile `nobody`"));

    capsule.write_file(
        "calls.jsonl",
        r#"{"id": 1, "tool": "fs.write", "args": {"path": "x", "content": ""}}"#,
    );
    let batch = ["--batch", "calls.jsonl"];
    let differ = |more: &[&str]| {
        let differences = diff(&capsule, &a, b, &[&batch[..], more].concat());
        differences["differences"].as_array().unwrap().len()
    };
    assert_eq!((differ(&[]), differ(&["--profile", "readonly"])), (1, 0));
}

/// What the last runs under a policy did not need is noted, where there were enough of them. What
/// denies is there to be never needed.
#[test]
fn what_the_last_runs_did_not_need_is_noted() {
    let capsule = capsule();
    capsule.write_file("a.md", "text");
    let text = "version: 1
name: quiet
never: [{ id: no-src, capabilities: [fs.read], paths: [\"src/**\"], because: Not ours. }]
tools:
  fs.read: allow
  fs.list: allow
  http.get: { domains: [docs.example.org] }
  shell.run:
    denied_tokens: [--privileged]
    executables:
      cat: allow
      git: { subcommands: { log: allow, push: { decision: deny, because: No. } } }
";
    let policy = capsule.write_policy(text);
    let notes = || {
        let ran = capsule.run(&["policy", "check", "--json", "--policy", &policy]).exits(0).json();
        let problems = ran["problems"].as_array().unwrap().clone();
        let ours = problems
            .into_iter()
            .filter(|own| own["message"].to_string().contains("opens something"));
        let named = |own: Value| {
            assert_eq!(
                (&own["code"], &own["severity"]),
                (&json!("policy.lint"), &json!("warning"))
            );
            format!("{}: {}", own["line"], own["message"].as_str().unwrap())
        };
        ours.map(named).collect::<Vec<_>>()
    };
    for number in 0..5 {
        assert_eq!(notes(), Vec::<String>::new(), "{number}");
        let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--", "path=a.md"]).exits(0);
    }
    // What was never understood, or denied, needed nothing.
    let _ = capsule.run(&["call", "shell.run", "--policy", &policy, "--", "git", "push"]).exits(3);
    let told = "opens something that the 6 calls of the last 6 runs did not need";
    let said = |line: u32, rule: &str| format!("{line}: `{rule}` {told}");
    assert_eq!(notes(), [said(6, "fs.list"), said(7, "http.get"), said(8, "shell.run")]);
    let _ = capsule.run(&["call", "shell.run", "--policy", &policy, "--", "cat", "a.md"]).exits(0);
    let told = "opens something that the 7 calls of the last 7 runs did not need";
    let said = |line: u32, rule: &str| format!("{line}: `{rule}` {told}");
    let expected = [said(6, "fs.list"), said(7, "http.get"), said(12, "shell.run/git")];
    assert_eq!(notes(), expected);
    // Another policy's runs say nothing about this one.
    let other = capsule.write_policy(&text.replace("quiet", "loud"));
    let ran = capsule.run(&["policy", "check", "--policy", &other]).exits(0);
    assert!(!ran.stderr.contains("opens something"), "{}", ran.stderr);
    // A store that is none is told and changes no exit status.
    fs::remove_dir_all(capsule.store().parent().unwrap()).unwrap();
    fs::create_dir(capsule.store().parent().unwrap()).unwrap();
    fs::write(capsule.store(), "none").unwrap();
    let ran = capsule.run(&["policy", "check", "--policy", &other]).exits(0);
    assert!(ran.stderr.contains("not looked at"), "{}", ran.stderr);
}
