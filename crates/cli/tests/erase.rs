//! What the record holds of a run is erased, and the record stays whole.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::time::Duration;

use capsule_testkit::Capsule;

const OPEN: &str = "version: 1
name: open
tools:
  fs.read: allow
  fs.write: { decision: allow, paths: [\"**\"] }
  shell.run: { executables: { ls: allow, touch: { decision: allow, writes: [\"**\"] } } }
";

/// What must not be found again.
const WORDS: &str = "the quick brown marker";

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// Whether a text stands in any file of the store's folder, raw.
fn is_found(capsule: &Capsule, text: &str) -> bool {
    let mut folders = vec![capsule.store().parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if fs::read(entry.path())
                .unwrap()
                .windows(text.len())
                .any(|window| window == text.as_bytes())
            {
                return true;
            }
        }
    }
    false
}

fn label(capsule: &Capsule) -> String {
    let runs = capsule.run(&["list-runs", "--json"]).exits(0).json();
    runs[0]["label"].as_str().or(runs["runs"][0]["label"].as_str()).unwrap().to_owned()
}

/// Payloads, salts and what was kept for undo are gone from every file; the record verifies, and
/// says of everything that needs them that it cannot.
#[test]
fn what_is_erased_is_gone_and_the_record_is_whole() {
    let capsule = capsule();
    let _ = capsule.run(&["init"]).exits(0);
    // Nothing is staged where no command writes.
    let policy =
        capsule.write_policy(&OPEN.replace(", touch: { decision: allow, writes: [\"**\"] }", ""));
    capsule.write_file("a.txt", WORDS);
    let plan = capsule.write_plan(
        "version: 1\nsteps:\n  - { id: a, tool: fs.read, args: { path: a.txt } }\n  - { id: b, tool: fs.write, args: \
         { path: a.txt, content: other, mode: overwrite } }\n",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    let first = label(&capsule);
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    let second = label(&capsule);
    assert_ne!(first, second);
    assert!(is_found(&capsule, WORDS), "it stands in the store, and in what is kept for an undo");
    let before = capsule.run(&["verify", "--json"]).exits(0).json();
    let dry = capsule.run(&["audit", "erase", "--dry-run", &first]).exits(0).stdout;
    assert!(dry.contains("payloads"), "{dry}");
    assert!(is_found(&capsule, WORDS));
    let told = capsule.run(&["audit", "erase", &first]).exits(0).stdout;
    assert!(told.contains("erased"), "{told}");
    assert!(!is_found(&capsule, WORDS), "{told}");
    let again = capsule.run(&["audit", "erase", &first]).exits(0).stdout;
    assert!(again.contains("nothing that could be erased"), "{again}");
    let after = capsule.run(&["verify", "--json"]).exits(0).json();
    assert_eq!(
        after["leaves"],
        before["leaves"].as_u64().unwrap() + 2,
        "one event says so, and is signed"
    );
    assert!(after["payloads"]["erased"].as_u64() > Some(5), "{after}");
    assert!(
        before["payloads"]["erased"] == 0
            && before["payloads"]["absent"] == after["payloads"]["absent"]
    );
    // Everything that needs what is gone says so.
    let ran = capsule.run(&["replay", &first]).exits(5);
    assert!(ran.stderr.contains("replay.incomplete"), "{}", ran.stderr);
    let ran = capsule.run(&["undo", &first]);
    assert!(ran.status != 0 && ran.stderr.contains("undo."), "{}", ran.stderr);
    for reading in [
        &["report", first.as_str()][..],
        &["report", &first, "--format", "json"],
        &["show-run", &first],
        &["show-run", &format!("{first}:1")],
        &["list-runs"],
        &["approvals", "list"],
        &["grants", "list"],
        &["stats", "safety"],
        &["audit", "export"],
    ] {
        let ran = capsule.run(reading).exits(0);
        assert!(!ran.stdout.contains(WORDS), "{reading:?}");
    }
    // The other run is as it was.
    let _ = capsule.run(&["replay", &second]).exits(0);
    // A payload that is gone without an event that says so is a fault as before.
    let sql = rusqlite::Connection::open(capsule.store()).unwrap();
    sql.execute_batch("UPDATE payloads SET bytes = NULL, salt = NULL, sha256 = NULL").unwrap();
    let ran = capsule.run(&["verify"]).exits(6);
    assert!(ran.stderr.contains("its run keeps them"), "{}", ran.stderr);
}

/// What is still needed is not erased.
#[test]
fn a_run_that_is_needed_is_kept() {
    let capsule = capsule();
    let policy = capsule.write_policy(OPEN);
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "touch", "new"]).exits(0);
    let ran = capsule.run(&["audit", "erase", "latest"]).exits(2);
    assert!(ran.stderr.contains("staged changes"), "{}", ran.stderr);
    let _ = capsule.run(&["discard", "latest"]).exits(0);
    let _ = capsule.run(&["audit", "erase", "latest"]).exits(0);
    // A question that waits.
    let asking = capsule.write_policy(&format!(
        "{OPEN}  fs.list: ask\nprofiles:\n  supervised:\n    decide: {{ \"*\": ask }}\n    unattended: wait\n\
         profile: supervised\n"
    ));
    let args = ["call", "fs.list", "--args", "{\"path\":\".\"}", "--policy", &asking];
    let waiting = capsule.run(&args).exits(4);
    let ran = capsule.run(&["audit", "erase", "latest"]).exits(2);
    assert!(ran.stderr.contains("waits for an answer"), "{} {}", waiting.stderr, ran.stderr);
    let subject = label(&capsule);
    let _ = capsule.run(&["approvals", "answer", &subject, "--deny", "-m", "no"]).exits(0);
    let ran = capsule.run(&["audit", "erase", &subject]).exits(2);
    assert!(ran.stderr.contains("waits to be resumed"), "{}", ran.stderr);
    let resumed = capsule.run(&["resume", &subject]);
    assert_eq!(resumed.status, 3, "{}", resumed.stderr);
    let _ = capsule.run(&["audit", "erase", &subject, "latest"]).exits(0);
    assert!(capsule.run(&["verify"]).exits(0).stdout.contains("erased"));
    for reading in [&["approvals", "list"][..], &["show-run", &subject], &["list-runs"]] {
        let _ = capsule.run(reading).exits(0);
    }
    let _ = capsule.run(&["audit", "erase", "r-ZZZZ"]).exits(2);
}

/// A run is needed as long as one that goes on from it, however many stand between.
#[test]
fn a_run_that_others_go_on_from_is_kept() {
    let capsule = capsule();
    capsule.write_file("a.txt", WORDS);
    let policy = capsule.write_policy(
        "version: 1\nname: asks\ntools: { fs.read: ask-each, fs.list: allow }\nprofiles:\n  supervised:\n    \
         decide: { \"*\": ask }\n    unattended: wait\nprofile: supervised\n",
    );
    let plan = capsule.write_plan(
        "version: 1\nsteps:\n  - { id: l, tool: fs.list, args: { path: . } }\n  - { id: a, tool: fs.read, args: { path: \
         a.txt } }\n  - { id: b, tool: fs.read, args: { path: a.txt, limit: 3 } }\n",
    );
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(4);
    let first = label(&capsule);
    let allow = |run: &str| {
        let _ = capsule.run(&["approvals", "answer", run, "--allow", "once"]).exits(0);
    };
    allow(&first);
    let _ = capsule.run(&["resume", &first]).exits(4);
    let second = label(&capsule);
    let needed = |run: &str| {
        let ran = capsule.run(&["audit", "erase", run]).exits(2);
        assert!(ran.stderr.contains("audit.needed"), "{}", ran.stderr);
    };
    needed(&first);
    needed(&second);
    allow(&second);
    needed(&first);
    let ran = capsule.run(&["resume", &second]).exits(0);
    let third = label(&capsule);
    assert!(third != second && ran.stdout.contains(", after 2 steps"), "{}", ran.stdout);
    let told = capsule.run(&["audit", "erase", &first]).exits(0).stdout;
    assert!(told.contains(&second) && told.contains("may hold parts of it"), "{told}");
    let _ = capsule.run(&["audit", "erase", &second, &third]).exits(0);
    assert!(!is_found(&capsule, WORDS));
    let _ = capsule.run(&["verify"]).exits(0);
}

/// What could not be done the first time is done the next, and is not said to be done before.
#[test]
fn erasing_again_ends_what_was_begun() {
    let capsule = capsule();
    let policy =
        capsule.write_policy(&OPEN.replace(", touch: { decision: allow, writes: [\"**\"] }", ""));
    capsule.write_file("a.txt", WORDS);
    let args = ["call", "fs.read", "--args", "{\"path\":\"a.txt\"}", "--policy", &policy];
    let _ = capsule.run(&args).exits(0);
    // Somebody reads.
    let reader = rusqlite::Connection::open(capsule.store()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    let first = capsule.run(&["audit", "erase", "latest", "--json"]).exits(0);
    assert_eq!(first.json()["thorough"], false, "{}", first.stdout);
    assert!(first.stderr.contains("erase again later"), "{}", first.stderr);
    drop(reader);
    let again = capsule.run(&["audit", "erase", "--due", "--json"]).exits(0).json();
    assert_eq!(again["thorough"], true, "{again}");
    assert!(!is_found(&capsule, WORDS));
    // Files that a killed eraser left behind.
    let run = capsule.run(&["list-runs", "--json"]).exits(0).json()[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let left = capsule.store().with_file_name("store.db.undo").join(run);
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("x"), WORDS).unwrap();
    let _ = capsule.run(&["audit", "erase", "--due"]).exits(0);
    assert!(!left.exists());
}

/// What somebody does who erases a run in a file of it, and writes that down with right hashes.
fn erased_by_hand(file: &str) {
    let sql = rusqlite::Connection::open(file).unwrap();
    let trigger: String = sql
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'payloads_stay'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let (run, count): (String, i64) = sql
        .query_row("SELECT run, (SELECT count(*) FROM payloads) FROM events LIMIT 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    sql.execute_batch(&format!(
        "DROP TRIGGER payloads_stay; UPDATE payloads SET salt = NULL, bytes = NULL, sha256 = NULL; {trigger}"
    ))
    .unwrap();
    let mut hashes: Vec<[u8; 32]> = sql
        .prepare("SELECT hash FROM events ORDER BY leaf")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let bytes = format!(
        r#"{{"at":1,"body":{{"payloads":{count},"subject":"{run}"}},"kind":"payload.erased","prev":null,"run":null,"seq":0,"v":1}}"#
    );
    hashes.push(capsule_store::leaf_hash(bytes.as_bytes()).0);
    let mut tree = capsule_store::Frontier::default();
    hashes.iter().for_each(|hash| tree.push(capsule_base::digest::Digest(*hash)));
    let leaf = i64::try_from(hashes.len() - 1).unwrap();
    sql.execute(
        "INSERT INTO events VALUES (?1, NULL, 0, 'payload.erased', ?2, ?3)",
        rusqlite::params![leaf, hashes.last().unwrap(), bytes.as_bytes()],
    )
    .unwrap();
    sql.execute(
        "UPDATE tree SET size = ?1, peaks = ?2",
        rusqlite::params![leaf + 1, tree.to_bytes()],
    )
    .unwrap();
}

/// G5: nobody erases behind a signature, in the file of one run or more than an event says.
#[test]
fn nothing_is_erased_behind_a_signature() {
    let capsule = capsule();
    let public = capsule.run(&["init", "--json"]).exits(0).json()["key"]["public"].clone();
    let key = capsule.directory().join("key.pub").to_string_lossy().into_owned();
    fs::write(&key, public.as_str().unwrap()).unwrap();
    let policy = capsule.write_policy(OPEN);
    let out = capsule.directory().join("out.db").to_string_lossy().into_owned();
    let plan = capsule
        .write_plan("version: 1\nsteps:\n  - { id: l, tool: shell.run, args: { argv: [ls] } }\n");
    let _ = capsule.run(&["run", &plan, "--policy", &policy, "--out", &out]).exits(0);
    let _ = capsule.run(&["verify", &out, "--key", &key]).exits(0);
    let refused = capsule.run(&["--store", &out, "audit", "erase", "latest"]).exits(2);
    assert!(refused.stderr.contains("one run that was written out"), "{}", refused.stderr);
    let _ = capsule.run(&["verify", &out, "--key", &key]).exits(0);
    erased_by_hand(&out);
    let ran = capsule.run(&["verify", &out, "--key", &key]).exits(6);
    assert!(ran.stderr.contains("which is a copy"), "{}", ran.stderr);
    // In the store itself it is signed, and whole.
    let _ = capsule.run(&["audit", "erase", "latest"]).exits(0);
    let told = capsule.run(&["verify", "--key", &key, "--json"]).exits(0).json();
    assert!(!told["not_proven"].to_string().contains("erased what"), "{told}");
    let sql = rusqlite::Connection::open(capsule.store()).unwrap();
    let trigger: String = sql
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'payloads_stay'", [], |row| {
            row.get(0)
        })
        .unwrap();
    sql.execute_batch("DROP TRIGGER payloads_stay; UPDATE payloads SET salt = x'00' WHERE id = 0")
        .unwrap();
    sql.execute_batch(&trigger).unwrap();
    let _ = capsule.run(&["verify"]).exits(6);
    // Without the key, by the rules: who verifies with it is told.
    sql.execute_batch(
        "DROP TRIGGER payloads_stay; UPDATE payloads SET salt = NULL, bytes = NULL, sha256 = NULL",
    )
    .unwrap();
    sql.execute_batch(&trigger).unwrap();
    let _ = capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    fs::remove_file(capsule.store().with_file_name("store.db.key")).unwrap();
    let _ = capsule.run(&["audit", "erase", "latest"]).exits(0);
    let told = capsule.run(&["verify", "--key", &key, "--json"]).exits(0).json();
    assert!(told["not_proven"].to_string().contains("erased what"), "{told}");
}

/// A run that takes longer than its own term is there when it ends.
#[test]
fn a_run_does_not_erase_itself() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\nname: short\ntools: { shell.run: { executables: { sleep: allow } } }\naudit: { \
         erase_payloads_after: 1s }\n",
    );
    let plan = capsule.write_plan(
        "version: 1\nsteps:\n  - { id: s, tool: shell.run, args: { argv: [sleep, \"3\"] } }\n",
    );
    let ran = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    assert_eq!(capsule.run(&["replay", "latest"]).exits(0).stdout, ran.stdout);
}

