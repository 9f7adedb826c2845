//! Workspaces on file systems that do less than the usual ones, or that compare names otherwise.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use capsule_testkit::{Capsule, CommandOutput, Mounted};
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

const FILES: &str = r#"version: 1
tools:
  fs.read: { decision: allow, paths: ["**"] }
  fs.write: { decision: allow, paths: ["**"] }
  fs.edit: { decision: allow, paths: ["**"] }
  fs.delete: { decision: allow, paths: ["**"] }
"#;

const STAGED: &str = r#"version: 1
tools:
  fs.write: { decision: allow, paths: ["**"] }
  fs.delete: { decision: allow, paths: ["**"] }
  shell.run:
    form: command
    executables:
      mkdir: { decision: allow, writes: ["**"] }
      cp: { decision: allow, writes: ["**"] }
      mv: { decision: allow, writes: ["**"] }
      ln: { decision: allow, writes: ["**"], flags: { allow: [-s] } }
sandbox: { workspace: staged }
"#;

fn call(capsule: &Capsule, policy: &str, tool: &str, args: &Value) -> Value {
    let line = ["call", tool, "--policy", policy, "--args", "-"];
    capsule.run_with(&line, &args.to_string()).json()
}

/// Everything in a folder, by path.
fn tree(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(tree(&entry.path()).into_iter().map(|own| format!("{name}/{own}")));
        }
        found.insert(name);
    }
    found
}

/// W13: where a file system cannot rename without replacing, files are written, edited, deleted and undone, and what
/// is staged is applied.
#[test]
fn file_systems_without_exclusive_renames_are_written() {
    type Mount = fn(&Capsule) -> Mounted;
    let plain: Mount = |capsule| {
        let real = capsule.directory().join("real");
        fs::create_dir(&real).unwrap();
        Mounted::plain(&real, &capsule.workspace())
    };
    let folding: Mount = |capsule| Mounted::folding(&capsule.workspace());
    for (kind, mount) in [("bindfs", plain), ("lowntfs-3g", folding)] {
        let capsule = capsule();
        let _mounted = mount(&capsule);
        let policy = capsule.write_policy(FILES);
        let write = |path: &str, content: &str, mode: &str| json!({ "path": path, "content": content, "mode": mode });
        for (tool, args, code) in [
            ("fs.write", write("a/new.txt", "one\n", "create"), None),
            ("fs.write", write("a/new.txt", "two\n", "create"), Some("fs.exists")),
            ("fs.write", write("a/new.txt", "two\n", "overwrite"), None),
            ("fs.write", write("a/new.txt", "three\n", "append"), None),
            ("fs.edit", json!({ "path": "a/new.txt", "search": "two", "replace": "2" }), None),
        ] {
            let answer = call(&capsule, &policy, tool, &args);
            assert_eq!(answer["code"].as_str(), code, "{kind} {tool}: {answer}");
        }
        assert_eq!(
            fs::read_to_string(capsule.workspace().join("a/new.txt")).unwrap(),
            "2\nthree\n"
        );
        let _ = capsule.run(&["undo", "latest"]).exits(0);
        assert_eq!(
            fs::read_to_string(capsule.workspace().join("a/new.txt")).unwrap(),
            "two\nthree\n"
        );
        let args = json!({ "path": "a", "recursive": true });
        assert_eq!(call(&capsule, &policy, "fs.delete", &args)["status"], "ok", "{kind}");
        assert_eq!(tree(&capsule.workspace()), BTreeSet::new(), "{kind}: nothing is left");
        let _ = capsule.run(&["undo", "latest"]).exits(0);
        assert_eq!(
            tree(&capsule.workspace()),
            ["a", "a/new.txt"].map(String::from).into(),
            "{kind}"
        );
        // What is staged is applied, by links and folders, too, and taken back.
        let policy = capsule.write_policy(STAGED);
        let args = json!({ "command": "mkdir b; cp a/new.txt b/copy; mv a/new.txt b/moved; ln -s copy b/link" });
        let answer = call(&capsule, &policy, "shell.run", &args);
        assert_eq!(answer["status"], "ok", "{kind}: {answer}");
        let _ = capsule.run(&["apply", "latest"]).exits(0);
        let expected = ["a", "b", "b/copy", "b/link", "b/moved"].map(String::from).into();
        assert_eq!(tree(&capsule.workspace()), expected, "{kind}");
        let _ = capsule.run(&["undo", "latest"]).exits(0);
        assert_eq!(
            tree(&capsule.workspace()),
            ["a", "a/new.txt"].map(String::from).into(),
            "{kind}"
        );
    }
}

