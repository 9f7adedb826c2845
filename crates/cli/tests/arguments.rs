//! The arguments of programs that are known: whatever a word means to the program is what is judged.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
name: arguments
tools:
  fs.read: { decision: allow, paths: { allow: ["**"], deny: ["secret/**"] } }
  shell.run:
    decision: allow
    executables:
      cat: allow
      mycat: { path: /usr/bin/cat, decision: allow }
      mygit: { path: /usr/bin/git, decision: allow }
      mysh: { path: /bin/bash, decision: allow }
      mysudo: { path: /usr/bin/env, decision: allow }
      git:
        decision: allow
        subcommands: { "*": allow, rev-list: { flags: { allow: [--stdin] } }, made-up: allow }
"#;

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("secret/key", "KEY\n");
    capsule.write_file("secret/sub/x", "x\n");
    capsule.write_file("docs/a.md", "DOC\n");
    capsule.write_file(".env", "TOKEN\n");
    symlink("secret/sub", capsule.workspace().join("lnk")).unwrap();
    symlink("docs", capsule.workspace().join("open")).unwrap();
    let who = "-c user.name=a -c user.email=a@b commit -qm first";
    for line in ["init -q -b main", "add -f .", who] {
        let done = Command::new("git")
            .args(line.split(' '))
            .current_dir(capsule.workspace())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status();
        assert!(done.unwrap().success());
    }
    capsule
}

