//! `fs.edit` and `fs.delete` over real files, by the real binary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use capsule_testkit::Capsule;
use serde_json::{Value, json};

const OPEN: &str = "version: 1
tools:
  fs.read: { decision: allow, hidden: allow }
  fs.edit: { decision: allow, hidden: allow }
  fs.delete: { decision: allow, hidden: allow }
";

struct Bed {
    capsule: Capsule,
    policy: String,
}

impl Bed {
    fn under(policy: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(policy);
        Self { capsule, policy }
    }

    #[track_caller]
    fn call(&self, tool: &str, args: &Value) -> Value {
        let line = ["call", tool, "--policy", &self.policy, "--args", "-"];
        self.capsule.run_with(&line, &args.to_string()).json()
    }

    #[track_caller]
    fn result(&self, tool: &str, args: Value) -> Value {
        let answer = self.call(tool, &args);
        assert_eq!(answer["status"], "ok", "{answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn code(&self, tool: &str, args: Value) -> String {
        let answer = self.call(tool, &args);
        assert_ne!(answer["status"], "ok", "{answer}");
        answer["code"].as_str().unwrap().to_owned()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.capsule.workspace().join(path)).unwrap()
    }

    fn tree(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        tree(&self.capsule.workspace(), "", &mut found);
        found
    }
}

fn tree(folder: &Path, above: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = format!("{above}{}", entry.file_name().to_string_lossy());
        let meta = entry.path().symlink_metadata().unwrap();
        let what = if meta.is_dir() {
            tree(&entry.path(), &format!("{path}/"), found);
            "folder".to_owned()
        } else if meta.is_symlink() {
            format!("link {}", fs::read_link(entry.path()).unwrap().display())
        } else if meta.is_file() {
            fs::read_to_string(entry.path()).unwrap_or_default()
        } else {
            "special".to_owned()
        };
        found.insert(path, what);
    }
}

fn edit(path: &str, search: &str, replace: &str) -> Value {
    json!({ "path": path, "search": search, "replace": replace })
}