/// What of the secret some output shows, plainly or in base64.
fn shows(ran: &CommandOutput) -> bool {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    // `hunter2hunter2` at each of the three places that base64 may have it at.
    ["hunter2", "aHVudGVyMmh1bnRlcj", "h1bnRlcjJodW50ZXIy", "odW50ZXIyaHVudGVy"]
        .iter()
        .any(|own| said.contains(own))
}

const SECRET: &str = "SECRET=hunter2hunter2\n";

/// A workspace on a file system that folds names, with a hidden file in it and below it.
fn folding() -> (Capsule, Mounted) {
    let capsule = capsule();
    let mounted = Mounted::folding(&capsule.workspace());
    let _ = capsule.write_file(".env", SECRET);
    let _ = capsule.write_file("sub/.env.local", SECRET);
    let _ = capsule.write_file("keys/server.pem", SECRET);
    let _ = capsule.write_file("readme.md", "plain\n");
    (capsule, mounted)
}

/// S1: no command reads what is hidden by another spelling of its name, and what it makes is judged by every spelling.
#[test]
fn commands_find_nothing_by_another_spelling() {
    let (capsule, _mounted) = folding();
    let makefile = "read:\n\t-@base64 .ENV\n\t-@cat .Env '.env.' SUB/.ENV.LOCAL Sub/.env.LOCAL KEYS/server.PEM ENV~1 .env:x\n\t@cat README.md readme.md\n\
        protected:\n\t@echo x > .ENVRC\n\
        agents:\n\t@mkdir -p .CLAUDE && echo x > .CLAUDE/settings.json\n\
        hooks:\n\t@mkdir -p .Git/HOOKS && echo x > .Git/HOOKS/pre-commit\n\
        wide:\n\t@mkdir -p .\u{ff47}\u{ff49}\u{ff54}/hooks && echo x > .\u{ff47}\u{ff49}\u{ff54}/hooks/pre-commit\n\
        workflow:\n\t@mkdir -p .github/Workflows && echo x > .github/Workflows/a.yml\n\
        dots:\n\t@echo x > .envrc. \n\
        bare:\n\t@mkdir -p r/objects r/REFS && echo x > r/head && echo x > r/Config\n\
        honest:\n\t@mkdir -p Out && echo ok > Out/Result.txt\n\
        twins:\n\t@echo a > Twin && echo b > twin\n\
        other:\n\t@echo a > README.MD\n";
    let _ = capsule.write_file("Makefile", makefile);
    let make = |target: &str| {
        capsule.run(&[
            "exec",
            "--unattended",
            "--policy",
            "builtin:developer",
            "--",
            "make",
            target,
        ])
    };
    let read = make("read");
    assert!(!shows(&read), "{read:?}");
    assert!(read.stdout.ends_with("plain\n") || read.stderr.contains("README.md"), "{read:?}");
    for target in
        ["protected", "agents", "hooks", "wide", "workflow", "dots", "bare", "twins", "other"]
    {
        let made = make(target);
        assert_eq!(made.status, 3, "{target}: {made:?}");
        assert!(made.stderr.contains("change.refused"), "{target}: {made:?}");
        assert_ne!(capsule.run(&["apply", "latest"]).status, 0, "{target}");
    }
    let before = tree(&capsule.workspace());
    let _ = make("honest").exits(0);
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    let made = tree(&capsule.workspace()).difference(&before).cloned().collect::<Vec<_>>();
    assert_eq!(
        made.iter().map(|own| own.to_lowercase()).collect::<Vec<_>>(),
        ["out", "out/result.txt"]
    );
}

