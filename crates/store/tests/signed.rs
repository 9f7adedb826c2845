//! Checkpoints and anchors: what they show, on real stores that somebody changed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::{Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_core::journal::{
    Durability, Entry, Event, Journal as _, PayloadClass, RunExported, RunSealed,
};
use capsule_core::policy::{AuditRule, CheckpointRule, PayloadRetention};
use capsule_store::{
    Anchor, Fault, Proof, RunWriter, SignedNote, Signer, SigningSchedule, Store, TrustRoots,
    Verified, Verifier, WitnessedCheckpoints,
};
use capsule_store::{Frontier, leaf_hash};
use rusqlite::Connection;
use serde_json::json;

struct Log {
    folder: tempfile::TempDir,
}

impl Log {
    /// A log with a key.
    fn new() -> Self {
        let own = Self { folder: tempfile::tempdir().unwrap() };
        Signer::create(&own.path(), Some("acme/log")).unwrap();
        own
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn key(&self) -> Verifier {
        Signer::load(&self.path()).unwrap().unwrap().verifier().clone()
    }

    fn sign(&self) -> SignedNote {
        let signer = Signer::load(&self.path()).unwrap().unwrap();
        Store::open(&self.path()).unwrap().checkpoint(&signer, 7).unwrap()
    }

    /// An event that belongs to no run, and is easily told from another.
    fn say(&self, what: &str) {
        let subject = capsule_core::id::RunId::from_bits([1; 10]);
        let event = RunExported { subject, sha256: Digest::of(b""), path: what.into() };
        Store::open(&self.path()).unwrap().write_unattached(Event::RunExported(event), 1).unwrap();
    }

    fn verify(&self, trust: &TrustRoots) -> Verified {
        verify(&self.path(), trust)
    }

    /// Another copy of everything that is there now, as a backup would have it.
    fn copied(&self, name: &str) -> PathBuf {
        let to = self.file(name);
        let sql = Connection::open(self.path()).unwrap();
        sql.execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
        to
    }
}

fn verify(path: &Path, trust: &TrustRoots) -> Verified {
    Store::open_read_only(path).unwrap().verify_by(None, trust).unwrap()
}

fn fault(verified: Verified, place: &str, what: &str) {
    let Fault { place: at, what: why } = verified.unwrap_err();
    assert!(at.contains(place) && why.contains(what), "{at}: {why}");
}

fn given(keys: &[&Verifier]) -> TrustRoots {
    TrustRoots {
        keys: keys.iter().map(|own| (*own).clone()).collect(),
        is_strict: true,
        witnesses: vec![],
    }
}

fn seen(note: &SignedNote) -> TrustRoots {
    TrustRoots {
        witnesses: vec![WitnessedCheckpoints::parse("seen.txt", &note.to_string())],
        ..TrustRoots::default()
    }
}

/// Everything written again, with right hashes: what somebody can do who can write the file.
fn written_again(path: &Path, change: impl Fn(usize, &mut Entry)) {
    let sql = Connection::open(path).unwrap();
    sql.execute_batch("DROP TRIGGER events_stay; DROP TRIGGER events_remain").unwrap();
    let mut query = sql.prepare("SELECT bytes FROM events ORDER BY leaf").unwrap();
    let rows: Vec<Vec<u8>> =
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut tree = Frontier::default();
    for (leaf, bytes) in rows.iter().enumerate() {
        let mut entry = Entry::from_bytes(bytes).unwrap();
        change(leaf, &mut entry);
        let bytes = entry.to_bytes();
        let hash = leaf_hash(&bytes);
        tree.push(hash);
        sql.execute(
            "UPDATE events SET bytes = ?1, hash = ?2, kind = ?4 WHERE leaf = ?3",
            rusqlite::params![bytes, hash.0, leaf as i64, entry.event.kind()],
        )
        .unwrap();
    }
    sql.execute("UPDATE tree SET peaks = ?1", [tree.to_bytes()]).unwrap();
    // Whoever can do this can put the triggers back, and have the head of the tree noted anew.
    let is_noted = fs::remove_file(format!("{}.head", path.display())).is_ok();
    for name in ["events_stay", "events_remain"] {
        let scratch = tempfile::tempdir().unwrap();
        let other = scratch.path().join("x.db");
        drop(Store::open(&other).unwrap());
        let other = Connection::open(other).unwrap();
        let text: String = other
            .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
            .unwrap();
        sql.execute_batch(&text).unwrap();
    }
    drop(query);
    drop(sql);
    if is_noted {
        drop(Store::open(path).unwrap());
    }
}

fn other_path(entry: &mut Entry) {
    if let Event::RunExported(own) = &mut entry.event {
        own.path.push_str(" changed");
    }
}

/// G5: with right hashes all the way, only the signature tells.
#[test]
fn everything_written_again_is_found_by_the_key() {
    let log = Log::new();
    log.say("a");
    log.say("b");
    log.sign();
    let (key, stranger) = (log.key(), Log::new().key());
    let proof = log.verify(&given(&[&key])).unwrap();
    assert_eq!(
        (proof.attested.checkpoints, proof.attested.valid, proof.attested.signed_events),
        (1, 1, 2)
    );
    assert_eq!(log.verify(&given(&[&stranger, &key])).unwrap().attested.valid, 1);
    fault(log.verify(&given(&[&stranger])), "event 2", "none of the keys");
    // Without its checkpoint.
    let bare = log.copied("bare.db");
    written_again(&bare, |leaf, entry| {
        if leaf == 2 {
            entry.event = Event::GrantRevoked { grant: None };
        }
    });
    assert!(verify(&bare, &TrustRoots::default()).is_ok(), "the hashes are right");
    fault(verify(&bare, &given(&[&key])), "signature", "nothing in it is signed");
    // With the old checkpoint.
    let kept = log.copied("kept.db");
    written_again(&kept, |_, entry| other_path(entry));
    fault(verify(&kept, &TrustRoots::default()), "event 2", "it signs 2 events with root");
    // With a checkpoint by a key of the same name.
    let forged = log.copied("forged.db");
    let twin = Signer::create(&forged, Some("acme/log")).unwrap();
    written_again(&forged, |leaf, entry| match leaf {
        2 => entry.event = Event::GrantRevoked { grant: None },
        _ => other_path(entry),
    });
    Store::open(&forged).unwrap().checkpoint(&twin, 7).unwrap();
    assert_eq!(verify(&forged, &given(&[twin.verifier()])).unwrap().attested.valid, 1);
    fault(verify(&forged, &given(&[&key])), "event 3", "none of the keys");
    // A signature that is said to be this key's.
    let lying = log.copied("lying.db");
    written_again(&lying, |_, entry| {
        if let Event::Checkpoint { note } = &mut entry.event {
            let at = note.len() - 10;
            let other = if note.as_bytes()[at] == b'A' { "B" } else { "A" };
            note.replace_range(at..=at, other);
        }
    });
    fault(verify(&lying, &given(&[&key])), "event 2", "its signature is not that of");
}

/// G4: an old copy is whole in itself, and what was seen later is not in it.
#[test]
fn an_old_copy_is_found_by_an_anchor() {
    let log = Log::new();
    log.say("a");
    log.sign();
    let old = log.copied("old.db");
    log.say("b");
    let note = log.sign();
    let trust = seen(&note);
    let proof = log.verify(&trust).unwrap();
    assert_eq!((proof.attested.anchors[0].size, proof.leaves), (3, 4));
    assert!(verify(&old, &given(&[&log.key()])).is_ok(), "a signature does not tell");
    fault(verify(&old, &trust), "anchor seen.txt", "it saw 3 events; here are 2");
    // It goes on, and comes to have as many.
    let mut again = Store::open(&old).unwrap();
    for _ in 0..3 {
        again.write_unattached(Event::GrantRevoked { grant: None }, 2).unwrap();
    }
    fault(verify(&old, &trust), "anchor seen.txt", "those here have root");
    // Another log altogether.
    let other = Log::new();
    other.say("a");
    fault(other.verify(&trust), "anchor seen.txt", "no checkpoint of this log");
    Signer::load(&other.path()).unwrap().unwrap();
    let named = TrustRoots { keys: vec![other.key()], ..trust };
    fault(other.verify(&named), "anchor seen.txt", "it saw 3 events; here are 1");
    // A log that is called otherwise is none of its business.
    let fine = WitnessedCheckpoints::parse(
        "mixed",
        &format!("{note}\nacme/other 900 {}", "A".repeat(43) + "="),
    );
    let fine = TrustRoots { witnesses: vec![fine], ..TrustRoots::default() };
    assert!(log.verify(&fine).is_ok());
}

/// What the log's own machine finds when a run begins.
#[test]
fn a_run_does_not_begin_on_an_old_copy() {
    let log = Log::new();
    log.say("a");
    let anchor = Anchor::named_by_policy(log.file("anchors"), false);
    let holds = |path: &Path| anchor.check_store(&Store::open_read_only(path).unwrap(), "acme/log");
    holds(&log.path()).unwrap();
    anchor.add(&log.sign()).unwrap();
    holds(&log.path()).unwrap();
    let old = log.copied("old.db");
    log.say("b");
    anchor.add(&log.sign()).unwrap();
    log.say("c");
    holds(&log.path()).unwrap();
    let error = holds(&old).unwrap_err();
    assert_eq!(error.code().slug(), "store.integrity");
    assert!(error.to_string().contains("put the anchor away"), "{error}");
    // What two processes wrote at one time stands in any order.
    let text = fs::read_to_string(log.file("anchors")).unwrap();
    let (first, second) = text.split_at(text.len() / 2);
    fs::write(log.file("anchors"), format!("{second}{first}")).unwrap();
    holds(&log.path()).unwrap();
    assert!(holds(&old).is_err());
}

/// A run of so many events, its beginning and its end among them.
fn run(log: &Log, rule: &AuditRule, events: u64) -> Option<SignedNote> {
    let store = Store::open(&log.path()).unwrap();
    let signing = SigningSchedule::for_policy(&store, rule, false).unwrap();
    let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
    writer.sign_with(signing);
    writer_begins(&mut writer);
    for call in 2..events {
        writer.append(Event::ApprovalCovered { call, by: 0 }, Durability::CrashSafe).unwrap();
    }
    let sealed = RunSealed { exit: Exit::Ok, events, calls: 0, outputs: None, suspended: None };
    writer.append(Event::RunSealed(sealed), Durability::CrashSafe).unwrap();
    writer.finish().note
}

fn writer_begins(writer: &mut RunWriter) {
    let text = writer.put_payload(PayloadClass::Document, b"version: 1").unwrap();
    let inputs = writer.put_payload(PayloadClass::Document, b"{}").unwrap();
    let key = writer.keep_key().unwrap();
    let digest = Digest::of(b"");
    let opened = json!({ "kind": "run.opened", "body": {
        "label": "r-0000", "origin": "call", "name": "x", "engine": "x", "plan": null,
        "policy": { "path": "x", "sha256": digest, "text": text },
        "policy_name": "x", "policy_since": null, "profile": "x", "payloads": "full",
        "inputs": inputs, "key": key,
        "workspace": { "path": "/", "device": "1", "inode": "1" },
        "home": "/", "own": [], "tools": digest, "walls": null, "steps": 0,
    } });
    let opened: Event = serde_json::from_value(opened).unwrap();
    writer.append(opened, Durability::CrashSafe).unwrap();
}

fn sizes(log: &Log) -> Vec<i64> {
    let sql = Connection::open(log.path()).unwrap();
    let mut query =
        sql.prepare("SELECT leaf FROM events WHERE kind = 'checkpoint' ORDER BY leaf").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The log is signed as often as the policy says, and each time its anchors are told.
#[test]
fn it_is_signed_when_the_policy_says() {
    let log = Log::new();
    let anchors = log.file("deep/er/anchors");
    let path = anchors.to_str().unwrap().to_owned();
    let mut rule = AuditRule {
        checkpoints: CheckpointRule { every: 10, run_end: false, ..CheckpointRule::default() },
        anchors: vec![capsule_core::policy::AnchorRule { path }],
        ..AuditRule::default()
    };
    assert_eq!(run(&log, &rule, 9), None);
    assert!(sizes(&log).is_empty());
    let note = run(&log, &rule, 31).unwrap();
    assert_eq!(sizes(&log), [10, 21, 32, 43]);
    assert_eq!(note.checkpoint().unwrap().size, 43);
    rule.checkpoints.run_end = true;
    run(&log, &rule, 3);
    assert_eq!(sizes(&log), [10, 21, 32, 43, 47]);
    let told = fs::read_to_string(&anchors).unwrap();
    assert_eq!(told.matches("acme/log\n").count(), 5, "{told}");
    // Nothing came since, so nothing is signed again.
    assert_eq!(log.sign().checkpoint().unwrap().size, 47);
    assert_eq!(sizes(&log).len(), 5);
    // Where there is no key, nothing is signed.
    fs::remove_file(log.file("store.db.key")).unwrap();
    assert_eq!(run(&log, &rule, 20), None);
    assert_eq!(sizes(&log).len(), 5);
}

/// A run whose anchor cannot be told any more does not go on as if it were.
#[test]
fn an_anchor_that_is_lost_ends_the_run() {
    let log = Log::new();
    let path = log.file("anchors");
    let rule = AuditRule {
        checkpoints: CheckpointRule { every: 2, ..CheckpointRule::default() },
        anchors: vec![capsule_core::policy::AnchorRule { path: path.to_str().unwrap().to_owned() }],
        ..AuditRule::default()
    };
    let store = Store::open(&log.path()).unwrap();
    let signing = SigningSchedule::for_policy(&store, &rule, false).unwrap();
    let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
    writer.sign_with(signing);
    writer_begins(&mut writer);
    let mut say = |call| {
        writer
            .append(Event::ApprovalCovered { call, by: 0 }, Durability::CrashSafe)
            .map(|own| own.seq)
    };
    assert_eq!(say(1).unwrap(), 2);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = say(2).and_then(|_| say(3)).unwrap_err();
    assert_eq!(error.code().slug(), "audit.anchor");
    // What was written stays written, in its order.
    fs::remove_dir(&path).unwrap();
    let at = say(4).unwrap();
    assert!(at >= 4, "{at}");
    drop(writer);
    let proof: Proof = log.verify(&given(&[&log.key()])).unwrap();
    assert_eq!(proof.unsealed, 1);
}

/// Runs that are written out are logs of their own, by the same key.
#[test]
fn a_run_that_was_written_out_is_signed() {
    let log = Log::new();
    run(&log, &AuditRule::default(), 3);
    run(&log, &AuditRule::default(), 3);
    let store = Store::open(&log.path()).unwrap();
    let ids: Vec<String> = store.runs_with_prefix("r-").unwrap();
    let out = log.file("out.db");
    store.export(&ids[0], &out).unwrap();
    store.export(&ids[0], &out).unwrap();
    let proof = verify(&out, &given(&[&log.key()])).unwrap();
    assert_eq!((proof.leaves, proof.attested.signed_events), (4, 3));
    let origin = format!("acme/log/run/{}", ids[0]);
    let note = Store::open_read_only(&out).unwrap().newest_checkpoint().unwrap().unwrap();
    assert_eq!(note.checkpoint().unwrap().origin, origin);
    // An anchor that knows the log does not know this tree, which is none of it.
    fault(verify(&out, &seen(&log.sign())), "anchor", "no checkpoint of this log");
    // Another run under that name is another log.
    let other = log.file("other.db");
    store.export(&ids[1], &other).unwrap();
    let signer = Signer::load(&log.path()).unwrap().unwrap();
    let forged = capsule_store::Checkpoint { origin, ..seal_of(&other) };
    written_again(&other, |_, entry| {
        if let Event::Checkpoint { note } = &mut entry.event {
            *note = signer.sign(&forged).to_string();
        }
    });
    fault(verify(&other, &given(&[&log.key()])), "event 3", "it is of another log");
}

fn seal_of(path: &Path) -> capsule_store::Checkpoint {
    Store::open_read_only(path).unwrap().newest_checkpoint().unwrap().unwrap().checkpoint().unwrap()
}

/// What somebody added to a note in the store is not told on.
#[test]
fn nobody_speaks_through_our_notes() {
    let log = Log::new();
    log.say("a");
    log.sign();
    written_again(&log.path(), |_, entry| {
        if let Event::Checkpoint { note } = &mut entry.event {
            note.push_str("— x AAECAwQF\n");
        }
    });
    assert!(log.verify(&given(&[&log.key()])).is_ok(), "signatures of others do no harm");
    let note = log.sign();
    assert_eq!(note.signer_names().collect::<Vec<_>>(), ["acme/log"]);
    assert_eq!(note.checkpoint().unwrap().size, 2);
}

/// Texts from elsewhere are read in a time that is proportional to them.
#[test]
fn a_text_of_many_roots_is_read_at_once() {
    let roots = (0..40_000).map(|n| format!("acme/log 7 {n:A>43}=\n")).collect::<String>();
    let began = std::time::Instant::now();
    let _ = WitnessedCheckpoints::parse("x", &roots);
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

/// The key lies beside the store, and not beside a link to it.
#[test]
fn a_link_to_the_store_leads_to_its_key() {
    let log = Log::new();
    log.say("a");
    let link = log.file("link.db");
    std::os::unix::fs::symlink(log.path(), &link).unwrap();
    let signer = Signer::load(&link).unwrap().unwrap();
    assert_eq!(*signer.verifier(), log.key());
    assert!(Signer::create(&link, None).is_err());
}

/// Many processes sign at one time, and each signs what stands before its own.
#[test]
fn parallel_writers_sign_one_tree() {
    let log = Log::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    run(&log, &AuditRule::default(), 5);
                }
            });
        }
    });
    let proof = log.verify(&given(&[&log.key()])).unwrap();
    assert_eq!((proof.sealed, proof.unsealed), (40, 0));
    assert!(proof.attested.valid >= 20, "{proof:?}");
    assert_eq!(proof.attested.valid, proof.attested.checkpoints);
}
