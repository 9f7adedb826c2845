//! The record: written, verified, replayed, exported, read by SQL.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_store::Store;
use capsule_store::{Frontier, leaf_hash};
use capsule_testkit::recorded_run::{PLAN, POLICY, RecordedRun};
use capsule_testkit::{Capsule, CommandOutput, History, HttpServer};
use rusqlite::Connection;
use serde_json::{Value, json};

fn recorded() -> RecordedRun {
    RecordedRun::record(Capsule::new(env!("CARGO_BIN_EXE_capsule")), PLAN)
}

/// CAP-10, G11: replay prints the same bytes and ends with the same code, without the workspace.
#[test]
fn replay_is_the_same_without_the_world() {
    let RecordedRun { capsule, transcript, exit, .. } = recorded();
    assert_eq!(exit, 1);
    fs::remove_dir_all(capsule.workspace()).unwrap();
    fs::create_dir(capsule.workspace()).unwrap();
    for name in ["policy.yaml", "plan.yaml"] {
        fs::remove_file(capsule.directory().join(name)).unwrap();
    }
    let replayed = capsule.run(&["replay", "latest"]).exits(exit);
    assert_eq!(replayed.stdout, transcript);
    assert!(replayed.stderr.contains("nothing was executed"));
    assert_eq!(fs::read_dir(capsule.workspace()).unwrap().count(), 0, "nothing was written");
    let reported = capsule.run(&["report", "latest"]).exits(0);
    assert_eq!(reported.stdout, transcript);
}

/// G14: the same bytes under another time zone, language, umask, folder and environment.
#[test]
fn replay_is_the_same_everywhere() {
    let RecordedRun { mut capsule, transcript, exit, .. } = recorded();
    for (name, value) in [
        ("TZ", "Asia/Kathmandu"),
        ("LANG", "tr_TR.UTF-8"),
        ("LC_ALL", "C"),
        ("COLUMNS", "40"),
        ("CAPSULE_STORE", capsule.store().to_str().unwrap()),
    ] {
        let value = value.to_owned();
        capsule.set(name, &value);
    }
    for _ in 0..8 {
        let mut command = capsule.command(&["replay", "latest"]);
        let output = command.current_dir("/").output().unwrap();
        assert_eq!(output.status.code(), Some(exit));
        assert_eq!(String::from_utf8_lossy(&output.stdout), transcript);
    }
}

/// CAP-10: a fetch is served from the record when the server is gone.
#[test]
fn replay_needs_no_network() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let server = HttpServer::fixed("200 OK", "Content-Type: application/json\r\n", "[1]");
    let policy = capsule.write_policy(&format!(
        "version: 1\ntools:\n  http.get:\n    decision: allow\n    urls: [\"http://127.0.0.1:{}\"]\n    \
         private_ips: {{ allow: [127.0.0.1] }}\n",
        server.port()
    ));
    let plan = capsule.write_plan(&format!(
        "- {{ id: get, tool: http.get, args: {{ url: \"{}\" }}, expect: {{ json: [1] }} }}\n",
        server.url("/x")
    ));
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    drop(server);
    assert_eq!(capsule.run(&["replay", "latest"]).exits(0).stdout, ran.stdout);
}

/// CAP-10: single calls replay too, whether they were allowed, denied or not understood.
#[test]
fn single_calls_replay() {
    let RecordedRun { capsule, policy, .. } = recorded();
    for (args, exit) in [
        (json!({ "path": "a.txt" }), 0),
        (json!({ "path": ".env" }), 3),
        (json!({ "path": "nothing" }), 1),
        (json!({ "pth": 1 }), 1),
    ] {
        let args = args.to_string();
        let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", &args]).exits(exit);
        let _ = capsule.run(&["replay", "latest"]).exits(exit);
    }
}

/// CAP-10: the first difference stops the replay, names its cause, and ends with 5.
#[test]
fn a_changed_plan_diverges() {
    let RecordedRun { capsule, .. } = recorded();
    let divergence = |text: &str| {
        let plan = capsule.write_plan(text);
        capsule.run(&["replay", "latest", "--plan", &plan]).exits(5).stderr
    };
    for (from, to, says) in [
        ("path: a.txt }", "path: b.txt }", "args.path"),
        ("tool: fs.read, args: { path: .env }", "tool: fs.list, args: { path: .env }", "fs.list"),
        ("id: denied", "id: renamed", "renamed"),
        (
            "  - { id: broken, tool: fs.read, args: { path: nothing }, on_error: continue }\n",
            "",
            "write",
        ),
        ("$ref: inputs.who", "$ref: steps.read.path", "args.content"),
        ("text: other", "text: \"hello \"", "step.ended"),
    ] {
        let stderr = divergence(&PLAN.replacen(from, to, 1));
        assert!(stderr.contains("replay.diverged"), "{stderr}");
        assert!(stderr.contains("cause   the plan changed"), "{stderr}");
        assert!(stderr.contains(says), "{says}: {stderr}");
    }
    let more = divergence(
        &PLAN
            .replace(
                "  - { id: never,",
                "  - { id: extra, tool: fs.list, args: { path: out } }\n  - { id: never,",
            )
            .replace(
                "expect: { text: other }, on_error: { retry: 1 }",
                "expect: { text: other }, on_error: continue",
            ),
    );
    assert!(more.contains("replay.diverged"), "{more}");
    let same = capsule.write_plan(&format!("# a comment\n{PLAN}"));
    let _ = capsule.run(&["replay", "latest", "--plan", &same]).exits(1);
    let noted = capsule.run(&["replay", "latest"]).exits(1);
    assert!(noted.stderr.contains("has changed since"), "{}", noted.stderr);
}

/// CAP-10: a divergence names the places in both plans, and `--keep-going` lists all that differs.
#[test]
fn every_difference_is_listed() {
    let RecordedRun { capsule, .. } = recorded();
    let edited = PLAN
        .replace("args: { path: nothing }", "args: { path: nowhere }")
        .replace("text: other", "text: another")
        .replacen("path: a.txt }", "path: b.txt }", 1);
    let edited = capsule.write_plan(&format!("# one line more\n{edited}"));
    let line = ["replay", "latest", "--plan", &edited];
    let first = capsule.run(&line).exits(5).stderr;
    assert_eq!(first.matches("replay.diverged").count(), 1, "{first}");
    let place = "cause   the plan changed: plan.yaml:6 (args.path), was plan.yaml:5";
    assert!(first.contains(place), "{first}");
    let all = capsule.run(&[&line[..], &["--keep-going"]].concat()).exits(5).stderr;
    for (step, says) in [
        ("`read`", "now       b.txt"),
        ("`broken`", "now       nowhere"),
        ("`wrong`", "not \"another\""),
    ] {
        let at = all.find(&format!("replay.diverged at step {step}"));
        assert!(at.is_some_and(|at| all.split_at(at).1.contains(says)), "{step}: {all}");
    }
    assert_eq!(all.matches("replay.diverged").count(), 3, "{all}");
    let outputs = capsule.write_plan(&PLAN.replace("outputs: { file:", "outputs: { other:"));
    let _ = capsule.run(&["replay", "latest", "--plan", &outputs, "--keep-going"]).exits(1);
    let extra = capsule.write_plan(&PLAN.replace(
        "  - { id: denied",
        "  - { id: new, tool: fs.list, args: { path: . } }\n  - { id: denied",
    ));
    let stderr =
        capsule.run(&["replay", "latest", "--plan", &extra, "--keep-going"]).exits(5).stderr;
    assert!(stderr.contains("step `new`") && stderr.contains("which is new"), "{stderr}");
}

/// CAP-10: outputs that differ are shown by name.
#[test]
fn other_outputs_diverge() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.txt", "hello");
    let policy = capsule.write_policy(POLICY);
    let text = "version: 1
