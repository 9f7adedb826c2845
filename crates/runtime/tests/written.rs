//! What of a run is on disk when it is seen: all that it led to by then, and never less than itself.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::RunKind;
use capsule_runtime::plan::{Plan, execute};
use capsule_runtime::{
    BoundPolicy, CATALOGUE, Cancel, CommandRunner, LiveRun, LiveRunOptions, NoPrompt, NullObserver,
    NullSink, Observer, OpenError, PolicyLoadOptions, PolicySource, WrittenEvent,
};
use capsule_store::Store;
use serde_json::{Map, json};

/// Looks into the store behind every event: whether it is there, and how many behind it are there already.
struct Looking {
    store: PathBuf,
    run: Option<String>,
    seen: Vec<(&'static str, Option<u64>)>,
}

impl Observer for Looking {
    fn on_event(&mut self, note: &WrittenEvent<'_>) {
        let store = Store::open_read_only(&self.store).unwrap();
        if self.run.is_none() {
            self.run = store.runs_with_prefix("r-").unwrap().pop();
        }
        let run = self.run.as_deref().unwrap_or_default();
        let is_there = |seq: &u64| store.event(run, *seq).unwrap().is_some();
        let behind = (note.seq + 1..).take_while(is_there).count();
        let found = is_there(&note.seq).then(|| u64::try_from(behind).unwrap());
        self.seen.push((note.event.kind(), found));
    }
}

const POLICY: &str = "\
version: 1
name: written
sandbox: { workspace: staged }
tools:
  fs.read: { paths: [\"**\"], decision: allow }
";

const PLAN: &str = "\
version: 1
name: two
steps:
  - { id: one, tool: fs.read, args: { path: a.txt } }
  - { id: two, tool: fs.read, args: { path: a.txt } }
";

/// The policy of a test, over a workspace with one file.
fn load(folder: &Path, policy: &str) -> BoundPolicy {
    let (store, root) = (folder.join("state/store.db"), folder.join("ws"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("a.txt"), "text").unwrap();
    std::fs::write(folder.join("policy.yaml"), policy).unwrap();
    let lookup = PolicyLoadOptions {
        source: &PolicySource::File(folder.join("policy.yaml")),
        workspace: Some(&root),
        shell_cwd: None,
        cwd: folder,
        home: Path::new("/home/nobody"),
        own_files: &[store],
        user_layer: &folder.join("home/policy.yaml"),
        profile: None,
    };
    BoundPolicy::load(&lookup).unwrap()
}

fn options<'s, 'o>(
    (policy, store): (&'s BoundPolicy, &'s Path),
    (kind, capability): (RunKind, Capability),
    observer: &'o mut dyn Observer,
) -> LiveRunOptions<'s, 'o> {
    LiveRunOptions {
        policy,
        store,
        kind,
        subject: None,
        name: "two".into(),
        plan: None,
        steps: 2,
        inputs: json!({}),
        command_runner: CommandRunner::default(),
        capabilities: Capabilities::of(capability),
        cancel: Cancel::default(),
        sink: Rc::new(NullSink),
        why_not_disposable: Box::new(|| Ok(())),
        is_isolated: || false,
        env: Box::new(|_| None),
        accepts_layer: false,
        is_gate: false,
        agent_host: None,
        for_agent: false,
        observer,
        prompt: Box::new(NoPrompt),
    }
}

/// Runs the plan in a run of this kind with a tool that is able to do so much, and gives each event with
/// what was there when it was seen.
fn ran(folder: &Path, origin: RunKind, capability: Capability) -> Vec<(&'static str, Option<u64>)> {
    let store = folder.join("state/store.db");
    let law = load(folder, POLICY);
    let mut looking = Looking { store: store.clone(), run: None, seen: Vec::new() };
    let mut live =
        LiveRun::open(options((&law, &store), (origin, capability), &mut looking)).unwrap();
    let plan = Plan::parse(PLAN, "two", CATALOGUE).unwrap();
    let executed = execute(&mut live.run, &plan, Map::new()).unwrap();
    assert_eq!(executed.exit, Exit::Ok);
    live.finish(executed.exit, None, None).unwrap();
    looking.seen
}

/// APR-10: a profile may want a machine apart; without one nothing begins.
#[test]
fn a_profile_that_wants_a_machine_apart_begins_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "\
profile: apart
profiles:
  apart: { decide: { \"*\": allow }, requires: { isolated: yes } }
";
    let law = load(folder.path(), &format!("{POLICY}{profile}"));
    let store = folder.path().join("state/store.db");
    let answers: [(bool, fn() -> bool); 2] = [(false, || false), (true, || true)];
    for (expected, is_isolated) in answers {
        let mut silent = NullObserver;
        let read = (RunKind::Call, Capability::FsRead);
        let options = options((&law, &store), read, &mut silent);
        match LiveRun::open(LiveRunOptions { is_isolated, ..options }) {
            Ok(live) => {
                assert!(expected);
                live.finish(Exit::Ok, None, None).unwrap();
            }
            Err(OpenError::Refused(problem)) => {
                assert!(!expected && !store.exists());
                assert_eq!(problem.code, Code::ProfileRequires);
                let text = format!("{problem:?}");
                assert!(text.contains("the profile `apart` wants a machine apart"), "{text}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_is_seen_is_on_record_with_what_it_has_led_to() {
    let folder = tempfile::tempdir().unwrap();
    // The beginning of a call is seen when it has begun, and its end then, too, or with the seal.
    let begun = [("call.proposed", Some(2)), ("call.decided", Some(1)), ("call.started", Some(0))];
    let ended = |behind| [("call.finished", Some(behind + 1)), ("step.ended", Some(behind))];
    let (opened, sealed) = ([("run.opened", Some(3))], [("run.sealed", Some(0))]);
    let expected = [&opened[..], &begun, &ended(3), &begun, &ended(1), &sealed].concat();
    assert_eq!(ran(folder.path(), RunKind::Call, Capability::FsRead), expected);
}

#[test]
fn the_record_knows_a_run_before_anything_is_laid_down_or_looked_at() {
    for (origin, capability) in
        [(RunKind::Plan, Capability::FsRead), (RunKind::Call, Capability::FsWrite)]
    {
        let folder = tempfile::tempdir().unwrap();
        let seen = ran(folder.path(), origin, capability);
        assert_eq!(seen[0], ("run.opened", Some(0)), "{origin:?}");
        assert_eq!(seen.last(), Some(&("run.sealed", Some(0))));
    }
}