/// A policy has what was recorded under it erased after its term, when a later run ends or somebody asks.
#[test]
fn policies_say_how_long_it_is_kept() {
    let capsule = capsule();
    let short = capsule.write_policy(&format!("{OPEN}audit: {{ erase_payloads_after: 2s }}\n"));
    capsule.write_file("a.txt", WORDS);
    let read = |policy: &str| {
        let args = ["call", "fs.read", "--args", "{\"path\":\"a.txt\"}", "--policy", policy];
        let _ = capsule.run(&args).exits(0);
        label(&capsule)
    };
    let first = read(&short);
    let _ = capsule.run(&["replay", &first]).exits(0);
    let due = capsule.run(&["audit", "erase", "--due", "--json"]).exits(0).json();
    assert_eq!(due["erased"].as_array().unwrap().len(), 0, "{due}");
    std::thread::sleep(Duration::from_millis(2_300));
    let second = read(&short);
    let _ = capsule.run(&["replay", &first]).exits(5);
    let _ = capsule.run(&["replay", &second]).exits(0);
    // Under a policy that says nothing, nothing is erased, and nothing of it is.
    let keeping = capsule.write_policy(OPEN);
    let third = read(&keeping);
    std::thread::sleep(Duration::from_millis(2_100));
    let _ = read(&keeping);
    let _ = capsule.run(&["replay", &second]).exits(0);
    let due = capsule.run(&["audit", "erase", "--due", "--json"]).exits(0).json();
    assert_eq!(due["erased"].as_array().unwrap().len(), 1, "{due}");
    let _ = capsule.run(&["replay", &second]).exits(5);
    let _ = capsule.run(&["replay", &third]).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
}
