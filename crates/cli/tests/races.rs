//! Somebody swaps what a path leads to while calls are judged and run: what is delivered or written
//! is what was judged, or nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capsule_testkit::Capsule;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

const SHORTEST_RACE: Duration = Duration::from_secs(3);
const LONGEST_RACE: Duration = Duration::from_secs(90);

/// Exchanges pairs of names without a pause, until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Swapper {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !seen.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
                swaps += 1;
                // Names rest for longer and shorter moments: a fault may need more than haste.
                let rest = Duration::from_micros(swaps * 37 % 150);
                let began = Instant::now();
                while began.elapsed() < rest {
                    std::hint::spin_loop();
                }
            }
            swaps
        });
        Self { stop, thread: Some(thread) }
    }

    fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let swaps = self.thread.take().unwrap().join().unwrap();
        assert!(swaps > 100, "only {swaps} swaps: nothing was raced");
    }
}

/// Runs the steps again and again for a while, and on until each of `outcomes` (a tool, a status) was seen
/// once: how often each comes up is a matter of luck and of how busy the machine is. Gives the calls of all
/// runs; panics when an outcome stays out for [`LONGEST_RACE`].
fn race(
    capsule: &Capsule,
    policy: &str,
    outcomes: &[(&str, &str)],
    steps: &dyn Fn(usize) -> String,
) -> Vec<Value> {
    let mut calls: Vec<Value> = Vec::new();
    let began = Instant::now();
    for round in 0.. {
        let mut plan = String::from("version: 1\nname: race\nsteps:\n");
        for step in 0..50 {
            plan.push_str(&steps(round * 50 + step));
        }
        let plan = capsule.write_plan(&plan);
        let ran = capsule.run(&["run", &plan, "--policy", policy, "--json"]);
        calls.extend(ran.json()["calls"].as_array().unwrap().iter().cloned());
        let unseen: Vec<_> = outcomes
            .iter()
            .filter(|(tool, status)| {
                !calls.iter().any(|call| call["tool"] == *tool && call["status"] == *status)
            })
            .collect();
        if began.elapsed() > SHORTEST_RACE && unseen.is_empty() {
            break;
        }
        assert!(began.elapsed() < LONGEST_RACE, "{unseen:?} not seen in {} calls", calls.len());
    }
    calls
}

fn step(tool: &str, args: &str) -> String {
    let mut line = String::new();
    writeln!(line, "- {{ tool: {tool}, args: {{ {args} }}, on_error: continue }}").unwrap();
    line
}

