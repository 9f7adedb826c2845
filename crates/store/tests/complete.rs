//! A store at rest is complete or says what is missing: bits flipped in its log, files of it that are gone, cut
//! off, or from another time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::path::{Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{Durability, Event, Journal as _, RunExported};
use capsule_core::policy::PayloadRetention;
use capsule_store::{Store, StoreError};

/// The files that make a store.
const PARTS: [&str; 3] = ["", "-wal", ".head"];

struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn part(&self, end: &str) -> PathBuf {
        PathBuf::from(format!("{}{end}", self.path().display()))
    }

    /// Writes so many events, each in a transaction of its own.
    fn write(&self, events: u64) {
        write(&self.path(), events);
    }

    /// What the files hold.
    fn bytes(&self) -> Vec<Vec<u8>> {
        PARTS.map(|end| fs::read(self.part(end)).unwrap_or_default()).to_vec()
    }

    /// The files as they were, without what SQLite shares among processes.
    fn put(&self, parts: &[Vec<u8>]) {
        let _ = fs::remove_file(self.part("-shm"));
        for (end, bytes) in PARTS.iter().zip(parts) {
            fs::write(self.part(end), bytes).unwrap();
        }
    }

    /// The fault that is found, as one line; what is shown where there is none.
    fn verify(&self) -> Result<(u64, Digest), String> {
        verify(&self.path())
    }
}

fn write(path: &Path, events: u64) {
    let mut store = Store::open(path).unwrap();
    for number in 0..events {
        store.write_unattached(said(number), number).unwrap();
    }
}

fn said(number: u64) -> Event {
    let subject = RunId::from_bits([1; 10]);
    Event::RunExported(RunExported { subject, sha256: Digest::of(b""), path: format!("{number}") })
}

fn verify(path: &Path) -> Result<(u64, Digest), String> {
    let store = Store::open_read_only(path).map_err(told)?;
    match store.verify(None).map_err(told)? {
        Ok(proof) => Ok((proof.leaves, proof.root)),
        Err(fault) => Err(format!("{}: {}", fault.place, fault.what)),
    }
}

fn told(error: StoreError) -> String {
    assert_eq!(error.code().slug(), "store.integrity", "{error}");
    error.to_string()
}

/// Has what the log holds moved into the main file.
fn move_log(path: &Path) {
    let sql = rusqlite::Connection::open(path).unwrap();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// A small deterministic source of places.
fn places(seed: u64, length: usize) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % length
    })
}

/// M3: a bit that is flipped in the log is found, and its place named, or changes nothing.
#[test]
fn a_flipped_bit_in_the_log_is_found_or_harmless() {
    const FRAME: usize = 24 + 4_096;
    let made = Made::new();
    for _ in 0..5 {
        made.write(4);
    }
    let (truth, parts) = (made.verify().unwrap(), made.bytes());
    let log = parts[1].len();
    assert!(log > 20 * FRAME, "most of it lies in the log: {log}");
    let headers =
        (32..log).step_by(FRAME).flat_map(|frame| (0..24).step_by(5).map(move |at| frame + at));
    let every =
        (0..32).chain(headers).chain((0..log).step_by(1_511)).chain(places(7, log).take(150));
    let (mut found, mut named) = (0, 0);
    for at in every {
        let mut damaged = parts.clone();
        damaged[1][at] ^= 1 << (at % 8);
        made.put(&damaged);
        match made.verify() {
            Ok(own) => assert_eq!(own, truth, "byte {at}"),
            Err(what) => {
                found += 1;
                named += usize::from(
                    what.contains("damaged at frame") || what.contains("header of its log"),
                );
                assert!(!what.contains(" 0 frames"), "{at}: {what}");
                // Nothing is written onto it, and the words say what to do.
                let refused = Store::open(&made.path()).unwrap_err();
                let is_integrity = refused.code().slug() == "store.integrity";
                assert!(is_integrity, "{at}: {refused}");
                assert!(refused.suggestion().contains(".head"), "{}", refused.suggestion());
            }
        }
    }
    assert!(found > 200 && named > 200, "{found} {named}");
}