/// S1: whatever the command, and whether the policy stages or not: what is hidden is not read.
#[test]
fn every_policy_hides_every_spelling() {
    let (capsule, _mounted) = folding();
    let script = "for my $name (qw(.env .ENV .Env SUB/.env.local sub/.ENV.LOCAL Keys/SERVER.pem)) \
        { if (open my $file, '<', $name) { print <$file> } } print qq(done\n)";
    for (workspace, works) in [("staged", true), ("read-only", false), ("direct", false)] {
        let policy = capsule.write_policy(&format!(
            "version: 1
tools: {{ shell.run: {{ decision: allow, executables: {{ perl: {{ decision: allow }}, cat: {{ decision: allow }} }} }} }}
sandbox: {{ workspace: {workspace} }}
"
        ));
        let exec =
            |words: &[&str]| capsule.run(&[&["exec", "--policy", &policy, "--"], words].concat());
        let ran = exec(&["perl", "-e", script]);
        assert!(!shows(&ran), "{workspace}: {ran:?}");
        assert_eq!(ran.stdout == "done\n", works, "{workspace}: {ran:?}");
        // Where it is refused, it says what helps.
        assert!(works || ran.stderr.contains("workspace: staged"), "{workspace}: {ran:?}");
        let ran = exec(&["cat", ".ENV"]);
        assert_eq!((ran.status, shows(&ran)), (3, false), "{workspace}: {ran:?}");
    }
}

/// S1: tools find a file by another spelling, and judge it by the one that is listed and by what closes any.
#[test]
fn tools_judge_every_spelling() {
    let (capsule, _mounted) = folding();
    let policy = capsule.write_policy(
        r#"version: 1
tools:
  fs.read: { decision: allow, hidden: allow, paths: { allow: ["README.md", "Docs/**", "sub/**"], deny: ["docs/Private/**"] } }
  fs.list: { decision: allow, hidden: allow }
  fs.search: { decision: allow, hidden: allow }
  fs.write: { decision: allow, hidden: allow, paths: { allow: ["**"], deny: ["docs/private/**"] } }
  fs.delete: { decision: allow, hidden: allow }
never: [{ id: vault, paths: ["Vault/**"], because: closed }]
sandbox: { workspace: direct }
"#,
    );
    let _ = capsule.write_file("docs/private/plan.txt", "plan");
    let _ = capsule.write_file("docs/open.txt", "open");
    let _ = capsule.write_file("vault/key.txt", "key");
    for (tool, path, status) in [
        ("fs.read", "README.md", "ok"),
        ("fs.read", "readme.MD", "ok"),
        ("fs.read", "docs/open.txt", "ok"),
        ("fs.read", "DOCS/Open.TXT", "ok"),
        ("fs.read", "docs/private/plan.txt", "denied"),
        ("fs.read", "DOCS/PRIVATE/plan.txt", "denied"),
        ("fs.read", "docs/Private./plan.txt", "denied"),
        ("fs.read", "sub/.ENV.local", "denied"),
        ("fs.read", "SUB/.env.LOCAL", "denied"),
        ("fs.read", "vault/key.txt", "denied"),
        ("fs.read", "VAULT/KEY.txt", "denied"),
        ("fs.write", "docs/PRIVATE/new.txt", "denied"),
        ("fs.write", ".ENV", "denied"),
        ("fs.write", ".Git/hooks/pre-commit", "denied"),
        ("fs.write", ".ENVRC", "denied"),
        ("fs.write", ".Capsule/Policy.yaml", "denied"),
        ("fs.write", "Docs/New.txt", "ok"),
        ("fs.delete", ".ENV", "denied"),
        ("fs.delete", "VAULT", "denied"),
    ] {
        let mut args = json!({ "path": path });
        match tool {
            "fs.write" => args["content"] = json!("x"),
            "fs.delete" => args["recursive"] = json!(true),
            _ => {}
        }
        let answer = call(&capsule, &policy, tool, &args);
        assert_eq!(answer["status"], status, "{tool} {path}: {answer}");
        assert!(!answer.to_string().contains("hunter2"), "{tool} {path}: {answer}");
    }
    for (tool, args) in
        [("fs.list", json!({ "path": ".", "depth": 3 })), ("fs.search", json!({ "name": "*" }))]
    {
        let answer = call(&capsule, &policy, tool, &args).to_string().to_lowercase();
        for hidden in [".env", "server.pem", "key.txt"] {
            assert!(!answer.contains(hidden), "{tool}: {hidden} in {answer}");
        }
        assert!(answer.contains("readme.md"), "{tool}: {answer}");
    }
    // A decision is made again from the record alone.
    let _ = call(&capsule, &policy, "fs.read", &json!({ "path": "DOCS/PRIVATE/plan.txt" }));
    let explained = capsule.run(&["policy", "explain", "latest:1", "--json"]).exits(0).json();
    assert_eq!(explained["decision"], "deny", "{explained}");
    let _ = capsule.run(&["replay", "latest"]);
}

