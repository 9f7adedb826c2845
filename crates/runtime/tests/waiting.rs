//! Questions that wait, and the end of their time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::approval::{AnswerKind, GrantLifetime};
use capsule_core::call::ToolCall;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::{AnswerGiven, Event, RunKind};
use capsule_runtime::{
    AnnotationError, BoundPolicy, Cancel, CommandRunner, LiveRun, LiveRunOptions, NoPrompt,
    NullObserver, NullSink, PendingQuestion, PolicyLoadOptions, PolicySource, QuestionAnswer,
    QuestionState, ReplaySource, ResumeError, Resumption, replay, submit,
};
use capsule_store::{Store, StoreError};
use serde_json::json;
use tempfile::TempDir;

const POLICY: &str = "version: 1
name: waits
profile: later
profiles: { later: { decide: { fs.write: ask, \"*\": deny }, unattended: wait } }
sandbox: { workspace: direct }
tools: { fs.write: ask }
";

/// A call that waits.
struct Waits {
    folder: TempDir,
    run: String,
}

impl Waits {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("ws/docs")).unwrap();
        let file = folder.path().join("policy.yaml");
        fs::write(&file, POLICY).unwrap();
        let store = folder.path().join("store.db");
        let law = BoundPolicy::load(&PolicyLoadOptions {
            source: &PolicySource::File(file),
            workspace: Some(&folder.path().join("ws")),
            shell_cwd: None,
            cwd: folder.path(),
            home: Path::new("/home/nobody"),
            own_files: std::slice::from_ref(&store),
            user_layer: &folder.path().join("home/policy.yaml"),
            profile: None,
        })
        .unwrap();
        let mut silent = NullObserver;
        let mut live = LiveRun::open(LiveRunOptions {
            policy: &law,
            store: &store,
            kind: RunKind::Call,
            subject: None,
            name: "fs.write".into(),
            plan: None,
            steps: 0,
            inputs: json!({}),
            command_runner: CommandRunner::default(),
            capabilities: Capabilities::of(Capability::FsWrite),
            cancel: Cancel::default(),
            sink: Rc::new(NullSink),
            why_not_disposable: Box::new(|| Ok(())),
            is_isolated: || false,
            env: Box::new(|_| None),
            accepts_layer: false,
            is_gate: false,
            agent_host: None,
            for_agent: false,
            observer: &mut silent,
            prompt: Box::new(NoPrompt),
        })
        .unwrap();
        let args = json!({ "path": "docs/a.md", "content": "x" });
        let done = submit(&mut live.run, ToolCall::by_person("fs.write", args)).unwrap();
        assert_eq!(done.code(), Code::ApprovalWaiting);
        let run = live.id.to_string();
        live.finish(Exit::ApprovalNeeded, None, None).unwrap();
        Self { folder, run }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn store(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }

    fn pending(&self) -> PendingQuestion {
        PendingQuestion::of_run(&self.store(), &self.run).unwrap().pop().unwrap()
    }

    fn allow(&self, now: u64) -> Result<String, AnnotationError> {
        PendingQuestion::answer(
            self.store(),
            (&self.run, self.pending().call),
            &QuestionAnswer::Allow(GrantLifetime::Once),
            now,
        )
    }

    /// What was written about the question; each run of it replays.
    fn answers(&self) -> Vec<AnswerGiven> {
        let store = self.store();
        let mut all = Vec::new();
        let runs = store.runs_about(&self.run, RunKind::Answer).unwrap();
        for run in &runs {
            let take = |stored: capsule_store::StoredEvent| {
                if let Event::AnswerGiven(own) = stored.entry.event {
                    all.push(own);
                }
                Ok(())
            };
            store.visit::<StoreError>(run, take).unwrap();
        }
        assert!(store.verify(None).unwrap().is_ok());
        for run in &runs {
            let source = ReplaySource { store: self.store(), run, plan: None, keep_going: false };
            replay(source, &mut NullObserver).unwrap();
        }
        all
    }
}

#[track_caller]
fn is_late(error: &AnnotationError) {
    let AnnotationError::Problem(problem) = error else { panic!("{error:?}") };
    assert_eq!((problem.code, problem.code.exit()), (Code::ApprovalExpired, Exit::ApprovalNeeded));
}

/// F7: an answer that comes when the time is over is none: that is written down, once, and no clock that
/// goes back brings the question back.
#[test]
fn an_answer_may_come_too_late() {
    let waits = Waits::new();
    let own = waits.pending();
    assert_eq!(own.state(own.expires_at - 1), QuestionState::Waiting);
    assert_eq!(own.state(own.expires_at), QuestionState::Expired);
    for moment in [own.expires_at, own.expires_at + 1, own.expires_at - 1, own.asked_at] {
        is_late(&waits.allow(moment).unwrap_err());
        assert_eq!(waits.pending().state(own.asked_at), QuestionState::Expired);
    }
    let [given] = waits.answers().try_into().unwrap();
    assert_eq!((given.outcome, given.scope, given.stops), (AnswerKind::Expired, None, false));
    assert_eq!((given.call, given.card), (own.call, own.card.digest()));
}

/// A yes that nobody went on with in time has ended as well.
#[test]
fn a_yes_may_be_used_too_late() {
    let waits = Waits::new();
    let until = waits.pending().expires_at;
    waits.allow(until - 1).unwrap();
    for moment in [until, until - 1] {
        let late = Resumption::open(&waits.path(), &waits.run, moment).unwrap_err();
        let ResumeError::Annotation(late) = late else { panic!("{late:?}") };
        is_late(&late);
    }
    let outcomes: Vec<AnswerKind> = waits.answers().iter().map(|own| own.outcome).collect();
    assert_eq!(outcomes, [AnswerKind::Approved, AnswerKind::Expired]);
    assert!(!waits.folder.path().join("ws/docs/a.md").exists());
}