/// M3: bytes of the main file, whether or not a log lies over them.
#[test]
fn a_flipped_bit_in_the_main_file_is_found_or_harmless() {
    let made = Made::new();
    made.write(30);
    // All of it is in the main file, and then some more in the log.
    move_log(&made.path());
    made.write(3);
    let (truth, parts) = (made.verify().unwrap(), made.bytes());
    let main = parts[0].len();
    let mut found = 0;
    for at in (0..100).chain(places(11, main).take(400)) {
        for mask in [1 << (at % 8), 0xFF] {
            let mut damaged = parts.clone();
            damaged[0][at] ^= mask;
            made.put(&damaged);
            let Ok(store) = Store::open_read_only(&made.path()) else {
                found += 1;
                continue;
            };
            match store.verify(None) {
                Ok(Ok(proof)) => assert_eq!((proof.leaves, proof.root), truth, "byte {at}"),
                Ok(Err(_)) | Err(_) => found += 1,
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// M3: the note of how many events there are is right, or is found to be wrong.
#[test]
fn a_flipped_bit_in_the_note_is_found_or_harmless() {
    let made = Made::new();
    made.write(5);
    let (truth, parts) = (made.verify().unwrap(), made.bytes());
    let mut found = 0;
    for at in 0..parts[2].len() {
        for bit in 0..8 {
            let mut damaged = parts.clone();
            damaged[2][at] ^= 1 << bit;
            made.put(&damaged);
            match made.verify() {
                Ok(own) => assert_eq!(own, truth, "byte {at}"),
                Err(what) => {
                    assert!(what.contains("note") || what.contains("record"), "{at}: {what}");
                    found += 1;
                }
            }
        }
    }
    // All but the digits of the boot, which loosen what is wanted and change nothing.
    assert!(found > 100 * 8, "{found}");
}

/// M3: files of a store that are gone, cut off, or from another time.
#[test]
fn what_is_missing_is_named() {
    let made = Made::new();
    made.write(6);
    let old = made.bytes();
    made.write(6);
    let parts = made.bytes();
    let truth = made.verify().unwrap();
    assert_eq!(truth.0, 12);
    let missing = |what: &str, parts: Vec<Vec<u8>>| {
        made.put(&parts);
        let told = made.verify().unwrap_err();
        assert!(told.contains("missing") || told.contains("without"), "{what}: {told}");
        let refused = Store::open(&made.path()).unwrap_err();
        assert_eq!(refused.code().slug(), "store.integrity", "{what}: {refused}");
        told
    };
    let whole = |at: usize, bytes: &[u8]| {
        let mut other = parts.clone();
        other[at] = bytes.to_vec();
        other
    };
    missing("no log", whole(1, b""));
    missing("half a log", whole(1, &parts[1][..parts[1].len() / 2]));
    missing("a log without its last bytes", whole(1, &parts[1][..parts[1].len() - 1]));
    let told = missing("an older log", whole(1, &old[1]));
    assert!(told.contains("newest 6 are missing"), "{told}");
    let told = missing("an older store", vec![old[0].clone(), old[1].clone(), parts[2].clone()]);
    assert!(told.contains("had 12 events when it was last written to, and has 6"), "{told}");
    // The same, once all that was older lies in the main file.
    made.put(&parts);
    move_log(&made.path());
    made.write(2);
    let (moved, truth) = (made.bytes(), made.verify().unwrap());
    let mixed = vec![old[0].clone(), moved[1].clone(), moved[2].clone()];
    made.put(&mixed);
    assert!(made.verify().is_err(), "an older main file under a newer log");
    let mixed = vec![moved[0].clone(), parts[1].clone(), moved[2].clone()];
    made.put(&mixed);
    assert!(made.verify().is_err(), "a log of another time");
    // What only SQLite needs can go.
    made.put(&moved);
    assert_eq!(made.verify(), Ok(truth));
    fs::write(made.part("-shm"), vec![0xAA; 32_768]).unwrap();
    assert_eq!(made.verify(), Ok(truth));
}

/// M3: a copy of the main file alone says so, and a copy that was made to be one file is complete.
#[test]
fn a_copy_of_the_main_file_alone_says_so() {
    let made = Made::new();
    made.write(4);
    let copy = made.folder.path().join("copy.db");
    // Before anything of it was moved into the main file there are not even tables.
    fs::copy(made.path(), &copy).unwrap();
    let told = verify(&copy).unwrap_err();
    assert!(told.contains("in a log that is missing"), "{told}");
    move_log(&made.path());
    made.write(2);
    fs::copy(made.path(), &copy).unwrap();
    let told = verify(&copy).unwrap_err();
    assert!(told.contains("without its log") && told.contains("the 4 events in it"), "{told}");
    // With its log it is what it was, though nothing says how many there were.
    fs::copy(made.part("-wal"), made.folder.path().join("copy.db-wal")).unwrap();
    assert_eq!(verify(&copy).unwrap().0, 6);
    let whole = made.folder.path().join("whole.db");
    Store::open_read_only(&made.path()).unwrap().copy_to(&whole).unwrap();
    assert_eq!(verify(&whole), made.verify());
    let names: Vec<_> =
        fs::read_dir(made.folder.path()).unwrap().map(|own| own.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("whole.db-")), "{names:?}");
}

/// A machine that stops loses what no commit waited for. That is told, and is no fault.
#[test]
fn a_power_cut_loses_only_what_was_not_yet_on_the_disk() {
    let made = Made::new();
    let store = Store::open(&made.path()).unwrap();
    let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
    let event = |call| Event::ApprovalCovered { call, by: 0 };
    writer.append(event(1), Durability::PowerSafe).unwrap();
    let synced = PARTS.map(|end| fs::read(made.part(end)).unwrap()).to_vec();
    writer.append(event(2), Durability::CrashSafe).unwrap();
    let log = fs::read(made.part("-wal")).unwrap();
    let note = fs::read_to_string(made.part(".head")).unwrap();
    drop(writer);
    let other_start = |note: &str| {
        let (rest, _) = note.trim_end().rsplit_once(' ').unwrap();
        format!("{rest} 00000000-0000-0000-0000-000000000000\n").into_bytes()
    };
    assert!(note.starts_with("00000000000000000002 "), "{note}");
    // The machine stopped, and the last commit was not on its disk.
    made.put(&[synced[0].clone(), synced[1].clone(), other_start(&note)]);
    // It is no run, so what counts is whether the note lets it pass.
    assert_eq!(Store::open_read_only(&made.path()).unwrap().missing().unwrap(), None);
    let mut store = Store::open(&made.path()).unwrap();
    store.write_unattached(said(9), 9).unwrap();
    let now = fs::read_to_string(made.part(".head")).unwrap();
    assert!(now.starts_with("00000000000000000002 ") && now != note, "{now}");
    drop(store);
    // Without what the disk had for sure.
    made.put(&[synced[0].clone(), log[..32].to_vec(), other_start(&note)]);
    assert!(Store::open(&made.path()).is_err());
}

/// Verification finds nothing to say while others write, begin logs anew and end.
#[test]
fn who_writes_meanwhile_is_not_taken_for_damage() {
    let made = Made::new();
    made.write(1);
    let path = made.path();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        write(&path, 15);
                    }
                })
            })
            .collect();
        let mut looks = 0;
        while !writers.iter().all(|own| own.is_finished()) {
            verify(&path).unwrap();
            looks += 1;
        }
        assert!(looks > 3, "{looks}");
    });
    assert_eq!(verify(&path).unwrap().0, 901);
    let note = fs::read_to_string(made.part(".head")).unwrap();
    assert!(note.starts_with("00000000000000000901 "), "{note}");
}

/// Twenty processes that come first at one time make one store.
#[test]
fn who_comes_first_at_one_time_makes_one_store() {
    for _ in 0..5 {
        let made = Made::new();
        let path = made.path();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| write(&path, 1));
            }
        });
        assert_eq!(verify(&path).unwrap().0, 20);
    }
}
