//! The staged workspace: what commands change is collected, judged path by path, shown, and taken
//! over or dropped by a person.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, Ran};
use serde_json::{Value, json};

const POLICY: &str = r#"version: 1
name: staged
tools:
  fs.read: { decision: allow, hidden: allow, paths: ["**"] }
  fs.list: { decision: allow, hidden: allow, paths: ["**"] }
  fs.search: { decision: allow, hidden: allow, paths: ["**"] }
  fs.write: { decision: allow, hidden: allow, paths: ["**"] }
  shell.run:
    limits: { timeout: 30s }
    executables:
      perl: { decision: allow, writes: ["**"] }
      touch: { decision: allow, writes: ["open/**"] }
      cat: allow
"#;

struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    fn new() -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        lay(&capsule.workspace());
        let policy = capsule.policy(POLICY);
        Self { capsule, policy }
    }

    fn exec(&self, argv: &[&str]) -> Ran {
        let line = ["exec", "--policy", &self.policy, "--json", "--"];
        self.capsule.run(&[&line, argv].concat())
    }

    fn perl(&self, script: &str) -> Ran {
        self.exec(&["perl", "-e", &format!("use strict; {script}")])
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.capsule.run(words)
    }

    fn tree(&self) -> Tree {
        tree(&self.capsule.workspace())
    }

    /// What `changes` says: a letter and a path for each.
    fn changes(&self) -> Vec<String> {
        let told = self.run(&["changes", "latest"]).exits(0);
        let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        told.stdout.lines().map(words).collect()
    }

    fn staged_folders(&self) -> usize {
        fs::read_dir(self.capsule.store().with_file_name("store.db.staged"))
            .map_or(0, Iterator::count)
    }
}

/// What every test finds in its workspace.
fn lay(root: &Path) {
    for folder in ["d/e", "full", "open", ".git/hooks", ".git/objects"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (path, text) in [
        ("a", "one\n"),
        ("b", "two\n"),
        ("d/x", "x\n"),
        ("d/e/y", "y\n"),
        ("full/1", "1"),
        ("full/2", "2"),
        ("full/3", "3"),
        (".env", "KEY=value\n"),
        (".git/config", "[core]\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ] {
        fs::write(root.join(path), text).unwrap();
    }
    symlink("a", root.join("link")).unwrap();
    fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o644)).unwrap();
}

/// A tree by content: what a person would see. Dates are not part of it.
type Tree = BTreeMap<String, String>;

fn tree(root: &Path) -> Tree {
    let mut all = Tree::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.mode() & 0o7777;
            let what = if meta.is_dir() {
                waiting.push(path);
                format!("folder {mode:o}")
            } else if meta.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else {
                format!("file {mode:o} {:?}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
            };
            all.insert(name, what);
        }
    }
    all
}

/// What every script begins with: writing a file in a line.
const PUT: &str = "sub put { open(my $f, '>', $_[0]) or die \"$_[0]: $!\"; print $f $_[1]; close $f } umask 022; ";

