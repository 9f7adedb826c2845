//! The file tools over real files, odd ones among them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use serde_json::{Value, json};

const OPEN: &str = "version: 1
tools:
  fs.read: allow
  fs.list: allow
  fs.search: allow
  fs.grep: allow
  fs.write: allow
";

struct Files {
    capsule: Capsule,
    policy: String,
}

impl Files {
    fn under(policy: &str) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let policy = capsule.write_policy(policy);
        Self { capsule, policy }
    }

    #[track_caller]
    fn call(&self, tool: &str, args: Value) -> (i32, Value) {
        let args = args.to_string();
        let ran = self.capsule.run(&["call", tool, "--policy", &self.policy, "--args", &args]);
        (ran.status, ran.json())
    }

    #[track_caller]
    fn result(&self, tool: &str, args: Value) -> Value {
        let (status, answer) = self.call(tool, args);
        assert_eq!(status, 0, "{answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn code(&self, tool: &str, args: Value) -> String {
        let (status, answer) = self.call(tool, args);
        assert_ne!(status, 0, "{answer}");
        answer["code"].as_str().unwrap().to_owned()
    }
}

/// FR-10, FR-12, CAP-4: 50 KB by default, 200 KB at most, pages by offset.
#[test]
fn reading_is_bounded_and_pages() {
    let files = Files::under(OPEN);
    files.capsule.write_file("big.txt", "0123456789".repeat(30_000));
    let read = |args: Value| files.result("fs.read", args);
    let first = read(json!({ "path": "big.txt" }));
    assert_eq!(first["text"].as_str().unwrap().len(), 50_000);
    assert_eq!((&first["truncated"], &first["clamped"]), (&json!(true), &json!(false)));
    assert_eq!(first["bytes_total"], 300_000);
    let most = read(json!({ "path": "big.txt", "limit": "1MB" }));
    assert_eq!(most["text"].as_str().unwrap().len(), 200_000);
    assert_eq!(most["clamped"], true);
    let page = read(json!({ "path": "big.txt", "offset": 299_995, "limit": 100 }));
    assert_eq!((&page["text"], &page["truncated"]), (&json!("56789"), &json!(false)));
    let behind = read(json!({ "path": "big.txt", "offset": 400_000 }));
    assert_eq!(behind["text"], "");
}

/// FR-13: a binary file comes back as a short preview that says so.
#[test]
fn binary_files_are_previewed() {
    let files = Files::under(OPEN);
    files.capsule.write_file("b.bin", [0u8, 159, 146, 150].repeat(5_000));
    let result = files.result("fs.read", json!({ "path": "b.bin" }));
    assert_eq!(result["binary"], true);
    assert_eq!(result.get("text"), None);
    assert_eq!(result["base64"].as_str().unwrap().len(), 5_336, "4,000 bytes in base64");
    assert_eq!(result["truncated"], true);
}

/// FR-7, FR-11, SAF-5: nothing outside of the workspace, whatever way it is named.
#[test]
fn nothing_outside_is_reached() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    fs::write(files.capsule.directory().join("secret"), "s").unwrap();
    fs::create_dir(files.capsule.directory().join("ws-evil")).unwrap();
    fs::write(files.capsule.directory().join("ws-evil/x"), "s").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
    symlink("../new-outside", root.join("dangling")).unwrap();
    for path in [
        "../secret",
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "$HOME/x",
        "link",
        "etc/passwd",
        "up/secret",
        "magic",
        "dangling",
        "../ws-evil/x",
        "a/../../secret",
        "/workspace/../secret",
        "./../../etc/passwd",
    ] {
        for tool in ["fs.read", "fs.list", "fs.search"] {
            let code = files.code(tool, json!({ "path": path }));
            assert_eq!(code, "path.outside-workspace", "{tool} {path}");
        }
        let write = json!({ "path": path, "content": "x" });
        assert_eq!(files.code("fs.write", write), "path.outside-workspace", "{path}");
    }
    assert!(!files.capsule.directory().join("new-outside").exists());
    assert_eq!(fs::read(files.capsule.directory().join("secret")).unwrap(), b"s");
}