/// A file that changes no more than the spelling of its name is left to a person: to remove the one would remove the
/// other.
#[test]
fn what_only_changes_its_spelling_is_refused() {
    let (capsule, _mounted) = folding();
    let policy = capsule.write_policy(STAGED);
    for command in ["mv readme.md README.md", "cp readme.md Readme.MD", "mkdir Sub"] {
        let answer = call(&capsule, &policy, "shell.run", &json!({ "command": command }));
        assert_eq!(answer["code"], "change.refused", "{command}: {answer}");
        assert!(answer["reason"].as_str().unwrap().contains("is the same name"), "{answer}");
        assert_ne!(capsule.run(&["apply", "latest"]).status, 0);
        assert_eq!(fs::read_to_string(capsule.workspace().join("readme.md")).unwrap(), "plain\n");
    }
    let answer =
        call(&capsule, &policy, "shell.run", &json!({ "command": "mv readme.md Guide.md" }));
    assert_eq!(answer["status"], "ok", "{answer}");
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("guide.md")).unwrap(), "plain\n");
}

/// S1: where nobody knows whether forms of Unicode are compared, what is closed is closed in each of them.
#[test]
fn forms_of_unicode_are_one_where_nobody_knows() {
    let capsule = capsule();
    let real = capsule.directory().join("real");
    fs::create_dir(&real).unwrap();
    let _mounted = Mounted::plain(&real, &capsule.workspace());
    let _ = capsule.write_file("schlu\u{308}ssel.txt", SECRET);
    let _ = capsule.write_file("plain.txt", "plain\n");
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.read: { decision: allow }
  shell.run: { decision: allow, executables: { perl: { decision: allow } } }
never: [{ id: a, paths: [\"**/schl\u{fc}ssel.txt\"], because: closed }]
",
    );
    for path in ["schlu\u{308}ssel.txt", "schl\u{fc}ssel.txt"] {
        let answer = call(&capsule, &policy, "fs.read", &json!({ "path": path }));
        assert_eq!(answer["code"], "policy.never", "{path:?}: {answer}");
    }
    let script = "opendir my $here, '.'; for my $name (readdir $here) \
        { if (open my $file, '<', $name) { print <$file> } }";
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "perl", "-e", script]).exits(0);
    assert_eq!((ran.stdout.as_str(), shows(&ran)), ("plain\n", false), "{ran:?}");
    // Case is compared there: another case is another file.
    let answer = call(&capsule, &policy, "fs.read", &json!({ "path": "PLAIN.txt" }));
    assert_eq!(answer["code"], "fs.not-found", "{answer}");
}

/// S1: another file system that stands in the workspace is hidden from commands as a whole, and not entered by tools.
#[test]
fn what_is_mounted_below_is_hidden_whole() {
    let capsule = capsule();
    let place = capsule.workspace().join("sub");
    let _mounted = Mounted::folding(&place);
    fs::write(place.join(".env"), SECRET).unwrap();
    fs::write(place.join("plain.txt"), "plain").unwrap();
    let _ =
        capsule.write_file("Makefile", "all:\n\t-@cat sub/.env sub/.ENV SUB/.ENV sub/plain.txt\n");
    let line = ["exec", "--unattended", "--policy", "builtin:developer", "--", "make"];
    let ran = capsule.run(&line);
    assert!(!shows(&ran), "{ran:?}");
    let answer = call(&capsule, "builtin:developer", "fs.read", &json!({ "path": "sub/.ENV" }));
    assert_eq!(answer["status"], "denied", "{answer}");
}
