//! The record is signed, told of elsewhere, and verified by those who have nothing but that.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use capsule_testkit::{Capsule, CommandOutput};
use serde_json::Value;

/// Reads and runs what is needed here.
const OPEN: &str = "version: 1
name: open
tools:
  fs.read: allow
  fs.list: allow
  shell.run: { executables: { cat: allow, ls: allow, perl: allow } }
";

struct Signed {
    capsule: Capsule,
    public: String,
}

impl Signed {
    fn new() -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        let made = capsule.run(&["init", "--origin", "acme/log", "--json"]).exits(0).json();
        assert_eq!(made["key"]["new"], true);
        let public = made["key"]["public"].as_str().unwrap().to_owned();
        Self { capsule, public }
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.capsule.run(args)
    }

    fn exec(&self, policy: &str, argv: &[&str]) -> CommandOutput {
        self.run(&[&["exec", "--policy", policy, "--"], argv].concat())
    }

    fn open(&self) -> String {
        self.capsule.write_policy(OPEN)
    }

    /// A file outside of the workspace.
    fn outside(&self, name: &str) -> String {
        self.capsule.directory().join(name).to_string_lossy().into_owned()
    }

    fn key_file(&self) -> String {
        let file = self.outside("acme.pub");
        fs::write(&file, format!("# acme\n{}\n", self.public)).unwrap();
        file
    }

    fn private(&self) -> PathBuf {
        self.capsule.store().with_file_name("store.db.key")
    }
}