steps:
  - { id: read, tool: fs.read, args: { path: a.txt } }
outputs: { said: { $ref: steps.read.text } }
";
    let plan = capsule.write_plan(text);
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    let other = capsule.write_plan(&text.replace("steps.read.text", "steps.read.bytes_total"));
    let stderr = capsule.run(&["replay", "latest", "--plan", &other]).exits(5).stderr;
    assert!(stderr.contains("outputs.said") && stderr.contains("now       5"), "{stderr}");
}

/// A store that was named is expected to be there; one whose events are no JSON is not what was
/// written.
#[test]
fn a_named_store_must_be_there() {
    let RecordedRun { capsule, .. } = recorded();
    let missing = capsule.directory().join("missing.db").to_string_lossy().into_owned();
    let _ = capsule.run(&["list-runs", "--store", &missing]).exits(10);
    let fresh = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let _ = fresh.run(&["list-runs"]).exits(0);
    let copy = capsule.directory().join("copy.db").to_string_lossy().into_owned();
    Connection::open(capsule.store()).unwrap().execute("VACUUM INTO ?1", [&copy]).unwrap();
    let store = Connection::open(&copy).unwrap();
    let trigger: String = store
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'events_stay'", [], |row| row.get(0))
        .unwrap();
    let damage = "UPDATE events SET bytes = CAST('{' AS BLOB) WHERE kind = 'call.decided'";
    store.execute_batch(&format!("DROP TRIGGER events_stay; {damage}; {trigger}")).unwrap();
    let ran = capsule.run(&["list-runs", "--store", &copy]).exits(6);
    assert!(ran.stderr.contains("store.integrity"), "{}", ran.stderr);
}

/// G19: a record that was tampered with is refused before the first step.
#[test]
fn a_tampered_record_is_not_replayed() {
    let RecordedRun { capsule, .. } = recorded();
    let store = Connection::open(capsule.store()).unwrap();
    store.execute_batch("DROP TRIGGER payloads_stay;").unwrap();
    store
        .execute(
            "UPDATE payloads SET bytes = CAST(replace(CAST(bytes AS TEXT), 'hello', 'HELLO') AS BLOB)
             WHERE class = 'output'",
            [],
        )
        .unwrap();
    let ran = capsule.run(&["replay", "latest"]).exits(6);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(ran.stderr.contains("store.integrity"), "{}", ran.stderr);
}