/// II-4, APR-11: whatever a command does in a staged workspace comes out, once it is applied, as if
/// it had been done in the workspace itself; and before that, nothing there changes.
#[test]
fn what_is_applied_is_what_was_done() {
    let rows: &[(&str, &[&str])] = &[
        ("put('new', 'n')", &["A new"]),
        ("put('a', 'other')", &["M a"]),
        ("open(my $f, '>>', 'a'); print $f 'more'", &["M a"]),
        ("put('a', '')", &["M a"]),
        ("mkdir 'n'; mkdir 'n/m'; put('n/m/f', 'deep')", &["A n/", "A n/m/", "A n/m/f"]),
        ("unlink 'a' or die", &["D a"]),
        ("rename 'a', 'c' or die", &["D a", "A c"]),
        ("rename 'a', 'b' or die", &["D a", "M b"]),
        ("rename 'd/x', 'open/x' or die", &["D d/x", "A open/x"]),
        ("mkdir 'n'; put('n/f', 1); rename 'n', 'm' or die", &["A m/", "A m/f"]),
        ("unlink 'd/e/y'; rmdir 'd/e' or die", &["D d/e/", "D d/e/y"]),
        (
            "unlink 'd/e/y', 'd/x'; rmdir 'd/e'; rmdir 'd' or die; put('d', 'file')",
            &["M d", "D d/e/", "D d/e/y", "D d/x"],
        ),
        ("unlink 'a'; mkdir 'a' or die; put('a/in', 1)", &["M a/", "A a/in"]),
        // The same folder again, with one of its files and a new one.
        (
            "unlink glob 'full/*'; rmdir 'full' or die; mkdir 'full'; put('full/2', 2); put('full/4', 4)",
            &["D full/1", "D full/3", "A full/4"],
        ),
        ("symlink '../b', 'd/link' or die", &["A d/link"]),
        ("unlink 'link'; symlink 'b', 'link' or die", &["M link"]),
        ("unlink 'link'; put('link', 'file')", &["M link"]),
        ("unlink 'b'; symlink 'a', 'b' or die", &["M b"]),
        ("put('link', 'through')", &["M a"]),
        ("link 'a', 'hard' or die; put('hard', 'both')", &["M a", "A hard"]),
        ("chmod 0755, 'b' or die", &["M b"]),
        ("chmod 0700, 'd' or die", &["M d/"]),
        ("mkdir 'n'; chmod 0750, 'n' or die", &["A n/"]),
        // Nothing differs in the end.
        ("utime 1, 1, 'a' or die", &[]),
        ("put('a', \"one\\n\")", &[]),
        ("put('tmp', 1); unlink 'tmp' or die", &[]),
        ("rename 'a', 'c'; rename 'c', 'a' or die", &[]),
        ("mkdir 'd/n'; rmdir 'd/n' or die", &[]),
        // Names that nobody expects.
        ("put(\"\\xc3\\xbc b'\\\"\\x20\", 1)", &["A ü"]),
        ("put('~', 1); put('$HOME', 2); put('-rf', 3)", &["A $HOME", "A -rf", "A ~"]),
        (
            "put('.git/objects/new', 1); put('.git/index', 2)",
            &["A .git/index", "A .git/objects/new"],
        ),
    ];
    for (script, expected) in rows {
        let bed = Bed::new();
        let before = bed.tree();
        let script = format!("{PUT}{script}");
        let ran = bed.perl(&script);
        assert_eq!(ran.status, 0, "{script}\n{}\n{}", ran.stdout, ran.stderr);
        assert_eq!(bed.tree(), before, "nothing changes before it is applied: {script}");
        if expected.is_empty() {
            assert_eq!(bed.changes(), ["the run"], "{script}");
            assert_eq!(bed.staged_folders(), 0, "{script}");
            continue;
        }
        assert_eq!(bed.changes(), *expected, "{script}");
        let _ = bed.run(&["apply", "latest"]).exits(0);
        // The same, done in a workspace directly.
        let twin = bed.capsule.around().join("twin");
        lay(&twin);
        let done = Command::new("perl").args(["-e", &script]).current_dir(&twin).status().unwrap();
        assert!(done.success(), "{script}");
        assert_eq!(bed.tree(), tree(&twin), "{script}");
        assert_eq!(bed.staged_folders(), 0, "nothing is left: {script}");
    }
}