/// A key is made once, beside the store; nobody else reads it, and its public line is printed.
#[test]
fn init_makes_a_key_and_never_another() {
    let own = Signed::new();
    assert!(own.public.starts_with("acme/log+"), "{}", own.public);
    let mode = fs::metadata(own.private()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = fs::read(own.private()).unwrap();
    let again = own.run(&["init"]).exits(0);
    assert!(again.stdout.contains(&own.public), "{}", again.stdout);
    assert!(!again.stdout.contains("PRIVATE"), "{}", again.stdout);
    let _ = own.run(&["init", "--origin", "acme/log"]).exits(0);
    let other = own.run(&["init", "--origin", "acme/other"]).exits(2);
    assert!(other.stderr.contains("`acme/log`"), "{}", other.stderr);
    let _ = own.run(&["init", "--origin", "a b"]).exits(2);
    assert_eq!(fs::read(own.private()).unwrap(), before);
    let doctor = own.run(&["doctor"]).stdout;
    assert!(doctor.contains("signs and verifies") && doctor.contains(&own.public), "{doctor}");
}

/// G5: whoever has the public line can tell; who has not is told what that means.
#[test]
fn verify_says_who_signed_and_what_that_proves() {
    let own = Signed::new();
    let policy = own.open();
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let _ = own.exec(&policy, &["rm", "x"]).exits(3);
    let plain = own.run(&["verify"]).exits(0).stdout;
    assert!(plain.contains("that proves little"), "{plain}");
    assert!(plain.contains("wrote all of it again"), "{plain}");
    let key = own.key_file();
    let proof = own.run(&["verify", "--key", &key, "--json", "latest"]).exits(0).json();
    assert_eq!(proof["signatures"]["key"], "given", "{proof}");
    assert_eq!(proof["signatures"]["by"][0]["name"], "acme/log");
    assert_eq!(proof["signatures"]["verified"], proof["signatures"]["checkpoints"]);
    let told = own.run(&["verify", "--key", &key]).exits(0).stdout;
    assert!(told.contains("by acme/log (key supplied by you)"), "{told}");
    assert!(!told.contains("wrote all of it again"), "{told}");
    // Another key of that name.
    let stranger = Signed::new();
    let ran = own.run(&["verify", "--key", &stranger.key_file()]).exits(6);
    assert!(ran.stderr.contains("none of the keys"), "{}", ran.stderr);
    // Nobody takes a private key for a public one.
    let private = own.private().to_string_lossy().into_owned();
    let ran = own.run(&["verify", "--key", &private]).exits(10);
    assert!(ran.stderr.contains("is a private key"), "{}", ran.stderr);
    // A record without a key says so.
    let bare = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = bare.write_policy(OPEN);
    let _ = bare.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    assert!(bare.run(&["verify"]).exits(0).stdout.contains("nothing in it is signed"));
    let _ = bare.run(&["verify", "--key", &key]).exits(6);
    let _ = bare.run(&["audit", "checkpoint"]).exits(2);
}

/// G4: an old copy of the store, with whatever was done on it since.
#[test]
fn an_old_copy_of_the_store_is_found() {
    let own = Signed::new();
    let policy = own.open();
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let store = own.capsule.store();
    let old = fs::read(&store).unwrap();
    let old_log = fs::read(store.with_file_name("store.db-wal")).unwrap();
    let old_note = fs::read(store.with_file_name("store.db.head")).unwrap();
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let pull = own.outside("pr-812.txt");
    let note = own.run(&["audit", "checkpoint"]).exits(0).stdout;
    fs::write(&pull, format!("Merged. The record then:\n\n> {}", note.replace('\n', "\n> ")))
        .unwrap();
    let key = own.key_file();
    let proof = own.run(&["verify", "--key", &key, "--anchor", &pull]).exits(0).stdout;
    assert!(proof.contains("✔ anchor"), "{proof}");
    // The last line of a run's own report does as well.
    let report = own.run(&["report", "latest"]).exits(0).stdout;
    let line = report.lines().last().unwrap();
    assert!(line.starts_with("checkpoint acme/log "), "{report}");
    let piped = own.capsule.run_with(&["verify", "--anchor", "-"], line);
    assert!(piped.exits(0).stdout.contains("✔ anchor"));
    // What an anchor does not say is said; so is which log it is, and that it knows others.
    let told = own.run(&["verify", "--anchor", &pull, "--json"]).exits(0).json();
    assert_eq!(told["anchors"][0]["origin"], "acme/log", "{told}");
    let claims = told["not_proven"].to_string();
    assert!(claims.contains("no event after the first"), "{claims}");
    assert!(!claims.contains("is about"), "{claims}");
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let told = own.run(&["verify", "--anchor", &pull, "--json"]).exits(0).json();
    let claims = told["not_proven"].to_string();
    assert!(claims.contains("no anchor has seen them"), "{claims}");
    let mixed = own.outside("mixed.txt");
    fs::write(
        &mixed,
        format!("{note}\nacme/1og 6 {}=\nacme/log 0 {}=\n", "A".repeat(43), "A".repeat(43)),
    )
    .unwrap();
    let told = own.run(&["verify", "--anchor", &mixed, "--json"]).exits(0).json();
    assert!(told["not_proven"].to_string().contains("knows `acme/1og`"), "{told}");
    // A log of no events is every log, and says nothing.
    let nothing = own.outside("nothing.txt");
    fs::write(&nothing, "acme/log 0 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n").unwrap();
    let _ = own.run(&["verify", "--anchor", &nothing]).exits(6);
    // No file takes the place of a run.
    let ran = Signed::new();
    let _ = ran.exec(&ran.open(), &["ls"]).exits(0);
    fs::copy(own.capsule.store(), ran.capsule.workspace().join("latest")).unwrap();
    let told = ran.run(&["verify", "latest", "--json"]).exits(0).json();
    assert_eq!(told["store"], ran.capsule.store().to_str().unwrap(), "{told}");
    // Back to what it was.
    let _ = fs::remove_file(store.with_file_name("store.db-shm"));
    fs::write(store.with_file_name("store.db-wal"), old_log).unwrap();
    fs::write(&store, old).unwrap();
    // Whoever forgets the note of how many events there were is met by it.
    let ran = own.run(&["verify", "--key", &key]).exits(6);
    assert!(ran.stderr.contains("had 21 events"), "{}", ran.stderr);
    let ran = own.exec(&policy, &["ls"]).exits(6);
    assert!(ran.stderr.contains("store.db.head` away"), "{}", ran.stderr);
    assert!(own.run(&["list-runs"]).exits(0).stderr.contains("are missing"));
    fs::write(store.with_file_name("store.db.head"), old_note).unwrap();
    let _ = own.run(&["verify", "--key", &key]).exits(0);
    let ran = own.run(&["verify", "--anchor", &pull]).exits(6);
    assert!(ran.stderr.contains("pr-812.txt: it saw"), "{}", ran.stderr);
    // Nothing is signed of it before an anchor was asked.
    let anchor = own.outside("anchor");
    fs::write(&anchor, &note).unwrap();
    let leaves = || own.run(&["verify", "--json"]).exits(0).json()["leaves"].clone();
    let before = leaves();
    let _ = own.run(&["audit", "anchor", &anchor]).exits(6);
    assert_eq!(leaves(), before);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let ran = own.run(&["verify", "--anchor", &pull, "--json"]).exits(6).json();
    assert_eq!(ran["code"], "store.integrity", "{ran}");
}

/// A policy that wants anchors has them, or nothing runs.
#[test]
fn anchors_are_told_or_nothing_runs() {
    let own = Signed::new();
    let anchor = own.outside("anchors/log");
    let policy = own.capsule.write_policy(&format!(
        "{OPEN}audit: {{ checkpoint: {{ every: 3, on: [denial] }}, anchors: [\"file:{anchor}\"] }}\n"
    ));
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let _ = own.exec(&policy, &["rm", "x"]).exits(3);
    let told = fs::read_to_string(&anchor).unwrap();
    assert!(told.matches("— acme/log ").count() >= 3, "{told}");
    let _ = own.run(&["verify", "--key", &own.key_file(), "--anchor", &anchor]).exits(0);
    // What is in a file already is not added to.
    let notes = own.outside("notes");
    fs::write(&notes, "dear diary\n").unwrap();
    let _ = own.run(&["audit", "anchor", &notes]).exits(10);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "dear diary\n");
    // A record that has lost what the anchor saw.
    let store = own.capsule.store();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(store.with_file_name(format!("store.db{end}")));
    }
    let ran = own.exec(&policy, &["ls"]).exits(6);
    assert!(ran.stderr.contains("put the anchor away"), "{}", ran.stderr);
    fs::rename(&anchor, own.outside("away")).unwrap();
    let _ = own.exec(&policy, &["ls"]).exits(0);
    // An anchor that cannot be written.
    fs::remove_file(&anchor).unwrap();
    fs::create_dir(&anchor).unwrap();
    let before = own.run(&["list-runs", "--json"]).exits(0).json();
    let ran = own.exec(&policy, &["ls"]).exits(10);
    assert!(ran.stderr.contains("audit.anchor"), "{}", ran.stderr);
    assert_eq!(own.run(&["list-runs", "--json"]).exits(0).json(), before, "nothing began");
    // No key, where the policy wants signatures; and another one, of which the anchor knows nothing.
    fs::remove_dir(&anchor).unwrap();
    fs::rename(own.outside("away"), &anchor).unwrap();
    fs::remove_file(own.private()).unwrap();
    let ran = own.exec(&policy, &["ls"]).exits(2);
    assert!(ran.stderr.contains("audit.no-key"), "{}", ran.stderr);
    let _ = own.run(&["init"]).exits(0);
    let ran = own.exec(&policy, &["ls"]).exits(10);
    assert!(ran.stderr.contains("it knows other logs"), "{}", ran.stderr);
    let _ = own.run(&["audit", "anchor", &anchor]).exits(0);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    // The store is no anchor of itself.
    let store = store.to_string_lossy().into_owned();
    let ran = own.run(&["audit", "anchor", &store]).exits(10);
    assert!(ran.stderr.contains("belongs to the store"), "{}", ran.stderr);
}