/// Calls, and the code of what comes of each.
#[track_caller]
fn check(rows: &[(Value, &str)]) {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let mut wrong = Vec::new();
    for (args, code) in rows {
        let line =
            ["call", "shell.run", "--policy", &policy, "--json", "--args", &args.to_string()]
                .map(String::from);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let ran = capsule.run(&line);
        let result = ran.json();
        let got = result["result"]["code"].as_str().or(result["code"].as_str()).unwrap_or("ok");
        let text = result.to_string();
        if got != *code || text.contains("KEY\\n") || text.contains("TOKEN\\n") {
            wrong.push(format!("{args}\n  wants {code}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn argv(line: &str) -> Value {
    json!({ "argv": line.split(' ').collect::<Vec<_>>() })
}

/// SAF-5: `..` behind a link is not where the text says.
#[test]
fn a_climb_out_of_a_link_is_not_judged_by_its_text() {
    check(&[
        (argv("cat lnk/../key"), "path.invalid"),
        (argv("cat lnk/.././key"), "path.invalid"),
        (argv("cat /workspace/lnk/../key"), "path.invalid"),
        (json!({ "argv": ["cat", "../key"], "cwd": "lnk" }), "path.not-allowed"),
        (json!({ "argv": ["cat", "a.md"], "cwd": "open" }), "ok"),
        (json!({ "argv": ["cat", "../docs/a.md"], "cwd": "open" }), "ok"),
    ]);
}

/// SAF-5: what a revision, a pathspec, a range of lines or an option names is a path.
#[test]
fn every_way_to_name_a_file_is_judged() {
    check(&[
        (argv("git diff --no-index /dev/null secret/key"), "path.not-allowed"),
        (argv("git diff --no-index docs secret"), "path.not-allowed"),
        (argv("git blame secret/key"), "path.not-allowed"),
        (argv("git blame HEAD secret/key"), "path.not-allowed"),
        (argv("git log -p -- :(top)secret/key"), "path.not-allowed"),
        (argv("git log -p -- :/secret/key"), "path.not-allowed"),
        (argv("git log -p -- :(icase)SECRET/KEY"), "exec.ambiguous"),
        (argv("git log -p -- secret"), "path.not-allowed"),
        (argv("git log -p secret"), "path.not-allowed"),
        (argv("git log -p -- secret/*"), "path.not-allowed"),
        (argv("git log -L1,1:secret/key"), "path.not-allowed"),
        (argv("git log -L 1,1:secret/key"), "path.not-allowed"),
        (argv("git show HEAD:secret/key"), "path.not-allowed"),
        (argv("git show HEAD:./secret/key"), "path.not-allowed"),
        (argv("git show :secret/key"), "path.not-allowed"),
        (argv("git show :0:secret/key"), "path.not-allowed"),
        (argv("git cat-file -p HEAD:secret/key"), "path.not-allowed"),
        (argv("git show HEAD:.env"), "policy.never"),
        (argv("git show HEAD@{0}:.env"), "policy.never"),
        (argv("git diff main:docs/a.md main:.env"), "policy.never"),
        (argv("git diff main:docs/a.md..main:.env"), "policy.never"),
        (argv("git blame --contents=secret/key docs/a.md"), "path.not-allowed"),
        (argv("git blame --conten secret/key docs/a.md"), "path.not-allowed"),
        (argv("git grep -f secret/key x"), "path.not-allowed"),
        (argv("git show -U secret/key"), "path.not-allowed"),
        (json!({ "argv": ["git", "show", "HEAD:secret/key"], "cwd": "docs" }), "path.not-allowed"),
        (json!({ "argv": ["git", "show", "HEAD:./key"], "cwd": "secret" }), "path.not-allowed"),
        (argv("mygit show HEAD:.env"), "policy.never"),
    ]);
}

/// CAP-12: what is not known of a known program is refused, unless the policy names it.
#[test]
fn an_option_that_is_not_known_must_be_named() {
    check(&[
        (argv("cat --made-up docs/a.md"), "exec.flag-effect"),
        (argv("git ls-files --exclude-per-directory=/etc/passwd"), "exec.flag-effect"),
        (argv("git ls-files --exclude-per-dir x"), "exec.flag-effect"),
        (argv("git grep -Ocat DOC"), "exec.flag-effect"),
        (argv("git grep --open=cat DOC"), "exec.flag-effect"),
        (argv("git archive --remote=docs HEAD"), "exec.flag-effect"),
        (argv("git archive --exec=id HEAD"), "exec.flag-effect"),
        (argv("git archive -o docs/x HEAD"), "exec.flag-effect"),
        (argv("git cat-file --textconv HEAD:docs/a.md"), "exec.flag-effect"),
        (argv("git cat-file --filters HEAD:docs/a.md"), "exec.flag-effect"),
        (argv("git cat-file --batch"), "exec.flag-effect"),
        (argv("git show --stdin"), "exec.flag-effect"),
        (argv("git --icase-pathspecs log -- docs"), "exec.flag-effect"),
        (argv("git alias-of-the-repository"), "exec.subcommand-denied"),
        (argv("git branch -D main"), "exec.flag-effect"),
    ]);
}

/// Ordinary use stays what it was.
#[test]
fn ordinary_use_is_not_refused() {
    let lines = "cat docs/a.md|cat -n -- docs/a.md|mycat docs/a.md|git status --short --branch|\
        git status --porcelain=v2 -uno|git log --oneline -5|git log -p -1 --stat|\
        git log --format=%h%x09%s --since=2.days --no-merges main|git log --graph --all --decorate|\
        git log --follow -- docs/a.md|git log main -- docs|git log -- docs/*.md|\
        git log -L1,1:docs/a.md|git log -S DOC --pickaxe-regex|git log --no-color --no-patch|\
        git diff|git diff --stat HEAD|git diff --cached --name-only|git diff -U1 -w HEAD -- docs|\
        git diff HEAD -- . :!docs|git diff --word-diff=plain main|git show|git show HEAD --stat|\
        git show HEAD:docs/a.md|git show --no-patch --format=%an|git blame docs/a.md|\
        git blame -L 1,1 -w HEAD -- docs/a.md|git grep -n DOC -- docs|git grep -in -e DOC|\
        git ls-files|git ls-files -o --exclude-standard|git ls-tree -r --name-only HEAD|\
        git rev-parse --short HEAD|git rev-parse --abbrev-ref HEAD|git rev-parse --show-toplevel|\
        git describe --always --dirty|git branch -vv --all|git branch --show-current|git tag -l|\
        git tag -n --sort=-creatordate|git for-each-ref --format=%(refname) refs/heads|\
        git shortlog -sn HEAD|git rev-list --stdin|git made-up|git merge-base HEAD HEAD|\
        git cat-file -t HEAD|git cat-file -p HEAD|git remote -v|git stash list";
    let rows: Vec<_> = lines.split('|').map(|line| (argv(line.trim()), "ok")).collect();
    check_open(&rows);
}

/// As [`check`], where the output may show what the history holds.
#[track_caller]
fn check_open(rows: &[(Value, &str)]) {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let mut wrong = Vec::new();
    for (args, _) in rows {
        let args = args.to_string();
        let line = ["policy", "explain", "--policy", &policy, "--json", "--tool", "shell.run"];
        let line: Vec<&str> = line.into_iter().chain(["--args", &args]).collect();
        let decision = capsule.run(&line).exits(0).json();
        if decision["decision"] != "allow" {
            wrong.push(format!("{args}: {decision}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A25, C1: a program is what its file is, whatever the rule calls it.
#[test]
fn another_name_of_a_program_changes_nothing() {
    check(&[
        (argv("mycat secret/key"), "path.not-allowed"),
        (argv("mycat /etc/shadow"), "path.outside-workspace"),
        (argv("mycat .env"), "policy.never"),
        (argv("mysh -c id"), "policy.never"),
        (argv("mysudo sh -c id"), "policy.never"),
        (argv("mygit push origin"), "policy.never"),
        (argv("mygit diff --output=x"), "exec.flag-effect"),
    ]);
}

/// A path that is not looked up could lead anywhere, so there is a most of them.
#[test]
fn too_many_paths_are_refused_and_not_half_judged() {
    let mut words = vec!["cat".to_string()];
    words.extend((0..1_100).map(|number| format!("docs/{number}")));
    words.push("lnk/x".into());
    check(&[(json!({ "argv": words }), "exec.argv-invalid")]);
}

/// A time that is cut is marked, as every other bound is.
#[test]
fn a_clamped_time_is_marked() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    for (timeout, clamped) in [("1h", true), ("5s", false)] {
        let args = json!({ "argv": ["cat", "docs/a.md"], "timeout": timeout }).to_string();
        let line = ["call", "shell.run", "--policy", &policy, "--json", "--args", &args];
        let answer = capsule.run(&line).exits(0).json();
        assert_eq!(answer["result"]["clamped"], clamped, "{answer}");
    }
}

/// A folder that is not there is the caller's mistake, not the sandbox's.
#[test]
fn a_missing_folder_is_a_tool_error() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    let args = json!({ "argv": ["cat"], "cwd": "nowhere" }).to_string();
    let line = ["call", "shell.run", "--policy", &policy, "--json", "--args", &args];
    let answer = capsule.run(&line).exits(1).json();
    assert_eq!(answer["code"], "fs.not-found", "{answer}");
}

/// A rule's `paths.deny` holds for every name of a file, for our own tools and for the words of programs.
#[test]
fn what_a_rule_closes_is_closed_under_every_name() {
    let capsule = capsule();
    capsule.write_file("secret/x", "NEEDLE\n");
    capsule.write_file("docs/own", "open\n");
    let root = capsule.workspace();
    for (from, to) in [("secret/x", "plain.txt"), ("docs/own", "also.txt")] {
        std::fs::hard_link(root.join(from), root.join(to)).unwrap();
    }
    symlink("plain.txt", root.join("link")).unwrap();
    let policy = capsule.write_policy(POLICY);
    let read = |path: &str| {
        let args = json!({ "path": path }).to_string();
        capsule.run(&["call", "fs.read", "--policy", &policy, "--json", "--args", &args])
    };
    let cat = |path: &str| capsule.run(&["exec", "--policy", &policy, "--json", "--", "cat", path]);
    for path in ["plain.txt", "link", "secret/x"] {
        for ran in [read(path), cat(path)] {
            let ran = ran.exits(3);
            assert_eq!(ran.json()["code"], "path.not-allowed", "{path}: {}", ran.stdout);
            assert!(!ran.stdout.contains("NEEDLE"), "{path}: {}", ran.stdout);
        }
    }
    // A file that has several names, none of which is closed.
    assert!(read("also.txt").exits(0).stdout.contains("open"));
    assert!(cat("also.txt").exits(0).stdout.contains("open"));
}

/// ADR 42: who changes a file with several names may leave its text under a name that nothing closes. So where one
/// of them is closed to reading, none is changed: neither by what a rule denies, nor by what `never` forbids.
#[test]
fn what_nobody_may_read_is_not_split() {
    const STEPS: &[(&str, &str, &str)] = &[
        ("fs.write", "{ path: y, content: end, mode: append }", "denied"),
        ("fs.write", "{ path: y, content: new }", "denied"),
        ("fs.write", "{ path: secret/x, content: new }", "denied"),
        ("fs.edit", "{ path: y, search: E, replace: e }", "denied"),
        ("fs.delete", "{ path: secret/x }", "denied"),
        ("fs.delete", "{ path: y }", "denied"),
        ("fs.delete", "{ path: secret, recursive: true }", "denied"),
        ("shell.run", "{ command: touch y }", "denied"),
        ("shell.run", "{ command: rm y }", "denied"),
        ("shell.run", "{ command: cat plain >> y }", "denied"),
        ("shell.run", "{ command: rm secret/x }", "denied"),
        ("shell.run", "{ command: mv y z }", "denied"),
        ("fs.read", "{ path: y }", "denied"),
        ("shell.run", "{ command: cat y }", "denied"),
        ("shell.run", "{ command: grep -r NEED . }", "failed"),
        // With one name, or none that is closed, it is changed as the rules say.
        ("fs.write", "{ path: secret/alone, content: new }", "ok"),
        ("fs.write", "{ path: plain, content: end, mode: append }", "ok"),
        ("shell.run", "{ command: touch plain }", "ok"),
        ("fs.delete", "{ path: plain-too }", "ok"),
    ];
    let steps = STEPS.iter().enumerate();
    let steps = steps
        .map(|(at, (tool, args, _))| format!("  - {{ id: s{at}, tool: {tool}, args: {args} }}\n"));
    let steps: String = steps.collect();
    let mine = "{ id: mine, capabilities: [fs.read], paths: [\"secret/**\"], because: Mine. }";
    let other = "{ id: other, capabilities: [fs.meta], paths: [\"*.meta\"], because: Not shown. }";
    let (one, two) = (format!("[{mine}]"), format!("[{other}, {mine}]"));
    let deny = "[\"secret/**\"]";
    for (workspace, never, deny) in [
        ("staged", "[]", deny),
        ("direct", "[]", deny),
        ("staged", &one, "[]"),
        ("direct", &one, "[]"),
        ("staged", &two, "[]"),
        ("direct", &two, "[]"),
    ] {
        let capsule = capsule();
        let root = capsule.workspace();
        for (text, other) in [("secret/x", "y"), ("plain", "plain-too")] {
            capsule.write_file(text, if text == "plain" { "open" } else { "NEEDLE" });
            std::fs::hard_link(root.join(text), root.join(other)).unwrap();
        }
        for name in ["a.meta", "z.meta"] {
            std::fs::hard_link(root.join("secret/x"), root.join(name)).unwrap();
        }
        capsule.write_file("secret/alone", "old");
        let policy = capsule.write_policy(&format!(
            "version: 1
sandbox: {{ workspace: {workspace}, level: workspace-write }}
never: {never}
tools:
  fs.read: {{ decision: allow, paths: {{ allow: [\"**\"], deny: {deny} }} }}
  fs.write: {{ decision: allow, paths: [\"**\"] }}
  fs.edit: {{ decision: allow, paths: [\"**\"] }}
  fs.delete: {{ decision: allow, paths: [\"**\"] }}
  shell.run:
    form: command
    decision: allow
    effects: {{ reads: allow, opens: allow, writes: allow, deletes: allow }}
"
        ));
        let plan = format!("version: 1\ndefaults: {{ on_error: continue }}\nsteps:\n{steps}");
        let ran = capsule.run(&["run", &capsule.write_plan(&plan), "--policy", &policy, "--json"]);
        let story = ran.json();
        for (at, (tool, args, ending)) in STEPS.iter().enumerate() {
            let told = &story["steps"][at]["ending"];
            assert_eq!(told, ending, "{workspace} {never} {tool} {args}: {story}");
        }
        assert!(!ran.stdout.contains("NEEDLE"), "{workspace} {never}: {story}");
    }
}

/// Makes a repository of a folder, with `deep` in it.
fn commit_deep(root: &Path) {
    for words in [
        &["init", "--quiet"][..],
        // Which git could not compare, since it cannot be opened.
        &["rm", "--quiet", "--cached", "--ignore-unmatch", ".env"],
        &["add", "deep"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "all"],
    ] {
        assert!(Command::new("git").args(words).current_dir(root).status().unwrap().success());
    }
}

/// What a program may not be given by name it does not find by itself either, in both tiers; unless it runs
/// what nobody has read.
#[test]
fn what_is_denied_is_not_found_either() {
    const DEEP: &str = "NEEDLE of deep";
    let mut rows = Vec::new();
    for floor in ["namespaces", "landlock"] {
        let policy = |deny: &str| {
            format!(
                "version: 1
sandbox: {{ floor: {floor}, level: workspace-write }}
tools:
  fs.read: {{ decision: allow, paths: {{ allow: [\"**\"]{deny} }} }}
  shell.run:
    decision: allow
    form: command
    effects: {{ reads: allow, opens: allow, writes: allow, deletes: allow, runs: allow, code: allow, unknown: allow }}
"
            )
        };
        let closing = policy(", deny: [\"secret/**\", \"deep/own/**\"]");
        for (command, text, found) in [
            ("grep -r NEEDLE .", DEEP, false),
            ("grep -rh NEEDLE", DEEP, false),
            ("grep -r NEEDLE deep", DEEP, false),
            ("find deep -type f -exec cat {} +", DEEP, false),
            ("find deep -type f -print0 | xargs -0 cat", DEEP, false),
            ("xargs cat < list", DEEP, false),
            ("tar cf - deep", DEEP, false),
            ("diff -rN deep docs", DEEP, false),
            ("cp -r deep out; cat out/own/x", DEEP, false),
            ("mv deep out; cat out/own/x", DEEP, false),
            ("mv deep/own/x y; cat y", DEEP, false),
            ("cat docs/a.md | grep -r NEEDLE .", DEEP, false),
            // A word that may be a path, or an option's, is no file to work on.
            ("git grep --no-index EEDLE", DEEP, false),
            ("git grep --no-index NEEDLE", DEEP, false),
            ("git -C deep grep --no-index NEEDLE", DEEP, false),
            ("timeout 5 git grep --no-index NEEDLE", DEEP, false),
            ("git grep NEEDLE", DEEP, false),
            ("git diff HEAD", DEEP, false),
            ("grep -rh -f docs/needle", DEEP, false),
            // Nor is one that may name others.
            ("gcc -E docs/a.c", DEEP, false),
            ("grep -r NEEDLE . | cat docs/a.md -", DEEP, false),
            // Who only deletes, or does nothing, does not open it to who reads beside it.
            ("rm list | grep -r NEEDLE .", DEEP, false),
            ("true | grep -r NEEDLE .", DEEP, false),
            // What is open is found, and who names one file sees that.
            ("grep -r NEEDLE .", "NEEDLE of docs", true),
            ("cat docs/a.md", "NEEDLE of docs", true),
            // Without namespaces nothing is hidden from who changes something, so that is refused.
            ("cp -r docs out; cat out/a.md", "NEEDLE of docs", floor == "namespaces"),
            // Who deletes does not read.
            ("rm -r deep && echo NEEDLE of docs", "NEEDLE of docs", true),
            // The sandbox holds these, and no word says what they read.
            ("perl -e 'open F, q(deep/own/x); print <F>'", DEEP, true),
            ("perl -e 'open F, q(deep/own/x); print <F>' | cat", DEEP, true),
        ] {
            rows.push((floor, command, text, closing.clone(), found));
            // What nothing denies is found by all of them.
            rows.extend((!found).then(|| (floor, command, text, policy(""), true)));
        }
    }
    let wrong = run_in_parallel(rows, |(floor, command, text, policy, found)| {
        let capsule = capsule();
        capsule.write_file("docs/a.md", "NEEDLE of docs\n");
        capsule.write_file("docs/needle", "NEEDLE\n");
        capsule.write_file("NEEDLE", "");
        capsule.write_file("docs/a.c", "#include \"../deep/own/x\"\n");
        capsule.write_file("list", "deep/own/x\n");
        if command.contains("git ") {
            capsule.write_file("deep/own/x", "as it was\n");
            commit_deep(&capsule.workspace());
        }
        capsule.write_file("deep/own/x", format!("{DEEP}\n"));
        let args = json!({ "command": command }).to_string();
        let policy = capsule.write_policy(&policy);
        let line = ["call", "shell.run", "--policy", &policy, "--json", "--args", &args];
        let ran = match floor {
            "landlock" => capsule.run_without_namespaces(&line),
            _ => capsule.run(&line),
        };
        (ran.stdout.contains(text) != found)
            .then(|| format!("{floor}: {command}: {} {}", ran.status, ran.stdout))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