/// C22, C24, C28, D11: what nobody may make is refused, and with it everything that the run changed.
#[test]
fn what_is_refused_is_never_applied() {
    let rows: &[(&str, &str)] = &[
        ("use POSIX; POSIX::mkfifo('pipe', 0600) or die", "a pipe"),
        ("put('p', 1); chmod 04755, 'p' or die", "run as its owner"),
        ("symlink '/etc/passwd', 'l' or die", "leads out"),
        ("symlink '../x', 'l' or die", "leads out"),
        ("symlink '../../x', 'd/l' or die", "leads out"),
        ("symlink '/workspace/a', 'l' or die", "leads out"),
        ("symlink '.git/hooks', 'l' or die", "Git runs"),
        ("symlink '.env', 'l' or die", "Credentials"),
        ("put('.git/hooks/pre-commit', 1)", "Git runs"),
        ("put('.git/config', 1)", "Git runs"),
        ("unlink '.git/config' or die", "Git runs"),
        ("put('.git/commondir', '/tmp/evil')", "Git runs"),
        (
            "mkdir '.git/rebase-merge'; put('.git/rebase-merge/git-rebase-todo', 'exec x')",
            "Git runs",
        ),
        ("mkdir 'sub'; put('sub/.git', 'gitdir: /tmp/evil')", "Git takes its orders"),
        ("mkdir 'sub'; mkdir 'sub/.git'", "Git takes its orders"),
        ("put('.gitmodules', 1)", "Git runs"),
        ("mkdir '.vscode'; put('.vscode/tasks.json', '{}')", "Editors"),
        (
            "mkdir '.github'; mkdir '.github/workflows'; put('.github/workflows/x.yml', 1)",
            "Editors",
        ),
        ("put('.bashrc', 1)", "Editors"),
        ("mkdir '.capsule'; put('.capsule/policy.yaml', 1)", "own rules"),
        ("put('new.env', 1); rename 'new.env', 'd/.env' or die", "Credentials"),
        ("put('id_rsa', 1)", "Credentials"),
        ("put(\"bad\\xff\", 1)", "not text"),
        ("put(\"line\\nbreak\", 1)", "no call can name"),
    ];
    let mut wrong = Vec::new();
    for (script, why) in rows {
        let bed = Bed::new();
        let before = bed.tree();
        // What is fine by itself goes down with it.
        let ran = bed.perl(&format!("{PUT}put('fine', 1); {script}"));
        let answer = ran.json();
        let reason = answer["reason"].as_str().unwrap_or_default();
        if ran.status != 3 || answer["code"] != "change.refused" || !reason.contains(why) {
            wrong.push(format!("{script}: {} {answer}", ran.status));
            continue;
        }
        let applied = bed.run(&["apply", "latest"]).exits(3);
        assert!(applied.stderr.contains("change.refused"), "{}", applied.stderr);
        assert_eq!(bed.tree(), before, "{script}");
        let _ = bed.run(&["discard", "latest"]).exits(0);
        assert_eq!(bed.staged_folders(), 0, "{script}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22, C23: a path is protected or not, whichever door a change comes through.
#[test]
fn both_doors_agree() {
    let rows = [
        (".git/hooks/pre-commit", false),
        (".git/config", false),
        (".git/config.worktree", false),
        (".git/info/attributes", false),
        (".git/commondir", false),
        (".git/modules/m/config", false),
        (".git/worktrees/w/gitdir", false),
        (".git/rebase-merge/git-rebase-todo", false),
        (".git/index", true),
        (".git/refs/heads/main", true),
        (".git/objects/00/00", true),
        (".gitmodules", false),
        (".gitattributes", true),
        ("sub/.git", false),
        (".vscode/settings.json", false),
        (".idea/workspace.xml", false),
        (".github/workflows/ci.yml", false),
        (".github/README.md", true),
        (".envrc", false),
        (".env", false),
        (".env.example", true),
        (".ssh/authorized_keys", false),
        (".capsule/policy.yaml", false),
        ("src/main.rs", true),
    ];
    let mut wrong = Vec::new();
    for (path, open) in rows {
        let bed = Bed::new();
        let args = json!({ "path": path, "content": "x" }).to_string();
        let tool = bed.run(&["call", "fs.write", "--policy", &bed.policy, "--args", &args]);
        let folders = "my $p = ''; my @n = split m{/}, $ARGV[0]; pop @n; for (@n) { $p .= \"$_/\"; mkdir $p }";
        let script = format!("{PUT}{folders}; put($ARGV[0], 'x')");
        let program = bed.exec(&["perl", "-e", &script, "--", path]);
        let (by_tool, by_program) = (tool.status == 0, program.status == 0);
        if (by_tool, by_program) != (open, open) {
            wrong.push(format!("{path}: tool {by_tool}, program {by_program}: {}", program.stdout));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A rule's `writes` bound its program, and a program without any changes nothing.
#[test]
fn rules_bound_what_programs_write() {
    let bed = Bed::new();
    let _ = bed.exec(&["touch", "open/new"]).exits(0);
    let refused = bed.exec(&["touch", "open/new", "closed"]).exits(3).json();
    assert_eq!(refused["code"], "change.refused");
    assert_eq!(refused["result"]["changes_total"], 2);
    let listed = bed.run(&["changes", "latest"]).exits(0);
    assert!(listed.stdout.contains("A closed  0 B  ✖ refused"), "{}", listed.stdout);
    assert!(listed.stderr.contains("not to be applied"), "{}", listed.stderr);
    // `cat` has no `writes`: it sees the workspace read-only, by the kernel.
    let policy = bed.capsule.policy(&POLICY.replace(r#"writes: ["**"]"#, "writes: []"));
    let script = format!("{PUT}put('a', 'x')");
    let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", &script];
    let ran = bed.run(&line).exits(30);
    assert!(ran.stdout.contains("Read-only file system"), "{}", ran.stdout);
}

/// `decisions.md` 3: tools and commands of a run see the same files.
#[test]
fn tools_and_commands_see_one_workspace() {
    let bed = Bed::new();
    let plan = bed.capsule.plan(
        r#"version: 1
steps:
  - { id: write, tool: fs.write, args: { path: open/new, content: by-tool } }
  - { id: cat, tool: shell.run, args: { argv: [cat, open/new] }, expect: { stdout: by-tool } }
  - id: change
    tool: shell.run
    args: { argv: [perl, -e, "open(F, '>', 'd/x'); print F 'by-program'; close F; unlink 'a'; open(F, '>', '.env.local'); print F 'S'"] }
    on_error: continue
  - { id: read, tool: fs.read, args: { path: d/x }, expect: { text: by-program } }
  - { id: gone, tool: fs.read, args: { path: a }, expect: { failed: fs.not-found } }
  - { id: hidden, tool: fs.read, args: { path: .env.local }, expect: { denied: no-credentials } }
  - { id: masked, tool: shell.run, args: { argv: [perl, -e, "open(F, '<', '.env.local') and print 'seen ', <F>"] }, expect: { stdout: "" } }
  - { id: list, tool: fs.list, args: { path: open } }
  - { id: search, tool: fs.search, args: { path: ., name: new } }
  - { id: append, tool: fs.write, args: { path: d/x, content: +tool, mode: append } }
  - { id: again, tool: shell.run, args: { argv: [cat, d/x] }, expect: { stdout: by-program+tool } }
"#,
    );
    let before = bed.tree();
    let ran = bed.run(&["run", &plan, "--policy", &bed.policy, "--json"]);
    let story = ran.json();
    let endings: Vec<String> = story["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            format!("{}={}", step["step"].as_str().unwrap(), step["ending"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        endings,
        [
            "write=ok",
            "cat=ok",
            "change=denied",
            "read=ok",
            "gone=failed-as-expected",
            "hidden=denied-as-expected",
            "masked=ok",
            "list=ok",
            "search=ok",
            "append=ok",
            "again=ok",
        ],
        "{}",
        ran.stderr
    );
    assert_eq!(bed.tree(), before);
    let names = |call: usize| story["calls"][call]["result"]["entries"].to_string();
    assert!(names(7).contains("open/new") && names(8).contains("open/new"), "{story}");
    let _ = bed.run(&["replay", "latest"]).exits(3);
    let _ = bed.run(&["verify", "latest"]).exits(0);
}

/// What somebody does to a workspace, in words and in deed.
type ByPerson<'p> = (&'p str, &'p dyn Fn(&Path));

/// APR-10: what somebody changed meanwhile is never written over.
#[test]
fn conflicts_are_found_before_anything_is_applied() {
    let script = format!(
        "{PUT}put('a', 'agent'); put('d/x', 'agent'); put('new', 1); unlink 'full/1', 'full/2', 'full/3'; rmdir 'full'"
    );
    let by_person: &[ByPerson<'_>] = &[
        ("another content", &|root| fs::write(root.join("a"), "person").unwrap()),
        ("gone", &|root| fs::remove_file(root.join("a")).unwrap()),
        ("a folder in its place", &|root| {
            fs::remove_file(root.join("a")).unwrap();
            fs::create_dir(root.join("a")).unwrap();
        }),
        ("something where nothing was", &|root| fs::write(root.join("new"), "p").unwrap()),
        ("something new in a folder that goes", &|root| {
            fs::write(root.join("full/4"), "p").unwrap()
        }),
        ("a link in the place of a folder", &|root| {
            fs::rename(root.join("d"), root.join("../elsewhere")).unwrap();
            symlink("../elsewhere", root.join("d")).unwrap();
        }),
        ("another mode", &|root| {
            fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
    ];
    for (what, change) in by_person {
        let bed = Bed::new();
        let _ = bed.perl(&script).exits(0);
        change(&bed.capsule.workspace());
        let before = bed.tree();
        let refused = bed.run(&["apply", "latest"]).exits(1);
        assert!(refused.stderr.contains("change.conflict"), "{what}: {}", refused.stderr);
        assert_eq!(bed.tree(), before, "{what}");
        let elsewhere = fs::read_to_string(bed.capsule.around().join("elsewhere/x"));
        assert_ne!(elsewhere.unwrap_or_default(), "agent", "{what}");
    }
    // What a person did in the very same way is no conflict.
    let bed = Bed::new();
    let _ = bed.perl(&script).exits(0);
    fs::write(bed.capsule.workspace().join("new"), "1").unwrap();
    let applied = bed.run(&["apply", "latest", "--json"]).exits(0).json();
    assert_eq!(applied["result"]["applied"], 6, "{applied}");
    assert_eq!(applied["result"]["applied_before"], 1);
}

/// C23: a repository takes commits, and its owner finds them there.
#[test]
fn git_commits_in_the_sandbox() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    fs::remove_dir_all(root.join(".git")).unwrap();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(words).current_dir(&root).env("HOME", bed.capsule.home());
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    for words in [
        &["init", "-q", "."][..],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.org"],
        &["add", "a"],
        &["commit", "-q", "-m", "first"],
    ] {
        git(words);
    }
    let policy = bed.capsule.policy(
        "version: 1
tools:
  shell.run:
    executables:
      git:
        decision: allow
        subcommands:
          add: { decision: allow, writes: [\".git/**\"] }
          commit: { decision: allow, flags: { allow: [-m] }, writes: [\".git/**\"] }
          log: allow
",
    );
    let plan = bed.capsule.plan(
        "version: 1
steps:
- { tool: shell.run, args: { argv: [git, add, b] } }
- { tool: shell.run, args: { argv: [git, commit, -m, second] } }
- { tool: shell.run, args: { argv: [git, log] }, expect: { stdout: { contains: second } } }
",
    );
    let _ = bed.run(&["run", &plan, "--policy", &policy]).exits(0);
    assert!(!git(&["log"]).contains("second"), "nothing is there before it is applied");
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert!(git(&["log"]).contains("second"));
    git(&["fsck", "--strict"]);
    assert_eq!(git(&["ls-files"]), "a\nb\n");
}

/// A file that somebody saves while the command runs is a change of two, and belongs to none.
#[test]
fn a_change_under_the_hands_is_refused() {
    let bed = Bed::new();
    let script = format!(
        "{PUT}put('a', 'agent'); $| = 1; print qq(written\\n); select(undef, undef, undef, 1)"
    );
    let line = ["exec", "--policy", &bed.policy, "--", "perl", "-e", &script];
    let mut child = bed.capsule.command(&line);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = [0; 8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut seen).unwrap();
    fs::write(bed.capsule.workspace().join("a"), "person").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let told = bed.run(&["changes", "latest"]).exits(0);
    assert!(told.stdout.contains("while the command ran"), "{}", told.stdout);
    let _ = bed.run(&["apply", "latest"]).exits(3);
    assert_eq!(fs::read_to_string(bed.capsule.workspace().join("a")).unwrap(), "person");
}

/// Each run has changes of its own; what was taken over or dropped cannot be again.
#[test]
fn changes_end_once() {
    let bed = Bed::new();
    let _ = bed.perl(&format!("{PUT}put('n', 1)")).exits(0);
    let early = bed.run(&["changes", "latest", "--json"]).exits(0).json();
    let run = early["run"].as_str().unwrap();
    assert_eq!((&early["staged"], &early["changes"][0]["path"]), (&json!(true), &json!("n")));
    let _ = bed.run(&["apply", run]).exits(0);
    assert_eq!(bed.run(&["changes", run, "--json"]).json()["staged"], false);
    for word in ["apply", "discard"] {
        let refused = bed.run(&[word, run]).exits(2);
        assert!(refused.stderr.contains("change.none"), "{}", refused.stderr);
    }
    // The run that took them over is one of its own, and replays.
    let applied = bed.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(applied["opened"]["entry"]["subject"], run);
    assert_eq!(applied["calls"][0]["tool"], "changes.apply");
    fs::remove_dir_all(bed.capsule.workspace()).unwrap();
    fs::create_dir(bed.capsule.workspace()).unwrap();
    for run in [run, "latest"] {
        let _ = bed.run(&["replay", run]).exits(0);
    }
    assert_eq!(bed.tree(), Tree::new(), "a replay touches nothing");
    let _ = bed.run(&["verify"]).exits(0);
    // The workspace is another folder by now.
    let _ = bed.perl(&format!("{PUT}put('n', 1)")).exits(0);
    fs::rename(bed.capsule.workspace(), bed.capsule.around().join("moved")).unwrap();
    fs::create_dir(bed.capsule.workspace()).unwrap();
    let refused = bed.run(&["apply", "latest"]).exits(2);
    assert!(refused.stderr.contains("another folder"), "{}", refused.stderr);
}

/// No plan, policy or call can name what only a person's command does.
#[test]
fn nobody_but_a_person_applies() {
    let bed = Bed::new();
    let args = json!({ "run": "x", "changes": "[]" }).to_string();
    let line = ["call", "changes.apply", "--policy", &bed.policy, "--args", &args];
    let refused = bed.run(&line).exits(3).json();
    assert_eq!(refused["code"], "policy.no-rule", "{refused}");
    let policy = bed.capsule.policy("version: 1\ntools:\n  changes.apply: allow\n");
    let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(refused.stderr.contains("changes.apply"), "{}", refused.stderr);
    let plan = bed
        .capsule
        .plan("version: 1\nsteps:\n- { tool: changes.apply, args: { run: x, changes: \"[]\" } }\n");
    let _ = bed.run(&["plan", "check", &plan]).exits(2);
}

/// Rows of policies that would promise what nothing keeps.
#[test]
fn contradictions_are_refused() {
    let bed = Bed::new();
    let base = "version: 1\ntools:\n  shell.run:\n    executables: { touch: { decision: allow, writes: [\"a\"] } }\n";
    for (more, code) in [
        ("sandbox: { workspace: read-only }\n", "policy.unknown-value"),
        ("sandbox: { workspace: direct }\n", "policy.not-yet-supported"),
        ("audit: { payloads: digest }\n", "policy.unknown-value"),
    ] {
        let policy = bed.capsule.policy(&format!("{base}{more}"));
        let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
        assert!(refused.stderr.contains(code), "{more}: {}", refused.stderr);
    }
    let outside = base.replace("\"a\"", "\"/etc/**\"");
    let policy = bed.capsule.policy(&outside);
    let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(refused.stderr.contains("outside of the workspace"), "{}", refused.stderr);
}

/// SAF-4: a command that fills the disk is ended, and what it wrote is dropped.
#[test]
fn the_size_of_changes_is_bounded() {
    let bed = Bed::new();
    let many = format!("{PUT}mkdir 'many'; for my $n (0 .. 30_000) {{ put(\"many/$n\", '') }}");
    let large = "for my $n (1 .. 8) { system('fallocate', '-l', '200M', \"large$n\") == 0 or die } sleep 20";
    for script in [many.as_str(), large] {
        let began = Instant::now();
        let ended = bed.perl(script).exits(1).json();
        assert_eq!(ended["code"], "change.too-many", "{ended}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let _ = bed.run(&["apply", "latest"]).exits(3);
        let _ = bed.run(&["discard", "latest"]).exits(0);
        assert_eq!(bed.staged_folders(), 0);
    }
}

/// However deep it is nested and whatever its permissions are, what is dropped is gone.
#[test]
fn odd_trees_are_dropped() {
    let bed = Bed::new();
    let deep = "for (1 .. 3_000) { mkdir 'deep' or die; chdir 'deep' or die }";
    let closed =
        format!("{PUT}mkdir 'c'; mkdir 'c/d'; put('c/d/f', 1); chmod 0, 'c/d/f', 'c/d', 'c'");
    for script in [deep, &closed] {
        assert_ne!(bed.perl(script).status, -1);
        let _ = bed.run(&["discard", "latest"]).exits(0);
        assert_eq!(bed.staged_folders(), 0, "{script}");
    }
}

/// A run that is killed changed nothing, and its changes can only be dropped.
#[test]
fn a_killed_run_is_not_applied() {
    let bed = Bed::new();
    let before = bed.tree();
    let script = format!("{PUT}put('a', 'agent'); $| = 1; print qq(written\\n); sleep 100");
    let line = ["exec", "--policy", &bed.policy, "--", "perl", "-e", &script];
    let mut child = bed.capsule.command(&line);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = [0; 8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut seen).unwrap();
    let early = bed.run(&["apply", "latest"]).exits(1);
    assert!(early.stderr.contains("not at its end"), "{}", early.stderr);
    let _ = bed.run(&["discard", "latest"]).exits(1);
    child.kill().unwrap();
    let _ = child.wait().unwrap();
    assert_eq!(bed.tree(), before);
    let refused = bed.run(&["apply", "latest"]).exits(1);
    assert!(refused.stderr.contains("crashed"), "{}", refused.stderr);
    let _ = bed.run(&["discard", "latest"]).exits(0);
    assert_eq!((bed.tree(), bed.staged_folders()), (before, 0));
}

/// APR-10: taking over that is killed leaves each path old or new, a record, and can be gone on with.
#[test]
fn a_killed_apply_can_be_gone_on_with() {
    const FILES: usize = 400;
    let script = format!(
        "{PUT}for my $n (1 .. {FILES}) {{ put(\"f$n\", 'new') }} put('b', 'new'); unlink 'a'"
    );
    let mut interrupted = 0;
    for round in 0..12 {
        let bed = Bed::new();
        for n in 1..=FILES / 2 {
            bed.capsule.file(&format!("f{n}"), "old");
        }
        let before = bed.tree();
        let _ = bed.perl(&script).exits(0);
        let told = bed.run(&["changes", "latest", "--json"]).exits(0).json();
        let run = told["run"].as_str().unwrap();
        let mut child = bed.capsule.command(&["apply", run]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 + round * 25));
        let over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        let after = bed.tree();
        let is_new = |path: &str| after.get(path).is_some_and(|text| text.ends_with("\"new\""));
        for path in (1..=FILES).map(|n| format!("f{n}")).chain(["b".into()]) {
            let whole = is_new(&path) || after.get(&path) == before.get(&path);
            assert!(whole, "{path} is neither old nor new: {:?}", after.get(&path));
        }
        let told = bed.run(&["changes", run, "--json"]).exits(0).json();
        if !over && told["staged"] == true {
            interrupted += 1;
            let _ = bed.run(&["apply", run]).exits(0);
        }
        let done = bed.tree();
        assert!((1..=FILES).all(|n| done[&format!("f{n}")].ends_with("\"new\"")));
        assert!(!done.contains_key("a") && done["b"].ends_with("\"new\""));
        assert!(!done.keys().any(|path| path.contains(".capsule-apply")), "{:?}", done.keys());
        let _ = bed.run(&["verify"]).exits(0);
    }
    assert!(interrupted > 0, "none was interrupted");
}

/// What is shown says what differs; credentials in it are masked.
#[test]
fn differences_are_shown() {
    let bed = Bed::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let _ = bed
        .perl(&format!("{PUT}put('a', \"two\\n{token}\\n\"); put('d/bin', \"\\0\\xff\")"))
        .exits(0);
    let shown = bed.run(&["changes", "latest", "--diff"]).exits(0).stdout;
    assert!(shown.contains("  -one\n  +two\n"), "{shown}");
    assert!(!shown.contains(&token), "{shown}");
    let detail = bed.run(&["show-run", "latest:1"]).exits(0).stdout;
    assert!(detail.contains("changes      M a"), "{detail}");
    let report = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("2 changes staged"), "{report}");
    let call: Value = bed.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(call["changes"][0]["path"], "a");
}