/// G1, G2, G5: whatever is changed in events or payloads is found, and its place is named.
#[test]
fn tampering_is_found_and_named() {
    let RecordedRun { capsule, .. } = recorded();
    let copy = capsule.directory().join("copy.db");
    let copy_path = copy.to_string_lossy().into_owned();
    let pristine = |sql: &str| {
        let _ = fs::remove_file(&copy);
        let store = Connection::open(capsule.store()).unwrap();
        store.execute("VACUUM INTO ?1", [&copy_path]).unwrap();
        let copy = Connection::open(&copy).unwrap();
        // Who tampers with care puts the triggers back.
        let triggers: Vec<(String, String)> = copy
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (name, _) in &triggers {
            copy.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        copy.execute_batch(sql).unwrap();
        for (_, text) in &triggers {
            copy.execute_batch(text).unwrap();
        }
        capsule.run(&["verify", "--store", &copy_path])
    };
    let _ = pristine("SELECT 1;").exits(0);
    // One of the payloads, whatever its number is.
    let ninth = |change: &str| {
        format!("{change} WHERE id = (SELECT id FROM payloads ORDER BY id LIMIT 1 OFFSET 8);")
    };
    let flip = |leaf: u64, with_hash: bool| {
        let hash = if with_hash { "hash = x'00'," } else { "" };
        format!(
            "UPDATE events SET {hash} bytes = CAST(replace(CAST(bytes AS TEXT), '\"v\":1', '\"v\": 1') AS BLOB)
             WHERE leaf = {leaf};"
        )
    };
    for (sql, place) in [
        (flip(7, false), "event 7 "),
        (flip(7, true), "event 7"),
        ("DELETE FROM events WHERE leaf = 5;".into(), "event 6"),
        ("UPDATE events SET leaf = 1000 WHERE leaf = 5; UPDATE events SET leaf = 5 WHERE leaf = 6; \
          UPDATE events SET leaf = 6 WHERE leaf = 1000;".into(), "event 5"),
        ("UPDATE events SET kind = 'call.decided' WHERE leaf = 1;".into(), "event 1"),
        ("UPDATE events SET seq = 99 WHERE leaf = 3;".into(), "event 3"),
        ("DELETE FROM events WHERE leaf = (SELECT max(leaf) FROM events);".into(), "tree"),
        ("UPDATE tree SET size = size + 1;".into(), "tree"),
        (ninth("UPDATE payloads SET bytes = x'00'"), "payload"),
        (ninth("UPDATE payloads SET salt = x'00'"), "payload"),
        (ninth("UPDATE payloads SET salt = NULL"), "payload"),
        (ninth("UPDATE payloads SET bytes = NULL, salt = NULL, sha256 = NULL"), "payload"),
        (ninth("UPDATE payloads SET class = 'undo'"), "payload"),
        (ninth("DELETE FROM payloads"), "payload"),
        (ninth("UPDATE payloads SET sha256 = 'x'"), "payload"),
        ("INSERT INTO payloads (commitment, class) VALUES ('x', 'text');".into(), "payloads"),
    ] {
        let ran = pristine(&sql).exits(6);
        assert!(ran.stderr.contains(place), "{sql}\n{}", ran.stderr);
        let json = capsule.run(&["verify", "--store", &copy_path, "--json"]).exits(6).json();
        assert_eq!(json["ok"], false);
    }
    // A file by itself that holds one run may be one that was written out, without what is private.
    let erased = pristine(
        "UPDATE payloads SET bytes = NULL, salt = NULL, sha256 = NULL WHERE class = 'key';",
    );
    assert!(erased.exits(0).stdout.contains("1 withheld or never kept"));
}

/// The event at each leaf, changed, and everything behind it written again with right hashes: what is left to be
/// found is what an event says.
fn written_again(path: &Path, change: impl Fn(i64, &mut Value)) {
    let sql = Connection::open(path).unwrap();
    let triggers: Vec<(String, String)> = sql
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    triggers.iter().for_each(|(name, _)| {
        sql.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    });
    let events: Vec<(i64, Vec<u8>)> = sql
        .prepare("SELECT leaf, bytes FROM events ORDER BY leaf")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let (mut tree, mut prev) = (Frontier::default(), BTreeMap::new());
    for (leaf, bytes) in events {
        let mut event: Value = serde_json::from_slice(&bytes).unwrap();
        let run = event["run"].as_str().map(str::to_owned);
        if let Some(before) = run.as_ref().and_then(|run| prev.get(run)) {
            event["prev"] = json!(before);
        }
        change(leaf, &mut event);
        let bytes = capsule_base::json::canonical(&event);
        let hash = leaf_hash(&bytes);
        tree.push(hash);
        prev.insert(run.clone().unwrap_or_default(), Digest::of(&bytes));
        let row =
            rusqlite::params![leaf, event["seq"].as_i64(), event["kind"].as_str(), hash.0, bytes];
        sql.execute(
            "UPDATE events SET seq = ?2, kind = ?3, hash = ?4, bytes = ?5 WHERE leaf = ?1",
            row,
        )
        .unwrap();
    }
    sql.execute("UPDATE tree SET peaks = ?1", [tree.to_bytes()]).unwrap();
    triggers.iter().for_each(|(_, text)| sql.execute_batch(text).unwrap());
}

/// G1: what events say is held to `FORMAT.md`, also where every hash is right.
#[test]
fn events_are_held_to_the_format() {
    let RecordedRun { capsule, .. } = recorded();
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    let _ = capsule.run(&["audit", "export", "--out", &path]).exits(0);
    let pristine = fs::read(&copy).unwrap();
    type Change<'c> = &'c dyn Fn(&mut Value);
    let rows: [(&str, Change<'_>, &str); 13] = [
        ("call.finished", &|own| own["at"] = json!(1), "its time is before"),
        ("call.finished", &|own| own["body"]["masked"] = json!(9_007_199_254_740_994_u64), "2^53"),
        ("run.sealed", &|own| own["at"] = json!(9_007_199_254_740_994_u64), "2^53"),
        ("call.finished", &|own| own["v"] = json!(0), "not an event"),
        ("call.finished", &|own| own["v"] = json!(2), "format version 2"),
        ("call.finished", &|own| own["body"]["more"] = json!(1), "not an event"),
        (
            "call.proposed",
            &|own| drop(own["body"].as_object_mut().unwrap().remove("step")),
            "not an event",
        ),
        ("run.opened", &|own| own["body"]["staged"] = json!(false), "not an event"),
        ("run.opened", &|own| own["body"]["layers"] = json!([]), "not an event"),
        ("call.decided", &|own| own["body"]["decision"] = json!("perhaps"), "not an event"),
        ("call.finished", &|own| own["kind"] = json!("call.melted"), "not an event"),
        ("run.sealed", &|own| own["body"]["events"] = json!(3), "the seal counts"),
        ("call.finished", &|own| own["body"]["output"]["bytes"] = json!(3), "committed to"),
    ];
    for (kind, change, what) in rows {
        fs::write(&copy, &pristine).unwrap();
        let done = Cell::new(false);
        written_again(&copy, |_, event| {
            if event["kind"] == kind && !done.replace(true) {
                change(event);
            }
        });
        let ran = capsule.run(&["verify", &path]).exits(6);
        assert!(
            ran.stderr.contains(what) && ran.stderr.contains("event "),
            "{kind}: {}",
            ran.stderr
        );
    }
    fs::write(&copy, &pristine).unwrap();
    written_again(&copy, |_, _| {});
    let _ = capsule.run(&["verify", &path]).exits(0);
}

/// G5: an event that says that a run was erased counts all of its payloads, and is the only one.
#[test]
fn an_erasing_counts_what_it_erased() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let args = r#"{"path":"a.txt"}"#;
    let call = ["call", "fs.read", "--policy", &policy, "--args", args];
    let out = capsule.directory().join("run.db").to_string_lossy().into_owned();
    let _ = capsule.run(&[&call[..], &["--out", &out]].concat()).exits(0);
    let listed = capsule.run(&["list-runs", "--json"]).exits(0).json();
    let (call_run, plan_run) = (listed[0]["run"].clone(), listed[1]["run"].clone());
    let _ = capsule.run(&["audit", "erase", plan_run.as_str().unwrap()]).exits(0);
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    let _ = capsule.run(&["audit", "export", "--out", &path]).exits(0);
    let pristine = fs::read(&copy).unwrap();
    let erased = |change: &dyn Fn(&mut Value), kind: &str| {
        fs::write(&copy, &pristine).unwrap();
        written_again(&copy, |_, event| {
            if event["kind"] == kind {
                change(event);
            }
        });
        capsule.run(&["verify", &path])
    };
    let _ = erased(&|_| {}, "payload.erased").exits(0);
    for (more, what) in [(-1_i64, "it counts"), (1, "it counts"), (-1_000, "are gone")] {
        let count = |own: &mut Value| {
            own["body"]["payloads"] = json!(own["body"]["payloads"].as_i64().unwrap() + more);
        };
        let ran = erased(&count, "payload.erased").exits(6);
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    }
    for other in [call_run, json!("r-0000000000000000")] {
        let ran = erased(&|own| own["body"]["subject"] = other.clone(), "payload.erased").exits(6);
        assert!(ran.stderr.contains("erased") || ran.stderr.contains("are gone"), "{}", ran.stderr);
    }
    // Said a second time, in the place of another event of no run.
    let again = |own: &mut Value| {
        own["kind"] = json!("payload.erased");
        own["body"] = json!({ "subject": plan_run, "payloads": 32 });
    };
    let _ = erased(&again, "run.exported").exits(6);
}

/// G1: which columns of a payload are there hangs on its run, its class and its file.
#[test]
fn payloads_are_there_or_rightly_gone() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let args = r#"{"path":"out/c.txt","content":"x"}"#;
    let _ = capsule.run(&["call", "fs.write", "--policy", &policy, "--args", args]).exits(0);
    let digests = capsule.write_policy(&format!("{POLICY}audit: {{ payloads: digest }}\n"));
    let _ = capsule.run(&["run", &plan, "--policy", &digests]).exits(1);
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    let _ = capsule.run(&["audit", "export", "--out", &path]).exits(0);
    let pristine = fs::read(&copy).unwrap();
    let first = |class: &str| format!("(SELECT min(id) FROM payloads WHERE class = '{class}')");
    let last = |class: &str| format!("(SELECT max(id) FROM payloads WHERE class = '{class}')");
    for (change, whose, what) in [
        ("bytes = NULL, salt = NULL", first("key"), "nothing of its run was erased"),
        ("bytes = NULL, salt = NULL", first("undo"), "nothing of its run was erased"),
        ("bytes = NULL", first("undo"), "its bytes are gone"),
        ("sha256 = printf('%064d', 0)", first("key"), "it is private"),
        ("sha256 = NULL", first("output"), "their digest is not"),
        ("sha256 = printf('%064d', 0)", first("output"), "not that of its bytes"),
        ("bytes = NULL, salt = NULL, sha256 = NULL", first("output"), "its run keeps them"),
        ("salt = x'00'", first("output"), "committed to"),
        // Those of a run that keeps digests.
        ("salt = NULL", last("output"), "its run was not erased"),
        ("salt = x'00'", last("output"), "not 32 bytes"),
        ("sha256 = 'x'", last("output"), "its digest is none"),
        ("bytes = NULL, salt = NULL", last("key"), "nothing of its run was erased"),
    ] {
        fs::write(&copy, &pristine).unwrap();
        let sql = Connection::open(&copy).unwrap();
        let trigger: String = sql
            .query_row("SELECT sql FROM sqlite_schema WHERE name = 'payloads_stay'", [], |row| {
                row.get(0)
            })
            .unwrap();
        sql.execute_batch(&format!(
            "DROP TRIGGER payloads_stay; UPDATE payloads SET {change} WHERE id = {whose}; {trigger}"
        ))
        .unwrap();
        drop(sql);
        let ran = capsule.run(&["verify", &path]).exits(6);
        assert!(
            ran.stderr.contains(what) && ran.stderr.contains("payload "),
            "{change}: {}",
            ran.stderr
        );
    }
    // A row that no event knows is named, and so is one of the tree.
    for (change, what) in [
        (
            "INSERT INTO payloads (id, commitment, class) VALUES (77, 'x', 'text')",
            "payload row 77: ",
        ),
        (
            "INSERT INTO payloads (id, commitment, class) VALUES (-3, 'x', 'text')",
            "payload row -3: ",
        ),
        ("DELETE FROM tree", "tree: a row that belongs there is missing"),
        (
            "PRAGMA ignore_check_constraints = 1; INSERT INTO tree VALUES (2, 0, x'')",
            "tree: it has 2 rows",
        ),
    ] {
        fs::write(&copy, &pristine).unwrap();
        Connection::open(&copy).unwrap().execute_batch(change).unwrap();
        let ran = capsule.run(&["verify", &path]).exits(6);
        assert!(ran.stderr.contains(what), "{change}: {}", ran.stderr);
    }
}