/// CAP-8: hidden files and credentials are closed out of the box, under any name.
#[test]
fn credentials_are_closed_under_every_name() {
    let files = Files::under(
        &OPEN.replace("fs.read: allow", "fs.read: { decision: allow, hidden: allow }"),
    );
    let root = files.capsule.workspace();
    files.capsule.write_file(".env", "TOKEN=1");
    files.capsule.write_file("deploy/server.pem", "key");
    files.capsule.write_file(".env.example", "TOKEN=");
    symlink(".env", root.join("innocent")).unwrap();
    fs::hard_link(root.join(".env"), root.join("notes.txt")).unwrap();
    for path in [".env", "deploy/server.pem", "innocent", "notes.txt", "./.env", "x/../.env"] {
        let (status, answer) = files.call("fs.read", json!({ "path": path }));
        assert_eq!((status, &answer["rule"]), (3, &json!("no-credentials")), "{path}: {answer}");
        assert_eq!(answer["liftable"], false);
    }
    assert_eq!(files.result("fs.read", json!({ "path": ".env.example" }))["text"], "TOKEN=");
}

/// CAP-8: what is hidden is denied by default, and a denial does not tell whether it is there.
#[test]
fn hidden_files_are_denied_by_default() {
    let files = Files::under(OPEN);
    files.capsule.write_file(".config/app", "x");
    for path in [".config/app", ".config/not-there"] {
        let (_, answer) = files.call("fs.read", json!({ "path": path }));
        assert_eq!(answer["code"], "path.hidden");
        let text = answer.to_string().replace(path, "P");
        assert!(!text.contains("found") && !text.contains("exist"), "{text}");
    }
}

/// NFR-11, CAP-12: pipes, sockets, devices and endless files neither hang nor run over.
#[test]
fn odd_files_are_bounded() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    fs::File::create(root.join("sparse")).unwrap().set_len(10_000_000_000).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    let began = Instant::now();
    for path in ["pipe", "socket", "folder"] {
        assert_eq!(files.code("fs.read", json!({ "path": path })), "fs.not-a-file", "{path}");
        let write = json!({ "path": path, "content": "x" });
        assert_eq!(files.code("fs.write", write), "fs.not-a-file", "{path}");
    }
    let sparse = files.result("fs.read", json!({ "path": "sparse" }));
    assert_eq!(
        (&sparse["binary"], &sparse["bytes_total"]),
        (&json!(true), &json!(10_000_000_000_u64))
    );
    let overwrite = json!({ "path": "sparse", "content": "x" });
    assert_eq!(files.code("fs.write", overwrite), "risk.blocked");
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// C17: paths that no file system has are refused, and recorded without harm.
#[test]
fn impossible_paths_are_clean_errors() {
    let files = Files::under(OPEN);
    for (path, code) in [
        ("a\u{0}b", "path.invalid"),
        ("a\nb", "fs.not-found"),
        ("", "path.invalid"),
        (&"x".repeat(5_000), "path.too-long"),
        (&"x".repeat(300), "path.too-long"),
        ("%2e%2e%2fsecret", "fs.not-found"),
    ] {
        assert_eq!(files.code("fs.read", json!({ "path": path })), code, "{path:?}");
    }
    let ran = files.capsule.run(&["verify"]).exits(0);
    assert!(ran.stdout.contains("payloads"));
}

