//! The staged workspace: what commands change is collected, judged path by path, shown, and taken
//! over or dropped by a person.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capsule_testkit::{Capsule, CommandOutput, is_nightly, run_in_parallel};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[path = "staged/closed.rs"]
mod closed;
#[path = "staged/copied.rs"]
mod copied;
#[path = "staged/swapped.rs"]
mod swapped;

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
sandbox: { changes: { paths: 10000 } }
"#;

struct Bed {
    capsule: Capsule,
    policy: String,
    /// Whether the kernel is brought to refuse to lay changes over the workspace.
    copied: bool,
}

impl Bed {
    fn new() -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        lay(&capsule.workspace());
        let policy = capsule.write_policy(POLICY);
        Self { capsule, policy, copied: false }
    }

    /// The command with these arguments, to be run where the bed is.
    fn command(&self, words: &[&str]) -> Command {
        let inner = self.capsule.command(words);
        if self.copied { copied::under_a_mount(&inner, &self.capsule.workspace()) } else { inner }
    }

    fn exec(&self, argv: &[&str]) -> CommandOutput {
        let line = ["exec", "--policy", &self.policy, "--json", "--"];
        self.run(&[&line, argv].concat())
    }

    fn perl(&self, script: &str) -> CommandOutput {
        self.exec(&["perl", "-e", &format!("use strict; {script}")])
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.command(words).stdin(Stdio::null()).output().unwrap().into()
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

    /// Whether a running command has written a file so far.
    fn has_staged(&self, path: &str) -> bool {
        has_staged(&self.capsule.workspace(), path)
    }

    fn staged_folders(&self) -> usize {
        fs::read_dir(self.capsule.store().with_file_name("store.db.staged"))
            .map_or(0, Iterator::count)
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{what}: not after {:?}",
            began.elapsed()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What every test finds in its workspace.
fn lay(root: &Path) {
    for folder in ["d/e", "mnt", "full", "deep/sub", "open", ".git/hooks", ".git/objects"] {
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
        ("deep/sub/1", "1"),
        ("deep/sub/2", "2"),
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

/// APR-11, APR-2: whatever a command does in a staged workspace comes out, once it is applied, as
/// if it had been done in the workspace itself; and before that, nothing there changes.
#[test]
fn what_is_applied_is_what_was_done() {
    is_done_when_applied(Bed::new);
}

fn is_done_when_applied(make: fn() -> Bed) {
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
        // Two levels of it: the kernel marks only the upper one.
        (
            "unlink glob 'deep/sub/*'; rmdir 'deep/sub'; rmdir 'deep' or die; mkdir 'deep'; mkdir 'deep/sub'; \
             put('deep/sub/3', 3)",
            &["D deep/sub/1", "D deep/sub/2", "A deep/sub/3"],
        ),
        (
            "mkdir 'n'; mkdir 'n/sub'; put('n/sub/3', 3); unlink glob 'deep/sub/*'; rmdir 'deep/sub'; \
             rmdir 'deep'; rename 'n', 'deep' or die",
            &["D deep/sub/1", "D deep/sub/2", "A deep/sub/3"],
        ),
        // Folders that are closed once everything is in them.
        ("mkdir 'ro'; put('ro/f', 1); chmod 0555, 'ro' or die", &["A ro/", "A ro/f"]),
        ("put('d/x', 'y'); chmod 0500, 'd' or die", &["M d/", "M d/x"]),
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
        let bed = make();
        let (before, root) = (bed.tree(), bed.capsule.workspace());
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
        let twin = bed.capsule.directory().join("twin");
        lay(&twin);
        let done = Command::new("perl").args(["-e", &script]).current_dir(&twin).status().unwrap();
        assert!(done.success(), "{script}");
        assert_eq!(bed.tree(), tree(&twin), "{script}");
        // So that an ordinary user can remove them.
        for closed in ["ro", "d"].iter().flat_map(|name| [twin.join(name), root.join(name)]) {
            let _ = fs::set_permissions(closed, fs::Permissions::from_mode(0o755));
        }
        assert_eq!(bed.staged_folders(), 0, "nothing is left: {script}");
    }
}

/// C22, C24, C28, D11: what nobody may make is refused, and with it everything that the run changed.
#[test]
fn what_is_refused_is_never_applied() {
    is_never_applied(Bed::new);
}

fn is_never_applied(make: fn() -> Bed) {
    let rows: &[(&str, &str)] = &[
        ("use POSIX; POSIX::mkfifo('pipe', 0600) or die", "a pipe"),
        ("put('p', 1); chmod 04755, 'p' or die", "run as its owner"),
        ("put('p', 1); chmod 01644, 'p' or die", "run as its owner"),
        ("symlink '/etc/passwd', 'l' or die", "leads out"),
        ("symlink '..', 'd/up' or die; symlink 'd/up/open', 'l' or die", "through another link"),
        ("mkdir 'r'; put('r/commondir', '../b')", "looks like a repository"),
        (
            "mkdir 'r'; mkdir 'r/objects'; mkdir 'r/refs'; put('r/HEAD', 'ref: x'); put('r/config', 1)",
            "looks like a repository",
        ),
        ("symlink '../x', 'l' or die", "leads out"),
        ("symlink '../../x', 'd/l' or die", "leads out"),
        ("symlink '/workspace/a', 'l' or die", "leads out"),
        ("symlink \"a\\x01b\", 'l' or die", "holds a control character"),
        ("symlink 'x' x 4_000, 'l' or die", "too long"),
        ("symlink 'd/e/../x', 'l' or die", "may be a link"),
        ("symlink '~/x', 'l' or die", "begins with `~`"),
        ("symlink \"bad\\xff\", 'l' or die", "a name that is not text"),
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
        ("put('dump-ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2.txt', 1)", "like a secret"),
        ("symlink 'ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2', 'l' or die", "like a secret"),
        ("put(\"bad\\xff\", 1)", "not text"),
        ("put(\"bell\\x07ring\", 1)", "no call can name"),
    ];
    let mut wrong = Vec::new();
    for (script, why) in rows {
        let bed = make();
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
        let _ = bed.run(&["verify"]).exits(0);
        let _ = bed.run(&["replay", "latest"]).exits(3);
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
        // With a reference that stands for nothing it would be a repository.
        (".git/refs/heads/main", false),
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

/// C25: a store that an earlier run left in the workspace is closed to commands as it is to tools,
/// whatever its name, and so is what SQLite would read with it.
#[test]
fn what_lies_beside_a_store_is_refused() {
    is_beside_a_store(&Bed::new());
}

fn is_beside_a_store(bed: &Bed) {
    let root = bed.capsule.workspace();
    let line = ["call", "fs.list", "--policy", &bed.policy, "--out", "run.db", "--args"];
    let _ = bed.run(&[&line[..], &[r#"{"path":"."}"#]].concat()).exits(0);
    fs::copy(root.join("run.db"), root.join("d/notes.txt")).unwrap();
    let mut wrong = Vec::new();
    for script in [
        "put('run.db-journal', 1)",
        "put('run.db-wal', 1)",
        "put('d/notes.txt-journal', 1)",
        "put('d/notes.txt', 1)",
        "unlink 'd/notes.txt' or die",
        "mkdir 'run.db.locks'; put('run.db.locks/one', 1)",
        "symlink 'a', 'run.db-wal' or die",
    ] {
        let before = bed.tree();
        let ran = bed.perl(&format!("{PUT}{script}"));
        let reason = ran.json()["reason"].as_str().unwrap_or_default().to_owned();
        let applied = bed.run(&["apply", "latest"]);
        if (ran.status, applied.status) != (3, 3) || !reason.contains("store of Capsule") {
            wrong.push(format!("{script}: {} {} {}", ran.status, applied.status, ran.stdout));
        }
        assert_eq!(bed.tree(), before, "{script}");
        let _ = bed.run(&["discard", "latest"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Beside another program's database they are files like any other.
    let _ = bed.perl(&format!("{PUT}put('other.db-journal', 1)")).exits(0);
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
    let policy = bed.capsule.write_policy(&POLICY.replace(r#"writes: ["**"]"#, "writes: []"));
    let script = format!("{PUT}put('a', 'x')");
    let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", &script];
    let ran = bed.run(&line).exits(30);
    assert!(ran.stdout.contains("Read-only file system"), "{}", ran.stdout);
}

/// A rule's `reads` bound what its program sees, whatever it calls it.
#[test]
fn rules_bound_what_programs_read() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    for (path, text) in [("docs/a.md", "open"), ("docs/b.txt", "closed"), ("src/c.md", "closed")] {
        bed.capsule.write_file(path, text);
    }
    fs::hard_link(root.join("src/c.md"), root.join("docs/hard.md")).unwrap();
    symlink("../src/c.md", root.join("docs/soft.md")).unwrap();
    let policy = bed.capsule.write_policy(
        "version: 1
tools:
  shell.run:
    executables:
      perl: { decision: allow, reads: [\"docs/*.md\"], writes: [\"**\"] }
      git: { decision: allow, reads: [\"docs/**\"], subcommands: { log: { decision: allow, reads: [\"**\"] } } }
      cat: allow
",
    );
    let perl = |script: &str| {
        let line = ["exec", "--policy", &policy, "--json", "--", "perl", "-e", script];
        bed.run(&line).json()["result"]["stdout"].as_str().unwrap().to_owned()
    };
    let read = |path: &str| perl(&format!("open(F, '<', '{path}') and print <F>"));
    assert_eq!(read("docs/a.md"), "open");
    for path in ["docs/b.txt", "src/c.md", "docs/hard.md", "docs/soft.md", "a", ".git/HEAD", "d/x"]
    {
        assert_eq!(read(path), "", "{path}");
    }
    assert_eq!(perl("opendir(D, 'src') and print grep { !/^[.]+$/ } readdir D"), "");
    // What it makes is its own to read, within its call.
    assert_eq!(
        perl("open(F, '>', 'new'); print F 1; close F; open(F, '<', 'new'); print <F>"),
        "1"
    );
    let _ = bed.run(&["exec", "--policy", &policy, "--", "cat", "src/c.md"]).exits(0);
}

/// `decisions.md` 3: tools and commands of a run see the same files.
#[test]
fn tools_and_commands_see_one_workspace() {
    is_one_workspace(&Bed::new());
}

fn is_one_workspace(bed: &Bed) {
    let plan = bed.capsule.write_plan(
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

/// What somebody changed meanwhile is never written over.
#[test]
fn conflicts_are_found_before_anything_is_applied() {
    are_found(Bed::new);
}

fn are_found(make: fn() -> Bed) {
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
        let bed = make();
        let _ = bed.perl(&script).exits(0);
        change(&bed.capsule.workspace());
        let before = bed.tree();
        let refused = bed.run(&["apply", "latest"]).exits(1);
        assert!(refused.stderr.contains("change.conflict"), "{what}: {}", refused.stderr);
        assert_eq!(bed.tree(), before, "{what}");
        let elsewhere = fs::read_to_string(bed.capsule.directory().join("elsewhere/x"));
        assert_ne!(elsewhere.unwrap_or_default(), "agent", "{what}");
    }
    // What a person did in the very same way is no conflict.
    let bed = make();
    let _ = bed.perl(&script).exits(0);
    fs::write(bed.capsule.workspace().join("new"), "1").unwrap();
    let applied = bed.run(&["apply", "latest", "--json"]).exits(0).json();
    assert_eq!(applied["result"]["applied"], 6, "{applied}");
    assert_eq!(applied["result"]["applied_before"], 1);
}

/// Whether a running command in a workspace of a [`Bed`] has written a file so far.
fn has_staged(root: &Path, path: &str) -> bool {
    let folder = root.join("../home/.local/share/capsule/store.db.staged");
    let runs = fs::read_dir(folder).into_iter().flatten().flatten();
    runs.into_iter().any(|run| run.path().join("changes").join(path).exists())
}

/// What is done during a run: in words, what the run did before, the deed, what the run does behind it,
/// and the path that is somebody's own.
type Meanwhile<'m> = (&'m str, &'m str, &'m dyn Fn(&Path), &'m str, &'m str);

/// Runs a plan of which the second step waits, and does something meanwhile.
fn meanwhile(bed: &Bed, first: &str, deed: &dyn Fn(&Path), last: &str) -> i32 {
    let step = |script: &str| {
        let argv = json!(["perl", "-e", format!("use strict; {PUT}{script}")]);
        format!("- {{ tool: shell.run, args: {{ argv: {argv} }} }}\n")
    };
    let first = format!("{first}; put('open/first', 1)");
    let steps = [step(&first), step("select(undef, undef, undef, 1.2)"), step(last)].concat();
    let plan = bed.capsule.write_plan(&format!("version: 1\nsteps:\n{steps}"));
    let line = ["run", &plan, "--policy", &bed.policy];
    let mut child = bed.command(&line).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the first step is over", || bed.has_staged("open/first"));
    deed(&bed.capsule.workspace());
    child.wait().unwrap().code().unwrap()
}

/// The kernel does not tell a run what becomes of the workspace beneath its changes: whatever somebody
/// changes there during the run is never written over, removed, or taken for something else.
#[test]
fn what_somebody_does_during_a_run_is_kept() {
    is_kept(Bed::new);
}

fn is_kept(make: fn() -> Bed) {
    let save = |path: &'static str| {
        move |root: &Path| {
            fs::write(root.join("saved"), "person").unwrap();
            fs::rename(root.join("saved"), root.join(path)).unwrap();
        }
    };
    let swap = |root: &Path| {
        fs::rename(root.join("d"), root.join("../away")).unwrap();
        fs::rename(root.join("deep/sub"), root.join("d")).unwrap();
    };
    // While a command runs, nothing can be hidden from it any more.
    let swap_late = |root: &Path| {
        wait_until("the last step runs", || has_staged(root, "open/last"));
        swap(root);
        fs::write(root.join("d/stamp"), "person").unwrap();
    };
    let late = "open(my $g, '<', 'd/x'); put('open/last', 1); select(undef, undef, undef, 1); open(my $f, '>>', 'd/x') or die; \
                print $f 1";
    let appear = |root: &Path| {
        fs::create_dir_all(root.join("../n")).unwrap();
        fs::write(root.join("../n/f"), "person").unwrap();
        fs::rename(root.join("../n"), root.join("new")).unwrap();
    };
    let mkdir = "mkdir 'new'; put('new/f', 'agent')";
    let add = |root: &Path| {
        fs::create_dir(root.join("full/work")).unwrap();
        fs::write(root.join("full/work/day"), "person").unwrap();
    };
    let append = |path: &str| format!("open(my $f, '>>', '{path}') or die; print $f 'agent'");
    let look = "open(my $f, '<', 'a'); my $t = <$f>; -e 'new'; -e 'd/x'";
    let recreate = "unlink glob 'full/*'; rmdir 'full' or die; mkdir 'full'";
    let rows: &[Meanwhile<'_>] = &[
        ("saved", look, &save("a"), &append("a"), "a"),
        ("made", look, &save("new"), &append("new"), "new"),
        ("swapped", look, &swap, &append("d/x"), "d/1"),
        ("swapped while the command runs", look, &swap_late, late, "d/1"),
        ("a folder where the run makes one", look, &appear, mkdir, "new/f"),
        ("added beneath what was removed", recreate, &add, "put('open/x', 1)", "full/work/day"),
    ];
    for (what, first, deed, last, kept) in rows {
        let bed = make();
        let status = meanwhile(&bed, first, *deed, last);
        let before = bed.tree();
        if bed.copied && *what == "added beneath what was removed" {
            // Nothing of it was in the copy, so the run removes nothing of it.
            assert_eq!(status, 0);
            let _ = bed.run(&["apply", "latest"]).exits(0);
            assert!(bed.capsule.workspace().join(kept).exists());
            continue;
        }
        if *what == "swapped" {
            // What the kernel goes on showing is hidden: the command finds nothing to change.
            assert_eq!(status, 1);
            assert_eq!(bed.changes(), ["A open/first"]);
            continue;
        }
        assert_eq!(status, 3, "{what}");
        let told = bed.run(&["changes", "latest"]).exits(0).stdout;
        assert!(told.contains("while the run was going on"), "{what}: {told}");
        let _ = bed.run(&["apply", "latest"]).exits(3);
        assert_eq!(bed.tree(), before, "{what}");
        assert!(bed.capsule.workspace().join(kept).exists(), "{what}");
    }
    // What lies beside it is nobody's business.
    let bed = make();
    assert_eq!(meanwhile(&bed, look, &save("b"), &append("a")), 0);
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(bed.capsule.workspace().join("b")).unwrap(), "person");
}

/// A folder that somebody moves out of the workspace during the run is not looked into any more.
#[test]
fn what_was_moved_away_is_not_seen() {
    is_not_seen(&Bed::new());
}

fn is_not_seen(bed: &Bed) {
    let step = |tool: &str, args: Value| {
        format!("- {{ tool: {tool}, args: {args}, on_error: continue }}\n")
    };
    let perl = |script: &str| step("shell.run", json!({ "argv": ["perl", "-e", script] }));
    let plan = [
        perl("-e 'd/x'; -e 'd/e/y'; open(F, '>', 'open/first')"),
        perl("select(undef, undef, undef, 1.2)"),
        perl("for ('d/secret', 'd/e/y') { open(F, '<', $_) and print <F> }"),
        step("fs.read", json!({ "path": "d/secret" })),
        step("fs.list", json!({ "path": "d" })),
        step("fs.search", json!({ "path": ".", "name": "secret" })),
    ];
    let plan = bed.capsule.write_plan(&format!("version: 1\nsteps:\n{}", plan.concat()));
    let line = ["run", &plan, "--policy", &bed.policy, "--json"];
    let child = bed.command(&line).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the first step is over", || bed.has_staged("open/first"));
    let outside = bed.capsule.directory().join("moved");
    fs::rename(bed.capsule.workspace().join("d"), &outside).unwrap();
    fs::write(outside.join("secret"), "OUTSIDE").unwrap();
    fs::write(outside.join("e/y"), "OUTSIDE").unwrap();
    let told = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let story: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(story["calls"].as_array().unwrap().len(), 6);
    assert!(!told.contains("OUTSIDE"), "{told}");
    assert!(!story["calls"][4].to_string().contains("d/secret"), "{story}");
}

/// C19: a protected file that somebody makes during the run is hidden from its next command, also in
/// folders that the run has changed.
#[test]
fn secrets_that_come_later_are_hidden() {
    are_hidden(&Bed::new());
}

fn are_hidden(bed: &Bed) {
    let places = [".env.local", "d/.env", "open/id_rsa", "full/.npmrc"];
    let first = "put('open/x', 1); put('d/n', 1); mkdir 'full/t'; rmdir 'full/t'; put('root', 1)";
    let deed =
        |root: &Path| places.iter().for_each(|path| fs::write(root.join(path), "SECRET").unwrap());
    let reads =
        places.map(|path| format!("open($f, '<', '{path}') and die 'seen: ', <$f>;")).concat();
    assert_eq!(meanwhile(bed, first, &deed, &format!("my $f; {reads}")), 0);
    let record = bed.run(&["report", "latest", "--format", "json"]).exits(0).stdout;
    assert!(!record.contains("SECRET"), "{record}");
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
    let policy = bed.capsule.write_policy(
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
    let plan = bed.capsule.write_plan(
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
    assert!(told.stdout.contains("while the run was going on"), "{}", told.stdout);
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
    assert_eq!(
        (&early["staged"], &early["changes"][0]["path"]),
        (&json!({ "paths": 1, "refused": false, "asked": false, "cut_short": null }), &json!("n"))
    );
    let _ = bed.run(&["apply", run]).exits(0);
    assert_eq!(bed.run(&["changes", run, "--json"]).json()["staged"], Value::Null);
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
    fs::rename(bed.capsule.workspace(), bed.capsule.directory().join("moved")).unwrap();
    fs::create_dir(bed.capsule.workspace()).unwrap();
    let refused = bed.run(&["apply", "latest"]).exits(2);
    assert!(refused.stderr.contains("not the same directory"), "{}", refused.stderr);
}

/// No plan, policy or call can name what only a person's command does.
#[test]
fn nobody_but_a_person_applies() {
    let bed = Bed::new();
    let args = json!({ "run": "x", "changes": "[]" }).to_string();
    let line = ["call", "changes.apply", "--policy", &bed.policy, "--args", &args];
    let refused = bed.run(&line).exits(3).json();
    assert_eq!(refused["code"], "policy.no-rule", "{refused}");
    let policy = bed.capsule.write_policy("version: 1\ntools:\n  changes.apply: allow\n");
    let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(refused.stderr.contains("changes.apply"), "{}", refused.stderr);
    let plan = bed.capsule.write_plan(
        "version: 1\nsteps:\n- { tool: changes.apply, args: { run: x, changes: \"[]\" } }\n",
    );
    let _ = bed.run(&["plan", "check", &plan]).exits(2);
}

/// Rows of policies that would promise what nothing keeps.
#[test]
fn contradictions_are_refused() {
    let bed = Bed::new();
    let base = "version: 1\ntools:\n  shell.run:\n    executables: { touch: { decision: allow, writes: [\"a\"] } }\n";
    for (more, code) in [
        ("sandbox: { workspace: read-only }\n", "policy.unknown-value"),
        ("audit: { payloads: digest }\n", "policy.unknown-value"),
    ] {
        let policy = bed.capsule.write_policy(&format!("{base}{more}"));
        let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
        assert!(refused.stderr.contains(code), "{more}: {}", refused.stderr);
    }
    let outside = base.replace("\"a\"", "\"/etc/**\"");
    let policy = bed.capsule.write_policy(&outside);
    let refused = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
    assert!(refused.stderr.contains("outside of the workspace"), "{}", refused.stderr);
}

/// A command that fills the disk is ended, and what it wrote is dropped.
#[test]
fn the_size_of_changes_is_bounded() {
    is_bounded(&Bed::new());
}

fn is_bounded(bed: &Bed) {
    let many = format!("{PUT}mkdir 'many'; for my $n (0 .. 30_000) {{ put(\"many/$n\", '') }}");
    // Holes: they take no space here, and would be copied.
    let large =
        "for my $n (1 .. 8) { open(my $f, '>', \"large$n\"); truncate $f, 200_000_000 or die }";
    for script in [many.as_str(), large] {
        let began = Instant::now();
        let ended = bed.perl(script).exits(1).json();
        assert_eq!(ended["code"], "change.too-many", "{ended}");
        // Whatever it was ended for, what held it and what it said is on record.
        let shown = bed.run(&["show-run", "latest:1", "--json"]).exits(0).json();
        assert_eq!(shown["result"]["stdout"], "", "{shown}");
        assert_eq!(shown["enforcement"]["by"], "walls", "{shown}");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        let _ = bed.run(&["apply", "latest"]).exits(3);
        let _ = bed.run(&["discard", "latest"]).exits(0);
        assert_eq!(bed.staged_folders(), 0);
    }
}

/// Where the staged bytes fill the disk that the record is on, dropping them makes room.
#[test]
fn what_fills_the_disk_can_be_dropped() {
    let bed = Bed::new();
    let store = bed.capsule.store();
    fs::create_dir_all(store.parent().unwrap()).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=6m tmpfs \"$0\" || exit 9
        \"$1\" exec --policy '{}' -- perl -e 'open F, q(>big); print F q(x) x 9_000_000'
        test $? -eq 10 || exit 8
        \"$1\" discard latest || exit 7
        \"$1\" exec --policy '{}' -- perl -e 'exit 0' || exit 6
        \"$1\" verify >/dev/null || exit 5",
        bed.policy, bed.policy
    );
    let mut command =
        copied::elsewhere(&bed.capsule.command(&[]), &script, store.parent().unwrap());
    let ran = CommandOutput::from(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("store.write"), "{ran:?}");
}

/// However deep it is nested and whatever its permissions are, what is dropped is gone.
#[test]
fn odd_trees_are_dropped() {
    are_dropped(&Bed::new());
}

fn are_dropped(bed: &Bed) {
    let deep = "for (1 .. 1_000) { mkdir 'nest' or die; chdir 'nest' or die }";
    let closed =
        format!("{PUT}mkdir 'c'; mkdir 'c/d'; put('c/d/f', 1); chmod 0, 'c/d/f', 'c/d', 'c'");
    for script in [deep, &closed] {
        // Root may look into what is closed.
        let ended = bed.perl(script);
        assert!(matches!(ended.status, 0 | 3), "{}", ended.stderr);
        let _ = bed.run(&["discard", "latest"]).exits(0);
        assert_eq!(bed.staged_folders(), 0, "{script}");
    }
}

/// A run that is killed changed nothing, and its changes can only be dropped.
#[test]
fn a_killed_run_is_not_applied() {
    is_not_applied(&Bed::new());
}

fn is_not_applied(bed: &Bed) {
    let before = bed.tree();
    let script = format!("{PUT}put('a', 'agent'); $| = 1; print qq(written\\n); sleep 100");
    let line = ["exec", "--policy", &bed.policy, "--", "perl", "-e", &script];
    let mut child = bed.command(&line);
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
    // Every screen offers what works, and nothing else.
    for line in
        [&["changes", "latest"][..], &["report", "latest"], &["show-run", "latest"], &["changes"]]
    {
        let ran = bed.run(line).exits(0);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("discard") && !told.contains("capsule apply"), "{line:?}: {told}");
    }
    let told = bed.run(&["report", "latest", "--json"]).exits(0).json();
    if told["staged_changes"].is_object() {
        assert_eq!(told["staged_changes"]["can_be_applied"], false, "{told}");
    }
    let _ = bed.run(&["discard", "latest"]).exits(0);
    assert_eq!((bed.tree(), bed.staged_folders()), (before, 0));
}

/// A run that crashed behind a command that changed something: what was recorded waits, and cannot be applied.
#[test]
fn a_crashed_run_offers_only_what_works() {
    let bed = Bed::new();
    let script = format!("use strict; {PUT}put('first', 'x')");
    let plan = format!(
        "version: 1\nsteps:\n  - {{ id: one, tool: shell.run, args: {{ argv: [perl, -e, {}] }} }}\n  \
         - {{ id: two, tool: shell.run, args: {{ argv: [perl, -e, '$| = 1; open(F, q(>), q(second)); sleep 100'] }} }}\n",
        serde_json::to_string(&script).unwrap()
    );
    let plan = bed.capsule.write_plan(&plan);
    let mut child = bed.command(&["run", &plan, "--policy", &bed.policy]);
    let mut child = child.stdout(Stdio::null()).spawn().unwrap();
    wait_until("the second step writes", || bed.has_staged("second"));
    child.kill().unwrap();
    let _ = child.wait().unwrap();
    let report = bed.run(&["report", "latest"]).exits(0);
    let told = format!("{}{}", report.stdout, report.stderr);
    assert!(told.contains("crashed") && told.contains("capsule discard"), "{told}");
    for line in [
        &["report", "latest"][..],
        &["show-run", "latest"],
        &["show-run", "latest:1"],
        &["changes", "latest"],
    ] {
        let ran = bed.run(line).exits(0);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!told.contains("capsule apply"), "{line:?}: {told}");
    }
    let told = bed.run(&["report", "latest", "--json"]).exits(0).json();
    assert_eq!(told["staged_changes"]["can_be_applied"], false, "{}", told["staged_changes"]);
    let _ = bed.run(&["apply", "latest"]).exits(1);
    let _ = bed.run(&["discard", "latest"]).exits(0);
}

/// What waits of every run is applied, the oldest first; a run that does not fit any more keeps none of the others.
#[test]
fn all_that_waits_is_applied() {
    let bed = Bed::new();
    let nothing = bed.run(&["apply", "--all"]).exits(0);
    assert!(nothing.stderr.contains("nothing waits in this workspace"), "{}", nothing.stderr);
    for (path, text) in [("one", "first"), ("one", "second"), ("two", "third")] {
        let script = format!("open my $f, '>', '{path}' or die; print $f '{text}'; close $f");
        let _ = bed.perl(&script).exits(0);
    }
    let applied = bed.run(&["apply", "--all"]).exits(1);
    for said in ["is not applied", "`one`", "2 of 3 runs applied"] {
        assert!(applied.stderr.contains(said), "{said}: {}", applied.stderr);
    }
    let root = bed.capsule.workspace();
    for (path, text) in [("one", "first"), ("two", "third")] {
        assert_eq!(fs::read_to_string(root.join(path)).unwrap(), text, "{path}");
    }
    let left = bed.run(&["apply", "--all", "--json"]).exits(1).json();
    let left = left["runs"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["result"]["status"]), (1, &json!("tool_error")), "{left:?}");
    for words in
        [&["apply"][..], &["apply", "--all", "latest"], &["apply", "--all", "--with", "one"]]
    {
        let _ = bed.run(words).exits(2);
    }
}

/// What the tests of interrupted applying change: many files in several folders, and things that
/// become other things.
const MANY: &str = "for my $n (1 .. 400) { my $d = 's' . $n % 7; mkdir $d; put(\"$d/f$n\", 'new') } \
                    unlink 'a'; mkdir 'a'; put('a/in', 'new'); put('b', 'new'); unlink 'link'; \
                    unlink glob 'full/*'; rmdir 'full'; put('full', 'new'); unlink glob 'deep/sub/*'; \
                    rmdir 'deep/sub'; rmdir 'deep'; mkdir 'ro'; put('ro/f', 'new'); chmod 0755, 'ro'";

/// A workspace in which [`MANY`] was staged; gives the run, too.
fn with_many() -> (Bed, String) {
    let bed = Bed::new();
    for n in (1..=400).step_by(3) {
        fs::create_dir_all(bed.capsule.workspace().join(format!("s{}", n % 7))).unwrap();
        bed.capsule.write_file(&format!("s{}/f{n}", n % 7), "old");
    }
    let _ = bed.perl(&format!("{PUT}{MANY}")).exits(0);
    let told = bed.run(&["changes", "latest", "--json"]).exits(0).json();
    let run = told["run"].as_str().unwrap().to_owned();
    (bed, run)
}

/// What [`MANY`] comes to when nobody interrupts it.
fn many_done() -> Tree {
    let (bed, run) = with_many();
    let _ = bed.run(&["apply", &run]).exits(0);
    bed.tree()
}

/// Whether something of [`MANY`] is applied.
fn has_begun(bed: &Bed) -> bool {
    let read = fs::read_to_string(bed.capsule.workspace().join("s1/f1"));
    read.is_ok_and(|own| own == "new")
}

/// Applying that is killed leaves each file old or new, a record, and can be gone on with.
#[test]
fn a_killed_apply_can_be_gone_on_with() {
    let wanted = many_done();
    let rounds = if is_nightly() { 0..12_u64 } else { 2..8 };
    let interrupted = run_in_parallel(rounds, |round| {
        let (bed, run) = with_many();
        let before = bed.tree();
        let mut child =
            bed.capsule.command(&["apply", &run]).stdout(Stdio::null()).spawn().unwrap();
        if let Some(later) = round.checked_sub(4) {
            // When something is applied, and then a little later each time.
            wait_until("it begins to change", || {
                has_begun(&bed) || child.try_wait().unwrap().is_some()
            });
            std::thread::sleep(Duration::from_micros(900 * later));
        } else {
            std::thread::sleep(Duration::from_millis(15 + round * 40));
        }
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        let now = bed.tree();
        for (path, found) in now.iter().filter(|(_, found)| found.starts_with("file")) {
            let whole = [&before, &wanted].iter().any(|tree| tree.get(path) == Some(found));
            assert!(whole || path.contains(".capsule-apply-"), "{path}: {found}");
        }
        let told = bed.run(&["changes", &run, "--json"]).exits(0).json();
        let is_left = !told["staged"].is_null();
        if is_left {
            let _ = bed.run(&["apply", &run]).exits(0);
        }
        assert_eq!(bed.tree(), wanted);
        let _ = bed.run(&["verify"]).exits(0);
        is_left && now != before
    });
    assert!(interrupted.contains(&true), "none was interrupted");
}

/// A workspace in which somebody was killed over applying [`MANY`], the run, and what stood there before.
fn half_done() -> (Bed, String, Tree) {
    let interrupted = (0..50).find_map(|_| {
        let (bed, run) = with_many();
        let before = bed.tree();
        let mut child =
            bed.capsule.command(&["apply", &run]).stdout(Stdio::null()).spawn().unwrap();
        wait_until("it begins to change", || has_begun(&bed));
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        // Where it was faster, there is nothing to go on with.
        let last = bed.run(&["list-runs", "--json"]).exits(0).json();
        (last[0]["state"] == json!("crashed")).then_some((bed, run, before))
    });
    interrupted.unwrap()
}

/// What was taken back before it was applied is not told as taken back since.
#[test]
fn an_undo_from_before_the_apply_is_not_told_of_it() {
    let (bed, run, before) = half_done();
    let _ = bed.run(&["undo", &run]).exits(0);
    assert_eq!(bed.tree(), before);
    let _ = bed.run(&["apply", &run]).exits(0);
    let told = bed.run(&["report", &run]).exits(0).stdout;
    assert!(told.contains("applied by") && !told.contains("undone"), "{told}");
    let _ = bed.run(&["undo", &run]).exits(0);
    let told = bed.run(&["report", &run]).exits(0).stdout;
    assert!(told.contains("undone by"), "{told}");
}

/// A power cut behind the last change loses the end of the record, and not that the staged files
/// were removed. Given again, it is found that all is there; and where something is not, that is
/// said.
#[test]
fn an_apply_whose_end_was_lost_is_ended() {
    for is_whole in [true, false] {
        let (bed, run, before) = half_done();
        // What stood in the store then, with what stood in the workspace at the end.
        let (store, beside) = (bed.capsule.store(), bed.capsule.directory().join("before"));
        fs::create_dir(&beside).unwrap();
        let files = ["store.db", "store.db-wal", "store.db-shm", "store.db.head"];
        for file in files {
            let _ = fs::copy(store.with_file_name(file), beside.join(file));
        }
        let _ = bed.run(&["apply", &run]).exits(0);
        let wanted = bed.tree();
        for file in files {
            let _ = fs::remove_file(store.with_file_name(file));
            let _ = fs::copy(beside.join(file), store.with_file_name(file));
        }
        if !is_whole {
            fs::write(bed.capsule.workspace().join("s1/f1"), "theirs").unwrap();
            let told = bed.run(&["apply", &run]).exits(1).stderr;
            assert!(told.contains("`s1/f1` is not in the workspace"), "{told}");
            assert!(told.contains("capsule undo"), "{told}");
            continue;
        }
        let told = bed.run(&["apply", &run]).exits(0).stderr;
        assert!(told.contains("all of them were in the workspace already"), "{told}");
        assert_eq!(bed.tree(), wanted);
        let _ = bed.run(&["apply", &run]).exits(2);
        let told = bed.run(&["changes", &run]).exits(0).stderr;
        assert!(told.contains("applied by"), "{told}");
        let _ = bed.run(&["verify"]).exits(0);
        let _ = bed.run(&["undo", &run]).exits(0);
        assert_eq!(bed.tree(), before);
    }
}

/// What somebody put in place of a folder, or of a file, while an apply was half done is told, and
/// all goes on once it is put right.
#[test]
fn what_came_in_the_way_of_a_half_done_apply_is_told() {
    let (bed, run, _) = half_done();
    let root = bed.capsule.workspace();
    let aside = bed.capsule.directory().join("aside");
    for (path, is_file, part) in [
        ("s3", true, "`s3` is no longer a directory, and `s3/f10` was in it"),
        ("a", true, "`a` was changed since"),
        ("s1/f1", false, "`s1/f1` was changed since"),
        ("full", false, "`full` holds something new"),
    ] {
        let at = root.join(path);
        fs::rename(&at, &aside).unwrap_or_default();
        if is_file {
            fs::write(&at, "theirs").unwrap();
        } else {
            fs::create_dir(&at).unwrap();
            fs::write(at.join("theirs"), "theirs").unwrap();
        }
        let before = bed.tree();
        let told = bed.run(&["apply", &run]).exits(1).stderr;
        assert!(told.contains("change.conflict"), "{path}: {told}");
        assert!(told.contains(part), "{path}: {told}");
        assert_eq!(bed.tree(), before, "{path}");
        let _ = if is_file { fs::remove_file(&at) } else { fs::remove_dir_all(&at) };
        fs::rename(&aside, &at).unwrap_or_default();
    }
    let _ = bed.run(&["apply", &run]).exits(0);
    assert_eq!(bed.tree(), many_done());
}

/// Who applies is told of everything that stands in the way, what became of it, and what to do.
#[test]
fn every_conflict_is_named() {
    let bed = Bed::new();
    let script = "put('a', 'x'); put('b', 'x'); put('d/e/y', 'x'); put('full/new', 'x'); \
                  put('n', 'x'); put('open/n', 'x'); put('deep/new', 'x'); put('deep/sub/1', 'x')";
    let _ = bed.perl(&format!("{PUT}{script}")).exits(0);
    let root = bed.capsule.workspace();
    fs::write(root.join("a"), "theirs").unwrap();
    fs::remove_file(root.join("b")).unwrap();
    fs::remove_dir_all(root.join("d/e")).unwrap();
    fs::remove_dir_all(root.join("full")).unwrap();
    fs::write(root.join("n"), "theirs").unwrap();
    fs::remove_dir_all(root.join("deep")).unwrap();
    fs::write(root.join("deep"), "a file").unwrap();
    let before = bed.tree();
    let told = bed.run(&["apply", "latest"]).exits(1).stderr;
    for part in [
        "change.conflict",
        "`a` was changed since",
        "`b` was deleted since",
        "`d/e/y` was deleted since the command ran, with its folder",
        "the folder of `full/new` is gone",
        "`n` was made since",
        "`deep` is no longer a directory, and `deep/new` belongs in it",
        "`deep` is no longer a directory, and `deep/sub/1` was in it",
        "hint",
        "capsule discard ",
        " --without ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("open/n"), "{told}");
    assert_eq!(bed.tree(), before);
}

/// A report shows what would be applied, line by line and no more than can be read; afterwards it
/// says what became of it, and by which run.
#[test]
fn a_report_shows_what_waits_and_what_became_of_it() {
    let bed = Bed::new();
    let script = format!("{PUT}put('a', qq(one\\nmore\\n)); put('key', 'ghp_' . 'a1B2' x 9)");
    let _ = bed.perl(&script).exits(0);
    let report = bed.run(&["report", "latest"]).exits(0).stdout;
    let shown = bed.run(&["show-run", "latest:1"]).exits(0).stdout;
    for told in [&report, &shown] {
        assert!(told.contains("staged") && told.contains("capsule apply"), "{told}");
        assert!(told.contains("  +more") && !told.contains("a1B2a1B2"), "{told}");
    }
    for line in [&["report", "latest", "--json"][..], &["show-run", "latest:1", "--json"]] {
        let staged = &bed.run(line).exits(0).json()["staged_changes"];
        assert_eq!((&staged["state"], &staged["diffs_cut"]), (&json!("waiting"), &json!(false)));
        let diff = staged["changes"][0]["diff"].as_str().unwrap();
        assert!(diff.contains("+more"), "{staged}");
    }
    let run = bed.run(&["report", "latest", "--json"]).exits(0).json()["run"].clone();
    let run = run.as_str().unwrap();
    let _ = bed.run(&["apply", run]).exits(0);
    let by = bed.run(&["list-runs", "--json"]).exits(0).json()[0]["label"].clone();
    let by = by.as_str().unwrap();
    let step = format!("{run}:1");
    for line in [["report", run], ["show-run", &step], ["changes", run]] {
        let told = bed.run(&line).exits(0);
        let told = told.stdout + &told.stderr;
        assert!(told.contains(&format!("applied by {by}")), "{line:?}: {told}");
    }
    let again = bed.run(&["apply", run]).exits(2).stderr;
    assert!(
        again.contains("change.none") && again.contains(by) && again.contains("hint"),
        "{again}"
    );

    // An undo is told, and one that was undone is none.
    let undo = |run: &str| {
        let _ = bed.run(&["undo", run]).exits(0);
        let runs = bed.run(&["list-runs", "--json"]).exits(0).json();
        runs[0]["label"].as_str().unwrap().to_owned()
    };
    let undone = undo(by);
    for line in [["report", run], ["show-run", &step], ["changes", run]] {
        let told = bed.run(&line).exits(0);
        let told = told.stdout + &told.stderr;
        assert!(told.contains(&format!("applied by {by}, and undone by {undone}")), "{told}");
    }
    assert!(bed.run(&["apply", run]).exits(2).stderr.contains(&undone));
    let told = || bed.run(&["report", run, "--json"]).exits(0).json()["staged_changes"].clone();
    assert_eq!(told()["undone"], json!({ "by": [undone], "whole": true }));
    let _ = undo(&undone);
    assert_eq!((&told()["state"], &told()["undone"]), (&json!("applied"), &json!(null)));
    let undone = undo(&step);
    assert_eq!(told()["undone"], json!({ "by": [undone], "whole": true }));

    let many = format!("{PUT}put('long', join('', map qq(line $_\\n), 1 .. 9000))");
    let _ = bed.perl(&many).exits(0);
    let report = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.lines().count() < 160 && report.contains("--diff"), "{report}");
    let told = bed.run(&["report", "latest", "--json"]).exits(0).json();
    assert_eq!(told["staged_changes"]["diffs_cut"], json!(true), "{}", told["staged_changes"]);
    let _ = bed.run(&["discard", "latest"]).exits(0);
    let report = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("discarded at 20"), "{report}");
    assert!(bed.run(&["discard", "latest"]).exits(2).stderr.contains("were discarded"));
}

/// What the book says of files with several names.
#[test]
fn a_file_with_several_names_is_split() {
    let bed = Bed::new();
    let root = bed.capsule.workspace();
    fs::write(root.join("one"), "old").unwrap();
    fs::hard_link(root.join("one"), root.join("two")).unwrap();
    let script = "put('one', 'new'); open(my $f, '<', 'two') or die; print <$f>";
    assert!(bed.perl(&format!("{PUT}{script}")).exits(0).stdout.contains("old"));
    assert_eq!(bed.changes(), ["M one"]);
    let _ = bed.run(&["apply", "latest"]).exits(0);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!([read("one"), read("two")], ["new", "old"]);
    let _ = bed.run(&["undo", "latest"]).exits(0);
    assert_eq!(read("one"), "old");
    assert_eq!(root.join("two").metadata().unwrap().nlink(), 1);
}

/// By a tool as well, which replaces a file: beneath the changes it stays as it was.
#[test]
fn a_file_with_several_names_is_written_by_a_tool() {
    is_split_by_a_tool(&Bed::new());
}

fn is_split_by_a_tool(bed: &Bed) {
    const PLAN: &str = r#"version: 1
steps:
  - { id: read, tool: shell.run, args: { argv: [cat, one] } }
  - { id: write, tool: fs.write, args: { path: one, content: new } }
  - { id: append, tool: fs.write, args: { path: one, content: er, mode: append } }
  - { id: first, tool: shell.run, args: { argv: [cat, one] }, expect: { stdout: newer } }
  - { id: second, tool: shell.run, args: { argv: [cat, two] }, expect: { stdout: old } }
"#;
    let root = bed.capsule.workspace();
    fs::write(root.join("one"), "old").unwrap();
    fs::hard_link(root.join("one"), root.join("two")).unwrap();
    let plan = bed.capsule.write_plan(PLAN);
    let _ = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
    assert_eq!(bed.changes(), ["M one"]);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!([read("one"), read("two")], ["old", "old"]);
    let _ = bed.run(&["apply", "latest"]).exits(0);
    assert_eq!([read("one"), read("two")], ["newer", "old"]);
}

/// Which run it was that changed a file.
#[test]
fn runs_are_found_by_what_their_commands_changed() {
    let bed = Bed::new();
    let _ = bed.perl(&format!("{PUT}put('a', 'x'); mkdir 'new'; put('new/b', 'y')")).exits(0);
    let _ = bed.exec(&["cat", "b"]).exits(0);
    let found = |path: &str| {
        let list = bed.run(&["list-runs", "--json", "--touched", path]).exits(0).json();
        list.as_array().unwrap().len()
    };
    assert_eq!((found("a"), found("new/b"), found("b"), found("new")), (1, 1, 0, 1));
}

/// Whoever drops what was applied in part finds nothing of ours in the workspace.
#[test]
fn a_discarded_apply_leaves_nothing_beside() {
    let interrupted = || {
        let (bed, run) = with_many();
        let mut child =
            bed.capsule.command(&["apply", &run]).stdout(Stdio::null()).spawn().unwrap();
        wait_until("it has begun", || {
            let ended = child.try_wait().unwrap().is_some();
            ended || !bed.capsule.workspace().join("full/1").exists()
        });
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        let told = bed.run(&["changes", &run, "--json"]).exits(0).json();
        (!told["staged"].is_null()).then_some((bed, run))
    };
    let (bed, run) = (0..40).find_map(|_| interrupted()).unwrap();
    // What a kill in the right instant leaves.
    bed.capsule.write_file(&format!("s1/.capsule-apply-{run}.tmp"), "half");
    let _ = bed.run(&["discard", &run]).exits(0);
    assert!(bed.tree().keys().all(|path| !path.contains(".capsule-apply-")), "{run}");
}

/// Whoever presses Ctrl+C goes on later.
#[test]
fn a_cancelled_apply_can_be_gone_on_with() {
    let wanted = many_done();
    let (bed, run) = with_many();
    let mut child = bed.capsule.command(&["apply", &run]).stdout(Stdio::null()).spawn().unwrap();
    // Not before it listens; how far it has come then is all one.
    wait_until("something is applied", || !bed.capsule.workspace().join("full/1").exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(matches!(child.wait().unwrap().code(), Some(130 | 0)));
    let told = bed.run(&["changes", &run, "--json"]).exits(0).json();
    if !told["staged"].is_null() {
        let _ = bed.run(&["apply", &run]).exits(0);
    }
    assert_eq!(bed.tree(), wanted);
}

/// Two runs whose changes are applied at once do not mix, and nobody drops what is being applied.
#[test]
fn applying_is_one_at_a_time() {
    let (bed, first) = with_many();
    let _ = bed.perl(&format!("{PUT}for my $n (1 .. 400) {{ put(\"g$n\", 'other') }}")).exits(0);
    let told = bed.run(&["changes", "latest", "--json"]).exits(0).json();
    let second = told["run"].as_str().unwrap();
    bed.capsule.write_file(".capsule-apply.tmp", "a person's");
    let mut wanted = many_done();
    wanted.extend((1..=400).map(|n| (format!("g{n}"), "file 644 \"other\"".to_owned())));
    wanted.insert(".capsule-apply.tmp".into(), "file 644 \"a person's\"".into());
    let spawn = |words: &[&str]| {
        bed.capsule.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut both = [spawn(&["apply", &first]), spawn(&["apply", second])];
    let ends = both.each_mut().map(|child| child.wait().unwrap().code().unwrap());
    assert!(ends.contains(&0) && ends.iter().all(|end| *end < 2), "{ends:?}");
    for run in [&first, second] {
        let told = bed.run(&["changes", run, "--json"]).exits(0).json();
        if !told["staged"].is_null() {
            let _ = bed.run(&["apply", run]).exits(0);
        }
    }
    assert_eq!(bed.tree(), wanted);
    let _ = bed.run(&["verify"]).exits(0);
}

/// L1: many are applied at one time. Each that was applied ends so, and each that was not can be applied later:
/// what another process sweeps away at the same time is no trouble.
#[test]
fn many_apply_at_one_time() {
    let bed = Bed::new();
    for round in 0..3 {
        let runs: Vec<(String, String)> = (0..12)
            .map(|number| {
                let name = format!("r{round}-{number}");
                let ran = bed
                    .perl(&format!("{PUT}mkdir 'd{name}'; put('d{name}/f', 1); put('{name}', 1)"));
                let run = ran.exits(0).json()["run"].as_str().unwrap().to_owned();
                (run, name)
            })
            .collect();
        let ended: Vec<CommandOutput> = std::thread::scope(|scope| {
            let bed = &bed;
            let all: Vec<_> =
                runs.iter().map(|(run, _)| scope.spawn(move || bed.run(&["apply", run]))).collect();
            all.into_iter().map(|own| own.join().unwrap()).collect()
        });
        for ((run, name), ran) in runs.iter().zip(&ended) {
            let is_made = bed.capsule.workspace().join(name).exists();
            assert_eq!(ran.status == 0, is_made, "{run}: {}", ran.stderr);
            if ran.status != 0 {
                assert!(ran.stderr.contains("change.conflict"), "{run}: {}", ran.stderr);
                let _ = bed.run(&["apply", run]).exits(0);
            }
        }
        assert_eq!(bed.staged_folders(), 0);
    }
    // The same run, dropped by many: one of them does it, and the others find nothing.
    let run =
        bed.perl(&format!("{PUT}put('n', 1)")).exits(0).json()["run"].as_str().unwrap().to_owned();
    let ended: Vec<CommandOutput> = std::thread::scope(|scope| {
        let (bed, run) = (&bed, run.as_str());
        let all: Vec<_> =
            (0..12).map(|_| scope.spawn(move || bed.run(&["discard", run]))).collect();
        all.into_iter().map(|own| own.join().unwrap()).collect()
    });
    assert_eq!(ended.iter().filter(|ran| ran.status == 0).count(), 1, "{ended:?}");
    assert!(ended.iter().all(|ran| !ran.stderr.contains("No such file")), "{ended:?}");
    let _ = bed.run(&["verify"]).exits(0);
}

/// While somebody applies or drops changes, nobody else does.
#[test]
fn changes_are_held_while_they_end() {
    let bed = Bed::new();
    let _ = bed.perl(&format!("{PUT}put('n', 1)")).exits(0);
    let folder = bed.capsule.store().with_file_name("store.db.staged");
    let staged = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    for held in [staged.join("changes"), bed.capsule.workspace()] {
        let lock = fs::File::open(&held).unwrap();
        lock.lock().unwrap();
        let run = staged.file_name().unwrap().to_string_lossy().into_owned();
        let refused = bed.run(&["apply", &run]).exits(1);
        assert!(refused.stderr.contains("change.conflict"), "{}", refused.stderr);
        if held.starts_with(&staged) {
            let refused = bed.run(&["discard", &run]).exits(1);
            assert!(refused.stderr.contains("change.conflict"), "{}", refused.stderr);
        }
    }
}

/// What comes back to what it was before the run is no change, and cleaning up is no offence.
#[test]
fn what_is_undone_is_forgotten() {
    let bed = Bed::new();
    let plan = bed.capsule.write_plan(
        "version: 1
steps:
- { tool: shell.run, args: { argv: [touch, closed] }, on_error: continue }
- { tool: shell.run, args: { argv: [perl, -e, \"unlink 'closed' or die; mkdir 'new'\"] } }
",
    );
    let ran = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(3);
    assert!(ran.stderr.contains("1 change · capsule changes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("capsule apply"), "{}", ran.stderr);
    assert_eq!(bed.changes(), ["A new/"]);
    let _ = bed.run(&["apply", "latest"]).exits(0);
}

/// A large file is not replaced: nobody could bring it back.
#[test]
fn what_cannot_be_kept_is_not_replaced() {
    let bed = Bed::new();
    let big = fs::File::create(bed.capsule.workspace().join("big")).unwrap();
    big.set_len(65_000_000).unwrap();
    let refused = bed.perl("open(my $f, '>>', 'big') or die; print $f 'x'").exits(3).json();
    assert!(refused["reason"].as_str().unwrap().contains("kept for an undo"), "{refused}");
    // What went wrong besides is told with it.
    let slow = json!({ "argv": ["perl", "-e", format!("{PUT}put('.bashrc', 1); sleep 60")], "timeout": "1s" });
    let line =
        ["call", "shell.run", "--policy", &bed.policy, "--json", "--args", &slow.to_string()];
    let ended = bed.run(&line).exits(3).json();
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.contains("Editors") && reason.contains("ended after"), "{reason}");
    assert_eq!(ended["staged"], json!({ "paths": 1, "refused": true, "asked": false }));
}

/// What is shown says what differs; credentials in it are masked.
#[test]
fn differences_are_shown() {
    let bed = Bed::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let _ = bed
        .perl(&format!("{PUT}put('a', \"two\\n {token}\\n\"); put('d/bin', \"\\0\\xff\")"))
        .exits(0);
    let shown = bed.run(&["changes", "latest", "--diff"]).exits(0).stdout;
    assert!(shown.contains("  -one\n  +two\n"), "{shown}");
    assert!(!shown.contains(&token) && shown.contains("1 masked"), "{shown}");
    assert!(shown.contains("no diff"), "{shown}");
    let detail = bed.run(&["show-run", "latest:1"]).exits(0).stdout;
    assert!(detail.contains("changes      M a"), "{detail}");
    let report = bed.run(&["report", "latest"]).exits(0).stdout;
    assert!(report.contains("│ M a  ") && report.contains("│ A d/bin"), "{report}");
    let doctor = bed.run(&["doctor"]).exits(0).stdout;
    assert!(doctor.contains("1 run: capsule changes r-"), "{doctor}");
    assert!(report.contains("2 changes") && report.contains("ws · staged"), "{report}");
    let call: Value = bed.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(call["changes"][0]["path"], "a");
}
