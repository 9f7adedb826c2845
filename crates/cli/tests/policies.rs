//! Policies as people write them: every problem at its place, every decision explained.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

const DEVELOPER: &str = r#"version: 1
name: developer
tools:
  fs.read: allow
  fs.write:
    paths: { allow: ["docs/**"], deny: ["docs/private/**"] }
    rules:
      - id: generated
        paths: ["docs/gen/**"]
        decision: allow
        because: Regenerated on every build.
      - id: frozen
        paths: ["docs/gen/frozen/**"]
        decision: deny
        because: Published already.
        suggest: Write a new version beside it.
  http.get:
    urls:
      allow:
        - { id: issues, url: "https://api.example.org/repos/acme/**", decision: allow }
        - { id: docs, url: "https://*.example.com" }
      deny:
        - { id: secret, url: "https://api.example.org/repos/acme/secret/**", because: Not for us. }
  shell.run:
    executables:
      git:
        global_flags: { deny: [-c, -C, --exec-path, --git-dir, --work-tree] }
        subcommands:
          status: { decision: allow }
          diff: { decision: allow, flags: { deny: [--ext-diff, --output] } }
          log: { decision: allow, flags: { deny: [--output] } }
          commit: { decision: ask, flags: { allow: [-m, --message, -a] } }
          "*": { decision: deny, suggest: "Allowed: status, diff, log, commit." }
      cat: { decision: allow }
      head: { decision: allow }
      tool:
        subcommands: { build: allow }
      rg: { decision: allow, flags: { deny: [--pre] } }
      bash: { decision: allow }
      curl: { decision: allow }
    denied_tokens: [sudo, --privileged, { regex: "nc|ncat" }]
  fs.edit:
    decision: allow
    paths: { allow: ["**"], deny: ["docs/private/**"] }
    rules:
      - { id: sources, paths: ["src/**"], decision: ask, because: Sources are looked at. }
  fs.delete: { paths: ["docs/**"], rules: [{ id: old, paths: ["docs/old/**"], decision: allow }] }
"#;

#[track_caller]
fn decide(capsule: &Capsule, policy: &str, tool: &str, args: &Value) -> Value {
    let args = args.to_string();
    let line = ["policy", "explain", "--policy", policy, "--json", "--tool", tool, "--args", &args];
    capsule.run(&line).exits(0).json()
}