/// FR-6, FR-8: by name, size and date; 20 by default, 100 at most; nothing is opened.
#[test]
fn search_sees_metadata_only() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    for n in 0..150 {
        files.capsule.write_file(&format!("d{}/f{n}.md", n % 7), "x".repeat(n));
    }
    files.capsule.write_file("d0/old.txt", "o");
    let old = fs::File::options().write(true).open(root.join("d0/old.txt")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(86_400)).unwrap();
    // A file that cannot be opened is found all the same.
    fs::set_permissions(root.join("d1/f1.md"), fs::Permissions::from_mode(0o000)).unwrap();
    let search = |args: Value| files.result("fs.search", args);
    let count = |result: &Value| result["entries"].as_array().unwrap().len();
    let some = search(json!({ "name": "*.md" }));
    assert_eq!((count(&some), &some["truncated"]), (20, &json!(true)));
    let many = search(json!({ "name": "*.md", "limit": 1000 }));
    assert_eq!((count(&many), &many["clamped"]), (100, &json!(true)));
    let large = search(json!({ "min_size": 148 }));
    assert_eq!(count(&large), 2);
    assert_eq!(large["truncated"], false);
    let old = search(json!({ "modified_before": "1980-01-01" }));
    assert_eq!(old["entries"][0]["path"], "d0/old.txt");
    assert_eq!(old["entries"][0]["modified"], "1970-01-02T00:00:00Z");
    assert_eq!(count(&search(json!({ "name": "f1.md" }))), 1);
    assert_eq!(count(&search(json!({ "name": "d0/*.md", "limit": 100 }))), 22);
    assert_eq!(count(&search(json!({ "path": "d0", "name": "*.txt", "modified_after": "1d" }))), 0);
}