/// SAF-1: an edit is made where it is sure, and says how it was found.
#[test]
fn edits_are_made_and_told() {
    let bed = Bed::under(OPEN);
    let path = bed
        .capsule
        .write_file("src/a.py", "def f():\r\n    return 1\r\n\r\ndef g():\r\n    pass\r\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let made =
        bed.result("fs.edit", edit("src/a.py", "def f():\n    return 1", "def f():\n    return 2"));
    assert_eq!(
        made,
        json!({ "path": "src/a.py", "changed": true, "added": 1, "removed": 1, "bytes_total": 46,
            "matched": "tolerant(line-ends)", "line": 1 })
    );
    assert_eq!(bed.read("src/a.py"), "def f():\r\n    return 2\r\n\r\ndef g():\r\n    pass\r\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    // Nothing of a replacement is a pattern.
    let literal = "$& $1 $$ \\0 \\1 \\n {0} %s";
    let made = bed.result("fs_edit", edit("src/a.py", "pass", literal));
    assert_eq!((&made["matched"], &made["line"]), (&json!("exact"), &json!(5)));
    assert!(bed.read("src/a.py").ends_with(&format!("    {literal}\r\n")));
    bed.capsule.write_file("latin", b"caf\xe9 one\n");
    let made = bed.result("fs.edit", edit("latin", "one", "\u{e8}"));
    assert_eq!(made["encoding"], "latin-1");
    assert_eq!(fs::read(bed.capsule.workspace().join("latin")).unwrap(), b"caf\xe9 \xe8\n");
    // What was there is kept, and nothing else is left.
    assert_eq!(bed.tree().len(), 3, "{:?}", bed.tree());
    let shown = bed.capsule.run(&["show-run", "latest:1", "--json"]).exits(0).json();
    assert_eq!(shown["decision"]["capabilities"], json!(["fs.read", "fs.write"]));
    assert_eq!(shown["decision"]["risk"], "medium");
}

/// SAF-1, C31: what is not sure is refused, with the reason and what would help; nothing changes.
#[test]
fn what_is_not_sure_is_refused() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("a.txt", "one\ntwo\nthree one\n");
    bed.capsule.write_file("bin", b"a\0b");
    bed.capsule.write_file("wide", b"\xe9\n");
    bed.capsule.write_file("big", "x\n".repeat(600_000));
    bed.capsule.write_file("huge", "x\n".repeat(1_300_000));
    let counted =
        |count: u64| json!({ "path": "a.txt", "search": "one", "replace": "x", "count": count });
    let before = bed.tree();
    for (args, code) in [
        (edit("a.txt", "four", "x"), "edit.not-found"),
        (edit("a.txt", "one", "x"), "edit.ambiguous"),
        (counted(3), "edit.count"),
        (counted(0), "args.invalid"),
        (counted(1_000_000), "args.invalid"),
        (edit("a.txt", "", "x"), "edit.empty"),
        (edit("a.txt", "two", "two"), "edit.no-change"),
        (edit("bin", "a", "x"), "edit.binary"),
        (edit("wide", "\u{e9}", "\u{20ac}"), "edit.encoding"),
        (edit("big", "y", "x"), "edit.too-large"),
        (edit("huge", "y", "x"), "edit.too-large"),
        (edit("nothing", "a", "x"), "fs.not-found"),
        (edit(".", "a", "x"), "fs.not-a-file"),
        (edit("../a", "a", "x"), "path.outside-workspace"),
        (json!({ "path": "a.txt", "search": "two" }), "args.invalid"),
    ] {
        let answer = bed.call("fs.edit", &args);
        assert_eq!(answer["code"], code, "{answer}");
        assert!(
            answer["suggestion"].is_string()
                || code.starts_with("fs.not-a")
                || code == "args.invalid",
            "{answer}"
        );
    }
    assert_eq!(bed.tree(), before);
    let answer = bed.call("fs.edit", &edit("a.txt", "one", "x"));
    assert_eq!(answer["reason"], "`search` is in `a.txt` 2 times (lines 1, 3)");
    let answer = bed.call("fs.edit", &edit("a.txt", "three two", "x"));
    assert_eq!(answer["result"]["nearest_line"], 3, "{answer}");
    assert_eq!(answer["result"]["nearest"], "three one");
}

/// NFR-6: what an edit tells of a file is masked like what is read of it.
#[test]
fn what_comes_closest_is_masked() {
    let bed = Bed::under(OPEN);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    bed.capsule.write_file(
        "a.txt",
        format!("first line\nthe token of the service for uploads = {token}\nlast line\n"),
    );
    let answer = bed
        .call("fs.edit", &edit("a.txt", "the token of the service for uploads = something", "x"));
    let near = answer["result"]["nearest"].as_str().unwrap();
    assert!(near.starts_with("the token of the service for uploads = «token:github:"), "{answer}");
    assert!(!answer.to_string().contains(&token));
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "QUJD".repeat(16));
    bed.capsule.write_file("b.txt", format!("a\n{key}b\n"));
    let answer = bed.call("fs.edit", &edit("b.txt", &format!("{}x", "QUJD".repeat(16)), "x"));
    // What is hidden comes close to nothing: else it could be guessed.
    assert_eq!(answer["code"], "edit.not-found", "{answer}");
    assert!(answer["result"]["nearest"].is_null(), "{answer}");
    assert!(!answer.to_string().contains("QUJDQUJD"), "{answer}");
}

