//! `capsule undo` over real files, by the real binary: what comes back, what is refused, and what is left
//! when somebody pulls the plug.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use capsule_base::digest::Digest;
use capsule_testkit::{Capsule, CommandOutput, run_in_parallel};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const OPEN: &str = "version: 1
name: open
tools:
  fs.read: allow
  fs.write: allow
  fs.edit: allow
  fs.delete: allow
";

/// A plan that does everything that can be undone.
const PLAN: &str = "version: 1
steps:
  - { id: edit, tool: fs.edit, args: { path: docs/a.md, search: one, replace: uno } }
  - { id: new, tool: fs.write, args: { path: gen/deep/x.txt, content: \"x\\n\" } }
  - { id: more, tool: fs.write, args: { path: docs/a.md, content: \"three\\n\", mode: append } }
  - { id: over, tool: fs.write, args: { path: run.sh, content: new } }
  - { id: gone, tool: fs.delete, args: { path: old, recursive: true } }
  - { id: link, tool: fs.delete, args: { path: docs/link } }
";

struct Bed {
    capsule: Capsule,
    policy: String,
}

/// What stands where: its kind, its permissions, what it holds.
type Tree = BTreeMap<String, String>;

impl Bed {
    fn under(policy: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(policy);
        Self { capsule, policy }
    }

    /// With what [`PLAN`] is about in the workspace, and the plan run.
    fn planned() -> (Self, Tree, String) {
        let bed = Self::under(OPEN);
        bed.capsule.write_file("docs/a.md", "one\ntwo\n");
        symlink("a.md", bed.root().join("docs/link")).unwrap();
        let script = bed.capsule.write_file("run.sh", "old\n");
        fs::set_permissions(script, fs::Permissions::from_mode(0o750)).unwrap();
        bed.capsule.write_file("old/b", "b\n");
        bed.capsule.write_file("old/in/c", "");
        fs::create_dir(bed.root().join("old/empty")).unwrap();
        let closed = fs::Permissions::from_mode(0o500);
        fs::set_permissions(bed.root().join("old/empty"), closed).unwrap();
        let before = bed.tree();
        let plan = bed.capsule.write_plan(PLAN);
        let ran = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
        let label = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
        assert!(ran.stderr.contains(&format!("capsule undo {label} ·")), "{}", ran.stderr);
        (bed, before, label)
    }

    fn root(&self) -> PathBuf {
        self.capsule.workspace()
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.capsule.run(words)
    }

    fn call(&self, tool: &str, args: &Value) -> Value {
        let line = ["call", tool, "--policy", &self.policy, "--json", "--args", "-"];
        self.capsule.run_with(&line, &args.to_string()).json()
    }

    /// Makes a call that goes well; gives the label of its run.
    #[track_caller]
    fn done(&self, tool: &str, args: Value) -> String {
        let answer = self.call(tool, &args);
        assert_eq!(answer["status"], "ok", "{answer}");
        answer["run"].as_str().unwrap().to_owned()
    }

    /// An undo that is refused with a code, after which everything is as it was.
    #[track_caller]
    fn refused(&self, words: &[&str], code: &str, exit: i32) -> String {
        let (before, runs) = (self.tree(), self.runs());
        let line: Vec<&str> = ["undo"].iter().chain(words).copied().collect();
        let ran = self.run(&line).exits(exit);
        assert!(ran.stderr.contains(&format!("[{code}]")), "{code}: {ran:?}");
        same(&self.tree(), &before, code);
        assert_eq!(self.runs(), runs, "what is only looked at is no run");
        ran.stdout + &ran.stderr
    }

    fn runs(&self) -> usize {
        self.run(&["list-runs", "--json"]).exits(0).json().as_array().unwrap().len()
    }

    fn kept(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.capsule.store().with_file_name("store.db.undo"));
        let runs =
            all.into_iter().flatten().map(|own| own.unwrap().path()).filter(|own| own.is_dir());
        runs.flat_map(|run| fs::read_dir(run).unwrap().map(|own| own.unwrap().path())).collect()
    }

    fn tree(&self) -> Tree {
        let mut found = Tree::new();
        tree(&self.root(), "", &mut found);
        found
    }
}

fn tree(folder: &Path, above: &str, found: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = format!("{above}{}", entry.file_name().to_string_lossy());
        let meta = entry.path().symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let what = if meta.is_dir() {
            tree(&entry.path(), &format!("{path}/"), found);
            format!("folder {mode:o}")
        } else if meta.is_symlink() {
            format!("link {}", fs::read_link(entry.path()).unwrap().display())
        } else if meta.is_file() {
            let held = fs::read(entry.path()).unwrap_or_default();
            let short = match held.len() > 20 {
                true => Digest::of(&held).to_string(),
                false => held.escape_ascii().to_string(),
            };
            format!("file {mode:o} {short}")
        } else {
            "special".to_owned()
        };
        found.insert(path, what);
    }
}

/// Compares two trees, and tells of what differs alone.
#[track_caller]
fn same(now: &Tree, wanted: &Tree, about: &str) {
    let other = |one: &Tree, two: &Tree| -> Vec<String> {
        let differ = one.iter().filter(|(path, own)| two.get(*path) != Some(*own));
        differ.map(|(path, own)| format!("{path}: {own}")).collect()
    };
    let (more, less) = (other(now, wanted), other(wanted, now));
    assert!(more.is_empty() && less.is_empty(), "{about}: {more:#?} in place of {less:#?}");
}

/// APR-11: a run is undone as a whole, with kinds, permissions and empty folders; the undo is a run that is
/// undone, and undone again.
#[test]
fn a_run_is_undone_and_the_undo_too() {
    let (bed, before, label) = Bed::planned();
    let after = bed.tree();
    assert_ne!(after, before);
    let runs = bed.runs();
    let shown = bed.run(&["undo", &label, "--dry-run"]).exits(0);
    for line in [
        "M docs/a.md  8 B  +1 −2",
        "A docs/link → a.md",
        "D gen/deep/x.txt  +0 −1",
        "M run.sh  4 B  +1 −1",
        "A old/empty/  mode 500",
        "A old/in/c  0 B  +0 −0",
    ] {
        assert!(shown.stdout.lines().any(|own| own == line), "{line}: {}", shown.stdout);
    }
    assert!(shown.stderr.contains("11 changes, and nothing was changed"), "{}", shown.stderr);
    assert_eq!((bed.tree(), bed.runs()), (after.clone(), runs), "a preview leaves no trace");
    let undone = bed.run(&["undo", &label, "--json"]).exits(0).json();
    same(&bed.tree(), &before, "");
    assert_eq!(undone["result"]["undone"], 11, "{undone}");
    let listed = bed.run(&["list-runs", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["kind"], &listed[0]["subject"]), (&json!("undo"), &undone["subject"]));
    assert_eq!(listed[0]["name"], format!("undo {label}"));
    // The undo is undone, and that one, too.
    for wanted in [&after, &before, &after] {
        let _ = bed.run(&["undo", "latest"]).exits(0);
        same(&bed.tree(), wanted, "");
    }
    let _ = bed.run(&["undo", &label]).exits(0);
    same(&bed.tree(), &before, "");
    let again = bed.run(&["undo", &label]).exits(0);
    assert!(again.stdout.contains("nothing is left to undo"), "{again:?}");
    assert!(again.stdout.contains("· docs/a.md  is as it was"), "{again:?}");
    // All of it is in the record, and replays without a file.
    fs::remove_dir_all(bed.root()).unwrap();
    fs::create_dir(bed.root()).unwrap();
    for run in listed.as_array().unwrap() {
        let _ = bed.run(&["replay", run["run"].as_str().unwrap()]).exits(0);
    }
    assert_eq!(bed.tree(), Tree::new());
    let _ = bed.run(&["verify"]).exits(0);
}

/// APR-11: one step is undone by its name or its number; what a later one made of it is not lost.
#[test]
fn a_step_is_undone() {
    let (bed, before, label) = Bed::planned();
    let told = bed.refused(&[&format!("{label}:edit")], "undo.conflict", 1);
    assert!(told.contains(&format!("`docs/a.md` was changed since by {label}:3")), "{told}");
    let _ = bed.run(&["undo", &format!("{label}:4")]).exits(0);
    assert_eq!(bed.tree()["run.sh"], before["run.sh"]);
    let _ = bed.run(&["undo", &format!("{label}:more")]).exits(0);
    let _ = bed.run(&["undo", &format!("{label}:edit")]).exits(0);
    assert_eq!(bed.tree()["docs/a.md"], before["docs/a.md"]);
    assert!(bed.root().join("gen/deep/x.txt").exists());
    // Some of its steps were undone, so the rest of the run is.
    let _ = bed.run(&["undo", "latest"]).exits(0);
    let _ = bed.run(&["undo", &label]).exits(0);
    same(&bed.tree(), &before, "");
    let shown = bed.run(&["show-run", &format!("{label}:gone")]).exits(0).stdout;
    assert!(shown.contains("undo         5 paths, 2 B kept"), "{shown}");
    let report = bed.run(&["report", &label]).exits(0).stdout;
    assert_eq!(report.matches("↶ undo").count(), 6, "{report}");
    let report = bed.run(&["report", &label, "--format", "json"]).exits(0).json();
    assert_eq!(report["summary"]["undoable"], 6);
    assert_eq!(report["calls"][4]["undo"], json!({ "paths": 5, "bytes": 2 }));
}

/// Whatever somebody did to a path since: it is named, and nothing at all is undone.
#[test]
fn what_was_changed_since_is_not_lost() {
    type Change = fn(&Path);
    let changes: &[(&str, Change)] = &[
        ("docs/a.md", |root| fs::write(root.join("docs/a.md"), "mine").unwrap()),
        ("docs/a.md", |root| fs::remove_file(root.join("docs/a.md")).unwrap()),
        ("docs/a.md", |root| {
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(root.join("docs/a.md"), mode).unwrap();
        }),
        // A link at its place, to the same bytes, and a link at the place of its folder.
        ("docs/a.md", |root| {
            fs::rename(root.join("docs/a.md"), root.join("moved")).unwrap();
            symlink("../moved", root.join("docs/a.md")).unwrap();
        }),
        ("docs/a.md", |root| {
            fs::rename(root.join("docs"), root.join("moved")).unwrap();
            symlink("moved", root.join("docs")).unwrap();
        }),
        ("run.sh", |root| {
            fs::remove_file(root.join("run.sh")).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o640);
            rustix::fs::mkfifoat(rustix::fs::CWD, root.join("run.sh"), mode).unwrap();
        }),
        ("run.sh", |root| {
            fs::remove_file(root.join("run.sh")).unwrap();
            fs::create_dir(root.join("run.sh")).unwrap();
        }),
        ("run.sh", |root| {
            fs::File::create(root.join("run.sh")).unwrap().set_len(20_000_000_000).unwrap();
        }),
        ("run.sh", |root| {
            fs::write(root.join("secret"), "s").unwrap();
            fs::remove_file(root.join("run.sh")).unwrap();
            fs::hard_link(root.join("secret"), root.join("run.sh")).unwrap();
        }),
        ("old", |root| fs::write(root.join("old"), "mine").unwrap()),
        ("old/b", |root| {
            fs::create_dir(root.join("old")).unwrap();
            fs::write(root.join("old/b"), "mine").unwrap();
        }),
        ("gen/deep/x.txt", |root| fs::write(root.join("gen/deep/x.txt"), "mine").unwrap()),
    ];
    for (path, change) in changes {
        let (bed, _, label) = Bed::planned();
        change(&bed.root());
        let began = Instant::now();
        // A file of many gigabytes is not compared by its bytes here either.
        fs::write(bed.capsule.directory().join("outside"), "o").unwrap();
        let before = fs::metadata(bed.root()).unwrap().permissions().mode();
        let ran = bed.run(&["undo", &label]).exits(1);
        assert!(ran.stderr.contains("[undo.conflict]"), "{path}: {ran:?}");
        assert!(ran.stdout.contains(&format!("✖ {path}")), "{path}: {ran:?}");
        assert!(bed.root().join("gen/deep/x.txt").exists(), "{path}: nothing is undone in part");
        assert!(!bed.root().join("docs/link").is_symlink(), "{path}: nothing is undone in part");
        assert_eq!(fs::metadata(bed.root()).unwrap().permissions().mode(), before);
        assert!(began.elapsed() < Duration::from_secs(20), "{path}");
    }
}

/// What came into a folder that a call made stays, and the folder with it.
#[test]
fn a_new_folder_with_more_in_it_stays() {
    let (bed, before, label) = Bed::planned();
    bed.capsule.write_file("gen/mine", "m");
    let undone = bed.run(&["undo", &label]).exits(0);
    assert!(undone.stdout.contains("· gen/  stays: something else is in it"), "{undone:?}");
    let mut wanted = before;
    wanted.insert("gen".into(), "folder 755".into());
    wanted.insert("gen/mine".into(), "file 644 m".into());
    same(&bed.tree(), &wanted, "");
}

/// What leaves nothing to undo says so.
#[test]
fn where_nothing_can_be_undone_it_is_said() {
    let bed = Bed::under(&format!(
        "{OPEN}  shell.run: {{ executables: {{ touch: {{ decision: allow, writes: [\"**\"] }} }} }}\n"
    ));
    bed.capsule.write_file("a", "a");
    let read = bed.done("fs.read", json!({ "path": "a" }));
    let told = bed.refused(&[&read], "undo.none", 2);
    assert!(told.contains("the run changed nothing"), "{told}");
    let told = bed.refused(&[&format!("{read}:1")], "undo.none", 2);
    assert!(told.contains("call 1 changed nothing"), "{told}");
    let _ = bed.refused(&[&format!("{read}:2")], "run.unknown", 2);
    let _ = bed.refused(&["r-ZZZZ"], "run.unknown", 2);
    let nothing = bed.done("fs.write", json!({ "path": "a", "content": "a" }));
    let _ = bed.refused(&[&nothing], "undo.none", 2);
    assert!(bed.kept().is_empty(), "what changes nothing keeps nothing");
    // What is staged is dropped, not undone; once it is applied, it is undone.
    let plan = bed.capsule.write_plan(
        "version: 1
steps:
  - { id: write, tool: fs.write, args: { path: a, content: b } }
  - { id: touch, tool: shell.run, args: { argv: [touch, new] } }
  - { id: more, tool: fs.write, args: { path: a, content: c } }
",
    );
    let ran = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
    let staged = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
    assert!(!ran.stderr.contains("capsule undo") && !ran.stdout.contains("↶"), "{ran:?}");
    let told = bed.refused(&[&staged], "undo.none", 2);
    assert!(
        told.contains("nothing that the run changed was applied")
            && told.contains("capsule discard"),
        "{told}"
    );
    let before = bed.tree();
    let applied = bed.run(&["apply", &staged]).exits(0);
    assert!(applied.stderr.contains(&format!("capsule undo {staged}")), "{applied:?}");
    let _ = bed.refused(&[&format!("{staged}:write")], "undo.conflict", 1);
    let _ = bed.run(&["undo", &format!("{staged}:more")]).exits(0);
    assert_eq!(fs::read(bed.root().join("a")).unwrap(), b"b");
    let _ = bed.run(&["undo", &format!("{staged}:touch")]).exits(0);
    assert!(!bed.root().join("new").exists());
    let _ = bed.run(&["undo", &staged]).exits(1);
    let _ = bed.run(&["undo", &format!("{staged}:write")]).exits(0);
    same(&bed.tree(), &before, "");
    for _ in 0..2 {
        let _ = bed.run(&["undo", "latest"]).exits(0);
    }
    same(&bed.tree(), &before, "");
}

/// What a whole run of staged changes replaced comes back by the run's own name or by that of the run
/// that applied it.
#[test]
fn applied_changes_are_undone() {
    let bed = Bed::under(
        "version: 1
tools:
  shell.run: { executables: { perl: { decision: allow, writes: [\"**\"] } } }
",
    );
    bed.capsule.write_file("d/a", "a");
    bed.capsule.write_file("keep", "k");
    let before = bed.tree();
    let code = "unlink 'd/a'; rmdir 'd'; open(F, '>', 'd'); print F 'x'; close F; mkdir 'keep.d'; \
                symlink('keep', 'link'); chmod 0700, 'keep'";
    let _ = bed.run(&["exec", "--policy", &bed.policy, "--", "perl", "-e", code]).exits(0);
    let run = bed.run(&["list-runs", "--json"]).json()[0]["run"].as_str().unwrap().to_owned();
    let _ = bed.run(&["undo", &run]).exits(2);
    let applied = bed.run(&["apply", &run]).exits(0);
    assert!(applied.stderr.contains("✔ 5 changes"), "{applied:?}");
    let after = bed.tree();
    assert_eq!(after["d"], "file 644 x");
    // By the name of the run that applied it, and by the run's own.
    let _ = bed.run(&["undo", "latest"]).exits(0);
    same(&bed.tree(), &before, "");
    let _ = bed.run(&["undo", "latest"]).exits(0);
    same(&bed.tree(), &after, "");
    let _ = bed.run(&["undo", &run]).exits(0);
    same(&bed.tree(), &before, "");
    let told = bed.run(&["undo", &run]).exits(0).stdout;
    assert!(told.contains("nothing is left to undo"), "{told}");
}

/// APR-11: what is new needs not be kept to go away again, however large it is. Only that undo is not
/// undone, and says so before.
#[test]
fn what_is_new_goes_away_however_large() {
    let bed = Bed::under(
        "version: 1\ntools: { shell.run: { executables: { perl: { decision: allow, writes: ['**'] } } } }\n",
    );
    bed.capsule.write_file("small", "small\n");
    bed.capsule.write_file("was/in", "in\n");
    let before = bed.tree();
    let script = "mkdir 'new' or die; unlink 'was/in' or die; rmdir 'was' or die; \
        for ('new/large', 'small', 'was') { \
            open(my $f, '>', $_) or die; truncate($f, 70_000_000) or die; close $f or die \
        } open(my $f, '>', 'more') or die; print $f 'more'; close $f";
    let line = ["exec", "--policy", &bed.policy, "--", "perl", "-e", script];
    let _ = bed.run(&line).exits(0);
    let run = bed.run(&["apply", "latest"]).exits(0);
    assert!(run.stderr.contains("undo"), "{}", run.stderr);
    let made = bed.tree();
    let shown = bed.run(&["undo", "latest", "--dry-run"]).exits(0).stdout;
    assert_eq!(shown.matches("what is there now is not kept").count(), 3, "{shown}");
    let undone = bed.run(&["undo", "latest"]).exits(0);
    assert!(undone.stderr.contains("which cannot be taken back"), "{}", undone.stderr);
    same(&bed.tree(), &before, "after the undo");
    let again = bed.run(&["undo", "latest"]);
    assert!(again.stderr.contains("undo.gone"), "{} {}", again.status, again.stderr);
    assert_eq!(bed.run(&["verify"]).status, 0);
    assert_ne!(made, before);
}

/// G1: what was kept is believed by its digest, and what is not there any more is said.
#[test]
fn kept_files_that_were_changed_are_found() {
    let (bed, _, label) = Bed::planned();
    let b = format!("{:?}", "b\n");
    let kept =
        bed.kept().into_iter().find(|own| format!("{:?}", fs::read_to_string(own).unwrap()) == b);
    let kept = kept.unwrap();
    let content = fs::read(&kept).unwrap();
    fs::OpenOptions::new().write(true).open(&kept).unwrap().write_at(b"B", 0).unwrap();
    let told = bed.refused(&[&label], "undo.damaged", 6);
    assert!(told.contains("`old/b`"), "{told}");
    fs::remove_file(&kept).unwrap();
    symlink("/etc/passwd", &kept).unwrap();
    let _ = bed.refused(&[&label], "undo.gone", 1);
    fs::remove_file(&kept).unwrap();
    let _ = bed.refused(&[&label], "undo.gone", 1);
    // What does not need it is undone.
    let _ = bed.run(&["undo", &format!("{label}:link")]).exits(0);
    fs::write(&kept, content).unwrap();
    // The record itself: another path in it.
    let store = rusqlite::Connection::open(bed.capsule.store()).unwrap();
    store
        .execute_batch(
            "DROP TRIGGER payloads_stay;
        UPDATE payloads SET bytes = CAST(replace(CAST(bytes AS TEXT), 'run.sh', 'run.SH') AS BLOB)
        WHERE class = 'undo';",
        )
        .unwrap();
    drop(store);
    let ran = bed.run(&["undo", &label]).exits(6);
    assert!(ran.stderr.contains("it does not match what the event committed to"), "{ran:?}");
}

/// An undo acts where the run worked, and nowhere else.
#[test]
fn an_undo_stays_in_its_workspace() {
    let (bed, _, label) = Bed::planned();
    let other = bed.capsule.directory().join("other");
    fs::create_dir(&other).unwrap();
    let words = ["undo", &label, "--workspace", other.to_str().unwrap()];
    let ran = bed.run(&words).exits(2);
    assert!(ran.stderr.contains("worked in"), "{ran:?}");
    // The latest run of all is not what somebody means who stands elsewhere.
    for word in ["undo", "apply", "discard"] {
        let command = &mut bed.capsule.command(&[word, "latest"]);
        let ran = CommandOutput::from(command.current_dir(&other).output().unwrap()).exits(2);
        assert!(ran.stderr.contains("worked in") && ran.stderr.contains("name it"), "{ran:?}");
    }
    let ran = bed.capsule.command(&["undo", &label, "--dry-run"]).current_dir(&other).output();
    let _ = CommandOutput::from(ran.unwrap()).exits(0);
    let moved = bed.capsule.directory().join("moved");
    fs::rename(bed.root(), &moved).unwrap();
    fs::create_dir(bed.root()).unwrap();
    let ran = bed.run(&["undo", &label]).exits(2);
    assert!(ran.stderr.contains("not the same directory"), "{ran:?}");
    fs::remove_dir(bed.root()).unwrap();
    symlink("moved", bed.root()).unwrap();
    // Whatever leads there: it is the folder that the run worked in.
    let _ = bed.run(&["undo", &label, "--workspace", "."]).exits(2);
    let _ = bed.run(&["undo", &label]).exits(0);
}

/// What the run's own policy protects stays protected, and nobody but a person undoes.
#[test]
fn invariants_hold_for_an_undo() {
    let bed = Bed::under(&OPEN.replace(
        "tools:",
        "never: [{ id: docs-stay, capabilities: [fs.delete], paths: [\"docs/**\"], because: They stay. }]
tools:",
    ));
    bed.capsule.write_file("docs/a", "a");
    let write = bed.done("fs.write", json!({ "path": "docs/a", "content": "b" }));
    let _ = bed.run(&["undo", &write]).exits(0);
    let new = bed.done("fs.write", json!({ "path": "docs/new", "content": "n" }));
    let before = bed.tree();
    let ran = bed.run(&["undo", &new]).exits(3);
    assert!(ran.stderr.contains("They stay") && ran.stderr.contains("change.refused"), "{ran:?}");
    same(&bed.tree(), &before, "");
    let denied = bed.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(denied["calls"][0]["decision"]["decision"], "deny");
    let _ = bed.run(&["replay", "latest"]).exits(3);
    let args = json!({ "run": "x", "changes": "[]" });
    assert_eq!(bed.call("changes.undo", &args)["code"], "policy.no-rule");
    let policy = bed.capsule.write_policy("version: 1\ntools:\n  changes.undo: allow\n");
    let _ = bed.run(&["policy", "check", "--policy", &policy]).exits(2);
}

/// Two undos do not mix: one is made, and the other finds nothing left or is told to wait.
#[test]
fn undoing_is_one_at_a_time() {
    let (bed, before, label) = Bed::planned();
    let lock = fs::File::open(bed.root()).unwrap();
    lock.lock().unwrap();
    let ran = bed.run(&["undo", &label]).exits(1);
    assert!(ran.stderr.contains("[undo.conflict]"), "{ran:?}");
    assert_ne!(bed.tree(), before);
    lock.unlock().unwrap();
    let spawn = || {
        let mut command = bed.capsule.command(&["undo", &label]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut all = [spawn(), spawn(), spawn()];
    let ends = all.each_mut().map(|child| child.wait().unwrap().code().unwrap());
    assert!(ends.contains(&0) && ends.iter().all(|end| *end < 2), "{ends:?}");
    same(&bed.tree(), &before, "");
    let _ = bed.run(&["verify"]).exits(0);
}

/// A run that changed many files, and the workspace before it.
fn with_many() -> (Bed, Tree, String) {
    let bed = Bed::under(OPEN);
    let mut steps = String::from("version: 1\nsteps:\n");
    for number in 0..90 {
        bed.capsule.write_file(
            &format!("d{}/f{number}", number % 7),
            format!("old {number}\n").repeat(40),
        );
        steps += &match number % 3 {
            0 => {
                format!("  - {{ tool: fs.delete, args: {{ path: d{}/f{number} }} }}\n", number % 7)
            }
            1 => format!(
                "  - {{ tool: fs.write, args: {{ path: d{}/f{number}, content: new }} }}\n",
                number % 7
            ),
            _ => format!("  - {{ tool: fs.write, args: {{ path: n{number}/f, content: new }} }}\n"),
        };
    }
    let before = bed.tree();
    let plan = bed.capsule.write_plan(&steps);
    let ran = bed.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
    let label = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
    (bed, before, label)
}

/// G8: an undo that is killed leaves each file as it was or as it was before that, and is gone on with;
/// so is a run that is killed while it changes something.
#[test]
fn a_killed_undo_can_be_gone_on_with() {
    let interrupted = run_in_parallel(0..8_u64, |round| {
        let (bed, before, label) = with_many();
        let after = bed.tree();
        let mut child = bed
            .capsule
            .command(&["undo", &label])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        // When something is undone, and then a little later each time.
        while child.try_wait().unwrap().is_none() && !bed.root().join("d0/f0").exists() {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        let now = bed.tree();
        for (path, found) in now.iter().filter(|(_, found)| found.starts_with("file")) {
            let whole = [&before, &after].iter().any(|tree| tree.get(path) == Some(found));
            assert!(whole || path.contains(".capsule-undo-"), "{path}: {found}");
        }
        let was_interrupted = ended.code().is_none() && now != before;
        if was_interrupted {
            let listed = bed.run(&["list-runs", "--json"]).exits(0).json();
            assert_eq!(listed[0]["state"], "crashed");
            let ran = bed.run(&["audit", "erase", &label]).exits(2);
            assert!(ran.stderr.contains("undo it again"), "{}", ran.stderr);
            // Either way from here: what it had not done yet, or what it had.
            if round % 2 == 0 {
                let _ = bed.run(&["undo", "latest"]).exits(0);
                same(&bed.tree(), &after, &format!("round {round}"));
            }
        }
        let _ = bed.run(&["undo", &label]).exits(0);
        same(&bed.tree(), &before, &format!("round {round}"));
        let _ = bed.run(&["verify"]).exits(0);
        let _ = bed.run(&["audit", "erase", &label]).exits(0);
        was_interrupted
    });
    assert!(interrupted.contains(&true), "none was interrupted");
}

/// G8: a run that was killed is undone as far as it came.
#[test]
fn a_killed_run_is_undone() {
    let (bed, before, label) = with_many();
    let _ = bed.run(&["undo", &label]).exits(0);
    let plan = bed.capsule.directory().join("plan.yaml");
    let plan = plan.to_str().unwrap();
    let mut undone = 0;
    for round in 0..6_u64 {
        let mut child = bed
            .capsule
            .command(&["run", plan, "--policy", &bed.policy])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(50 + 50 * round));
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        // What a write that was killed had not finished lies beside its target.
        let beside = bed.tree().into_keys().find(|path| path.contains(".capsule-"));
        let _ = beside.map(|path| fs::remove_file(bed.root().join(path)));
        let newest = bed.run(&["list-runs", "--json"]).exits(0).json()[0].clone();
        if newest["kind"] == "plan" {
            let ran = bed.run(&["undo", "latest"]);
            // It may have been killed before it did anything.
            assert!(ran.status == 0 || bed.tree() == before, "{ran:?}");
            undone += 1;
        }
        same(&bed.tree(), &before, &format!("round {round}"));
    }
    assert!(undone > 0, "none was killed in time");
}

/// Whoever presses Ctrl+C has nothing undone.
#[test]
fn a_cancelled_undo_is_taken_back() {
    let mut cancelled = 0;
    for _ in 0..4 {
        let (bed, before, label) = with_many();
        let after = bed.tree();
        let mut child = bed
            .capsule
            .command(&["undo", &label])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() && !bed.root().join("d0/f0").exists() {}
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(130 | 0)), "{code:?}");
        if bed.tree() != before {
            cancelled += 1;
            same(&bed.tree(), &after, "");
            let _ = bed.run(&["undo", &label]).exits(0);
            same(&bed.tree(), &before, "");
        }
    }
    assert!(cancelled > 0, "none was cancelled in time");
}

/// What is kept is bounded; the oldest run's is dropped first, with a note in the record.
#[test]
fn the_oldest_is_dropped_with_a_note() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("a", "a");
    bed.capsule.write_file("b", "b");
    let first = bed.done("fs.write", json!({ "path": "a", "content": "x" }));
    // As if that run had kept as much as is kept for all: what it takes is counted where it lies.
    let own = bed.kept().remove(0);
    let old = own.with_file_name("0".repeat(64));
    fs::File::create(&old).unwrap().set_len(1 << 30).unwrap();
    fs::write(own.parent().unwrap().with_file_name("total"), (1_u64 << 30).to_string()).unwrap();
    let second = bed.done("fs.write", json!({ "path": "b", "content": "x" }));
    assert!(!old.exists() && !own.exists());
    let _ = bed.refused(&[&first], "undo.gone", 1);
    let _ = bed.run(&["undo", &second]).exits(0);
    let store = rusqlite::Connection::open(bed.capsule.store()).unwrap();
    let note: String = store
        .query_row(
            "SELECT CAST(bytes AS TEXT) FROM events WHERE kind = 'undo.dropped'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let note: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(note["body"]["files"], 2);
    assert!(note["body"]["subject"].as_str().unwrap().starts_with(&first));
    let _ = bed.run(&["verify"]).exits(0);
}

/// What was kept stays on this machine: it is in no file that leaves it, and no tool sees it.
#[test]
fn what_is_kept_is_private() {
    let bed = Bed::under(&OPEN.replace("allow", "{ decision: allow, hidden: allow }"));
    let secret = "only-in-the-old-file";
    bed.capsule.write_file("a", secret);
    let out = bed.capsule.directory().join("out.db");
    let args = json!({ "path": "a", "content": "x" }).to_string();
    let line = [
        "call",
        "fs.write",
        "--policy",
        &bed.policy,
        "--args",
        &args,
        "--out",
        out.to_str().unwrap(),
    ];
    let _ = bed.run(&line).exits(0);
    for own in fs::read_dir(bed.capsule.directory()).unwrap().flatten().map(|own| own.path()) {
        if own.is_file() {
            let bytes = fs::read(&own).unwrap();
            assert!(!bytes.windows(secret.len()).any(|own| own == secret.as_bytes()), "{own:?}");
        }
    }
    let ran = bed.run(&["--store", out.to_str().unwrap(), "undo", "latest"]).exits(2);
    assert!(ran.stderr.contains("its undo record is not in this store"), "{ran:?}");
    for own in bed.kept() {
        assert_eq!(own.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(own.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    // A store within the workspace: its side folder is as closed as itself.
    let store = bed.root().join("own.db");
    let store = store.to_str().unwrap();
    let call = |tool: &str, args: Value| {
        let args = args.to_string();
        bed.run(&["--store", store, "call", tool, "--policy", &bed.policy, "--args", &args]).json()
    };
    assert_eq!(call("fs.write", json!({ "path": "a", "content": "y" }))["status"], "ok");
    let kept = fs::read_dir(bed.root().join("own.db.undo"))
        .unwrap()
        .flatten()
        .find(|own| own.path().is_dir())
        .unwrap();
    let folder = format!("own.db.undo/{}", kept.file_name().to_string_lossy());
    let file = fs::read_dir(kept.path()).unwrap().next().unwrap().unwrap().file_name();
    let file = format!("{folder}/{}", file.to_string_lossy());
    for (tool, args) in [
        ("fs.read", json!({ "path": file })),
        ("fs.write", json!({ "path": file, "content": "z" })),
        ("fs.delete", json!({ "path": folder, "recursive": true })),
        ("fs.delete", json!({ "path": "own.db.undo", "recursive": true })),
        ("fs.write", json!({ "path": "own.db.undo/total", "content": "0" })),
    ] {
        assert_eq!(call(tool, args.clone())["code"], "policy.never", "{tool} {args}");
    }
    let _ = bed.run(&["--store", store, "undo", "latest"]).exits(2);
}

/// APR-11, FR-22: what no undo record can be made of is of high risk: refused, asked, or done by a policy
/// that says so; explained, decided and replayed alike.
#[test]
fn what_cannot_be_kept_is_of_high_risk() {
    let policy = |risk: &str| OPEN.replace("tools:", &format!("{risk}\ntools:"));
    // Root reads everything.
    let is_root = rustix::process::geteuid().is_root();
    let make = |root: &Path| {
        fs::File::create(root.join("big")).unwrap().set_len(64_000_001).unwrap();
        fs::create_dir_all(root.join("pipes")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipes/p"), mode).unwrap();
        fs::create_dir(root.join("links")).unwrap();
        let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"a\xff");
        symlink(odd, root.join("links/odd")).unwrap();
        if !is_root {
            fs::create_dir(root.join("shut")).unwrap();
            for path in ["closed", "shut/in"] {
                fs::write(root.join(path), "c").unwrap();
                let closed = fs::Permissions::from_mode(0o200);
                fs::set_permissions(root.join(path), closed).unwrap();
            }
        }
    };
    let calls = [
        ("fs.write", json!({ "path": "big", "content": "x" }), "too-large"),
        ("fs.delete", json!({ "path": "pipes/p" }), "special"),
        ("fs.delete", json!({ "path": "links", "recursive": true }), "no-text"),
        ("fs.delete", json!({ "path": "pipes", "recursive": true }), "special"),
        ("fs.write", json!({ "path": "closed", "content": "x" }), "unreadable"),
        ("fs.delete", json!({ "path": "shut", "recursive": true }), "unreadable"),
    ];
    let calls = &calls[..if is_root { 4 } else { 6 }];
    for (risk, decision, code) in [
        ("", "deny", "risk.blocked"),
        ("risk: { block_at: none }", "ask-each", "policy.asked"),
        ("risk: { escalate: [{ when: irreversible, to: medium }] }", "allow", "policy.allowed"),
    ] {
        let bed = Bed::under(&policy(risk));
        make(&bed.root());
        let all = bed.tree();
        for (tool, args, why) in calls {
            if *tool == "fs.delete" && args["path"] == "pipes" && decision == "allow" {
                bed.capsule.write_file("pipes/more", "");
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mkfifoat(rustix::fs::CWD, bed.root().join("pipes/q"), mode).unwrap();
            }
            let text = args.to_string();
            let line = [
                "policy",
                "explain",
                "--policy",
                &bed.policy,
                "--json",
                "--tool",
                tool,
                "--args",
                &text,
            ];
            let explained = bed.run(&line).json();
            assert_eq!(
                (&explained["decision"], &explained["code"]),
                (&json!(decision), &json!(code)),
                "{explained}"
            );
            let answer = bed.call(tool, args);
            let shown = bed.run(&["show-run", "latest:1", "--json"]).exits(0).json();
            assert_eq!(shown["decision"], explained, "{tool} {args}");
            assert_eq!(shown["facts"]["unkept"]["why"], *why);
            let exit = match decision {
                "deny" => 3,
                "ask-each" => 4,
                _ => 0,
            };
            let _ = bed.run(&["replay", "latest"]).exits(exit);
            if decision == "allow" {
                assert_eq!(answer["status"], "ok", "{answer}");
                assert_eq!((&shown["irreversible"], &shown["undo"]), (&json!(true), &Value::Null));
                let told = bed.refused(&["latest"], "undo.none", 2);
                assert!(told.contains("call 1: "), "{told}");
            } else {
                let reason = explained["reason"].as_str().unwrap();
                assert!(
                    decision == "ask-each" || reason.contains("cannot be brought back; "),
                    "{reason}"
                );
            }
        }
        let left = bed.tree();
        assert!(decision == "allow" || left == all, "{risk}");
        assert!(
            decision != "allow" || left.keys().all(|own| own == "big" || own == "closed"),
            "{left:?}"
        );
    }
    // Nothing is added to what cannot be read first.
    let bed = Bed::under(&policy("risk: { escalate: [] }"));
    make(&bed.root());
    let more = json!({ "path": "big", "content": "x", "mode": "append" });
    assert_eq!(bed.call("fs.write", &more)["code"], "fs.undo-too-large");
    assert_eq!(fs::metadata(bed.root().join("big")).unwrap().len(), 64_000_001);
}

/// Where nothing can be kept, nothing is changed.
#[test]
fn no_undo_record_no_write() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("a", "a");
    bed.capsule.write_file("d/b", "b");
    fs::create_dir_all(bed.capsule.store().parent().unwrap()).unwrap();
    let place = bed.capsule.store().with_file_name("store.db.undo");
    let elsewhere = bed.capsule.directory().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    // Somebody put something else at the place: a file, and a link to a folder.
    for put in [0, 1] {
        match put {
            0 => fs::write(&place, "").unwrap(),
            _ => {
                fs::remove_file(&place).unwrap();
                symlink(&elsewhere, &place).unwrap();
            }
        }
        let before = bed.tree();
        for (tool, args) in [
            ("fs.write", json!({ "path": "a", "content": "x" })),
            ("fs.edit", json!({ "path": "a", "search": "a", "replace": "b" })),
            ("fs.delete", json!({ "path": "d", "recursive": true })),
        ] {
            assert_eq!(bed.call(tool, &args)["code"], "undo.unkept", "{tool}");
            let _ = bed.run(&["replay", "latest"]).exits(1);
        }
        same(&bed.tree(), &before, "");
        // A new file replaces nothing.
        let _ = bed.done("fs.write", json!({ "path": format!("new{put}"), "content": "x" }));
        fs::remove_file(bed.root().join(format!("new{put}"))).unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}

/// A run that keeps no payloads can be undone while its policy is what it was.
#[test]
fn a_run_without_payloads_is_undone() {
    let bed = Bed::under(&format!("{OPEN}audit: {{ payloads: digest }}\n"));
    bed.capsule.write_file("a", "a");
    let run = bed.done("fs.write", json!({ "path": "a", "content": "x" }));
    let text = fs::read_to_string(&bed.policy).unwrap();
    fs::write(&bed.policy, format!("{text}# more\n")).unwrap();
    let told = bed.refused(&[&run], "undo.none", 2);
    assert!(told.contains("the file has changed since"), "{told}");
    fs::write(&bed.policy, text).unwrap();
    let _ = bed.run(&["undo", &run]).exits(0);
    assert_eq!(fs::read(bed.root().join("a")).unwrap(), b"a");
}