/// Which parts of the store's files there are, and what they hold.
fn parts(capsule: &Capsule) -> Vec<(PathBuf, Vec<u8>)> {
    let files = ["store.db", "store.db-wal", "store.db.head"];
    let files = files.map(|name| capsule.store().with_file_name(name));
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect()
}

fn put(parts: &[(PathBuf, Vec<u8>)]) {
    let _ = fs::remove_file(parts[0].0.with_file_name("store.db-shm"));
    parts.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
}

/// M3, G4: most of a small store is in its log. A bit that is flipped there is found, and named, and nothing is
/// written onto what is left.
#[test]
fn a_store_that_lost_its_newest_events_says_so() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let args = r#"{"path":"a.txt"}"#;
    let call = ["call", "fs.read", "--policy", &policy, "--args", args];
    for _ in 0..4 {
        let _ = capsule.run(&call).exits(0);
    }
    let truth = capsule.run(&["verify"]).exits(0).stdout;
    assert!(truth.contains("✔ complete") && truth.contains("frames of its log read"), "{truth}");
    let whole = parts(&capsule);
    let log = whole[1].1.len();
    let (mut found, mut named) = (0, 0);
    for at in (0..32).step_by(5).chain((32..log).step_by(log / 70)) {
        let mut damaged = whole.clone();
        damaged[1].1[at] ^= 1 << (at % 8);
        put(&damaged);
        let ran = capsule.run(&["verify"]);
        if ran.status == 0 {
            assert_eq!(ran.stdout, truth, "byte {at}");
            continue;
        }
        assert_eq!(ran.status, 6, "byte {at}: {}", ran.stderr);
        found += 1;
        named += usize::from(ran.stderr.contains("damaged"));
        assert!(ran.stderr.contains("events"), "{}", ran.stderr);
    }
    assert!(found > 50 && named > 50, "{found} {named}");
    let cut = |what: &str, log: Vec<u8>| {
        put(&[whole[0].clone(), (whole[1].0.clone(), log), whole[2].clone()]);
        let json = capsule.run(&["verify", "--json"]).exits(6).json();
        assert_eq!(json["code"], "store.integrity", "{what}: {json}");
        let refused = capsule.run(&call).exits(6);
        assert!(
            refused.stderr.contains("put `") && refused.stderr.contains(".head"),
            "{}",
            refused.stderr
        );
    };
    cut("no log", Vec::new());
    cut("half a log", whole[1].1[..log / 2].to_vec());
    cut("a log without its end", whole[1].1[..log - 1].to_vec());
    // Whoever reads is told, and whoever puts the note away goes on from what is there.
    let cut = whole[1].1[..log - 9_000].to_vec();
    put(&[whole[0].clone(), (whole[1].0.clone(), cut), whole[2].clone()]);
    let listed = capsule.run(&["list-runs"]).exits(0);
    assert!(
        listed.stderr.contains("are missing") && !listed.stdout.is_empty(),
        "{}",
        listed.stderr
    );
    fs::remove_file(&whole[2].0).unwrap();
    let _ = capsule.run(&call).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
    put(&whole);
    assert_eq!(capsule.run(&["verify"]).exits(0).stdout, truth);
}

/// M3: the main file alone says that it is not the store; a copy that was made to be one file is complete.
#[test]
fn a_copy_is_complete_or_says_that_it_is_not() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let at = |name: &str| capsule.directory().join(name).to_string_lossy().into_owned();
    let (alone, whole) = (at("alone.db"), at("whole.db"));
    let missing = |what: &str| {
        fs::copy(capsule.store(), &alone).unwrap();
        let ran = capsule.run(&["verify", &alone]).exits(6);
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
        // There is no note to put away.
        assert!(!ran.stderr.contains("put `"), "{}", ran.stderr);
        let listed = capsule.run(&["list-runs", "--store", &alone]);
        assert!(!listed.stderr.contains("put `"), "{}", listed.stderr);
    };
    missing("in a log that is missing");
    let sql = Connection::open(capsule.store()).unwrap();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(sql);
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(1);
    missing("newer ones may be missing");
    let wrote = capsule.run(&["audit", "export", "--out", &whole]).exits(0);
    assert!(wrote.stdout.contains("events to"), "{}", wrote.stdout);
    assert_eq!(fs::metadata(&whole).unwrap().permissions().mode() & 0o777, 0o600);
    let leaves = |store: &[&str]| {
        capsule.run(&[&["verify", "--json"], store].concat()).exits(0).json()["leaves"].clone()
    };
    assert_eq!(leaves(&[&whole]), leaves(&[]));
    // Nothing is replaced, and nothing is left of what was not finished.
    let _ = capsule.run(&["audit", "export", "--out", &whole]).exits(2);
    let left = fs::read_dir(capsule.directory()).unwrap().map(|own| own.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    // It can be worked with in its place.
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--store", &whole]).exits(1);
    let _ = capsule.run(&["verify", "--store", &whole]).exits(0);
}

/// M3: two bytes of the header say that a file is whole by itself; a note beside it counts nevertheless.
#[test]
fn a_file_by_itself_is_told_by_its_header() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let whole = capsule.directory().join("whole.db").to_string_lossy().into_owned();
    let _ = capsule.run(&["audit", "export", "--out", &whole]).exits(0);
    let good = fs::read(&whole).unwrap();
    for (modes, status) in [([1, 1], 0), ([1, 2], 6), ([2, 1], 6), ([2, 2], 6)] {
        let mut bytes = good.clone();
        bytes[18..20].copy_from_slice(&modes);
        fs::write(&whole, bytes).unwrap();
        let ran = capsule.run(&["verify", &whole]).exits(status);
        assert_eq!(ran.stderr.contains("without its log"), status == 6, "{}", ran.stderr);
        let _ = fs::remove_file(format!("{whole}-shm"));
        let _ = fs::remove_file(format!("{whole}-wal"));
    }
    fs::write(&whole, good).unwrap();
    let args = r#"{"path":"a.txt"}"#;
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", args]).exits(0);
    fs::copy(capsule.store().with_extension("db.head"), format!("{whole}.head")).unwrap();
    let ran = capsule.run(&["verify", &whole]).exits(6);
    assert!(ran.stderr.contains("are missing"), "{}", ran.stderr);
}

/// G1: nothing is put into the file of one run, by whoever else or by ourselves.
#[test]
fn one_run_that_was_written_out_stays_alone() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let _ = capsule.run(&["init", "--origin", "acme/log"]).exits(0);
    let out = capsule.directory().join("run.db");
    let path = out.to_string_lossy().into_owned();
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--out", &path]).exits(1);
    let before = fs::read(&out).unwrap();
    let refused = capsule.run(&["run", &plan, "--policy", &policy, "--store", &path]).exits(2);
    assert!(refused.stderr.contains("one run that was written out"), "{}", refused.stderr);
    assert!(fs::read(&out).unwrap() == before);
    // An event of no run, and the beginning of another one, behind its checkpoint.
    for (run, seq, kind, body) in [
        (None, 0, "grant.revoked", json!({ "grant": null })),
        (Some("r-0000000000000000"), 1, "approval.covered", json!({ "call": 1, "by": 0 })),
    ] {
        fs::write(&out, &before).unwrap();
        let sql = Connection::open(&out).unwrap();
        let event = json!({ "v": 1, "run": run, "seq": seq, "prev": null, "at": 1, "kind": kind, "body": body });
        let bytes = capsule_base::json::canonical(&event);
        let mut tree = Frontier::default();
        let mut query = sql.prepare("SELECT hash FROM events ORDER BY leaf").unwrap();
        query
            .query_map([], |row| row.get(0))
            .unwrap()
            .for_each(|hash| tree.push(Digest(hash.unwrap())));
        let leaf = i64::try_from(tree.size()).unwrap();
        tree.push(leaf_hash(&bytes));
        let row = rusqlite::params![leaf, run, seq, kind, leaf_hash(&bytes).0, bytes];
        sql.execute("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
        sql.execute(
            "UPDATE tree SET size = ?1, peaks = ?2",
            rusqlite::params![leaf + 1, tree.to_bytes()],
        )
        .unwrap();
        drop(query);
        drop(sql);
        let ran = capsule.run(&["verify", &path]).exits(6);
        assert!(ran.stderr.contains("the one run that was written out"), "{}", ran.stderr);
    }
}