/// S2: where the policy opens no file to `fs.read`, an edit that is not made tells nothing of what the file
/// holds; where it opens some, a file that it does not open is not edited either.
#[test]
fn an_edit_quotes_only_what_may_be_read() {
    let plan = "first line\nthe launch code is 1234 and more words\nsame\nsame\n\tindented\n";
    let asked = [
        ("the launch code is 1235 and more words", None, "edit.not-found"),
        ("same", None, "edit.ambiguous"),
        ("same", Some(7_u64), "edit.count"),
        ("nothing like it anywhere", None, "edit.not-found"),
    ];
    let edits = |read: &str| {
        let bed = Bed::under(&format!(
            "version: 1\ntools:\n  fs.edit: {{ decision: allow, paths: [\"**\"] }}\n{read}"
        ));
        bed.capsule.write_file("private/plan.txt", plan);
        let answers = asked.map(|(search, count, code)| {
            let mut args = edit("private/plan.txt", search, "x");
            if let Some(count) = count {
                args["count"] = json!(count);
            }
            (bed.call("fs.edit", &args), code)
        });
        let made = bed.call("fs.edit", &edit("private/plan.txt", "first line", "other line"));
        (answers, made, bed.read("private/plan.txt"))
    };
    let tells = ["line", "matched", "added", "removed", "bytes_total", "encoding"];
    let (answers, made, after) = edits("");
    for (answer, code) in &answers {
        assert_eq!(answer["code"], *code, "{answer}");
        let told = answer.to_string();
        for part in ["launch", "1234", "line ", "lines ", "times", "nearest"] {
            assert!(!told.contains(part), "`{part}` in {told}");
        }
    }
    assert_eq!(made["status"], "ok", "{made}");
    assert!(after.starts_with("other line\n"), "{after}");
    // An edit that is made tells that it was, and nothing of the file.
    assert_eq!(made["result"]["changed"], true, "{made}");
    for field in tells {
        assert!(!made.to_string().contains(&format!("\"{field}\"")), "`{field}` in {made}");
    }
    // With a word about reading, it is quoted.
    let (answers, made, _) = edits("  fs.read: { decision: allow, paths: [\"**\"] }\n");
    assert!(answers[0].0.to_string().contains("1234"), "{}", answers[0].0);
    assert!(answers[1].0.to_string().contains("lines 3, 4"), "{}", answers[1].0);
    assert_eq!((&made["result"]["line"], &made["result"]["matched"]), (&json!(1), &json!("exact")));
    // Where that word is about other files, it is not edited.
    for read in [
        "  fs.read: { decision: allow, paths: [\"docs/**\"] }\n",
        "  fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [\"private/**\"] } }\n",
        "  fs.read: deny\n",
    ] {
        let (answers, made, after) = edits(read);
        assert!(answers.iter().all(|(own, _)| own["status"] == "denied"), "{read}: {answers:?}");
        assert_eq!((made["status"].as_str(), after.as_str()), (Some("denied"), plan), "{read}");
        assert!(!format!("{answers:?}{made}").contains("1234"), "{read}");
    }
}

/// SAF-1: an edit as models write it is the same call.
#[test]
fn a_block_is_the_same_call() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("a.html", "<p>a &lt; b</p>\n");
    let call = |text: &str| {
        let line = ["call", "fs.edit", "--policy", &bed.policy, "--args", "-"];
        bed.capsule.run_with(&line, text)
    };
    let block = "<edit path=\"a.html\">\n  <search>a &lt; b</search>\n  <replace>a &lt; b && c</replace>\n\
        <count>1</count> <!-- expected matches -->\n</edit>\n";
    let made = call(block).exits(0).json();
    assert_eq!(made["result"]["matched"], "exact");
    assert_eq!(bed.read("a.html"), "<p>a &lt; b && c</p>\n");
    for broken in
        [block.replace("</edit>", ""), format!("{block}{block}"), format!("{block} and more")]
    {
        let ran = call(&broken);
        assert!(ran.stderr.contains("edit.malformed"), "{ran:?}");
        assert_ne!(ran.status, 0);
    }
    assert_eq!(bed.read("a.html"), "<p>a &lt; b && c</p>\n");
}