/// CAP-3, FR-15, FR-19: one table of calls and what is decided on them.
#[test]
fn decisions_are_as_the_policy_says() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    let run = |line: &str| {
        let argv: Vec<&str> = line.split(' ').collect();
        ("shell.run", json!({ "argv": argv }))
    };
    let write = |path: &str| ("fs.write", json!({ "path": path, "content": "x" }));
    let edit = |path: &str| ("fs.edit", json!({ "path": path, "search": "a", "replace": "b" }));
    let delete = |path: &str| ("fs.delete", json!({ "path": path, "recursive": true }));
    let get = |url: &str| ("http.get", json!({ "url": url }));
    let rows = [
        (("fs.read", json!({ "path": "a.md" })), "allow", "policy.allowed", "fs.read"),
        (("file_read", json!({ "path": "a.md" })), "allow", "policy.allowed", "fs.read"),
        (("fs.read", json!({ "path": ".env" })), "deny", "policy.never", "no-credentials"),
        (("fs.list", json!({ "path": "." })), "deny", "policy.no-rule", ""),
        (("fs.raed", json!({ "path": "x" })), "deny", "tool.unknown", ""),
        (("FS.READ", json!({ "path": "x" })), "deny", "tool.unknown", ""),
        (("fs_read", json!({ "path": "x" })), "allow", "policy.allowed", "fs.read"),
        (write("docs/a.md"), "ask", "policy.asked", "profile/supervised"),
        (write("docs/gen/a.md"), "allow", "policy.allowed", "fs.write/generated"),
        (write("docs/gen/frozen/a"), "deny", "policy.denied", "fs.write/frozen"),
        (write("docs/private/a"), "deny", "path.not-allowed", "fs.write"),
        (write("src/a.rs"), "deny", "path.not-allowed", "fs.write"),
        (write(".git/hooks/x"), "deny", "policy.never", "no-git-control"),
        (write(".capsule/policy.yaml"), "deny", "policy.never", "no-self-modification"),
        (edit("a.md"), "allow", "policy.allowed", "fs.edit"),
        (edit("src/a.rs"), "ask", "policy.asked", "fs.edit/sources"),
        (edit("docs/private/a"), "deny", "path.not-allowed", "fs.edit"),
        (edit(".env"), "deny", "policy.never", "no-credentials"),
        (edit(".capsule/x"), "deny", "policy.never", "no-self-modification"),
        (edit(".hidden"), "deny", "path.hidden", "fs.edit"),
        (edit("../x"), "deny", "path.outside-workspace", ""),
        (
            ("fs.edit", json!({ "path": "a", "search": "", "replace": "x" })),
            "deny",
            "edit.empty",
            "",
        ),
        (
            ("fs.edit", json!({ "path": "a", "search": "x", "replace": "x" })),
            "deny",
            "edit.no-change",
            "",
        ),
        (delete("docs/a.md"), "ask", "policy.asked", "profile/supervised"),
        (delete("docs/old/a.md"), "allow", "policy.allowed", "fs.delete/old"),
        (delete("a.md"), "deny", "path.not-allowed", "fs.delete"),
        (delete("."), "deny", "path.not-allowed", ""),
        (delete("docs/.."), "deny", "path.not-allowed", ""),
        (delete(".git"), "deny", "policy.never", "no-git-redirection"),
        (delete("docs/.ssh"), "deny", "policy.never", "no-credentials"),
        (delete("/etc"), "deny", "path.outside-workspace", ""),
        (
            get("https://api.example.org/repos/acme/app"),
            "allow",
            "policy.allowed",
            "http.get/issues",
        ),
        (
            get("https://api.example.org/repos/acme/secret/x"),
            "deny",
            "policy.denied",
            "http.get/secret",
        ),
        (get("https://a.example.com/x"), "ask", "policy.asked", "profile/supervised"),
        (get("https://example.com/x"), "deny", "net.not-allowed", "http.get"),
        (get("http://api.example.org/repos/acme/x"), "deny", "net.not-allowed", "http.get"),
        (get("file:///etc/passwd"), "deny", "net.scheme", ""),
        (get("https://u:p@api.example.org/"), "deny", "net.userinfo", ""),
        (run("git status --short"), "allow", "policy.allowed", "shell.run/git.status"),
        (run("git log --oneline v1.2.0..HEAD"), "allow", "policy.allowed", "shell.run/git.log"),
        (run("git --no-pager log"), "allow", "policy.allowed", "shell.run/git.log"),
        (run("git commit -m wip"), "ask", "policy.asked", "shell.run/git.commit"),
        (run("git commit -mwip"), "ask", "policy.asked", "shell.run/git.commit"),
        (run("git commit --amend"), "deny", "exec.flag-denied", "shell.run/git.commit"),
        (run("git stash"), "deny", "policy.denied", "shell.run/git.stash"),
        (run("git"), "deny", "exec.subcommand-denied", "shell.run/git"),
        (run("git -c core.pager=sh log"), "deny", "exec.flag-denied", "shell.run/git"),
        (run("git --exec-path=/evil status"), "deny", "exec.flag-denied", "shell.run/git"),
        (run("git diff --ext-diff"), "deny", "exec.flag-denied", "shell.run/git.diff"),
        (run("git diff --ext-di"), "deny", "exec.flag-denied", "shell.run/git.diff"),
        (run("git diff --textconv"), "deny", "exec.flag-effect", "shell.run/git.diff"),
        (run("git log --output=x"), "deny", "exec.flag-denied", "shell.run/git.log"),
        (run("git diff --no-index /dev/null /etc/shadow"), "deny", "path.outside-workspace", ""),
        (run("git push origin main"), "deny", "policy.never", "no-publishing"),
        (run("git -c a=b push"), "deny", "policy.never", "no-publishing"),
        (run("git remote add x y"), "deny", "policy.never", "no-git-control"),
        (run("cat docs/a.md"), "allow", "policy.allowed", "shell.run/cat"),
        (run("cat /etc/shadow"), "deny", "path.outside-workspace", ""),
        (run("cat ../x"), "deny", "path.outside-workspace", ""),
        (run("cat ~/.ssh/id_rsa"), "deny", "path.outside-workspace", ""),
        (run("cat .env"), "deny", "policy.never", "no-credentials"),
        (run("cat -- .env"), "deny", "policy.never", "no-credentials"),
        (run("cat .hidden"), "deny", "path.hidden", "fs.read"),
        (run("cat /workspace/docs/a.md"), "allow", "policy.allowed", "shell.run/cat"),
        (run("head -n 5 /etc/passwd"), "deny", "path.outside-workspace", ""),
        (run("tool --opt build"), "deny", "exec.ambiguous", "shell.run/tool"),
        (run("tool build"), "allow", "policy.allowed", "shell.run/tool.build"),
        (run("tool launch"), "deny", "exec.subcommand-denied", "shell.run/tool"),
        (run("rg --pre sh x"), "deny", "exec.flag-denied", "shell.run/rg"),
        (run("rg --pre=sh x"), "deny", "exec.flag-denied", "shell.run/rg"),
        (run("rg --pr=sh x"), "deny", "exec.flag-denied", "shell.run/rg"),
        (run("bash -c id"), "deny", "policy.never", "no-shells"),
        (run("/bin/sh -c id"), "deny", "policy.never", "no-shells"),
        (run("env sh -c id"), "deny", "policy.never", "no-shells"),
        (run("timeout 5 bash"), "deny", "policy.never", "no-shells"),
        (run("sudo ls"), "deny", "policy.never", "no-privilege-escalation"),
        (run("env -i sudo ls"), "deny", "policy.never", "no-privilege-escalation"),
        (run("curl https://x"), "deny", "policy.base-denied", "no-network-programs"),
        (run("cat sudo"), "deny", "exec.token-denied", "shell.run"),
        (run("cat nc"), "deny", "exec.token-denied", "shell.run"),
        (run("cat ncx"), "allow", "policy.allowed", "shell.run/cat"),
        (run("ls"), "deny", "exec.not-allowed", "shell.run"),
        (run("./cat x"), "deny", "exec.not-allowed", "shell.run"),
        (run("/usr/bin/cat x"), "deny", "exec.not-allowed", "shell.run"),
        (run("CAT x"), "deny", "exec.not-allowed", "shell.run"),
        (("shell.run", json!({ "argv": [] })), "deny", "exec.argv-invalid", "shell.run"),
        (
            ("shell.run", json!({ "argv": ["cat", "a\u{0}b"] })),
            "deny",
            "exec.argv-invalid",
            "shell.run",
        ),
        (("shell.run", json!({ "argv": "cat x" })), "deny", "args.invalid", ""),
        (("shell.run", json!({ "command": "cat x" })), "deny", "exec.form-denied", "shell.run"),
        (
            ("shell.run", json!({ "argv": ["cat", "x"], "cwd": "../y" })),
            "deny",
            "path.outside-workspace",
            "",
        ),
    ];
    let mut wrong = Vec::new();
    for ((tool, args), decision, code, rule) in rows {
        let got = decide(&capsule, &policy, tool, &args);
        let expected =
            (json!(decision), json!(code), if rule.is_empty() { Value::Null } else { json!(rule) });
        if (got["decision"].clone(), got["code"].clone(), got["rule"].clone()) != expected {
            wrong.push(format!("{tool} {args}\n  wanted {expected:?}\n  got    {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

/// A decision is JSON in the order that the interface promises, with its place.
#[test]
fn a_decision_has_its_fields_in_order() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    let line = [
        "policy",
        "explain",
        "--policy",
        &policy,
        "--json",
        "--tool",
        "shell.run",
        "--",
        "git",
        "-c",
        "core.pager=sh",
        "log",
    ];
    let ran = capsule.run(&line).exits(0);
    let keys: Vec<&str> = ran
        .stdout
        .split('"')
        .filter(|part| {
            [
                "decision",
                "code",
                "rule",
                "at",
                "risk",
                "capabilities",
                "reason",
                "suggestion",
                "liftable",
            ]
            .contains(part)
        })
        .collect();
    assert_eq!(
        keys,
        [
            "decision",
            "code",
            "rule",
            "at",
            "risk",
            "capabilities",
            "reason",
            "suggestion",
            "liftable"
        ]
    );
    let decision = ran.json();
    assert_eq!(decision["at"], "policy.yaml:27:32");
    assert_eq!(decision["reason"], "the flag `-c` is denied for `git`");
    assert_eq!(decision["capabilities"], json!(["proc.exec"]));
}

/// FR-20: what only reads is low, what changes or leaves is medium.
#[test]
fn risk_goes_with_the_effect() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    for (tool, args, risk) in [
        ("fs.read", json!({ "path": "a" }), "low"),
        ("fs.write", json!({ "path": "docs/a", "content": "" }), "medium"),
        ("http.get", json!({ "url": "https://api.example.org/repos/acme/a" }), "medium"),
        ("shell.run", json!({ "argv": ["git", "log"] }), "low"),
        ("shell.run", json!({ "argv": ["git", "commit", "-m", "x"] }), "medium"),
        ("shell.run", json!({ "argv": ["tool", "build"] }), "medium"),
        ("shell.run", json!({ "argv": ["cat", "--unknown", "x"] }), "medium"),
    ] {
        assert_eq!(decide(&capsule, &policy, tool, &args)["risk"], risk, "{tool} {args}");
    }
}

/// A batch is decided line by line, in order.
#[test]
fn a_batch_is_decided_in_order() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    let batch = concat!(
        r#"{"id": 1, "tool": "fs.read", "args": {"path": "a"}}"#,
        "\n\n",
        r#"{"id": "two", "tool": "shell.run", "args": {"argv": ["sudo"]}}"#,
        "\n",
        r#"{"tool": "fs.read", "args": {"path": "/etc/passwd"}}"#,
        "\n",
    );
    let line = ["policy", "explain", "--policy", &policy, "--batch", "-"];
    let ran = capsule.run_with(&line, batch).exits(0);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["id"], &lines[0]["decision"]), (&json!(1), &json!("allow")));
    assert_eq!(
        (&lines[1]["id"], &lines[1]["rule"]),
        (&json!("two"), &json!("no-privilege-escalation"))
    );
    assert_eq!(lines[2]["code"], "path.outside-workspace");
    let bad = capsule.run_with(&line, "{\"tool\":\"a\",\"tool\":\"b\"}").exits(2);
    assert!(bad.stderr.contains("line 1"), "{}", bad.stderr);
}