/// A policy that wants signatures and anchors works where there is nothing yet: the key of a new store is made, and
/// told; an anchor can be told of a log in which nothing is.
#[test]
fn anchors_work_on_a_fresh_store() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let anchor = capsule.directory().join("anchors/log");
    let anchors = format!("audit: {{ anchors: [\"file:{}\"] }}\n", anchor.display());
    let policy = capsule.write_policy(&format!("{OPEN}{anchors}"));
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    let line = ran.stderr.lines().find(|line| line.trim().starts_with("capsule/"));
    let line = line.unwrap_or_else(|| panic!("{}", ran.stderr)).trim();
    let key = capsule.directory().join("key.pub").to_string_lossy().into_owned();
    fs::write(&key, line).unwrap();
    let anchor = anchor.to_string_lossy().into_owned();
    let _ = capsule.run(&["verify", "--key", &key, "--anchor", &anchor]).exits(0);
    // It is made once, and kept.
    let again = capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(0);
    assert!(!again.stderr.contains("capsule/"), "{}", again.stderr);
    // With events and without a key, nobody knows who signed before.
    fs::remove_file(capsule.store().with_file_name("store.db.key")).unwrap();
    let ran = capsule.run(&["exec", "--policy", &policy, "--", "ls"]).exits(2);
    assert!(
        ran.stderr.contains("audit.no-key") && ran.stderr.contains("`capsule init`"),
        "{}",
        ran.stderr
    );
    // A policy that lies in its workspace makes no anchor; a person does, also before the first run.
    let own = Signed::new();
    let anchor = own.outside("anchor");
    let text = format!("{OPEN}audit: {{ anchors: [\"file:{anchor}\"] }}\n");
    let policy = own.capsule.write_file("policy.yaml", text).to_string_lossy().into_owned();
    let ran = own.exec(&policy, &["ls"]).exits(10);
    assert!(ran.stderr.contains("capsule audit anchor"), "{}", ran.stderr);
    fs::remove_file(own.capsule.store()).unwrap();
    for end in ["-wal", "-shm", ".head"] {
        let _ = fs::remove_file(own.capsule.store().with_file_name(format!("store.db{end}")));
    }
    let _ = own.run(&["audit", "anchor", &anchor]).exits(0);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let _ = own.run(&["verify", "--key", &own.key_file(), "--anchor", &anchor]).exits(0);
    // Without a key there is nothing to tell, and the words say what to do.
    let bare = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let ran = bare.run(&["audit", "anchor", &anchor]).exits(2);
    assert!(ran.stderr.contains("`capsule init`") && !bare.store().exists(), "{}", ran.stderr);
}