/// Who may not read a file may not edit it either, since errors tell what is in it.
#[test]
fn who_may_not_read_may_not_edit() {
    let bed = Bed::under(
        "version: 1
tools:
  fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [\"private/**\"] }, rules: [{ id: asked, paths: [\"asked/**\"], decision: ask }] }
  fs.edit: { decision: allow, paths: { allow: [\"**\"], deny: [\"frozen/**\"] }, symlinks: deny }
",
    );
    for path in ["private/a", "frozen/a", "asked/a", "open/a", ".env", ".hidden"] {
        bed.capsule.write_file(path, "text");
    }
    symlink("open/a", bed.capsule.workspace().join("link")).unwrap();
    symlink("../private/a", bed.capsule.workspace().join("open/link")).unwrap();
    fs::hard_link(bed.capsule.workspace().join(".env"), bed.capsule.workspace().join("open/other"))
        .unwrap();
    for (path, code) in [
        ("private/a", "path.not-allowed"),
        ("frozen/a", "path.not-allowed"),
        ("asked/a", "approval.needed"),
        (".env", "policy.never"),
        ("open/other", "policy.never"),
        (".hidden", "path.hidden"),
        ("link", "path.symlink"),
        ("open/link", "path.symlink"),
    ] {
        assert_eq!(bed.code("fs.edit", edit(path, "text", "new")), code, "{path}");
        // Whether it is there, and what is in it, makes no difference.
        assert_eq!(bed.code("fs.edit", edit(path, "nope", "new")), code, "{path}");
    }
    let _ = bed.result("fs.edit", edit("open/a", "text", "new"));
    let ask = bed.capsule.write_policy("version: 1\ntools:\n  fs.read: ask\n  fs.edit: allow\n");
    let args = edit("open/a", "new", "text").to_string();
    let ran = bed.capsule.run(&["call", "fs.edit", "--policy", &ask, "--args", &args]);
    assert_eq!(ran.exits(4).json()["rule"], "fs.read");
}

/// Files, links, empty folders and, where it is said, whole ones.
#[test]
fn what_is_named_is_deleted() {
    let bed = Bed::under(OPEN);
    let root = bed.capsule.workspace();
    bed.capsule.write_file("keep/a", "kept");
    bed.capsule.write_file("file", "12345");
    bed.capsule.write_file("deep/er/b", "1");
    bed.capsule.write_file("deep/er/c", "22");
    bed.capsule.write_file("deep/.hidden", "");
    fs::create_dir(root.join("empty")).unwrap();
    for (link, target) in [
        ("link", "keep"),
        ("dangling", "nowhere"),
        ("out", "/etc"),
        ("deep/link", "../keep/a"),
        ("through", "deep"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let gone = |path: &str, recursive: bool| {
        bed.result("fs.delete", json!({ "path": path, "recursive": recursive }))
    };
    let told = |kind: &str, entries: u64, bytes: u64| (json!(kind), json!(entries), json!(bytes));
    for (path, recursive, kind, entries, bytes) in [
        ("file", false, "file", 1, 5),
        ("link", true, "link", 1, 0),
        ("dangling", false, "link", 1, 0),
        ("out", false, "link", 1, 0),
        ("empty", false, "folder", 1, 0),
        ("through/er/b", false, "file", 1, 1),
        ("deep", true, "folder", 5, 2),
    ] {
        let own = gone(path, recursive);
        let fields = (own["kind"].clone(), own["entries"].clone(), own["bytes_total"].clone());
        assert_eq!(fields, told(kind, entries, bytes), "{path}");
        assert!(root.join(path).symlink_metadata().is_err(), "{path}");
    }
    let left: Vec<_> = bed.tree().into_keys().collect();
    assert_eq!(left, ["keep", "keep/a", "through"]);
    let report = bed.capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let deleted = &report["summary"]["files_deleted"];
    assert_eq!(*deleted, json!(["deep/.hidden", "deep/er/c", "deep/link"]), "{report}");
}

/// What is protected, cannot be listed or not be brought back is not deleted, nor what holds it.
#[test]
fn what_holds_something_protected_stays() {
    let bed = Bed::under(
        "version: 1
tools:
  fs.delete:
    decision: allow
    paths: { allow: [\"**\"], deny: [\"closed/**\"] }
    rules: [{ id: asked, paths: [\"asked/**\"], decision: ask }]
",
    );
    let root = bed.capsule.workspace();
    for path in [
        ".env",
        "a/b/.env",
        "c/keys/id_rsa",
        "closed/x",
        "d/.hidden",
        ".git/config",
        "e/.git/hooks/x",
        "f/x",
        "asked/x",
        "g/x",
    ] {
        bed.capsule.write_file(path, "text");
    }
    symlink("c/keys", root.join("f/.ssh")).unwrap();
    fs::hard_link(root.join(".env"), root.join("g/other")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bed.capsule.write_file("h/x", "").with_file_name("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let large = fs::File::create(bed.capsule.write_file("i/large", "")).unwrap();
    large.set_len(65_000_000).unwrap();
    std::os::unix::net::UnixListener::bind(
        bed.capsule.write_file("j/x", "").with_file_name("socket"),
    )
    .unwrap();
    let odd = std::ffi::OsStr::new("bell\u{7}ring");
    fs::write(bed.capsule.write_file("k/x", "").with_file_name(odd), "").unwrap();
    let before = bed.tree();
    for (path, code) in [
        (".", "path.not-allowed"),
        (".env", "policy.never"),
        ("a", "policy.never"),
        ("c", "policy.never"),
        ("closed", "path.not-allowed"),
        ("d", "path.hidden"),
        (".git", "policy.never"),
        ("e", "policy.never"),
        ("f", "policy.never"),
        ("f/.ssh", "policy.never"),
        ("g", "policy.never"),
        ("asked", "approval.needed"),
        ("h", "risk.blocked"),
        ("i", "risk.blocked"),
        ("j", "risk.blocked"),
        ("k", "path.invalid"),
        ("nothing", "fs.not-found"),
        ("../ws", "path.outside-workspace"),
        ("/etc", "path.outside-workspace"),
    ] {
        let answer = bed.call("fs.delete", &json!({ "path": path, "recursive": true }));
        assert_eq!(answer["code"], code, "{path}: {answer}");
        assert!(!answer.to_string().contains("id_rsa"), "{answer}");
    }
    assert_eq!(bed.code("fs.delete", json!({ "path": "f" })), "fs.not-empty");
    assert_eq!(bed.tree(), before);
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..10_001 {
        fs::write(many.join(number.to_string()), "").unwrap();
    }
    assert_eq!(
        bed.code("fs.delete", json!({ "path": "many", "recursive": true })),
        "fs.too-many-entries"
    );
    fs::remove_file(many.join("0")).unwrap();
    fs::remove_file(many.join("1")).unwrap();
    let gone = bed.result("fs.delete", json!({ "path": "many", "recursive": true }));
    assert_eq!(gone["entries"], 10_000);
}

/// APR-11, CAP-10: an edit and a deletion are in the record with what was there, and are replayed
/// without a file.
#[test]
fn edits_and_deletions_are_recorded_and_replayed() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("a", "one\n");
    bed.capsule.write_file("d/b", "two\n");
    let plan = bed.capsule.write_plan(
        "version: 1
steps:
  - { id: edit, tool: fs.edit, args: { path: a, search: one, replace: 1 }, expect: { matched: exact } }
  - { id: near, tool: fs.edit, args: { path: a, search: one two, replace: x }, expect: { failed: edit.not-found } }
  - { id: read, tool: fs.read, args: { path: a }, expect: { text: \"1\\n\" } }
  - { id: gone, tool: fs.delete, args: { path: d, recursive: true }, expect: { entries: 2, capabilities: [fs.delete] } }
",
    );
    let ran = bed.capsule.run(&["run", &plan, "--policy", &bed.policy]).exits(0);
    fs::remove_file(bed.capsule.workspace().join("a")).unwrap();
    let again = bed.capsule.run(&["replay", "latest"]).exits(0);
    assert_eq!(
        ran.stdout.lines().count(),
        again.stdout.lines().count(),
        "{}\n{}",
        ran.stdout,
        again.stdout
    );
    assert!(bed.tree().is_empty());
    let store = rusqlite::Connection::open(bed.capsule.store()).unwrap();
    let mut undo =
        store.prepare("SELECT bytes FROM payloads WHERE class = 'undo' ORDER BY id").unwrap();
    let undo: Vec<Vec<u8>> =
        undo.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let undo: Vec<Value> = undo.iter().map(|own| serde_json::from_slice(own).unwrap()).collect();
    let kept = |change: &Value| bed.capsule.backup(change["before"]["sha256"].as_str().unwrap());
    assert_eq!(undo.len(), 2, "an edit that is not made keeps nothing");
    assert_eq!(undo[0]["changes"][0]["path"], "a");
    assert_eq!(kept(&undo[0]["changes"][0]), Some(b"one\n".to_vec()));
    let head = undo.last().unwrap();
    assert_eq!(kept(&head["changes"][1]), Some(b"two\n".to_vec()));
    let paths: Vec<&Value> =
        head["changes"].as_array().unwrap().iter().map(|own| &own["path"]).collect();
    assert_eq!(paths, ["d", "d/b"]);
    assert_eq!(head["changes"][1]["before"]["kind"], "file");
}

/// APR-11: in a staged workspace both are collected like what a command does.
#[test]
fn edits_and_deletions_are_staged() {
    let bed = Bed::under(
        "version: 1
tools:
  fs.read: { decision: allow, hidden: allow }
  fs.edit: allow
  fs.delete: allow
  shell.run: { executables: { touch: { decision: allow, writes: [\"**\"] }, ls: allow } }
",
    );
    for path in ["a", "d/b", "d/er/c", "keep"] {
        bed.capsule.write_file(path, "one\n");
    }
    symlink("keep", bed.capsule.workspace().join("link")).unwrap();
    let before = bed.tree();
    let plan = bed.capsule.write_plan(
        "version: 1
steps:
  - { tool: fs.edit, args: { path: a, search: one, replace: two } }
  - { tool: shell.run, args: { argv: [touch, d/new] } }
  - { tool: fs.edit, args: { path: a, search: two, replace: three } }
  - { tool: fs.delete, args: { path: d, recursive: true }, expect: { entries: 5 } }
  - { tool: fs.delete, args: { path: link } }
  - { id: left, tool: shell.run, args: { argv: [ls] }, expect: { stdout: \"a\\nkeep\\n\" } }
",
    );
    let ran = bed.capsule.run(&["run", &plan, "--policy", &bed.policy]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let run = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(bed.tree(), before, "nothing is changed before it is applied");
    let told = bed.capsule.run(&["changes", "latest"]).exits(0).stdout;
    let told: Vec<String> =
        told.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    for change in ["M a", "D d/", "D d/b", "D d/er/", "D d/er/c", "D link"] {
        assert!(told.iter().any(|own| own == change), "{change}: {told:?}");
    }
    let _ = bed.capsule.run(&["replay", "latest"]).exits(0);
    let _ = bed.capsule.run(&["apply", &run]).exits(0);
    let after: Vec<_> = bed.tree().into_iter().collect();
    let expected = [("a", "three\n"), ("keep", "one\n")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(after, expected);
}

/// C38: another file system in a folder is no part of it.
#[test]
fn another_file_system_is_not_entered() {
    let bed = Bed::under(OPEN);
    bed.capsule.write_file("d/mounted/x", "x");
    bed.capsule.write_file("d/y", "y");
    let inner = [
        "call",
        "fs.delete",
        "--policy",
        &bed.policy,
        "--args",
        r#"{"path":"d","recursive":true}"#,
    ];
    let script = "mount -t tmpfs none d/mounted && echo z > d/mounted/z && exec \"$@\"";
    let own = bed.capsule.command(&inner);
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
        .arg(own.get_program())
        .args(own.get_args())
        .current_dir(bed.capsule.workspace())
        .env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = capsule_testkit::CommandOutput::from(command.output().unwrap());
    assert_eq!(ran.json()["code"], "path.outside-workspace", "{ran:?}");
    assert_eq!(bed.read("d/y"), "y");
    assert_eq!(bed.capsule.workspace().join("d").metadata().unwrap().nlink(), 3);
}