/// CAP-9: asking again for a logged call gives the logged decision, byte for byte.
#[test]
fn a_logged_decision_is_explained_as_it_was_made() {
    let capsule = capsule();
    capsule.write_file("a.md", "x");
    let policy = capsule.write_policy(DEVELOPER);
    for (tool, args) in [
        ("fs.read", json!({ "path": "a.md" })),
        ("fs.read", json!({ "path": ".env" })),
        ("fs.write", json!({ "path": "docs/a", "content": "x" })),
        ("shell.run", json!({ "argv": ["git", "push"] })),
        ("fs.read", json!({ "pth": 1 })),
        ("nope", json!({})),
    ] {
        let args = args.to_string();
        let _ = capsule.run(&["call", tool, "--policy", &policy, "--args", &args]);
        let shown = capsule.run(&["show-run", "latest:1", "--json"]);
        if tool == "nope" {
            continue;
        }
        let logged = shown.exits(0).json()["decision"].clone();
        fs::write(capsule.directory().join("policy.yaml"), "version: 1\n").unwrap();
        let asked = capsule.run(&["policy", "explain", "latest:1", "--json"]).exits(0);
        assert_eq!(asked.json(), logged, "{tool} {args}");
        fs::write(capsule.directory().join("policy.yaml"), DEVELOPER).unwrap();
    }
}

