//! `git.status`, `git.diff` and `git.log`, and what a repository would have git do meanwhile.
//!
//! The program that hostile repositories name here says so and then waits for longer than a call may
//! take: had it run even once, git would not have answered. Whoever runs it by mistake waits, and
//! nothing else happens. Only where [`PLAIN`] lies beside it, it ends at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use capsule_testkit::{Capsule, run_in_parallel};
use serde_json::{Value, json};

const POLICY: &str = "version: 1
tools:
  git.status: { decision: allow, limits: { timeout: 30s } }
  git.diff: { decision: allow, limits: { timeout: 30s } }
  git.log: { decision: allow, limits: { timeout: 30s } }
  shell.run: { executables: { git: allow } }
";

/// What a hostile repository names.
const EVIL: &str = "#!/bin/sh\necho EVIL >&2\n[ -e /workspace/plain ] || exec sleep 60\n";

/// Where this lies, whoever runs that program is not kept waiting.
const PLAIN: &str = "plain";

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// Git on the host, as whoever made the repository ran it.
fn git(capsule: &Capsule, words: &[&str]) -> String {
    git_with(capsule, words, "")
}

fn git_with(capsule: &Capsule, words: &[&str], stdin: &str) -> String {
    let mut child = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        // Whoever sets a repository up does not run what it names.
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(words)
        .current_dir(capsule.workspace())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", capsule.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "git {words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

/// A repository with two files and a commit.
fn repository() -> Capsule {
    let capsule = capsule();
    git(&capsule, &["init", "-q"]);
    capsule.write_file("a.md", "one\n");
    capsule.write_file("docs/b.md", "two\n");
    git(&capsule, &["add", "."]);
    git(&capsule, &["commit", "-qm", "first\n\nwith a body"]);
    capsule
}

fn call(capsule: &Capsule, policy: &str, tool: &str, args: &Value) -> Value {
    capsule.run(&["call", tool, "--policy", policy, "--args", &args.to_string()]).json()
}

/// The result of a call that went well.
#[track_caller]
fn result(capsule: &Capsule, policy: &str, tool: &str, args: Value) -> Value {
    let answer = call(capsule, policy, tool, &args);
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["result"].clone()
}

/// APR-8: what a repository says by its narrow tools.
#[test]
fn a_repository_tells_its_state_its_differences_and_its_commits() {
    let capsule = repository();
    let policy = capsule.write_policy(POLICY);
    capsule.write_file("a.md", "one\nmore\n");
    capsule.write_file("new file.md", "x\n");
    git(&capsule, &["mv", "docs/b.md", "docs/c.md"]);
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!(status["branch"], "main");
    assert_eq!(status["commit"], git(&capsule, &["rev-parse", "HEAD"]));
    assert_eq!(
        status["entries"],
        json!([
            { "path": "a.md", "index": "same", "worktree": "modified" },
            { "path": "docs/c.md", "index": "renamed", "worktree": "same",
              "renamed_from": "docs/b.md" },
            { "path": "new file.md", "index": "untracked", "worktree": "untracked" },
        ])
    );
    let diff = result(&capsule, &policy, "git.diff", json!({}));
    assert_eq!(diff["files"], json!([{ "path": "a.md", "added": 1, "removed": 0 }]));
    assert_eq!(diff["text"], git(&capsule, &["diff"]) + "\n");
    let staged = result(&capsule, &policy, "git.diff", json!({ "staged": true }));
    let renamed = json!([{ "path": "docs/c.md", "added": 0, "removed": 0,
                           "renamed_from": "docs/b.md" }]);
    assert_eq!(staged["files"], renamed, "{staged}");
    let one = result(&capsule, &policy, "git.diff", json!({ "paths": ["docs"] }));
    assert_eq!((&one["text"], &one["files"]), (&json!(""), &json!([])));
    let log = result(&capsule, &policy, "git.log", json!({}));
    let entry = &log["entries"][0];
    assert_eq!(entry["subject"], "first");
    assert_eq!(entry["body"], "with a body");
    assert_eq!((&entry["author"], &entry["email"]), (&json!("A"), &json!("a@b")));
    // The words of a command line say the same as a map.
    let words = ["call", "git.diff", "--policy", &policy, "--", "paths=a.md,docs", "staged=false"];
    assert_eq!(capsule.run(&words).exits(0).json()["result"]["files"], diff["files"]);
}

/// A name is a name: nothing in it is a pattern, an option or another folder.
#[test]
fn paths_are_taken_literally() {
    let capsule = repository();
    let policy = capsule.write_policy(POLICY);
    for name in ["*.md", ":(top)x", "-rf", "--output=F", "[a].md", "a.md.orig", "'q\"\\ \u{fc}"] {
        capsule.write_file(name, "x\n");
        git(&capsule, &["add", "--", &format!("./{name}")]);
        let diff =
            result(&capsule, &policy, "git.diff", json!({ "paths": [name], "staged": true }));
        assert_eq!(diff["files"], json!([{ "path": name, "added": 1, "removed": 0 }]), "{name}");
        let log = result(&capsule, &policy, "git.log", json!({ "paths": [name] }));
        assert_eq!(log["entries"], json!([]), "{name}");
    }
    git(&capsule, &["commit", "-qm", "odd"]);
    let log = result(&capsule, &policy, "git.log", json!({ "paths": ["*.md"] }));
    assert_eq!(log["entries"][0]["subject"], "odd");
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    for (args, code) in [
        (json!({ "paths": [] }), "args.invalid"),
        (json!({ "paths": ["../x"] }), "path.outside-workspace"),
        (json!({ "paths": ["/etc/passwd"] }), "path.outside-workspace"),
        (json!({ "paths": vec!["a"; 201] }), "args.invalid"),
        (json!({ "paths": "a.md" }), "args.invalid"),
        (json!({ "staged": "true" }), "args.invalid"),
    ] {
        let answer = call(&capsule, &policy, "git.diff", &args);
        assert_eq!(answer["code"], code, "{args}: {answer}");
    }
}

/// Answers are bounded, and say so.
#[test]
fn answers_are_bounded() {
    let capsule = repository();
    let policy = capsule.write_policy(
        "version: 1
tools:
  git.status: { decision: allow, limits: { results: 2 } }
  git.diff: { decision: allow, limits: { bytes: 100B, timeout: 20s } }
  git.log: { decision: allow, limits: { results: 1, results_max: 2 } }
",
    );
    for number in 0..3 {
        capsule.write_file(&format!("{number}"), "x\n".repeat(200));
        git(&capsule, &["add", "."]);
        git(&capsule, &["commit", "-qm", "more"]);
    }
    for number in 0..3 {
        capsule.write_file(&format!("{number}"), "");
    }
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!(status["entries"].as_array().unwrap().len(), 2);
    assert_eq!(status["truncated"], true);
    let diff = result(&capsule, &policy, "git.diff", json!({}));
    assert_eq!(diff["text"].as_str().unwrap().len(), 100);
    assert_eq!(diff["truncated"], true);
    assert_eq!(diff["files"].as_array().unwrap().len(), 3);
    for (limit, count, truncated, clamped) in [(1, 1, true, false), (9, 2, true, true)] {
        let log = result(&capsule, &policy, "git.log", json!({ "limit": limit }));
        assert_eq!(log["entries"].as_array().unwrap().len(), count);
        assert_eq!((&log["truncated"], &log["clamped"]), (&json!(truncated), &json!(clamped)));
    }
}

/// A repository without a commit has a state and no log; a branch that follows one says how far.
#[test]
fn a_branch_is_told_with_what_it_follows() {
    let capsule = capsule();
    let policy = capsule.write_policy(POLICY);
    git(&capsule, &["init", "-q"]);
    capsule.write_file("a.md", "x\n");
    git(&capsule, &["add", "."]);
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!((&status["branch"], status.get("commit")), (&json!("main"), None));
    assert_eq!(result(&capsule, &policy, "git.log", json!({}))["entries"], json!([]));
    let staged = result(&capsule, &policy, "git.diff", json!({ "staged": true }));
    assert_eq!(staged["files"], json!([{ "path": "a.md", "added": 1, "removed": 0 }]));
    git(&capsule, &["commit", "-qm", "one"]);
    git(&capsule, &["branch", "base"]);
    git(&capsule, &["commit", "-q", "--allow-empty", "-m", "two"]);
    git(&capsule, &["branch", "-q", "--set-upstream-to=base"]);
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!(status["upstream"], "base");
    assert_eq!((&status["ahead"], &status["behind"]), (&json!(1), &json!(0)));
    git(&capsule, &["checkout", "-q", "--detach"]);
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!((status.get("branch"), status.get("upstream")), (None, None));
}

/// A hostile repository: what is done to it, and the command line that shows that it is one.
type Hostile = (&'static str, fn(&Capsule), &'static [&'static str]);

fn config(capsule: &Capsule, key: &str, value: &str) {
    git(capsule, &["config", key, value]);
}

fn attributes(capsule: &Capsule, line: &str) {
    capsule.write_file(".gitattributes", line);
    capsule.write_file("a.md", "changed\n");
}

/// A commit that says that it is signed.
fn sign(capsule: &Capsule) {
    let tree = git(capsule, &["rev-parse", "HEAD^{tree}"]);
    let commit = format!(
        "tree {tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\
         gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    );
    let commit = git_with(capsule, &["hash-object", "-t", "commit", "-w", "--stdin"], &commit);
    git(capsule, &["update-ref", "HEAD", &commit]);
}

/// A repository in the repository, with a configuration of its own.
fn submodule(capsule: &Capsule) {
    git(capsule, &["init", "-q", "sub"]);
    capsule.write_file("sub/a", "x");
    git(capsule, &["-C", "sub", "add", "."]);
    git(capsule, &["-C", "sub", "commit", "-qm", "inner"]);
    git(capsule, &["add", "sub"]);
    git(capsule, &["commit", "-qm", "with it"]);
    git(capsule, &["-C", "sub", "config", "core.fsmonitor", "/workspace/evil"]);
    capsule.write_file("sub/a", "y");
}

/// A clone that has git fetch a missing file, by a transport that is a program.
fn partial(capsule: &Capsule) {
    let blob = git(capsule, &["rev-parse", "HEAD:a.md"]);
    let (folder, name) = blob.split_at(2);
    fs::remove_file(capsule.workspace().join(format!(".git/objects/{folder}/{name}"))).unwrap();
    config(capsule, "core.repositoryformatversion", "1");
    config(capsule, "extensions.partialClone", "o");
    config(capsule, "remote.o.promisor", "true");
    config(capsule, "remote.o.partialclonefilter", "blob:none");
    config(capsule, "remote.o.url", "ext::/workspace/evil");
    config(capsule, "protocol.ext.allow", "always");
    capsule.write_file("a.md", "changed\n");
}

const HOSTILE: &[Hostile] = &[
    ("monitor", |c| config(c, "core.fsmonitor", "./evil"), &["status"]),
    (
        "clean filter",
        |c| {
            attributes(c, "*.md filter=x\n");
            config(c, "filter.x.clean", "./evil");
        },
        &["diff"],
    ),
    (
        "filter that must succeed, in a name with dots",
        |c| {
            attributes(c, "*.md filter=a.b\n");
            config(c, "filter.a.b.clean", "./evil");
            config(c, "filter.a.b.smudge", "./evil");
            config(c, "filter.a.b.required", "true");
        },
        &["diff"],
    ),
    (
        "filter process",
        |c| {
            attributes(c, "* filter=x\n");
            config(c, "filter.x.process", "./evil");
        },
        &["status"],
    ),
    (
        "filter by the attributes that no tree holds",
        |c| {
            c.write_file("a.md", "changed\n");
            c.write_file(".git/info/attributes", "*.md filter=x diff=x\n");
            config(c, "filter.x.clean", "./evil");
        },
        &["diff"],
    ),
    (
        "filter in an included file",
        |c| {
            attributes(c, "*.md filter=x\n");
            c.write_file("more", "[filter \"x\"]\n clean = ./evil\n[core]\n fsmonitor = ./evil\n");
            config(c, "include.path", "../more");
        },
        &["status"],
    ),
    (
        "filter in a file that is included for this branch",
        |c| {
            attributes(c, "*.md filter=x\n");
            c.write_file("more", "[filter \"x\"]\n clean = ./evil\n");
            config(c, "includeIf.onbranch:main.path", "../more");
        },
        &["diff"],
    ),
    (
        "filter in the configuration of the worktree",
        |c| {
            attributes(c, "*.md filter=x\n");
            config(c, "extensions.worktreeConfig", "true");
            git(c, &["config", "--worktree", "filter.x.clean", "./evil"]);
        },
        &["diff"],
    ),
    (
        "converter",
        |c| {
            attributes(c, "*.md diff=x\n");
            config(c, "diff.x.textconv", "./evil");
            config(c, "diff.x.cachetextconv", "true");
        },
        &["diff"],
    ),
    (
        "program for differences",
        |c| {
            attributes(c, "*.md diff=x\n");
            config(c, "diff.x.command", "./evil");
        },
        &["diff"],
    ),
    (
        "program for all differences",
        |c| {
            c.write_file("a.md", "changed\n");
            config(c, "diff.external", "./evil");
        },
        &["diff"],
    ),
    (
        "signatures",
        |c| {
            sign(c);
            config(c, "log.showSignature", "true");
            config(c, "gpg.program", "/workspace/evil");
        },
        &["log"],
    ),
    ("submodule", submodule, &["status"]),
    ("partial clone", partial, &["diff"]),
];

/// What `PAGER`, hooks, helpers and editors name; nothing of ours would start them, and all of them
/// are there at once.
fn idle(capsule: &Capsule) {
    for key in [
        "core.pager",
        "pager.status",
        "pager.diff",
        "pager.log",
        "core.editor",
        "core.askPass",
        "core.sshCommand",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "credential.helper",
        "interactive.diffFilter",
        "sequence.editor",
        "gpg.ssh.program",
        "gpg.x509.program",
        "alias.status",
        "alias.diff",
        "alias.log",
        "uploadpack.packObjectsHook",
        "trailer.x.command",
        "trailer.x.cmd",
        "merge.x.driver",
        "diff.guitool",
        "difftool.x.cmd",
    ] {
        let value = if key.starts_with("alias.") { "!./evil" } else { "./evil" };
        config(capsule, key, value);
    }
    fs::create_dir_all(capsule.workspace().join("hooks")).unwrap();
    for hook in
        ["post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"]
    {
        let _ = capsule.write_program(&format!("hooks/{hook}"), EVIL);
    }
    config(capsule, "core.hooksPath", "/workspace/hooks");
}

fn hostile(done: fn(&Capsule)) -> Capsule {
    let capsule = repository();
    let _ = capsule.write_program("evil", EVIL);
    done(&capsule);
    // Not as git has written it down, so that it has to look at what is in there, and not only where the clock
    // has not gone on since.
    for path in ["a.md", "docs/b.md"] {
        let file = fs::File::options().append(true).open(capsule.workspace().join(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    capsule
}

/// B4, B5, B10, B11: what a repository names does not run. A plain command shows that it would.
#[test]
fn nothing_that_a_repository_names_runs() {
    let wrong = run_in_parallel(HOSTILE, |(what, done, line)| {
        let mut wrong = Vec::new();
        let capsule = hostile(*done);
        let policy = capsule.write_policy(POLICY);
        let shown = ["exec", "--policy", &policy, "--json", "--", "git"];
        let plain: Vec<&str> = shown.into_iter().chain(line.iter().copied()).collect();
        let marked = capsule.write_file(PLAIN, "");
        let plain = capsule.run(&plain).json();
        fs::remove_file(marked).unwrap();
        if !plain.to_string().contains("EVIL") {
            wrong.push(format!("{what}: a plain command runs nothing either: {plain}"));
        }
        for tool in ["git.status", "git.diff", "git.log"] {
            let answer = call(&capsule, &policy, tool, &json!({}));
            let could_not = *what == "partial clone" && answer["code"] == "git.failed";
            if answer["status"] != "ok" && !could_not {
                wrong.push(format!("{what}: {tool}: {answer}"));
            }
        }
        wrong
    });
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// B11: all that git would only start in other places.
#[test]
fn what_git_would_only_start_elsewhere_is_not_heeded() {
    let capsule = hostile(idle);
    let policy = capsule.write_policy(POLICY);
    let changed = capsule.write_file("a.md", "changed\n");
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!(status["entries"][0]["path"], "a.md");
    assert_eq!(result(&capsule, &policy, "git.log", json!({}))["entries"][0]["subject"], "first");
    let diff = result(&capsule, &policy, "git.diff", json!({}));
    assert_eq!(diff["files"][0]["path"], "a.md");
    assert_eq!(fs::read_to_string(changed).unwrap(), "changed\n");
}

/// Without namespaces the same holds.
#[test]
fn weaker_walls_answer_alike() {
    let capsule = hostile(|c| {
        c.write_file(".env", "TOKEN=1\n");
        git(c, &["add", "-f", ".env"]);
        attributes(c, "*.md filter=x\n");
        config(c, "filter.x.clean", "./evil");
        config(c, "core.fsmonitor", "./evil");
    });
    let policy = capsule.write_policy(&format!("{POLICY}sandbox: {{ floor: landlock }}\n"));
    for (tool, args) in [
        ("git.status", "{}"),
        ("git.diff", "{}"),
        ("git.diff", r#"{"staged":true}"#),
        ("git.log", "{}"),
    ] {
        let line = ["call", tool, "--policy", &policy, "--args", args];
        let answer = capsule.run_without_namespaces(&line).exits(0).json();
        assert_eq!(answer["status"], "ok", "{answer}");
        assert!(!answer.to_string().contains("TOKEN"), "{answer}");
    }
}

/// A repository that is not where it seems.
type Elsewhere = (&'static str, fn(&Capsule));

/// A repository that lies elsewhere, or whose files are said to, is not followed.
#[test]
fn a_repository_elsewhere_is_refused() {
    let at = |setup: fn(&Capsule)| {
        let capsule = capsule();
        setup(&capsule);
        let policy = capsule.write_policy(POLICY);
        call(&capsule, &policy, "git.status", &json!({}))
    };
    assert_eq!(at(|_| {})["code"], "git.no-repository");
    let rows: [Elsewhere; 5] = [
        ("a file that points outside", |c| {
            git(c, &["init", "-q", "--separate-git-dir", "../outside"]);
        }),
        ("a file that points inside", |c| {
            git(c, &["init", "-q", "--separate-git-dir", "other"]);
        }),
        ("a link", |c| {
            git(c, &["init", "-q", "other"]);
            symlink("other/.git", c.workspace().join(".git")).unwrap();
        }),
        ("a shared folder", |c| {
            git(c, &["init", "-q", "other"]);
            git(c, &["init", "-q"]);
            c.write_file(".git/commondir", "../other/.git\n");
        }),
        ("a worktree that another one names", |c| {
            git(c, &["init", "-q", "../main"]);
            git(c, &["-C", "../main", "commit", "-q", "--allow-empty", "-m", "x"]);
            let here = c.workspace();
            git(c, &["-C", "../main", "worktree", "add", "-qf", here.to_str().unwrap()]);
            let back = c.directory().join("main/.git/worktrees/ws/gitdir");
            fs::write(back, "/elsewhere/.git\n").unwrap();
        }),
    ];
    for (what, setup) in rows {
        let answer = at(setup);
        assert_eq!(answer["code"], "git.elsewhere", "{what}: {answer}");
    }
    // Where the files are is ours to say.
    let capsule = repository();
    config(&capsule, "core.worktree", "/etc");
    let policy = capsule.write_policy(POLICY);
    let status = result(&capsule, &policy, "git.status", json!({}));
    assert_eq!(status["entries"], json!([]));
    // A workspace that looks like a repository without files is none.
    let bare = self::capsule();
    git(&bare, &["init", "-q", "--bare", "."]);
    let answer = call(&bare, &bare.write_policy(POLICY), "git.log", &json!({}));
    assert_eq!(answer["code"], "git.no-repository");
}

/// B7: what an invariant or `fs.read` closes is not shown, neither as it is nor as it was.
#[test]
fn what_is_closed_is_left_out_and_said_to_be() {
    let capsule = repository();
    let policy = capsule.write_policy(&format!(
        "{POLICY}  fs.read: {{ decision: allow, hidden: allow, paths: {{ allow: [\"**\"], deny: [\"private/**\"] }} }}\n"
    ));
    capsule.write_file(".env", "TOKEN=old\n");
    capsule.write_file("keys/server.pem", "PEM\n");
    capsule.write_file("private/x", "PRIVATE\n");
    capsule.write_file("linked.md", "old\n");
    git(&capsule, &["add", "-f", "."]);
    git(&capsule, &["commit", "-qm", "all of it"]);
    capsule.write_file(".env", "TOKEN=new\n");
    capsule.write_file("keys/server.pem", "PEM2\n");
    capsule.write_file("private/x", "PRIVATE2\n");
    capsule.write_file("a.md", "open\n");
    // Another name of a closed file is closed as well, and one of a protected file protected.
    fs::remove_file(capsule.workspace().join("linked.md")).unwrap();
    fs::hard_link(capsule.workspace().join("private/x"), capsule.workspace().join("linked.md"))
        .unwrap();
    fs::remove_file(capsule.workspace().join("docs/b.md")).unwrap();
    fs::hard_link(capsule.workspace().join(".env"), capsule.workspace().join("docs/b.md")).unwrap();
    let closed = |answer: &Value, left_out: u64| {
        let text = answer.to_string();
        for part in ["TOKEN", "PEM", "PRIVATE", ".env", "server"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert_eq!(answer["left_out"], left_out, "{text}");
    };
    let diff = result(&capsule, &policy, "git.diff", json!({}));
    closed(&diff, 5);
    assert_eq!(diff["files"], json!([{ "path": "a.md", "added": 1, "removed": 1 }]));
    closed(&result(&capsule, &policy, "git.status", json!({})), 5);
    git(&capsule, &["add", "-f", ".env", "keys", "private"]);
    closed(&result(&capsule, &policy, "git.diff", json!({ "staged": true })), 3);
    // A protected file that is gone, and one that takes its content under an open name.
    git(&capsule, &["rm", "-q", "--cached", ".env"]);
    closed(&result(&capsule, &policy, "git.diff", json!({ "staged": true })), 3);
    for (path, code) in [
        (".env", "policy.never"),
        ("keys/server.pem", "policy.never"),
        ("private/x", "path.not-allowed"),
        ("private", "path.not-allowed"),
        (".ssh", "policy.never"),
    ] {
        for tool in ["git.diff", "git.log"] {
            let answer = call(&capsule, &policy, tool, &json!({ "paths": ["a.md", path] }));
            assert_eq!(answer["code"], code, "{tool} {path}: {answer}");
        }
    }
}

/// What a command changed in a staged workspace is what the repository is asked about.
#[test]
fn staged_changes_are_seen() {
    let capsule = repository();
    let policy = capsule.write_policy(
        "version: 1
tools:
  git.status: allow
  git.diff: allow
  fs.write: { decision: allow, paths: [\"**\"] }
sandbox: { workspace: staged, level: workspace-write }
",
    );
    let plan = capsule.write_plan(
        "version: 1
steps:
  - { id: write, tool: fs.write, args: { path: a.md, content: new, mode: overwrite } }
  - { id: diff, tool: git.diff, args: { paths: [a.md], staged: false } }
outputs: { text: { $ref: steps.diff.text } }
",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--json"]).exits(0).json();
    assert!(ran["outputs"]["text"].as_str().unwrap().contains("+new"), "{ran}");
}

/// CAP-10: a replay serves the record, without a repository.
#[test]
fn answers_replay_exactly() {
    let capsule = repository();
    capsule.write_file("a.md", "changed\n");
    let policy = capsule.write_policy(POLICY);
    let plan = capsule.write_plan(
        "version: 1
steps:
  - { id: status, tool: git.status, args: {} }
  - { id: diff, tool: git.diff, args: { paths: [a.md, docs] } }
  - { id: log, tool: git.log, args: { limit: 3 } }
  - { id: denied, tool: git.diff, args: { paths: [.env] }, expect: { denied: no-credentials } }
outputs: { text: { $ref: steps.diff.text }, log: { $ref: steps.log.entries } }
",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    fs::remove_dir_all(capsule.workspace().join(".git")).unwrap();
    fs::remove_file(capsule.workspace().join("a.md")).unwrap();
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}