/// A store that cannot be written says why, and what to do.
#[test]
fn a_store_that_cannot_be_written_says_why() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let args = r#"{"path":"a.txt"}"#;
    let call = ["call", "fs.read", "--policy", &policy, "--args", args];
    let sql = Connection::open(capsule.store()).unwrap();
    sql.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ran = capsule.run(&call).exits(10);
    assert!(ran.stderr.contains("another process has it locked"), "{}", ran.stderr);
    assert!(ran.stderr.contains("end it, and run it again"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("room"), "{}", ran.stderr);
    sql.execute_batch("ROLLBACK").unwrap();
    drop(sql);
    let _ = capsule.run(&call).exits(0);
    // Also for root: a file system that is read-only.
    let folder = capsule.store().parent().unwrap().to_owned();
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
    let inner = capsule.command(&call);
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&folder);
    command
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(capsule.workspace())
        .env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = CommandOutput::from(command.output().unwrap()).exits(10);
    assert!(ran.stderr.contains("read-only") || ran.stderr.contains("Read-only"), "{}", ran.stderr);
    assert!(ran.stderr.contains("writable") && !ran.stderr.contains("room"), "{}", ran.stderr);
}

/// P8, L3: a list shows the newest runs, says that there are older ones, and has all of them where it is asked to.
#[test]
fn a_long_list_shows_the_newest_runs() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let store = capsule.directory().join("many.db");
    let path = store.to_string_lossy().into_owned();
    History { runs: 250, calls: 1, name: "x".repeat(200), ..History::default() }.write(&store);
    let list =
        |more: &[&str]| capsule.run(&[&["list-runs", "--store", &path], more].concat()).exits(0);
    let lines = |ran: &CommandOutput| ran.stdout.lines().count();
    let short = list(&[]);
    assert_eq!(lines(&short), 100);
    assert!(short.stderr.contains("list-runs --all"), "{}", short.stderr);
    let all = list(&["--all"]);
    assert_eq!((lines(&all), all.stderr.as_str()), (250, ""));
    assert!(all.stdout.starts_with(&short.stdout));
    assert_eq!(lines(&list(&["--limit", "3"])), 3);
    assert_eq!(lines(&list(&["--limit", "250"])), 250);
    for (more, count) in
        [(&["--json"][..], 100), (&["--json", "--all"], 250), (&["--json", "--limit", "0"], 0)]
    {
        let ran = list(more);
        assert_eq!(ran.json().as_array().unwrap().len(), count, "{more:?}");
        assert_eq!(ran.stderr.is_empty(), count != 100, "{more:?}: {}", ran.stderr);
    }
    let _ = capsule.run(&["list-runs", "--all", "--limit", "3"]).exits(2);
}

/// P8: a report as JSON takes no more memory for a longer run.
#[test]
fn a_report_of_a_long_run_is_streamed() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let store = capsule.directory().join("long.db");
    let path = store.to_string_lossy().into_owned();
    let calls = 1_500;
    History { calls, output: 50_000, ..History::default() }.write(&store);
    for format in [&["--json"][..], &[]] {
        let inner = capsule.command(&[&["report", "latest", "--store", &path], format].concat());
        // All that it prints is 75 MB, and it used to hold that a dozen times.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -v 300000; exec \"$@\"", "sh"]);
        command.arg(inner.get_program()).args(inner.get_args()).current_dir(capsule.workspace());
        let ran = CommandOutput::from(command.output().unwrap()).exits(0);
        if format.is_empty() {
            assert!(
                ran.stdout.contains("1350 ok") || ran.stdout.contains("150 denied"),
                "{}",
                ran.stdout
            );
            continue;
        }
        let report = ran.json();
        let told = report["calls"].as_array().unwrap();
        let numbers: Vec<u64> = told.iter().map(|own| own["call"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=calls).collect::<Vec<_>>());
        assert_eq!(report["summary"]["calls"], calls);
        assert_eq!(report["summary"]["denied"], calls / 10);
        assert_eq!(report["summary"]["files_read"].as_array().unwrap().len(), 900);
        assert_eq!(
            report["records"].as_array().unwrap().len() as u64,
            2 + calls * 4 - calls / 10 * 2
        );
    }
}

/// L3: what stands in every list and in every event has a length that lists can show.
#[test]
fn names_have_a_length() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let long = "n".repeat(201);
    let steps = "steps: [{ id: a, tool: fs.list, args: { path: . } }]";
    for (text, exit) in [
        (format!("version: 1\nname: {long}\n{steps}\n"), 2),
        (format!("version: 1\nname: {}\n{steps}\n", "n".repeat(200)), 0),
        (format!("version: 1\n{}\n", steps.replace("id: a", &format!("id: {long}"))), 2),
    ] {
        let plan = capsule.write_plan(&text);
        let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(exit);
        assert!(exit == 0 || ran.stderr.contains("at most 200 characters"), "{}", ran.stderr);
    }
    let ran = capsule.run(&["call", &long, "--policy", &policy, "--args", "{}"]).exits(2);
    assert!(ran.stderr.contains("at most 200 characters"), "{}", ran.stderr);
    let named = capsule.write_policy(&POLICY.replace("name: recorder", &format!("name: {long}")));
    let ran = capsule.run(&["policy", "check", "--policy", &named]).exits(2);
    assert!(ran.stderr.contains("at most 200 characters"), "{}", ran.stderr);
}

/// Twenty processes that come first at one time make one store, and lose nothing.
#[test]
fn many_first_runs_make_one_store() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.txt", "hello");
    let policy = capsule.write_policy(POLICY);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let args = r#"{"path":"a.txt"}"#;
                let _ =
                    capsule.run(&["call", "fs.read", "--policy", &policy, "--args", args]).exits(0);
            });
        }
    });
    let verified = capsule.run(&["verify"]).exits(0);
    assert!(verified.stdout.contains("20 sealed"), "{}", verified.stdout);
}