/// Many make the key at one time: one of them does, and all have it.
#[test]
fn a_key_that_many_make_is_one_key() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let made: Vec<CommandOutput> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..12).map(|_| scope.spawn(|| capsule.run(&["init", "--json"]).exits(0))).collect();
        all.into_iter().map(|own| own.join().unwrap()).collect()
    });
    let keys: Vec<Value> = made.iter().map(|ran| ran.json()["key"].clone()).collect();
    assert!(keys.iter().all(|key| key["public"] == keys[0]["public"]), "{keys:?}");
    assert_eq!(keys.iter().filter(|key| key["new"] == true).count(), 1, "{keys:?}");
    let folder = fs::read_dir(capsule.store().parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1, "nothing of it is left lying about");
    // No key is called as the tree of one run is.
    let run = format!("acme/run/r-{}", "0".repeat(16));
    let _ = Capsule::new(env!("CARGO_BIN_EXE_capsule")).run(&["init", "--origin", &run]).exits(2);
}

/// A run whose end could not be told is over all the same: what it changed waits, and somebody hears of both.
#[test]
fn an_anchor_that_is_lost_at_the_end_loses_nothing_else() {
    let own = Signed::new();
    let anchor = own.outside("anchor");
    let policy = own.capsule.write_policy(&format!(
        "version: 1\nname: x\ntools:\n  shell.run: {{ executables: {{ perl: {{ decision: allow, writes: [\"**\"] }} }} \
         }}\naudit: {{ anchors: [\"file:{anchor}\"] }}\n"
    ));
    own.capsule.write_file("x.pl", "open(F, '>', 'new') and print F 'x'; sleep 3;");
    let child = own.capsule.command(&["exec", "--policy", &policy, "--", "perl", "x.pl"]);
    let mut child = { child }.stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !own.capsule.store().exists() || own.run(&["list-runs"]).stdout.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let _ = fs::remove_file(&anchor);
    fs::create_dir(&anchor).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(10));
    assert!(own.run(&["changes", "latest"]).exits(0).stdout.contains("new"));
    let _ = own.run(&["verify", "--key", &own.key_file()]).exits(0);
}

