//! Somebody who answers cards by a script, in a workspace with a store beside it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "tests fail by panics; each of them uses a part of this"
)]

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::approval::{AnswerSurface, Card, GrantLifetime, Person};
use capsule_core::call::ToolCall;
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::journal::{Event, RunKind};
use capsule_runtime::plan::{Plan, execute};
use capsule_runtime::{
    BoundPolicy, CATALOGUE, CallResult, Cancel, CommandRunner, LiveRun, LiveRunOptions,
    NullObserver, NullSink, PolicyLoadOptions, PolicySource, Prompt, PromptAnswer, PromptReply,
    ReplayError, ReplaySource, replay, submit,
};
use capsule_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a person does when they see a card.
pub(crate) type Act = Box<dyn FnMut(&Card) -> PromptAnswer>;

/// Somebody who does as the script says, and keeps the cards.
pub(crate) struct Scripted {
    acts: Rc<RefCell<Vec<Act>>>,
    seen: Rc<RefCell<Vec<Card>>>,
}

impl Prompt for Scripted {
    fn is_attended(&mut self) -> bool {
        !self.acts.borrow().is_empty()
    }

    fn show(&mut self, card: &Card) -> PromptReply {
        self.seen.borrow_mut().push(card.clone());
        let mut act = self.acts.borrow_mut().remove(0);
        PromptReply { answer: act(card), latency_ms: 1_234, surface: AnswerSurface::Terminal }
    }
}

/// A workspace with a store beside it.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    policy: String,
}

impl Place {
    pub(crate) fn with(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        for name in ["docs", "each", "no"] {
            fs::create_dir(folder.path().join("ws").join(name)).unwrap();
        }
        fs::write(folder.path().join("policy.yaml"), policy).unwrap();
        Self { folder, policy: policy.to_owned() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("ws").join(name)
    }

    /// Makes calls with a person who acts so, one act a card.
    pub(crate) fn run(&self, acts: Vec<Act>, calls: &[(&str, Value)]) -> Done {
        self.live(acts, None, |live| {
            let call = |(tool, args): &(&str, Value)| {
                submit(&mut live.run, ToolCall::by_person(tool, args.clone())).unwrap()
            };
            let delivered: Vec<CallResult> = calls.iter().map(call).collect();
            (delivered[0].exit(), delivered)
        })
    }

    /// Runs a plan with such a person.
    pub(crate) fn plan(&self, acts: Vec<Act>, text: &str) -> Done {
        let plan = Plan::parse(text, "plan", CATALOGUE).unwrap();
        self.live(acts, Some(text), |live| {
            let inputs = serde_json::Map::new();
            (execute(&mut live.run, &plan, inputs).unwrap().exit, Vec::new())
        })
    }

    fn live(
        &self,
        acts: Vec<Act>,
        plan: Option<&str>,
        act: impl FnOnce(&mut LiveRun<'_>) -> (Exit, Vec<CallResult>),
    ) -> Done {
        assert!(self.policy.contains("workspace: direct"));
        let file = self.folder.path().join("policy.yaml");
        let lookup = PolicyLoadOptions {
            source: &PolicySource::File(file),
            workspace: Some(&self.folder.path().join("ws")),
            shell_cwd: None,
            cwd: self.folder.path(),
            home: Path::new("/home/nobody"),
            own_files: &[self.store()],
            user_layer: &self.folder.path().join("home/policy.yaml"),
            profile: None,
        };
        let law = BoundPolicy::load(&lookup).unwrap();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let acts = Rc::new(RefCell::new(acts));
        let mut silent = NullObserver;
        let mut live = LiveRun::open(LiveRunOptions {
            policy: &law,
            store: &self.store(),
            kind: if plan.is_some() { RunKind::Plan } else { RunKind::Call },
            subject: None,
            name: "test".into(),
            plan: plan.map(|text| ("plan.yaml", text)),
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
            prompt: Box::new(Scripted { acts: Rc::clone(&acts), seen: Rc::clone(&seen) }),
        })
        .unwrap();
        let (exit, delivered) = act(&mut live);
        let id = live.id.to_string();
        live.finish(exit, None, None).unwrap();
        let cards = seen.borrow().clone();
        Done { delivered, cards, id, exit, store: self.store(), left: acts.borrow().len() }
    }
}

/// What came of it.
pub(crate) struct Done {
    pub(crate) delivered: Vec<CallResult>,
    pub(crate) cards: Vec<Card>,
    pub(crate) id: String,
    pub(crate) store: PathBuf,
    /// How the run ended.
    pub(crate) exit: Exit,
    /// Acts that no card asked for.
    pub(crate) left: usize,
}

impl Done {
    pub(crate) fn code(&self, at: usize) -> Code {
        self.delivered[at].code()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let store = Store::open_read_only(&self.store).unwrap();
        let mut events = Vec::new();
        store
            .visit::<capsule_store::StoreError>(&self.id, |stored| {
                events.push(stored.entry.event);
                Ok(())
            })
            .unwrap();
        events
    }

    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events().iter().map(Event::kind).collect()
    }

    /// A run of one call replays to the same bytes, and asks nobody.
    pub(crate) fn replays(&self) {
        let store = Store::open_read_only(&self.store).unwrap();
        let source = ReplaySource { store, run: &self.id, plan: None, keep_going: false };
        let replayed = replay(source, &mut NullObserver);
        if let Err(ReplayError::Diverged(met)) = &replayed {
            panic!("{met:#?}");
        }
        replayed.unwrap();
    }
}

pub(crate) fn write(path: &str) -> (&'static str, Value) {
    ("fs.write", json!({ "path": path, "content": "new\n", "mode": "overwrite" }))
}

pub(crate) fn yes() -> Act {
    Box::new(|_| PromptAnswer::Allow(Person::present(), None))
}

/// Takes the first offer that holds so long.
pub(crate) fn offer(scope: GrantLifetime) -> Act {
    Box::new(move |card| {
        let at = card.offers.iter().position(|offer| offer.scope == scope);
        PromptAnswer::Allow(Person::present(), Some(at.unwrap()))
    })
}