/// G1: tables, views and triggers are those of the format, and what a payload is comes from
/// its event, so that nothing private can be made to leave.
#[test]
fn another_schema_is_found() {
    let RecordedRun { capsule, .. } = recorded();
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    let changed = |sql: &str| {
        let _ = fs::remove_file(&copy);
        Connection::open(capsule.store()).unwrap().execute("VACUUM INTO ?1", [&path]).unwrap();
        Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
    };
    for (sql, place) in [
        ("DROP VIEW tool_results; CREATE VIEW tool_results AS SELECT 1", "view tool_results"),
        ("DROP TRIGGER events_stay", "trigger events_stay"),
        ("DROP INDEX events_of_run", "index events_of_run"),
        ("CREATE TABLE more (x)", "table more"),
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM programs; END", "trigger t"),
        ("ALTER TABLE programs ADD COLUMN x TEXT", "table programs"),
    ] {
        changed(sql);
        for command in ["verify", "list-runs"] {
            let ran = capsule.run(&[command, "--store", &path]).exits(6);
            assert!(ran.stderr.contains(place), "{sql}\n{}", ran.stderr);
        }
    }
    changed("ANALYZE");
    let _ = capsule.run(&["verify", "--store", &path]).exits(0);
    // A name of SQLite's own shows nothing: what has it must be the table of statistics.
    let trigger = "AFTER INSERT ON events BEGIN DELETE FROM programs; END";
    for (kind, name, table, text) in [
        ("trigger", "sqlite_stat1", "events", format!("CREATE TRIGGER sqlite_stat1 {trigger}")),
        ("trigger", "sqlite_stat9", "events", format!("CREATE TRIGGER sqlite_stat9 {trigger}")),
        ("view", "sqlite_stat4", "sqlite_stat4", "CREATE VIEW sqlite_stat4 AS SELECT 1".into()),
        ("view", "sqlite_more", "sqlite_more", "CREATE VIEW sqlite_more AS SELECT 1".into()),
    ] {
        changed(&format!(
            "PRAGMA writable_schema = 1;
             INSERT INTO sqlite_schema VALUES ('{kind}', '{name}', '{table}', 0, '{text}');"
        ));
        for command in ["verify", "list-runs"] {
            let ran = capsule.run(&[command, "--store", &path]).exits(6);
            assert!(ran.stderr.contains(&format!("{kind} {name}")), "{}", ran.stderr);
        }
    }
    let trigger = |name: &str| {
        let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
        let store = Connection::open(capsule.store()).unwrap();
        store.query_row(sql, [name], |row| row.get::<_, String>(0)).unwrap()
    };
    for (class, other) in [("text", "undo"), ("key", "text")] {
        changed(&format!(
            "DROP TRIGGER payloads_stay;
             UPDATE payloads SET class = '{other}' WHERE class = '{class}'; {}",
            trigger("payloads_stay")
        ));
        let out = capsule.directory().join(format!("{class}.db"));
        let out = out.to_string_lossy().into_owned();
        for line in [&["verify"][..], &["report", "latest"], &["replay", "latest", "--out", &out]] {
            let ran = capsule.run(&[line, &["--store", &path]].concat()).exits(6);
            assert!(ran.stderr.contains("store.integrity"), "{}", ran.stderr);
        }
        assert!(!Path::new(&out).exists());
    }
}

/// G1: what was changed is never told as a fact: reports, single calls and explanations compare
/// what they read with what was committed to.
#[test]
fn tampered_payloads_are_not_shown() {
    let RecordedRun { capsule, .. } = recorded();
    let pristine = capsule.directory().join("pristine.db");
    let pristine_path = pristine.to_string_lossy().into_owned();
    let store = Connection::open(capsule.store()).unwrap();
    store.execute("VACUUM INTO ?1", [&pristine_path]).unwrap();
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    let commands: [&[&str]; 6] = [
        &["report", "latest"],
        &["report", "latest", "--format", "json"],
        &["show-run", "latest:read"],
        &["show-run", "latest:read", "--json"],
        &["policy", "explain", "latest:read"],
        &["replay", "latest"],
    ];
    for sql in [
        "UPDATE payloads SET bytes = CAST(replace(CAST(bytes AS TEXT), 'hello', 'HELLO') AS BLOB)
             WHERE class = 'output'",
        "UPDATE payloads SET bytes = CAST(replace(CAST(bytes AS TEXT), 'a.txt', 'b.txt') AS BLOB)
             WHERE class = 'action'",
        "UPDATE payloads SET salt = NULL WHERE class = 'text'",
        "DELETE FROM payloads WHERE class = 'arguments'",
        "DROP TRIGGER events_stay; UPDATE events SET bytes =
             CAST(replace(CAST(bytes AS TEXT), '\"decision\":\"deny\"', '\"decision\":\"allow\"') AS BLOB)
             WHERE kind = 'call.decided'",
        "DROP TRIGGER events_remain; DELETE FROM events WHERE kind = 'call.finished' AND seq < 9",
    ] {
        fs::copy(&pristine, &copy).unwrap();
        let tampered = Connection::open(&copy).unwrap();
        let unbelted = "DROP TRIGGER payloads_stay; DROP TRIGGER payloads_remain;";
        tampered.execute_batch(unbelted).unwrap();
        tampered.execute_batch(sql).unwrap();
        drop(tampered);
        for command in commands {
            let ran = capsule.run(&[command, &["--store", &path]].concat());
            assert_eq!(ran.status, 6, "{sql}\n{command:?}\n{}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("store.integrity"), "{}", ran.stderr);
        }
    }
}

/// CAP-1: `--out` replaces nothing but a run that was written out before, and says so before
/// anything runs.
#[test]
fn writing_out_never_replaces_a_store() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let written = capsule.workspace().join("out/b.txt");
    fs::remove_file(&written).unwrap();
    let around = capsule.directory().to_owned();
    let at = |name: &str| around.join(name).to_string_lossy().into_owned();
    let own = capsule.store();
    let beside = |suffix: &str| format!("{}{suffix}", own.to_string_lossy());
    std::os::unix::fs::symlink(&own, around.join("link.db")).unwrap();
    fs::hard_link(&own, around.join("hard.db")).unwrap();
    // Another history: two runs in a store of their own, closed and without files beside it.
    let other = at("other.db");
    for _ in 0..2 {
        let _ = capsule.run(&["run", &plan, "--policy", &policy, "--store", &other]).exits(1);
    }
    fs::remove_file(&written).unwrap();
    let quiet = at("quiet.db");
    Connection::open(&other).unwrap().execute("VACUUM INTO ?1", [&quiet]).unwrap();
    let database = at("database.db");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    fs::write(around.join("empty"), "").unwrap();
    let targets = [
        beside(""),
        beside("-wal"),
        beside("-shm"),
        beside("-journal"),
        beside(".locks"),
        beside(".locks/run.db"),
        at("link.db"),
        at("hard.db"),
        other.clone(),
        quiet,
        database,
        at("empty"),
        at("policy.yaml"),
        at("missing/run.db"),
        at("home"),
        at("home/.."),
    ];
    let runs = |store: &str| {
        let listed = capsule.run(&["list-runs", "--json", "--store", store]).exits(0).json();
        listed.as_array().unwrap().len()
    };
    for target in &targets {
        let args = r#"{"path":"out/b.txt","content":"x"}"#;
        for line in [
            &["run", &plan, "--policy", &policy, "--out", target][..],
            &["call", "fs.write", "--policy", &policy, "--args", args, "--out", target],
            &["replay", "latest", "--out", target],
        ] {
            let ran = capsule.run(line).exits(2);
            assert!(ran.stderr.contains("is not written to"), "{target}: {}", ran.stderr);
            assert!(ran.stdout.is_empty() && !written.exists(), "{target}: {}", ran.stdout);
        }
    }
    assert!(!around.join("missing").exists());
    assert_eq!((runs(&own.to_string_lossy()), runs(&other)), (1, 2));
    let _ = capsule.run(&["verify"]).exits(0);
    // A store that is not there yet is one all the same.
    let first = at("first.db");
    let line = ["run", &plan, "--policy", &policy, "--store", &first, "--out", &first];
    let _ = capsule.run(&line).exits(2);
    // A run that was written out before is replaced, unless it is what is being read.
    let out = at("run.db");
    for _ in 0..2 {
        let _ = capsule.run(&["replay", "latest", "--out", &out]).exits(1);
    }
    let _ = capsule.run(&["replay", "latest", "--store", &out, "--out", &out]).exits(2);
    let _ = capsule.run(&["verify", "--store", &out]).exits(0);
}