/// A key that others may read could be anybody's.
#[test]
fn a_key_that_others_may_read_signs_nothing() {
    let own = Signed::new();
    let policy = own.open();
    fs::set_permissions(own.private(), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = own.exec(&policy, &["ls"]).exits(10);
    assert!(ran.stderr.contains("audit.key") && ran.stderr.contains("0644"), "{}", ran.stderr);
    // What it says to do is what helps.
    let told = format!("`chmod 600 {}`", own.private().display());
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(own.run(&["init"]).exits(10).stderr.contains(&told));
    assert!(own.run(&["doctor"]).stdout.contains("others may read"), "it says so");
    fs::set_permissions(own.private(), fs::Permissions::from_mode(0o600)).unwrap();
    let _ = own.exec(&policy, &["ls"]).exits(0);
}

/// F5, G7: no tool and no command reaches the key or an anchor, wherever they lie; and a policy that lies
/// in its workspace makes no files elsewhere.
#[test]
fn key_and_anchors_are_out_of_reach() {
    let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let store = capsule.workspace().join("state/store.db").to_string_lossy().into_owned();
    capsule.set("CAPSULE_STORE", &store);
    let _ = capsule.run(&["init"]).exits(0);
    let anchor = capsule.workspace().join("anchors").to_string_lossy().into_owned();
    capsule.write_file("open.txt", "fine");
    let text = format!("{OPEN}audit: {{ anchors: [\"file:{anchor}\"] }}\n");
    let policy = capsule.write_policy(&text);
    let read = |path: &str| {
        let args = serde_json::json!({ "path": path }).to_string();
        capsule.run(&["call", "fs.read", "--args", &args, "--policy", &policy])
    };
    let _ = read("open.txt").exits(0);
    assert!(fs::read_to_string(&anchor).unwrap().contains("capsule/"), "it is told");
    for path in ["state/store.db.key", "anchors"] {
        let _ = read(path).exits(3);
        let cat = capsule.run(&["exec", "--policy", &policy, "--", "cat", path]);
        assert_ne!(cat.status, 0, "{path}: {}", cat.stdout);
        // By a name that nobody sees before it runs.
        let parts: Vec<String> = path.bytes().map(|byte| byte.to_string()).collect();
        let held = format!(
            "my $p = join('', map {{ chr }} ({})); open(F, '<', $p) and print 'ESCAPED ', <F>; open(G, '>>', $p) \
             and print 'ESCAPED'; open(O, '<', 'open.txt') and print 'held ', <O>;",
            parts.join(",")
        );
        let script = capsule.write_file("try.pl", held);
        let script = script.file_name().unwrap().to_string_lossy().into_owned();
        let perl = capsule.run(&["exec", "--policy", &policy, "--", "perl", &script]);
        assert_eq!(perl.stdout, "held fine", "{path}: {}", perl.stderr);
    }
    // The same rule in a policy that came with the folder.
    let elsewhere = capsule.directory().join("elsewhere").to_string_lossy().into_owned();
    capsule.write_file("policy.yaml", text.replace(&anchor, &elsewhere));
    let ran = capsule.run(&["exec", "--policy", "policy.yaml", "--", "ls"]).exits(10);
    assert!(ran.stderr.contains("audit anchor"), "{}", ran.stderr);
    assert!(!capsule.directory().join("elsewhere").exists());
    fs::write(capsule.directory().join("elsewhere"), "").unwrap();
    let _ = capsule.run(&["exec", "--policy", "policy.yaml", "--", "ls"]).exits(10);
    assert_eq!(
        fs::read(capsule.directory().join("elsewhere")).unwrap(),
        b"",
        "an empty file is somebody's"
    );
    let _ = capsule.run(&["audit", "anchor", &elsewhere]).exits(0);
    let _ = capsule.run(&["exec", "--policy", "policy.yaml", "--", "ls"]).exits(0);
}

/// Somebody who has nothing of ours but the format verifies a store and a run that was written out,
/// and finds what was changed.
#[test]
fn a_stranger_verifies_without_us() {
    let own = Signed::new();
    let policy = own.open();
    let plan = own.capsule.write_plan(
        "version: 1\nsteps:\n  - { id: a, tool: fs.list, args: { path: . } }\n  - { id: b, tool: fs.read, args: \
         { path: none }, on_error: continue }\n",
    );
    let out = own.outside("run.db");
    let _ = own.run(&["run", &plan, "--policy", &policy, "--out", &out]).exits(0);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let anchor = own.outside("anchor");
    let _ = own.run(&["audit", "anchor", &anchor]).exits(0);
    let verified = own.run(&["verify", &out, "--key", &own.key_file()]).exits(0).stdout;
    assert!(verified.contains("(key supplied by you)"), "{verified}");
    // The anchor of the whole log knows nothing of this one, and accuses nobody.
    let ran = own.run(&["verify", &out, "--key", &own.key_file(), "--anchor", &anchor]).exits(6);
    assert!(ran.stderr.contains("no checkpoint of this log"), "{}", ran.stderr);
    let root = std::env::var_os("CAPSULE_TEST_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from);
    let script = root.join("examples/verify/verify.py");
    let ask = |args: &[&str]| -> CommandOutput {
        Command::new("python3").arg(&script).args(args).output().unwrap().into()
    };
    let store = own.capsule.store().to_string_lossy().into_owned();
    let ours = own.run(&["verify", "--json"]).exits(0).json();
    let told = ask(&[&store, &own.public, &anchor]).exits(0).stdout;
    assert!(told.contains(ours["root"].as_str().unwrap()), "{told}");
    let told = ask(&[&out, &own.public]).exits(0).stdout;
    assert!(told.contains("signed by acme/log"), "{told}");
    let stranger = Signed::new();
    assert!(ask(&[&out, &stranger.public]).exits(1).stdout.contains("NOT verified"));
    // Anchors that saw something else: as many events, more of them, and at the very end.
    let leaves = ours["leaves"].as_u64().unwrap();
    let other = format!("{}=", "A".repeat(43));
    for size in [leaves - 3, leaves, leaves + 5] {
        let text = format!("{}\nacme/log {size} {other}\n", fs::read_to_string(&anchor).unwrap());
        fs::write(own.outside("wrong"), &text).unwrap();
        let refused = ask(&[&store, &own.public, &own.outside("wrong")]).exits(1);
        assert!(refused.stdout.contains("the anchor saw"), "{size}: {}", refused.stdout);
        let _ = own.run(&["verify", "--anchor", &own.outside("wrong")]).exits(6);
    }
    let chat = format!("I saw acme/log 3 times\n{}", fs::read_to_string(&anchor).unwrap());
    fs::write(own.outside("chat"), chat).unwrap();
    let _ = ask(&[&store, &own.public, &own.outside("chat")]).exits(0);
    // Payloads that are not there.
    let cut = own.outside("cut.db");
    fs::copy(&out, &cut).unwrap();
    let sql = rusqlite::Connection::open(&cut).unwrap();
    sql.execute_batch("DROP TRIGGER payloads_remain; DELETE FROM payloads WHERE id > 20").unwrap();
    drop(sql);
    assert!(ask(&[&cut, &own.public]).exits(1).stdout.contains("other payloads"));
    // One letter of one event.
    let sql = rusqlite::Connection::open(&out).unwrap();
    sql.execute_batch(
        "DROP TRIGGER events_stay; UPDATE events SET bytes = CAST(replace(CAST(bytes AS TEXT), 'fs.list',
         'fs.lisp') AS BLOB) WHERE leaf = 1",
    )
    .unwrap();
    assert!(ask(&[&out, &own.public]).exits(1).stdout.contains("does not follow"));
}

/// G26, EI-4: the whole log, an event a line, with what may leave the store.
#[test]
fn the_log_is_written_out_line_by_line() {
    let own = Signed::new();
    let policy = own.open();
    own.capsule.write_file("a.txt", "hello");
    let _ = own.exec(&policy, &["cat", "a.txt"]).exits(0);
    let _ = own.exec(&policy, &["ls"]).exits(0);
    let text = own.run(&["audit", "export", "--format", "jsonl"]).exits(0).stdout;
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let leaves = own.run(&["verify", "--json"]).exits(0).json()["leaves"].as_u64().unwrap();
    assert_eq!(lines.len() as u64, leaves);
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(line["leaf"], at);
        let bytes = capsule_base::json::canonical(&line["entry"]);
        assert_eq!(line["hash"], capsule_store::leaf_hash(&bytes).to_string());
        for payload in line["payloads"].as_array().unwrap() {
            assert!(payload["class"] != "key" && payload["class"] != "undo", "{payload}");
        }
    }
    assert!(text.contains("hello"), "what it gave back is in it");
    assert!(lines.iter().any(|line| line["entry"]["kind"] == "checkpoint"));
}