/// CAP-12, F20: without a policy that can be read, everything is denied, and the reason is said.
#[test]
fn without_a_policy_nothing_goes() {
    let capsule = capsule();
    capsule.write_file("a.md", "x");
    let call = |policy: &str| {
        capsule.run(&["call", "fs.read", "--policy", policy, "--args", r#"{"path":"a.md"}"#])
    };
    let write = |text: &str| capsule.write_policy(text);
    let folder = capsule.directory().to_string_lossy().into_owned();
    for (policy, code) in [
        ("/nowhere/policy.yaml".to_owned(), "policy.missing"),
        (folder, "policy.unreadable"),
        (write(""), "policy.empty"),
    ] {
        let ran = call(&policy).exits(2);
        assert!(ran.stderr.contains(code), "{code}: {}", ran.stderr);
    }
    for (text, code) in [
        ("# nothing\n", "policy.empty"),
        ("name: x\n", "policy.unknown-version"),
        ("version: 2\n", "policy.unknown-version"),
        ("version: one\n", "policy.unknown-version"),
        ("version: 1\nversion: 1\n", "policy.duplicate-key"),
        ("version: 1\ndefault: allow\n", "policy.unknown-value"),
        ("version: 1\ntools: [fs.read]\n", "policy.wrong-type"),
        ("version: 1\naudit: { anchors: [git:refs/x] }\n", "policy.unknown-value"),
        ("version: 1\naudit: { anchors: [\"file:x\"] }\n", "policy.unknown-value"),
        ("version: 1\naudit: { anchors: [\"file:/x/../y\"] }\n", "policy.unknown-value"),
        ("version: 1\naudit: { anchors: [\"file:/\"] }\n", "policy.unknown-value"),
        ("version: 1\naudit: { checkpoint: { every: 0 } }\n", "policy.unknown-value"),
        ("version: 1\naudit: { checkpoint: { on: [start] } }\n", "policy.unknown-value"),
        ("version: 1\naudit: { checkpoint: true }\n", "policy.wrong-type"),
        ("version: 1\naudit: { erase_payloads_after: 30 }\n", "policy.unit"),
        ("version: 1\naudit: { erase_payloads_after: 5ms }\n", "policy.unknown-value"),
        ("version: 1\nlift: [{ id: no-such-rule, because: x }]\n", "policy.unknown-value"),
        ("version: 1\nlift: [{ id: no-shells }]\n", "policy.missing-key"),
        ("version: 1\ntools: { shell.run: { executables: { cat: perhaps } } }\n", "policy.unknown"),
        ("version: 1\ntools: { user.ask: { limits: { timeout: 1s } } }\n", "policy.unknown-key"),
        ("version: 1\ntools: { user.attach: allow }\n", "policy.unknown-key"),
        ("version: 1\ntools: { git.log: { paths: [docs] } }\n", "policy.unknown-key"),
        (
            "version: 1\ntools: { git.log: { limits: { results_max: 201 } } }\n",
            "policy.unknown-value",
        ),
        ("version: 1\ntools: { git.diff: { limits: { results: 3 } } }\n", "policy.unknown-key"),
        ("version: 1\ntools: { git.status: { limits: { bytes: 1KB } } }\n", "policy.unknown-key"),
        ("version: 1\ntools: { fs.edit: { limits: { bytes: 1KB } } }\n", "policy.unknown-key"),
        (
            "version: 1\ntools: { fs.edit: { limits: { bytes_max: 3MB } } }\n",
            "policy.unknown-value",
        ),
        (
            "version: 1\ntools: { fs.delete: { limits: { bytes_max: 1KB } } }\n",
            "policy.unknown-key",
        ),
        ("version: 1\nsandbox: { require: no }\n", "policy.unknown-value"),
        (
            "version: 1\ntools: { shell.run: { executables: { ls: { capabilities: [net.egres] } } } }\n",
            "policy.unknown-value",
        ),
        (
            "version: 1\ntools: { shell.run: { executables: { ls: { capabilities: ['*'] } } } }\n",
            "policy.unknown-value",
        ),
        (
            "version: 1\ntools: { shell.run: { executables: { git: { subcommands: { '*': { capabilities: [proc.unconfined] } } } } } }\n",
            "policy.unknown-value",
        ),
        ("version: 1\ntools: { fs.read: &a allow }\n", "policy.yaml-feature"),
        ("version: 1\ntools: { fs.read: allow, <<: {} }\n", "policy.yaml-feature"),
        ("version: 1\n---\nversion: 1\n", "policy.yaml-feature"),
        ("version: 1\ntools:\n\tfs.read: allow\n", "policy.syntax"),
        ("\u{0}\u{1}binary", "policy."),
    ] {
        let ran = call(&write(text)).exits(2);
        assert!(ran.stderr.contains(code), "{text:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
    let empty = call(&write("version: 1\n")).exits(3);
    assert_eq!(empty.json()["code"], "policy.no-rule");
    assert_eq!(call("builtin:base").exits(3).json()["code"], "policy.no-rule");
    assert!(call("builtin:nope").exits(2).stderr.contains("policy.missing"));
}

/// A text that is no YAML is explained in our words, at the line that is meant, with the way to write it.
#[test]
fn broken_yaml_is_explained() {
    let capsule = capsule();
    let mut wrong = Vec::new();
    for (text, place, what, how) in [
        (
            "tools:\n\tfs.read: allow",
            "3:1",
            "a tab stands in the indentation",
            "indent with blanks",
        ),
        ("tools: { fs.read: { paths: [**/*.py] } }", "2:29", "has no quotes", "`\"**/*.py\"`"),
        ("tools:\n  fs.read:\n    paths: *.py", "4:12", "has no quotes", "`\"*.py\"`"),
        ("name \"a\"\ntools: {}", "2:9", "the line has no `: `", "write `KEY: VALUE`"),
        ("name: a: b", "2:8", "a `: ` is not expected here", "in quotes"),
        (
            "tools:\n  fs.read: allow\n   fs.list: allow",
            "4:11",
            "a `: ` is not expected",
            "the same indentation",
        ),
        ("name: \"a\ntools: {}", "2:7", "the quote is not closed", "end the text with the quote"),
        ("description: 'It's fine'", "2:18", "follows the closing quote", "`''` is one quote"),
        (
            "tools: { fs.read: { paths: [\"a\" } }",
            "2:33",
            "a list is not closed",
            "close it with `]`",
        ),
        ("tools: { fs.read: allow", "2:25", "a map is not closed", "close it with `}`"),
        ("name: `a`", "2:7", "a backtick begins no text", "put the text in quotes"),
        ("name: \"a\\q\"", "2:7", "a backslash", "single quotes"),
        (
            "tools:\n  fs.read: allow\n  fs.read: deny",
            "4:3",
            "the key `fs.read` stands twice",
            "keep one",
        ),
        (
            "tools: [fs.read]",
            "2:8",
            "`tools` is a map of keys, and this is a list",
            "write `KEY: VALUE`",
        ),
        ("tools:\n  fs.read:\n  fs.list: allow", "3:10", "this is nothing", "write `KEY: VALUE`"),
    ] {
        let policy = capsule.write_policy(&format!("version: 1\n{text}\n"));
        let told = capsule.run(&["policy", "check", "--policy", &policy]).exits(2).stderr;
        if ![&format!(":{place}\n"), what, how].iter().all(|part| told.contains(*part)) {
            wrong.push(format!("{text}\n{told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (text, what) in
        [("hello\n", "a policy is a map of keys"), ("- a\n", "this is a list"), ("", "empty")]
    {
        let policy = capsule.write_policy(text);
        let told = capsule.run(&["policy", "check", &policy]).exits(2).stderr;
        assert!(told.contains(what), "{text}: {told}");
    }
}

/// Whoever says more of a program in a list is told once how to.
#[test]
fn a_list_of_programs_has_names_alone() {
    let capsule = capsule();
    let rules = "version: 1\ntools:\n  shell.run:\n    executables:\n      - { name: sed, writes: [docs] }\n      \
                 - { name: touch }\n";
    let told =
        capsule.run(&["policy", "check", "--policy", &capsule.write_policy(rules)]).exits(2).stderr;
    assert_eq!(told.matches("policy.wrong-type").count(), 1, "{told}");
    assert!(told.contains(":5:9") && told.contains("executables: { sed: {"), "{told}");
}

/// CAP-3: every problem at once, each with line, column and a way forward.
#[test]
fn wrong_policies_are_explained() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        r#"version: 1
nmae: x
never:
  - id: no good id!
    paths: ["a/../b"]
  - paths: ["x"]
  - { id: empty }
tools:
  fs.raed: allow
  fs.read:
    decision: alow
    paths: { alow: ["**"], hidden: yes }
    limits: { bytes: 50, bytes_max: 1GB, results: 5 }
    quota: { calls: many, per_host: 1 }
  fs.write: { paths: ["*.{md,txt}"], rules: [{ id: a, paths: [b] }, { id: a, paths: [c] }] }
  http.get:
    domains: ["https://x.org"]
    urls: ["ftp://x", "https://*", { url: "https://ok.org/?q" }]
    private_ips: { allow: [10.0.0.0/99] }
    redirects: { max: 100 }
  shell.run:
    executables:
      /bin/ls: {}
      git: { flags: { deny: [amend] }, path: bin/git }
      cat: { decision: allow, global_flags: { deny: [-A] } }
    denied_tokens: [{ regex: "(" }]
    env:
      pass: [LD_PRELOAD, GIT_SSH]
      set: { "A B": x }
      accept: [EDITOR=vi, PAGER=cat*, "GIT_TRACE=*1", NODE_OPTIONS=--require=x, PAGER]
    limits: { timeout: 10, memory: 1TB, timeout_max: 48h }
    form: command
  test.run: { decision: allow, command: [pytest], limits: { memory: 1B, processes_max: 0 } }
"#,
    );
    let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(2);
    for says in [
        "a policy has no key `nmae`",
        "did you mean `name`?",
        "an id has letters, digits",
        "put them under `flags`",
        "`..` and control characters cannot be matched",
        "a `never` rule needs `id`",
        "there is no tool `fs.raed`",
        "did you mean `fs.read`?",
        "`alow` is not one of `allow`, `ask`, `ask-each`, `deny`",
        "did you mean `allow`?",
        "`paths` has no key `alow`",
        "`yes` is not one of `deny`, `allow`",
        "a size with its unit is needed",
        "the most that can be allowed is 200000",
        "`limits` has no key `results`",
        "`quota` has no key `per_host`",
        "a whole number is needed",
        "braces are not part of the pattern language",
        "another rule has the id `a`",
        "a domain is a name such as `api.example.org`",
        "only `http` and `https` are fetched",
        "a query cannot be named",
        "an address or range is needed",
        "the most that can be allowed is 10",
        "a program goes by its plain name",
        "a flag begins with `-`",
        "an absolute path without `..` is needed",
        "the expression cannot be compiled",
        "`LD_PRELOAD` changes which code a program runs",
        "`GIT_SSH` changes which code a program runs",
        "`EDITOR` changes which code a program runs",
        "`PAGER` changes which code a program runs",
        "`NODE_OPTIONS` changes which code a program runs",
        "a `*` stands at the end of a value",
        "a variable has letters, digits and `_`",
        "a duration with its unit is needed",
        "a time limit lies between 1ms and 24h",
        "the least that can be allowed is 1000000",
        "the least that can be allowed is 1",
        "policy.yaml:2:1",
    ] {
        assert!(ran.stderr.contains(says), "{says}:\n{}", ran.stderr);
    }
}

/// CAP-3: a policy's examples are decided, and what it probably does not mean is said.
#[test]
fn examples_and_lints_are_checked() {
    let capsule = capsule();
    let good = capsule.write_policy(&DEVELOPER.replace(
        "      cat: { decision: allow }",
        "      cat: { decision: allow, examples: { allow: [cat a.md, [cat, b]], deny: [cat /etc/passwd] } }",
    ));
    let ran = capsule.run(&["policy", "check", "--policy", &good]).exits(0);
    for says in [
        "`generated` and `frozen` overlap and decide differently",
        "`bash` is never reached: the rule `no-shells` denies it",
        "`curl` is never reached: the rule `no-network-programs` denies it",
    ] {
        assert!(ran.stderr.contains(says), "{says}:\n{}", ran.stderr);
    }
    assert!(ran.stdout.contains("3 examples"), "{}", ran.stdout);
    let bad = capsule.write_policy(
        "version: 1
tools:
  fs.read: { decision: allow, examples: { deny: [{ path: a.md }], no_match: [{ path: b.md }] } }
  shell.run: { executables: { python3: { decision: allow }, git: { decision: allow } } }
never: [{ id: mine, paths: [x] }]
",
    );
    let ran = capsule.run(&["policy", "check", "--policy", &bad]).exits(2);
    for says in [
        "the example says `deny`, and it is `allow`",
        "the example says that `fs.read` does not match",
        "`python3` runs any code that it is given",
        "`git` is many programs in one",
        "the rule `mine` does not say why",
    ] {
        assert!(ran.stderr.contains(says), "{says}:\n{}", ran.stderr);
    }
}

/// S3: patterns as other programs write them are refused with the right spelling, in every list; what means less
/// than in gitignore is noted.
#[test]
fn patterns_of_other_programs_are_refused_or_noted() {
    let capsule = capsule();
    let lists = [
        "tools: { fs.write: { decision: allow, paths: [P] } }",
        "tools: { fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [P] } } }",
        "tools: { fs.read: { decision: allow, rules: [{ id: a, paths: [P], decision: deny, because: x }] } }",
        "tools: { shell.run: { executables: { make: { decision: allow, reads: [P] } } } }",
        "tools: { shell.run: { executables: { make: { decision: allow, writes: [P] } } } }",
        "never: [{ id: a, paths: [P], because: x }]",
        "never: [{ id: a, paths: [\"**/x\"], except: [P], because: x }]",
    ];
    let check = |list: &str, pattern: &str| {
        let list = list.replace('P', &format!("'{pattern}'"));
        let policy = capsule.write_policy(&format!("version: 1\n{list}\n"));
        capsule.run(&["policy", "check", "--policy", &policy])
    };
    for list in lists {
        for (pattern, hint) in [
            ("!secrets/**", "write `secrets/**` under `deny`"),
            ("**.env", "write `**/*.env`"),
            ("*.{pem,key}", "write `*.pem` and `*.key`"),
            ("secrets\\**", "names the character"),
            ("secrets\\prod", "write `secrets/prod`"),
            ("$HOME/.ssh/**", "`~/` is your home folder"),
            ("%USERPROFILE%/.ssh", "`~/` is your home folder"),
            ("~root/x", "`~/` is your own home folder"),
            ("^secrets/.*", "`**` any folders"),
        ] {
            let ran = check(list, &pattern.replace("\\\\", "\\"));
            // `\*` is a pattern, which names a star.
            let status = if pattern.ends_with("\\**") { 0 } else { 2 };
            assert_eq!(ran.status, status, "{list} {pattern}: {}", ran.stderr);
            assert!(ran.stderr.contains(hint), "{list} {pattern}: {}", ran.stderr);
        }
        // Where a list opens, nothing wider is advised.
        let opens = !list.contains("deny") && !list.starts_with("never: [{ id: a, paths: [P]");
        for (pattern, closing, opening) in [
            ("*.env", "`**/*.env` for any folder", "`./*.env` if the top"),
            ("secrets/", "`**/secrets/` for any folder", "`./secrets/` if the top"),
            ("-secrets/**", "write `secrets/**` to close it", "write `secrets/**` under `deny`"),
            ("not secrets/**", "write `secrets/**` to close it", "write `secrets/**` under `deny`"),
        ] {
            let ran = check(list, pattern).exits(0);
            let hint = if opens { opening } else { closing };
            assert!(ran.stderr.contains(hint), "{list} {pattern}: {}", ran.stderr);
            assert!(
                !opens || !ran.stderr.contains("any folder"),
                "{list} {pattern}: {}",
                ran.stderr
            );
        }
        assert!(!check(list, "./*.env").exits(0).stderr.contains("for any folder"), "{list}");
    }
    let denies = lists[1];
    for (pattern, hint) in [
        ("secrets/", "`**/secrets/` for any folder"),
        (".env", "`**/.env` for any folder"),
        ("/secrets/**", "write `secrets/**` for the workspace"),
        ("secrets/.*", "write `secrets/**` for all"),
    ] {
        let ran = check(denies, pattern).exits(0);
        assert!(ran.stderr.contains(hint), "{pattern}: {}", ran.stderr);
    }
    let urls = |url: &str| {
        let policy = capsule.write_policy(&format!(
            "version: 1\ntools: {{ http.get: {{ decision: allow, urls: ['{url}'] }} }}\n"
        ));
        capsule.run(&["policy", "check", "--policy", &policy])
    };
    assert!(
        urls("!https://x.org/**").exits(2).stderr.contains("name the address under `urls.deny`")
    );
    assert!(urls("https://x.org/.*").exits(2).stderr.contains("`**` stands for any path"));
    assert!(urls("https://x.org/{a,b}").exits(2).stderr.contains("braces"));
    let _ = urls("https://x.org/docs/**").exits(0);
}

/// What is never reached, what overlaps, what opens more than it says.
#[test]
fn what_a_policy_probably_does_not_mean_is_said() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        r#"version: 1
name: p
never:
  - { id: mine, capabilities: [fs.read], paths: ["config/keys/**", "**/*.secret"], because: x }
tools:
  fs.read: { decision: allow, paths: ["config/**", "docs/**"] }
  fs.search: { decision: allow, paths: ["**"] }
  http.get:
    urls:
      allow:
        - { id: all, url: "https://api.example.org/**", decision: allow }
        - { id: one, url: "https://api.example.org/one/**", decision: ask }
        - { id: other, url: "https://other.example.org/a/*", decision: ask }
        - { id: gone, url: "https://api.example.net/a/**", decision: ask }
        - { id: shut, url: "https://api.example.com", decision: deny }
      deny:
        - { id: closed, url: "https://*.example.net/**", because: x }
        - { id: part, url: "https://api.example.org/one/two", because: x }
  shell.run:
    effects: { reads: allow, code: allow, unknown: allow, network: ask, system: allow }
    denied_tokens: [make]
    executables:
      make: allow
      git: { subcommands: { log: allow, push: allow, fetch: deny } }
"#,
    );
    let ran = capsule.run(&["policy", "check", "--policy", &policy]).exits(0);
    for says in [
        "`config/**` reads as if `config/keys/**` were open, which the rule `mine` closes",
        "`all` and `one` overlap and decide differently",
        "`gone` is never reached: `closed` denies it",
        "`shut` denies and does not say why",
        "`code: allow`: any program text",
        "`unknown: allow`: what nobody knows",
        "`system: allow`: only the base policy",
        "`make` is never reached: `denied_tokens` holds it",
        "`git push` is never reached: the rule `no-publishing` denies it",
        "`git fetch` denies and does not say why",
    ] {
        assert!(ran.stderr.contains(says), "{says}:\n{}", ran.stderr);
    }
    for silent in [
        "`other`",
        "`one` is never",
        "`part`",
        "`**` reads",
        "`docs/**`",
        "`reads: allow`",
        "`network:",
        "`git log`",
        "`git fetch` is never",
    ] {
        assert!(!ran.stderr.contains(silent), "{silent}:\n{}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("[policy.lint]").count(), 10, "{}", ran.stderr);
}

/// What a program is to change and cannot see, and what changes a workspace that is read-only.
#[test]
fn what_is_said_in_vain_is_noted() {
    let capsule = capsule();
    let check = |text: &str| {
        let policy = capsule.write_policy(text);
        capsule.run(&["policy", "check", "--policy", &policy]).exits(0).stderr
    };
    let scopes = |scopes: &str| {
        let program = format!("{{ decision: allow, {scopes} }}");
        check(&format!(
            "version: 1\ntools: {{ shell.run: {{ executables: {{ touch: {program} }} }} }}\n"
        ))
    };
    for (own, pattern) in [
        ("reads: [docs/**], writes: [out/**]", "out/**"),
        ("reads: [docs/**], writes: ['**']", "**"),
        ("reads: ['docs/*'], writes: [docs/**]", "docs/**"),
        ("reads: ['*', '*/*'], writes: ['**']", "**"),
        ("reads: ['**/*.md'], writes: ['docs/*']", "docs/*"),
        ("reads: ['src/?.c'], writes: ['src/[a-z]*.c']", "src/[a-z]*.c"),
        ("reads: [docs/**], writes: [docs/a, out/file]", "out/file"),
        ("reads: [docs/**], subcommands: { x: { writes: [out/**] } }", "out/**"),
        ("writes: [out/**], subcommands: { x: { reads: [docs/**] } }", "out/**"),
    ] {
        let told = scopes(own);
        let says =
            format!("cannot change all of `{pattern}`: what its `reads` does not name is hidden");
        assert!(
            told.contains(&says) && told.contains("help: leave out of `writes`"),
            "{own}:\n{told}"
        );
        assert_eq!(told.matches("cannot change").count(), 1, "{own}:\n{told}");
    }
    for own in [
        "writes: [out/**]",
        "reads: [docs/**], writes: []",
        "reads: ['**'], writes: ['**']",
        "reads: ['**/*'], writes: ['src/*.c', a/b/c]",
        "reads: [docs/**, out/], writes: [out/**, docs/a, 'docs/**/*.md']",
        "reads: ['**/*.md'], writes: ['docs/*.md', 'docs/**/x.md']",
        "reads: [src/a/**], writes: [src/a]",
        "reads: ['src/*.c'], writes: ['src/[a-z].c', 'src/x?.c']",
        "reads: [docs/**], subcommands: { x: { reads: ['**'], writes: [out/**] } }",
    ] {
        let told = scopes(own);
        assert!(!told.contains("cannot change"), "{own}:\n{told}");
    }
    let tools = |sandbox: &str, tools: &str| {
        check(&format!("version: 1\n{sandbox}tools: {{ fs.read: allow, {tools} }}\n"))
    };
    const READ_ONLY: &str = "sandbox: { workspace: read-only }\n";
    for tool in ["fs.write", "fs.edit", "fs.delete"] {
        let says = format!(
            "`{tool}` changes the workspace: `sandbox.workspace: read-only` binds programs alone"
        );
        let told = tools(READ_ONLY, &format!("{tool}: ask"));
        let help = format!("help: `{tool}: deny` keeps it from changing anything");
        assert!(told.contains(&says) && told.contains(&help), "{told}");
        for (sandbox, own) in [
            (READ_ONLY, format!("{tool}: deny")),
            (READ_ONLY, format!("{tool}: {{ decision: allow, paths: [] }}")),
            ("", format!("{tool}: ask")),
            ("profile: readonly\nsandbox: { workspace: read-only }\n", format!("{tool}: ask")),
        ] {
            let told = tools(sandbox, &own);
            assert!(!told.contains("changes the workspace"), "{sandbox}{own}:\n{told}");
        }
    }
}

/// FR-1: the workspace is named, or the policy's, or the current folder; never the home by itself.
#[test]
fn the_workspace_is_chosen_explicitly() {
    let capsule = capsule();
    capsule.write_file("a.md", "here");
    fs::create_dir_all(capsule.directory().join("other")).unwrap();
    fs::write(capsule.directory().join("other/a.md"), "there").unwrap();
    let plain = "version: 1\ntools: { fs.read: allow }\n";
    let read = |policy: &str, more: &[&str]| {
        let mut line = vec!["call", "fs.read", "--policy", policy, "--args", r#"{"path":"a.md"}"#];
        line.extend(more);
        capsule.run(&line)
    };
    let policy = capsule.write_policy(plain);
    assert_eq!(read(&policy, &[]).exits(0).json()["result"]["text"], "here");
    let named = read(&policy, &["--workspace", "../other"]).exits(0);
    assert_eq!(named.json()["result"]["text"], "there");
    let own = capsule.write_policy(&format!("{plain}workspace: {{ root: other }}\n"));
    assert_eq!(read(&own, &[]).exits(0).json()["result"]["text"], "there");
    assert_eq!(read(&own, &["--workspace", "."]).exits(0).json()["result"]["text"], "here");
    let policy = capsule.write_policy(plain);
    for folder in [capsule.home(), "/".into()] {
        let mut command =
            capsule.command(&["call", "fs.read", "--policy", &policy, "--args", r#"{"path":"a"}"#]);
        let output = command.current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("workspace.refused") && stderr.contains("--workspace"), "{stderr}");
    }
    assert!(
        read(&policy, &["--workspace", "/nowhere"]).exits(2).stderr.contains("workspace.missing")
    );
}

/// FR-21: what is asked does not run while nobody can be asked.
#[test]
fn asking_without_anybody_there_is_exit_four() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    let args = r#"{"path":"docs/a.md","content":"x"}"#;
    let ran = capsule.run(&["call", "fs.write", "--policy", &policy, "--args", args]).exits(4);
    assert_eq!(ran.json()["code"], "approval.needed");
    assert!(!capsule.workspace().join("docs").exists());
}

/// CAP-8: patterns from the home or the root are seen from the workspace, or refused.
#[test]
fn patterns_reach_into_the_workspace_only() {
    let capsule = capsule();
    fs::create_dir_all(capsule.home().join("projects/app")).unwrap();
    fs::write(capsule.home().join("projects/app/a.md"), "x").unwrap();
    let workspace = capsule.home().join("projects/app");
    let workspace = workspace.to_string_lossy().into_owned();
    let read = |policy: &str| {
        capsule.run(&[
            "call",
            "fs.read",
            "--policy",
            policy,
            "--workspace",
            &workspace,
            "--args",
            r#"{"path":"a.md"}"#,
        ])
    };
    let good = "version: 1\ntools: { fs.read: { decision: allow, paths: [\"~/projects/**\"] } }\n";
    let _ = read(&capsule.write_policy(good)).exits(0);
    let never = format!("{good}never: [{{ id: mine, paths: [\"~/projects/app/a.md\"] }}]\n");
    assert_eq!(read(&capsule.write_policy(&never)).exits(3).json()["rule"], "mine");
    let outside = good.replace("~/projects", "/srv");
    let ran = read(&capsule.write_policy(&outside)).exits(2);
    assert!(ran.stderr.contains("lies outside of the workspace"), "{}", ran.stderr);
}

/// Whoever only asks makes no store, also where programs are looked at.
#[test]
fn asking_makes_no_store() {
    let capsule = capsule();
    let policy = capsule.write_policy(DEVELOPER);
    let call = json!({ "tool": "shell.run", "args": { "argv": ["git", "status"] } }).to_string();
    let args = json!({ "argv": ["git", "status"] }).to_string();
    let line = ["policy", "explain", "--policy", &policy, "--tool", "shell.run", "--args", &args];
    let _ = capsule.run(&line).exits(0);
    let _ = capsule.run_with(&["policy", "explain", "--policy", &policy, "--batch", "-"], &call);
    let plan = capsule.write_plan("- { tool: shell.run, args: { argv: [git, status] } }\n");
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--dry-run"]).exits(0);
    assert!(!capsule.store().parent().unwrap().exists());
}

/// CAP-3: a policy of one's own drops a rule of the base policy by its id; one that lies in the workspace
/// does not.
#[test]
fn rules_of_the_base_are_dropped_by_ones_own_policy() {
    let capsule = capsule();
    let text = "version: 1\nlift: [{ id: no-network-programs, because: I fetch by hand. }]\ntools:\n  \
                shell.run: { executables: { curl: ask } }\n";
    let explain = |policy: &str| {
        capsule.run(&[
            "policy",
            "explain",
            "--policy",
            policy,
            "--json",
            "--tool",
            "shell.run",
            "--",
            "curl",
            "x",
        ])
    };
    let own = capsule.write_file("../own.yaml", text);
    assert_eq!(explain(own.to_str().unwrap()).exits(0).json()["decision"], "ask");
    let inside = capsule.write_file("policy/inside.yaml", text);
    let refused = explain(inside.to_str().unwrap()).exits(2);
    assert!(refused.stderr.contains("policy.lift-not-yours"), "{}", refused.stderr);
}