fn lines_found(result: &Value) -> Vec<String> {
    let found = result["matches"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found
        .iter()
        .map(|line| format!("{}:{}:{}", text(&line["path"]), line["line"], text(&line["text"])))
        .collect()
}

/// Lines are found by a pattern, with a true total, and what was not searched is counted.
#[test]
fn lines_are_found_by_their_content() {
    let files = Files::under(OPEN);
    for (path, text) in [
        ("src/a.rs", "fn one() {}\r\n// FIXED: two\r\nfn three() {}\n"),
        ("src/b.py", "# fixed four\n"),
        ("docs/a.md", "a FIXED (five)\n"),
        (".hidden", "FIXED hidden\n"),
        ("node_modules/x/i.js", "FIXED dependency\n"),
        ("target/CACHEDIR.TAG", "Signature\n"),
        ("target/b.rs", "FIXED built\n"),
        ("image.bin", "FIXED\0\n"),
    ] {
        files.capsule.write_file(path, text);
    }
    files.capsule.write_file("large.txt", "FIXED\n".repeat(900_000));
    files.capsule.write_file("wide.txt", [0xff, 0xfe, b'F', 0, b'I', 0, b'X', 0, b'E', 0, b'D', 0]);
    let grep = |args: Value| files.result("fs.grep", args);
    let all = grep(json!({ "pattern": "FIXED" }));
    let expected = ["docs/a.md:1:a FIXED (five)", "src/a.rs:2:// FIXED: two", "wide.txt:1:FIXED"];
    assert_eq!(lines_found(&all), expected);
    for (field, value) in [
        ("matches_total", json!(3)),
        ("files_searched", json!(4)),
        ("binary_files", json!(1)),
        ("large_files", json!(1)),
        ("left_out", json!(["node_modules", "target"])),
        ("partial", json!(false)),
        ("truncated", json!(false)),
        ("clamped", json!(false)),
    ] {
        assert_eq!(all[field], value, "{field}");
    }
    for (args, expected) in [
        (json!({ "pattern": "fixed", "ignore_case": true, "path": "src", "glob": "*.py" }), 1),
        (json!({ "pattern": "fixed", "ignore_case": true, "path": "src" }), 2),
        (json!({ "pattern": "FIXED (five)", "fixed": true }), 1),
        (json!({ "pattern": "FIXED (five)" }), 0),
        (json!({ "pattern": "^fn \\w+\\(\\) \\{\\}$", "path": "src/a.rs" }), 2),
        (json!({ "pattern": "FIXED", "path": "target" }), 1),
        (json!({ "pattern": "FIXED", "path": "node_modules" }), 1),
    ] {
        assert_eq!(lines_found(&grep(args.clone())).len(), expected, "{args}");
    }
    let near = grep(json!({ "pattern": "two", "context": 5 }));
    assert_eq!(near["matches"][0]["before"], json!(["fn one() {}"]));
    assert_eq!(near["matches"][0]["after"], json!(["fn three() {}"]));
    for wrong in ["(", "", "a\nb", "(a{1000}){1000}"] {
        assert_eq!(files.code("fs.grep", json!({ "pattern": wrong })), "args.invalid", "{wrong}");
    }
    assert_eq!(files.code("fs.grep", json!({ "pattern": "x", "path": "none" })), "fs.not-found");
}

/// Results are bounded in lines and in the length of each, and the total stays true.
#[test]
fn lines_that_are_found_are_bounded() {
    let files = Files::under(OPEN);
    files.capsule.write_file("many.txt", "word\n".repeat(5_000));
    files
        .capsule
        .write_file("long.js", format!("{}needle{}", "x".repeat(9_000), "y".repeat(9_000)));
    let some = files.result("fs.grep", json!({ "pattern": "word" }));
    assert_eq!(lines_found(&some).len(), 100);
    assert_eq!((&some["matches_total"], &some["truncated"]), (&json!(5_000), &json!(true)));
    let most = files.result("fs.grep", json!({ "pattern": "word", "limit": 9_999 }));
    assert_eq!((lines_found(&most).len(), &most["clamped"]), (1_000, &json!(true)));
    let long = files.result("fs.grep", json!({ "pattern": "needle" }));
    let line = &long["matches"][0];
    let text = line["text"].as_str().unwrap();
    assert!(line["cut"] == true && text.contains("needle") && text.chars().count() < 410, "{text}");
}

/// A search shows nothing that a read would not: by rules of `fs.read`, by invariants, by other names, by masks.
#[test]
fn a_search_of_lines_opens_what_reading_opens() {
    let files = Files::under(
        "version: 1
tools:
  fs.read:
    decision: allow
    paths: { allow: [\"**\"], deny: [\"private/**\"] }
    rules: [{ id: drafts, paths: [\"drafts/**\"], decision: ask }]
  fs.grep:
    decision: allow
    rules: [{ id: logs, paths: [\"logs/**\"], decision: deny }]
",
    );
    let root = files.capsule.workspace();
    for path in ["open.txt", "private/a", "drafts/a", "logs/a", "id_rsa", ".env", "k.pem"] {
        files.capsule.write_file(path, "needle\n");
    }
    fs::write(files.capsule.directory().join("outside"), "needle").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    fs::hard_link(root.join("private/a"), root.join("other-name")).unwrap();
    fs::hard_link(root.join("id_rsa"), root.join("key-name")).unwrap();
    let found = files.result("fs.grep", json!({ "pattern": "needle" }));
    assert_eq!(lines_found(&found), ["open.txt:1:needle"]);
    assert_eq!((&found["matches_total"], &found["files_searched"]), (&json!(1), &json!(1)));
    for (path, code) in [
        ("private", "path.not-allowed"),
        ("drafts", "approval.needed"),
        ("logs/a", "policy.denied"),
        ("other-name", "path.not-allowed"),
        ("id_rsa", "policy.never"),
        ("key-name", "policy.never"),
        ("link", "path.outside-workspace"),
    ] {
        let args = json!({ "pattern": "needle", "path": path });
        assert_eq!(files.code("fs.grep", args), code, "{path}");
    }
    let unread = Files::under("version: 1\ntools: { fs.grep: allow }\n");
    unread.capsule.write_file("open.txt", "needle\n");
    assert_eq!(unread.code("fs.grep", json!({ "pattern": "needle" })), "policy.no-rule");
}

/// What a mask hides is neither shown nor guessed by a pattern, and the lines behind it keep their numbers.
#[test]
fn a_search_of_lines_sees_masked_text() {
    let files = Files::under(OPEN);
    let token = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let head = ["-----BEGIN RSA ", "PRIVATE KEY-----"].concat();
    let tail = ["-----END RSA ", "PRIVATE KEY-----"].concat();
    let body = "MIIEowIBAAKCAQEAx5wM4Vd0hHcsGqYv8rZyXn2kqTj7Qb0vLwFzPq3mXc9tRkB1\n".repeat(12);
    files.capsule.write_file(
        "notes.txt",
        format!("token = \"{token}\"\n{head}\n{body}{tail}\nafter the key\n"),
    );
    for pattern in ["16C7e42F", "ghp_", "MIIEow", "(ghp_16|x{99})"] {
        let found = files.result("fs.grep", json!({ "pattern": pattern }));
        assert_eq!(found["matches_total"], 0, "{pattern}: {found}");
    }
    let after = files.result("fs.grep", json!({ "pattern": "after the key" }));
    assert_eq!(lines_found(&after), ["notes.txt:16:after the key"]);
    let (status, shown) = files.call("fs.grep", json!({ "pattern": "token" }));
    assert_eq!(status, 0);
    assert!(shown["result"]["matches"][0]["text"].as_str().unwrap().contains("«"), "{shown}");
}

/// B23: a pattern is a pattern, whatever it looks like.
#[test]
fn a_pattern_is_never_an_option() {
    let files = Files::under(OPEN);
    files.capsule.write_file("--pre=sh", "x");
    for name in ["--pre=*", "-f/etc/shadow", "--exec=rm"] {
        let result = files.result("fs.search", json!({ "name": name }));
        let found = result["entries"].as_array().unwrap().len();
        assert_eq!(found, usize::from(name == "--pre=*"), "{name}");
    }
}

/// CAP-8: listing and searching show only what the policy opens.
#[test]
fn listings_are_filtered() {
    let files = Files::under(
        "version: 1
tools:
  fs.list: { decision: allow, paths: [\"docs/**\", \"src/*.rs\"] }
  fs.search: { decision: allow, paths: [\"docs/**\"] }
",
    );
    for path in ["docs/a.md", "docs/.hidden", "docs/.env", "src/a.rs", "src/a.c", "top.md"] {
        files.capsule.write_file(path, "x");
    }
    files.capsule.write_file("docs/k/id_rsa", "x");
    let paths = |result: Value| -> Vec<String> {
        let entries = result["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(files.result("fs.list", json!({ "path": "." }))), ["docs", "src"]);
    let deep = files.result("fs.list", json!({ "path": ".", "depth": 5 }));
    assert_eq!(paths(deep), ["docs", "docs/a.md", "docs/k", "src", "src/a.rs"]);
    assert_eq!(paths(files.result("fs.search", json!({}))), ["docs/a.md"]);
    assert_eq!(files.code("fs.list", json!({ "path": "top.md" })), "path.not-allowed");
}

/// C17: a name that is not text is shown, marked, and hidden where it must be.
#[test]
fn names_that_are_not_text_are_shown_marked() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    fs::write(root.join(OsStr::from_bytes(b"a\xffb.txt")), "x").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"\xff.pem")), "x").unwrap();
    fs::write(root.join("new\nline"), "x").unwrap();
    let result = files.result("fs.list", json!({ "path": "." }));
    let entries = result["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert!(entries.iter().any(|entry| entry["name_is_not_text"] == true));
}

/// CAP-5: create never replaces, overwrite and append do what they say, folders are made.
#[test]
fn writing_has_modes() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    let write = |args: Value| files.result("fs.write", args);
    let made = write(json!({ "path": "a/b/c.txt", "content": "one\n", "mode": "create" }));
    assert_eq!((&made["changed"], &made["created"]), (&json!(true), &json!(true)));
    let again = json!({ "path": "a/b/c.txt", "content": "two\n", "mode": "create" });
    assert_eq!(files.code("fs.write", again), "fs.exists");
    let more = write(json!({ "path": "a/b/c.txt", "content": "two\n", "mode": "append" }));
    assert_eq!((&more["added"], &more["removed"]), (&json!(1), &json!(0)));
    assert_eq!(fs::read_to_string(root.join("a/b/c.txt")).unwrap(), "one\ntwo\n");
    let same = write(json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" }));
    assert_eq!(same["changed"], false);
    let bytes = write(json!({ "path": "bin", "content_base64": "AP8=" }));
    assert_eq!(bytes["bytes_total"], 2);
    assert_eq!(fs::read(root.join("bin")).unwrap(), [0, 255]);
    let both = json!({ "path": "x", "content": "a", "content_base64": "YQ==" });
    assert_eq!(files.code("fs.write", both), "args.invalid");
    let large = json!({ "path": "x", "content": "a".repeat(1_000_001) }).to_string();
    let line = ["call", "fs.write", "--policy", &files.policy, "--args", "-"];
    let refused = files.capsule.run_with(&line, &large).exits(3);
    assert_eq!(refused.json()["code"], "path.not-allowed");
    let left: Vec<_> = fs::read_dir(root.join("a/b")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside the file");
}

/// What takes a file's place belongs to whom that belonged to, by a tool, an edit, an apply and an
/// undo; other users' files are only made by root.
#[test]
fn whose_a_file_is_stays() {
    for workspace in ["direct", "staged"] {
        let edits = "  fs.edit: allow\n";
        let policy = format!("{OPEN}{edits}sandbox: {{ workspace: {workspace} }}\n");
        let files = Files::under(&policy);
        let path = files.capsule.write_file("docs/theirs", "old\n");
        let theirs = rustix::process::geteuid().is_root().then_some((12_345, 54_321));
        let own = fs::metadata(&path).unwrap();
        let (user, group) = theirs.unwrap_or((own.uid(), own.gid()));
        std::os::unix::fs::chown(&path, Some(user), Some(group)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let is_theirs = |text: &str| {
            let now = fs::metadata(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{workspace}");
            let whose = (now.uid(), now.gid(), now.mode() & 0o777);
            assert_eq!(whose, (user, group, 0o664), "{workspace}: {text}");
        };
        let apply = || {
            if workspace == "staged" {
                let _ = files.capsule.run(&["apply", "latest"]).exits(0);
            }
        };
        let _ = files.result("fs.write", json!({ "path": "docs/theirs", "content": "new\n" }));
        apply();
        is_theirs("new\n");
        let edit = json!({ "path": "docs/theirs", "search": "new", "replace": "newer" });
        let _ = files.result("fs.edit", edit);
        apply();
        is_theirs("newer\n");
        let _ = files.capsule.run(&["undo", "latest"]).exits(0);
        is_theirs("new\n");
    }
}

/// CAP-5, APR-11: a write keeps the mode, follows links that stay inside, and keeps what was there.
#[test]
fn writing_keeps_what_was_there() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    files.capsule.write_file("docs/run.sh", "old");
    fs::set_permissions(root.join("docs/run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("docs", root.join("d")).unwrap();
    let _ = files.result("fs.write", json!({ "path": "d/run.sh", "content": "new" }));
    assert_eq!(fs::read_to_string(root.join("docs/run.sh")).unwrap(), "new");
    let mode = fs::metadata(root.join("docs/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let store = rusqlite::Connection::open(files.capsule.store()).unwrap();
    let undo: Vec<u8> = store
        .query_row("SELECT bytes FROM payloads WHERE class = 'undo'", [], |row| row.get(0))
        .unwrap();
    let record: Value = serde_json::from_slice(&undo).unwrap();
    let change = &record["changes"][0];
    assert_eq!((&record["v"], &change["path"]), (&json!(2), &json!("docs/run.sh")));
    assert_eq!(change["before"]["mode"], 0o750);
    let kept = files.capsule.backup(change["before"]["sha256"].as_str().unwrap());
    assert_eq!(kept, Some(b"old".to_vec()));
    assert_eq!(files.capsule.backup(change["after"]["sha256"].as_str().unwrap()), None);
}

/// NFR-6, G10: what looks like a credential is masked in what is delivered and in what is kept.
#[test]
fn credentials_are_masked_at_the_boundary() {
    let files = Files::under(OPEN);
    let token = format!("ghp_{}", "Z9".repeat(18));
    files.capsule.write_file("notes.txt", format!("token {token} end"));
    let result = files.result("fs.read", json!({ "path": "notes.txt" }));
    let text = result["text"].as_str().unwrap();
    assert!(text.starts_with("token «token:github:40:") && text.ends_with("» end"), "{text}");
    let _ = files.result("fs.write", json!({ "path": "out.txt", "content": token }));
    let written = fs::read_to_string(files.capsule.workspace().join("out.txt")).unwrap();
    assert_eq!(written, token, "what is written is what was asked");
    for name in ["store.db", "store.db-wal"] {
        let bytes = fs::read(files.capsule.store().with_file_name(name)).unwrap_or_default();
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "{name} holds the token");
    }
}

/// NFR-6, G10: a window onto a file does not undo the masks, whatever is cut by its edges.
#[test]
fn a_window_does_not_undo_a_mask() {
    let files = Files::under(OPEN);
    let token = format!("ghp_{}", "Z9".repeat(18));
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n",
        format!("{}\n", "Qk7".repeat(20)).repeat(60)
    );
    files.capsule.write_file("tok", format!("token {token} end\n{key}tail"));
    let mut plan = String::from("version: 1\nname: windows\nsteps:\n");
    for (offset, limit) in [(0, 20), (6, 30), (8, 30), (20, 30), (45, 40), (60, 500), (500, 2000)] {
        plan.push_str(&format!(
            "- {{ tool: fs.read, args: {{ path: tok, offset: {offset}, limit: {limit} }} }}\n"
        ));
    }
    let plan = files.capsule.write_plan(&plan);
    let ran =
        files.capsule.run(&["run", &plan, "--policy", &files.policy, "--json"]).exits(0).json();
    let calls = ran["calls"].as_array().unwrap();
    for call in calls {
        let result = &call["result"];
        let text = result["text"].as_str().unwrap();
        assert!(!text.contains("Z9") && !text.contains("Qk7"), "{text}");
        assert!(text.contains('«'), "{text}");
        assert_eq!(result["bytes_total"], 6 + 40 + 5 + key.len() + 4);
    }
    assert_eq!(calls[1]["result"]["text"], calls[2]["result"]["text"], "the whole mask, twice");
    let end = files.result("fs.read", json!({ "path": "tok", "offset": 47 + key.len() + 4 }));
    assert_eq!(end["text"], "tail", "what the key does not reach is as it was");
    for name in ["store.db", "store.db-wal"] {
        let bytes = fs::read(files.capsule.store().with_file_name(name)).unwrap_or_default();
        let found = bytes.windows(6).any(|window| window == b"Z9Z9Z9" || window == b"Qk7Qk7");
        assert!(!found, "{name} holds a part of it");
    }
}

/// C25, G7: a store that an earlier run left in the workspace is as closed as today's, whatever its
/// name, and so is what lies beside it.
#[test]
fn a_store_of_an_earlier_run_is_out_of_reach() {
    let files = Files::under(OPEN);
    let root = files.capsule.workspace();
    let ran = files.capsule.run(&[
        "call",
        "fs.list",
        "--policy",
        &files.policy,
        "--out",
        "in-ws.db",
        "--args",
        r#"{"path":"."}"#,
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = files.capsule.run(&[
        "call",
        "fs.list",
        "--policy",
        &files.policy,
        "--store",
        "st.db",
        "--args",
        r#"{"path":"."}"#,
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fs::create_dir(root.join("docs")).unwrap();
    fs::copy(root.join("in-ws.db"), root.join("docs/notes.txt")).unwrap();
    symlink("in-ws.db", root.join("link")).unwrap();
    let mut wrong = Vec::new();
    for path in [
        "in-ws.db",
        "in-ws.db-wal",
        "in-ws.db-journal",
        "link",
        "docs/notes.txt",
        "st.db",
        "st.db-wal",
        "st.db-shm",
        "st.db.locks/x",
    ] {
        let before = fs::read(root.join(path)).ok();
        for (tool, args) in [
            ("fs.read", json!({ "path": path })),
            ("fs.write", json!({ "path": path, "content": "x" })),
            ("fs.write", json!({ "path": path, "content": "x", "mode": "append" })),
        ] {
            let (status, answer) = files.call(tool, args);
            if (status, &answer["rule"]) != (3, &json!("no-own-files")) {
                wrong.push(format!("{tool} {path}: {answer}"));
            }
        }
        assert_eq!(fs::read(root.join(path)).ok(), before, "{path}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Another program's database is a file like any other.
    let other = rusqlite::Connection::open(root.join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    assert_eq!(files.result("fs.read", json!({ "path": "other.db" }))["binary"], true);
    let _ = files.result("fs.write", json!({ "path": "x-wal", "content": "x" }));
}

/// C31, A28, A29: arguments have one reading, and are bounded.
#[test]
fn arguments_have_one_reading() {
    let files = Files::under(OPEN);
    let call = |args: &str| {
        let ran = files
            .capsule
            .run(&["call", "fs.read", "--policy", &files.policy, "--args", args])
            .exits(2);
        ran.stderr
    };
    assert!(call(r#"{"path":"ok","path":"/etc/shadow"}"#).contains("stands twice"));
    assert!(call(&"[".repeat(50_000)).contains("usage"));
    assert!(call("{").contains("usage"));
    for args in [json!({}), json!({ "path": 5 }), json!({ "path": "a", "nope": 1 }), json!([])] {
        assert_eq!(files.code("fs.read", args.clone()), "args.invalid", "{args}");
    }
}

/// C25, CAP-12: the store, the policy and their side files are out of reach wherever they lie.
#[test]
fn our_own_files_are_out_of_reach() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_file("policy.yaml", OPEN);
    let policy = policy.to_string_lossy().into_owned();
    let store = capsule.workspace().join("state/store.db");
    let store = store.to_string_lossy().into_owned();
    let out = capsule.workspace().join("out.db");
    let out = out.to_string_lossy().into_owned();
    let call = |tool: &str, args: Value| {
        let args = args.to_string();
        let line =
            ["call", tool, "--policy", &policy, "--store", &store, "--out", &out, "--args", &args];
        capsule.run(&line).json()
    };
    let _ = call("fs.list", json!({ "path": "." }));
    for path in
        ["policy.yaml", "state/store.db", "state/store.db-wal", "state/store.db-shm", "out.db"]
    {
        for (tool, args) in [
            ("fs.read", json!({ "path": path })),
            ("fs.write", json!({ "path": path, "content": "x" })),
        ] {
            let answer = call(tool, args);
            assert_eq!(answer["rule"], "no-own-files", "{tool} {path}: {answer}");
        }
    }
    let listed = call("fs.list", json!({ "path": ".", "depth": 3 })).to_string();
    assert!(!listed.contains("store.db") && !listed.contains("policy.yaml"), "{listed}");
    let config = capsule.write_policy(OPEN);
    let answer = capsule.run(&[
        "call",
        "fs.write",
        "--policy",
        &config,
        "--args",
        r#"{"path":".capsule/policy.yaml","content":"x"}"#,
    ]);
    assert_eq!(answer.json()["rule"], "no-self-modification");
}