/// C4, CAP-8: a file or folder that is swapped for a link while it is read: the link's target is
/// closed, and is never delivered.
#[test]
fn a_swapped_link_is_never_read() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.read: { decision: allow, hidden: allow, paths: { allow: [\"**\"], deny: [\"closed/**\"] } }
  fs.list: { decision: allow, paths: [\"race/**\"] }
  fs.search: { decision: allow, paths: [\"race/**\"] }
",
    );
    let root = capsule.workspace();
    capsule.write_file(".env", "SECRET");
    capsule.write_file("closed/x", "SECRET");
    capsule.write_file("closed/SECRET-name", "x");
    capsule.write_file("race/f", "fine");
    capsule.write_file("race/d/x", "fine");
    symlink("../.env", root.join("race/link")).unwrap();
    symlink("../closed", root.join("race/folder")).unwrap();
    let pair = |one: &str, other: &str| (root.join(one), root.join(other));
    let swapper = Swapper::start(vec![pair("race/f", "race/link"), pair("race/d", "race/folder")]);
    let calls =
        race(&capsule, &policy, &[("fs.read", "ok"), ("fs.read", "denied")], &|n| match n % 12 {
            0..6 => step("fs.read", "path: race/f"),
            6..10 => step("fs.read", "path: race/d/x"),
            10 => step("fs.list", "path: race/d"),
            _ => step("fs.search", "path: race/d, name: \"*\""),
        });
    swapper.stop();
    let fine = calls.iter().any(|call| call["result"]["text"] == "fine");
    assert!(fine, "nothing delivered of {}", calls.len());
    let leaked: Vec<&Value> =
        calls.iter().filter(|call| call.to_string().contains("SECRET")).collect();
    assert!(leaked.is_empty(), "{} of {}: {:?}", leaked.len(), calls.len(), leaked.first());
}

/// C4, C5, CAP-5: a file or folder that is swapped for a link while it is written to: nothing is
/// changed or made where the link leads.
#[test]
fn a_swapped_link_is_never_written_through() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(
        "version: 1\ntools:\n  fs.write: { decision: allow, paths: [\"docs/**\"] }\n",
    );
    let root = capsule.workspace();
    capsule.write_file("guard", "orig");
    fs::create_dir(root.join("closed")).unwrap();
    capsule.write_file("docs/race/f", "fine");
    capsule.write_file("docs/race/d/x", "fine");
    symlink("../../guard", root.join("docs/race/link")).unwrap();
    symlink("../../closed", root.join("docs/race/folder")).unwrap();
    let pair = |one: &str, other: &str| {
        (root.join("docs/race").join(one), root.join("docs/race").join(other))
    };
    let swapper = Swapper::start(vec![pair("f", "link"), pair("d", "folder")]);
    race(&capsule, &policy, &[("fs.write", "ok"), ("fs.write", "denied")], &|n| match n % 4 {
        0 => step("fs.write", &format!("path: docs/race/f, content: other{n}")),
        1 => step("fs.write", "path: docs/race/f, content: other, mode: append"),
        2 => step("fs.write", &format!("path: docs/race/d/new{n}, content: other")),
        _ => step("fs.write", &format!("path: docs/race/d/in/new{n}, content: other")),
    });
    swapper.stop();
    assert_eq!(fs::read_to_string(root.join("guard")).unwrap(), "orig");
    let made: Vec<_> = fs::read_dir(root.join("closed")).unwrap().collect();
    assert!(made.is_empty(), "{made:?}");
    // Whichever of the two names it has at the end, the link is a link still.
    let links = ["f", "link", "d", "folder"].map(|name| root.join("docs/race").join(name));
    assert_eq!(links.iter().filter(|path| path.is_symlink()).count(), 2);
    let left = fs::read_dir(root.join("docs/race")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 4, "nothing is left beside the file: {left:?}");
}

/// C4, CAP-5: a file or folder that is swapped for a link while it is edited or deleted: what the link
/// leads to is neither changed nor told.
#[test]
fn a_swapped_link_is_never_edited_or_deleted_through() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let policy = capsule.write_policy(
        "version: 1
tools:
  fs.edit: { decision: allow, paths: [\"docs/**\"] }
  fs.delete: { decision: allow, paths: [\"docs/**\"] }
  fs.write: { decision: allow, paths: [\"docs/**\"] }
",
    );
    let root = capsule.workspace();
    capsule.write_file("guard", "SECRET a");
    capsule.write_file("closed/x", "SECRET a");
    capsule.write_file("closed/in/x", "SECRET a");
    capsule.write_file("docs/race/f", "fine a");
    capsule.write_file("docs/race/d/x", "fine a");
    symlink("../../guard", root.join("docs/race/link")).unwrap();
    symlink("../../closed", root.join("docs/race/folder")).unwrap();
    let pair = |one: &str, other: &str| {
        (root.join("docs/race").join(one), root.join("docs/race").join(other))
    };
    let swapper = Swapper::start(vec![pair("f", "link"), pair("d", "folder")]);
    let outcomes = [("fs.edit", "ok"), ("fs.edit", "denied"), ("fs.delete", "ok")];
    let calls = race(&capsule, &policy, &outcomes, &|n| match n % 6 {
        0 => step("fs.edit", "path: docs/race/f, search: fine, replace: fine b"),
        1 => step("fs.edit", "path: docs/race/f, search: nothing like it, replace: x"),
        2 => step("fs.edit", "path: docs/race/d/x, search: SECRET, replace: x"),
        3 => step("fs.write", "path: docs/race/d/x, content: fine a"),
        4 => step("fs.delete", "path: docs/race/d/x"),
        _ => step("fs.delete", "path: docs/race/d/in, recursive: true"),
    });
    swapper.stop();
    for path in ["guard", "closed/x", "closed/in/x"] {
        assert_eq!(fs::read_to_string(root.join(path)).unwrap(), "SECRET a", "{path}");
    }
    let results = calls.iter().map(|call| call["result"].to_string());
    let leaked: Vec<String> = results.filter(|result| result.contains("SECRET")).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    let left = fs::read_dir(root.join("docs/race")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 4, "nothing is left beside: {left:?}");
}