/// C25, G1: what somebody puts beside a store, for SQLite to roll back or to read in its place, is
/// refused, however the store is opened.
#[test]
fn what_is_put_beside_a_store_is_not_read() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let out = capsule.workspace().join("run.db");
    let path = out.to_string_lossy().into_owned();
    let _ = capsule.run(&["replay", "latest", "--out", &path]).exits(1);
    let link = capsule.directory().join("link.db");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    let link = link.to_string_lossy().into_owned();
    let own = capsule.store().to_string_lossy().into_owned();
    let absent = capsule.directory().join("absent.db").to_string_lossy().into_owned();
    let good = fs::read(&out).unwrap();
    for (store, beside) in [
        (&path, format!("{path}-journal")),
        (&path, format!("{path}-wal")),
        (&link, format!("{path}-journal")),
        (&link, format!("{path}-wal")),
        (&own, format!("{own}-journal")),
        (&absent, format!("{absent}-journal")),
        (&absent, format!("{absent}-wal")),
    ] {
        fs::write(&beside, "planted").unwrap();
        let reading: &[&[&str]] = &[&["verify"], &["list-runs"], &["show-run", "latest"]];
        let writing: &[&[&str]] = &[&["run", &plan, "--policy", &policy]];
        let reading = if *store == absent { &[] } else { reading };
        for line in reading.iter().chain(writing) {
            let ran = capsule.run(&[line, &["--store", store][..]].concat()).exits(10);
            assert!(ran.stderr.contains("lies beside it"), "{beside} {line:?}: {}", ran.stderr);
        }
        assert_eq!(fs::read(&beside).unwrap(), b"planted", "nobody took it for their own");
        fs::remove_file(&beside).unwrap();
    }
    assert!(fs::read(&out).unwrap() == good);
    let _ = capsule.run(&["verify", "--store", &path]).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
}

/// A store is made without a journal beside it at any time: whoever opens it just then would be
/// refused, and whoever was killed then would leave one that is refused for good.
#[test]
fn no_journal_lies_beside_a_store_that_is_made() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    for round in 0..40 {
        let path = capsule.directory().join(format!("store-{round}.db"));
        let opened: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let open = || Store::open(&path).map(drop).map_err(|error| error.to_string());
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(opened.iter().all(Result::is_ok), "{round}: {opened:?}");
    }
}

/// G1: a byte flipped anywhere in the file is found, or changes nothing that is printed.
#[test]
fn a_flipped_byte_is_found_or_harmless() {
    let RecordedRun { capsule, .. } = recorded();
    let copy = capsule.directory().join("copy.db");
    let path = copy.to_string_lossy().into_owned();
    Connection::open(capsule.store()).unwrap().execute("VACUUM INTO ?1", [&path]).unwrap();
    let good = fs::read(&copy).unwrap();
    let truth = capsule.run(&["verify", "--store", &path]).exits(0).stdout;
    let mut found = 0;
    // A stride that is prime to the page size visits every part of many pages.
    for at in (0..good.len()).step_by(good.len() / 120 + 1) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x01;
        fs::write(&copy, &bytes).unwrap();
        let ran = capsule.run(&["verify", "--store", &path]);
        assert!(ran.status != 0 || ran.stdout == truth, "byte {at}:\n{}", ran.stdout);
        assert!(ran.status >= 0 && ran.status != 101, "byte {at} crashed: {}", ran.stderr);
        found += usize::from(ran.status != 0);
    }
    assert!(found > 20, "only {found} flips were found");
}

/// CAP-9: the three tables of the requirements, as views with their columns.
#[test]
fn the_views_have_their_columns() {
    let RecordedRun { capsule, .. } = recorded();
    let store = Connection::open(capsule.store()).unwrap();
    let columns = |view: &str| -> Vec<String> {
        let query = store.prepare(&format!("SELECT * FROM {view}")).unwrap();
        query.column_names().map(str::to_owned).collect()
    };
    assert_eq!(
        columns("runs").join(" "),
        "run_id name kind started_at ended_at status exit_code plan_hash policy_hash profile \
         workspace sandbox engine"
    );
    assert_eq!(
        columns("tool_calls").join(" "),
        "run_id seq call_id step_id tool origin args input_hash proposed_at"
    );
    assert_eq!(
        columns("tool_results").join(" "),
        "run_id seq call_id status decision code rule reason risk started_at finished_at \
         duration_ms output output_hash error enforcement"
    );
    let one = |sql: &str| store.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("SELECT status || exit_code FROM runs"), "tool-failed1");
    assert_eq!(one("SELECT args FROM tool_calls WHERE step_id = 'read'"), r#"{"path":"a.txt"}"#);
    assert_eq!(
        one("SELECT rule || ' ' || decision || ' ' || status FROM tool_results WHERE call_id = 2"),
        "no-credentials deny denied"
    );
    assert_eq!(one("SELECT output ->> '$.text' FROM tool_results WHERE call_id = 1"), "hello ");
    let hash = one("SELECT input_hash FROM tool_calls WHERE step_id = 'read'");
    let expected = Digest::of(br#"{"path":"a.txt"}"#).to_string();
    assert_eq!(hash, expected, "anyone can compute it");
    // G25: the report's counts are those of SQL.
    let report = capsule.run(&["report", "latest", "--format", "json"]).exits(0).json();
    let calls: u64 = one("SELECT count(*) || '' FROM tool_calls").parse().unwrap();
    let denied: u64 =
        one("SELECT count(*) || '' FROM tool_results WHERE status = 'denied'").parse().unwrap();
    assert_eq!(report["summary"]["calls"], calls);
    assert_eq!(report["summary"]["denied"], denied);
}

/// NFR-5: stores and their side files are nobody else's.
#[test]
fn the_store_is_private() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let folder = capsule.store().parent().unwrap().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
    fs::set_permissions(capsule.store(), fs::Permissions::from_mode(0o644)).unwrap();
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(1);
    assert_eq!(mode(&capsule.store()), 0o600, "the next run takes other people's rights away");
    let locks: Vec<_> = fs::read_dir(folder.join("store.db.locks")).unwrap().collect();
    assert_eq!(locks.len(), 0, "no lock stays behind");
}

/// A file that is no store of this build is refused, and stays as it is.
#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let around = capsule.directory().to_owned();
    let at = |name: &str| around.join(name);
    Connection::open(at("foreign.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    Connection::open(capsule.store())
        .unwrap()
        .execute("VACUUM INTO ?1", [at("newer.db").to_string_lossy().into_owned()])
        .unwrap();
    Connection::open(at("newer.db")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    fs::write(at("text.db"), "not a database").unwrap();
    for (name, says, rights) in [
        ("foreign.db", "not a store", 0o644),
        ("text.db", "not a store", 0o644),
        // A store's, whatever wrote it, are nobody else's.
        ("newer.db", "version 99", 0o600),
    ] {
        let file = at(name);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::read(&file).unwrap();
        let beside = || fs::read_dir(&around).unwrap().count();
        let files = beside();
        let store = file.to_string_lossy().into_owned();
        let ran = capsule.run(&["run", &plan, "--policy", &policy, "--store", &store]).exits(10);
        assert!(ran.stderr.contains(says), "{name}: {}", ran.stderr);
        assert!(fs::read(&file).unwrap() == before, "{name} was changed");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, rights, "{name}");
        assert_eq!(beside(), files, "{name}: something lies beside it");
    }
}

/// CAP-1: `--out` writes a store of its own that verifies, reports and replays elsewhere.
#[test]
fn a_run_can_be_written_out() {
    let RecordedRun { capsule, policy, plan, .. } = recorded();
    let out = capsule.directory().join("run.db");
    let out_path = out.to_string_lossy().into_owned();
    let ran = capsule.run(&["run", &plan, "--policy", &policy, "--out", &out_path]).exits(1);
    assert!(!out.with_file_name("run.db-wal").exists());
    let other = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let elsewhere = |args: &[&str]| {
        let mut line = vec!["--store", out_path.as_str()];
        line.extend(args);
        other.run(&line)
    };
    let verified = elsewhere(&["verify", "latest"]).exits(0);
    assert!(verified.stdout.contains("2 withheld or never kept"), "{}", verified.stdout);
    let replayed = elsewhere(&["replay", "latest"]).exits(1);
    let without_seal = |text: &str| {
        text.lines().filter(|line| !line.starts_with("sealed")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(without_seal(&replayed.stdout), without_seal(&ran.stdout));
    let log = capsule.run(&["verify"]).exits(0);
    assert!(log.stdout.contains("2 sealed"), "{}", log.stdout);
    let exported: String = Connection::open(capsule.store())
        .unwrap()
        .query_row(
            "SELECT CAST(bytes AS TEXT) ->> '$.body.sha256' FROM events WHERE kind = 'run.exported'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let digest = Digest::of(&fs::read(&out).unwrap()).to_string();
    assert_eq!(exported, digest);
    // The replay's own record holds the same events.
    let again = capsule.directory().join("again.db");
    let again_path = again.to_string_lossy().into_owned();
    let _ = capsule.run(&["replay", "latest", "--out", &again_path]).exits(1);
    let events = |path: &Path| -> Vec<Vec<u8>> {
        let store = Connection::open(path).unwrap();
        let mut query = store.prepare("SELECT bytes FROM events ORDER BY leaf").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(events(&out), events(&again));
    // Somebody's file is not replaced.
    let precious = capsule.directory().join("precious.txt");
    fs::write(&precious, "mine").unwrap();
    let precious_path = precious.to_string_lossy().into_owned();
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--out", &precious_path]).exits(2);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}

/// NFR-5: with digests only, nothing that was read is kept, and a replay says that it cannot.
#[test]
fn payloads_can_be_left_out() {
    let RecordedRun { capsule, plan, .. } = recorded();
    let policy = capsule.write_policy(&format!("{POLICY}audit: {{ payloads: digest }}\n"));
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(1);
    let _ = capsule.run(&["verify"]).exits(0);
    let ran = capsule.run(&["replay", "latest"]).exits(5);
    assert!(ran.stderr.contains("replay.incomplete"), "{}", ran.stderr);
    assert!(capsule.run(&["report", "latest"]).exits(0).stdout.contains("(not kept)"));
}

/// CAP-1: runs are found by `latest`, by a prefix in any case, and in lists.
#[test]
fn runs_are_found_and_listed() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let args = r#"{"path":"a.txt"}"#;
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", args]).exits(0);
    let list = capsule.run(&["list-runs", "--json"]).exits(0).json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!((&list[0]["kind"], &list[1]["kind"]), (&json!("call"), &json!("plan")));
    assert_eq!((&list[1]["calls"], &list[1]["denied"]), (&json!(6), &json!(1)));
    let label = list[1]["label"].as_str().unwrap();
    for name in [label.to_owned(), label.to_lowercase(), label.chars().skip(2).collect()] {
        let report = capsule.run(&["report", &name, "--format", "json"]).exits(0).json();
        assert_eq!(report["run"], list[1]["run"]);
    }
    let count = |args: &[&str]| {
        let mut line = vec!["list-runs", "--json"];
        line.extend(args);
        capsule.run(&line).exits(0).json().as_array().unwrap().len()
    };
    assert_eq!(count(&["--denied"]), 1);
    assert_eq!(count(&["--tool", "fs_write"]), 1);
    assert_eq!(count(&["--touched", "a.txt"]), 2);
    assert_eq!(count(&["--since", "1d"]), 2);
    let unknown = capsule.run(&["report", "r-0000"]).exits(2);
    assert!(unknown.stderr.contains("run.unknown"));
    assert!(unknown.stderr.contains("hint: see `capsule list-runs`\n"), "{}", unknown.stderr);
    assert!(capsule.run(&["show-run", "latest:9"]).exits(2).stderr.contains("no call `9`"));
    let shown = capsule.run(&["show-run", &format!("{label}:write")]).exits(0);
    assert!(shown.stdout.contains("out/b.txt"), "{}", shown.stdout);
}

/// Many processes write one store at once, and nothing is lost or out of order.
#[test]
fn writers_share_a_store() {
    let RecordedRun { capsule, policy, .. } = recorded();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let args = r#"{"path":"a.txt"}"#;
                    let line = ["call", "fs.read", "--policy", &policy, "--args", args];
                    let _ = capsule.run(&line).exits(0);
                }
            });
        }
    });
    let verified = capsule.run(&["verify"]).exits(0);
    assert!(verified.stdout.contains("41 sealed"), "{}", verified.stdout);
}

/// CAP-12: a store that cannot be written stops the run before anything is done.
#[test]
fn no_record_no_run() {
    let RecordedRun { capsule, policy, .. } = recorded();
    let args = r#"{"path":"out/new.txt","content":"x"}"#;
    for store in ["/proc/nowhere/store.db", "/dev/full"] {
        let line = ["call", "fs.write", "--policy", &policy, "--args", args, "--store", store];
        let ran = capsule.run(&line).exits(10);
        assert!(ran.stderr.contains("store.open"), "{}", ran.stderr);
    }
    let other = capsule.write_file("text.db", "not a database, and longer than a header of one is");
    let other = other.to_string_lossy().into_owned();
    let _ = capsule.run(&["list-runs", "--store", &other]).exits(10);
    assert!(!capsule.workspace().join("out/new.txt").exists());
    assert!(fs::read_to_string(&other).unwrap().starts_with("not a database"));
}

/// Who compares a report with the store finds the same hashes, and no number that JSON rounds.
#[test]
fn a_report_repeats_the_store() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.txt", "hello");
    let policy = capsule.write_policy("version: 1\ntools: { fs.read: allow }\n");
    let args = json!({ "path": "a.txt" }).to_string();
    let call = ["call", "fs.read", "--args", &args, "--policy", &policy];
    let _ = capsule.run(&call).exits(0);
    let report = capsule.run(&["report", "latest", "--json"]).exits(0).json();
    let store = Connection::open(capsule.store()).unwrap();
    let mut query = store.prepare("SELECT lower(hex(hash)) FROM events ORDER BY leaf").unwrap();
    let kept: Vec<String> =
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let records = report["records"].as_array().unwrap();
    let told: Vec<&str> = records.iter().map(|own| own["hash"].as_str().unwrap()).collect();
    assert_eq!(told, kept);
    let place = &records[0]["entry"]["body"]["workspace"];
    let meta = fs::metadata(capsule.workspace()).unwrap();
    assert_eq!(place["device"], std::os::unix::fs::MetadataExt::dev(&meta).to_string());
    assert_eq!(place["inode"], std::os::unix::fs::MetadataExt::ino(&meta).to_string());
}

/// A run says since which one the policy of its name has not changed; a text that comes back begins
/// anew.
#[test]
fn an_unchanged_policy_is_dated() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a.txt", "hello");
    let args = json!({ "path": "a.txt" }).to_string();
    let texts = ["one", "two"]
        .map(|name| format!("version: 1\nname: {name}\ntools: {{ fs.read: allow }}\n"));
    let changed = format!("{}# changed\n", texts[0]);
    let mut labels: Vec<String> = Vec::new();
    // The run that each one names, by its place in this list.
    for (text, since) in [
        (&texts[0], None),
        (&texts[0], Some(0)),
        (&texts[1], None),
        (&texts[0], Some(0)),
        (&changed, None),
        (&texts[0], None),
        (&texts[1], Some(2)),
        (&texts[0], Some(5)),
        (&texts[0], Some(5)),
    ] {
        let policy = capsule.write_policy(text);
        let _ = capsule.run(&["call", "fs.read", "--args", &args, "--policy", &policy]).exits(0);
        let opened =
            &capsule.run(&["report", "latest", "--json"]).exits(0).json()["opened"]["entry"];
        labels.push(opened["label"].as_str().unwrap().to_owned());
        let named = since.map(|place: usize| labels[place].clone());
        assert_eq!(opened["policy_since"], json!(named), "{}", labels.len());
    }
}
