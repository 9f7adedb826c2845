//! What the stages write, in which order, and what happens when something goes wrong between them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::action::Facts;
use capsule_core::approval::NoApprover;
use capsule_core::call::ToolCall;
use capsule_core::journal::{
    Durability, EntryPosition, Event, Journal, PayloadClass, PayloadRef, commitment,
};
use capsule_core::lifecycle::{
    self, Cleared, FinishedCall, Judged, Operation, Permit, PreflightReport, RunningCall, SavedUndo,
};
use capsule_core::outcome::{CodedError, Outcome};
use capsule_core::policy::{BindRoots, Policy, Restrictions, Usage};
use capsule_policy::PolicyDraft;
use capsule_redact::Redactor;
use capsule_runtime::{CATALOGUE, describe};
use serde_json::{Value, json};

/// A journal in memory that can be full.
#[derive(Default)]
struct Memory {
    events: Vec<(&'static str, Durability)>,
    payloads: Vec<(PayloadClass, Vec<u8>)>,
    /// Writing this kind fails.
    full_at: Option<&'static str>,
    /// What was written and done, in its order.
    log: Log,
}

/// What happened, in its order.
type Log = Rc<RefCell<Vec<&'static str>>>;

#[derive(Debug, PartialEq)]
struct Full;

impl Journal for Memory {
    type Error = Full;

    fn put_payload(&mut self, class: PayloadClass, payload: &[u8]) -> Result<PayloadRef, Full> {
        self.payloads.push((class, payload.to_vec()));
        Ok(PayloadRef { commit: commitment(b"salt", payload), bytes: payload.len() as u64 })
    }

    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, Full> {
        Ok(Digest::of(raw))
    }

    fn event_count(&self) -> u64 {
        self.events.len() as u64
    }

    fn append(&mut self, event: Event, durability: Durability) -> Result<EntryPosition, Full> {
        if self.full_at == Some(event.kind()) {
            return Err(Full);
        }
        self.events.push((event.kind(), durability));
        self.log.borrow_mut().push(event.kind());
        let at = self.event_count();
        Ok(EntryPosition { seq: at, at })
    }

    fn flush_deferred(&mut self) -> Result<(), Full> {
        Ok(())
    }

    fn run_idle_work(&mut self) {
        self.log.borrow_mut().push("meanwhile");
    }
}

impl Memory {
    fn kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|(kind, _)| *kind).collect()
    }

    fn texts(&self) -> String {
        self.payloads.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect()
    }
}

/// Hands that say what they are told to, and count.
struct Hands {
    undo: Result<Option<SavedUndo>, CodedError>,
    act: fn() -> Outcome,
    log: Log,
}

impl Hands {
    fn new(act: fn() -> Outcome) -> Self {
        Self { undo: Ok(None), act, log: Log::default() }
    }
}

impl Operation for Hands {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.undo.clone()
    }

    fn prepare(&mut self, _: &Restrictions) {
        self.log.borrow_mut().push("ready");
    }

    fn start(&mut self, _: &Permit<'_>) {
        self.log.borrow_mut().push("begin");
    }

    fn run(self: Box<Self>, _permit: Permit<'_>) -> Outcome {
        self.log.borrow_mut().push("run");
        (self.act)()
    }
}

fn policy() -> Arc<Policy> {
    let text = "version: 1\ntools:\n  fs.read: allow\n  fs.write: allow\n";
    let (draft, _) = PolicyDraft::parse(text, "policy.yaml", "/home/ada", CATALOGUE).unwrap();
    let roots = BindRoots {
        workspace: "/home/ada/work".into(),
        runtime_files: Vec::new(),
        may_drop_base_rules: true,
        ..BindRoots::default()
    };
    Arc::new(draft.bind(&roots, "/home/ada", CATALOGUE).unwrap())
}

/// Takes a call as far as it gets.
fn cleared(tool: &str, args: &Value, hands: Hands, journal: &mut Memory) -> Option<Cleared> {
    let redactor = Redactor::builtin();
    let call = ToolCall::by_person(tool, args.clone());
    let proposed = lifecycle::propose(call, 1, &redactor, journal).unwrap();
    let action = describe(tool, args, 0).unwrap();
    let understanding =
        PreflightReport { action, facts: Facts::default(), operation: Box::new(hands) };
    let preflight = proposed.into_preflight(understanding);
    match preflight.judge(&policy(), &Usage::default(), &redactor, journal).unwrap() {
        Judged::Allowed(allowed) => Some(allowed.clear()),
        Judged::NeedsApproval(_) | Judged::Denied(_) => None,
    }
}

fn act(cleared: Cleared, journal: &mut Memory) -> Result<FinishedCall, Full> {
    let call = ToolCall::by_person("fs.read", json!({}));
    let approver = &mut NoApprover;
    let running = RunningCall { call: &call, policy: policy().digest(), approver };
    let redactor = Redactor::builtin();
    lifecycle::run(cleared, running, &redactor, journal, |permit, hands| hands.run(permit))
}

fn write() -> Value {
    json!({ "path": "a.txt", "content": "x" })
}

fn fine() -> Outcome {
    Outcome::failed(CodedError::new(Code::FileNotFound, "it went as it went"))
}

const NEVER: fn() -> Outcome = || panic!("it ran");

/// CAP-9, FR-4, II-2: every stage writes before the next begins; an intent to change something is
/// durable, and one that changes nothing need not be.
#[test]
fn stages_are_written_in_order() {
    for (tool, args, effects) in
        [("fs.write", write(), true), ("fs.read", json!({ "path": "a.txt" }), false)]
    {
        let mut journal = Memory::default();
        let hands = Hands::new(fine);
        let cleared = cleared(tool, &args, hands, &mut journal).unwrap();
        assert_eq!(journal.kinds(), ["call.proposed", "call.decided"]);
        let done = act(cleared, &mut journal).unwrap();
        assert_eq!(done.problem.unwrap().code, Code::FileNotFound);
        assert_eq!(
            journal.kinds(),
            ["call.proposed", "call.decided", "call.started", "call.finished"]
        );
        let sure: Vec<Durability> =
            journal.events.iter().map(|(_, durability)| *durability).collect();
        let (start, end) = match effects {
            true => (Durability::PowerSafe, Durability::CrashSafe),
            false => (Durability::CrashSafe, Durability::Deferred),
        };
        assert_eq!(sure, [Durability::CrashSafe, Durability::Deferred, start, end], "{tool}");
    }
}

/// What may run is made ready before anything more is written of it; it begins behind its written intent, and
/// what the journal has put off comes when it has begun.
#[test]
fn what_is_made_ready_begins_behind_its_intent() {
    let mut journal = Memory::default();
    let log = Rc::clone(&journal.log);
    let hands = Hands { log: Rc::clone(&log), ..Hands::new(fine) };
    let cleared = cleared("fs.write", &write(), hands, &mut journal).unwrap();
    act(cleared, &mut journal).unwrap();
    let ready = ["call.proposed", "ready", "call.decided", "call.started"];
    assert_eq!(
        *log.borrow(),
        [&ready[..], &["begin", "meanwhile", "run", "call.finished"]].concat()
    );
}

/// What is denied is not made ready, and what has no written intent does not begin.
#[test]
fn what_may_not_run_does_not_begin() {
    for (tool, args, full_at) in [
        ("shell.run", json!({ "argv": ["ls"] }), None),
        ("fs.write", write(), Some("call.started")),
    ] {
        let mut journal = Memory { full_at, ..Memory::default() };
        let log = Rc::clone(&journal.log);
        let hands = Hands { log: Rc::clone(&log), ..Hands::new(NEVER) };
        if let Some(cleared) = cleared(tool, &args, hands, &mut journal) {
            assert_eq!(act(cleared, &mut journal), Err(Full));
        }
        let made = if full_at.is_some() { &["ready"][..] } else { &[] };
        assert_eq!(*log.borrow(), [&["call.proposed"], made, &["call.decided"]].concat(), "{tool}");
    }
}

/// CAP-12: where the intent cannot be written, nothing runs.
#[test]
fn an_unwritten_intent_runs_nothing() {
    let mut journal = Memory { full_at: Some("call.started"), ..Memory::default() };
    let hands = Hands::new(NEVER);
    let cleared = cleared("fs.write", &write(), hands, &mut journal).unwrap();
    assert_eq!(act(cleared, &mut journal), Err(Full));
    assert_eq!(journal.kinds(), ["call.proposed", "call.decided"]);
}

/// A panic of a tool is an end that is written, and nobody takes it for a success.
#[test]
fn a_panic_is_written_down() {
    for (tool, args) in [("fs.write", write()), ("fs.read", json!({ "path": "a.txt" }))] {
        let mut journal = Memory::default();
        let hands = Hands::new(NEVER);
        let cleared = cleared(tool, &args, hands, &mut journal).unwrap();
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let ended = catch_unwind(AssertUnwindSafe(|| act(cleared, &mut journal)));
        std::panic::set_hook(quiet);
        assert!(ended.is_err(), "the panic goes on");
        assert_eq!(
            journal.events.last(),
            Some(&("call.finished", Durability::CrashSafe)),
            "{tool}"
        );
        assert!(journal.texts().contains(Code::EnginePanicked.slug()));
    }
}

/// APR-11: bytes that an undo needs are kept before the intent; where they cannot be, nothing runs.
#[test]
fn what_cannot_be_brought_back_does_not_run() {
    let mut journal = Memory::default();
    let problem = CodedError::new(Code::FileUndoTooLarge, "too large to be kept");
    let hands = Hands { undo: Err(problem), ..Hands::new(NEVER) };
    let refused = cleared("fs.write", &write(), hands, &mut journal).unwrap();
    let done = act(refused, &mut journal).unwrap();
    assert_eq!(done.problem.unwrap().code, Code::FileUndoTooLarge);
    assert_eq!(journal.kinds(), ["call.proposed", "call.decided", "call.finished"]);

    let mut journal = Memory::default();
    let kept = SavedUndo { record: b"before".to_vec(), coverage: None };
    let hands = Hands { undo: Ok(Some(kept)), ..Hands::new(fine) };
    let kept = cleared("fs.write", &write(), hands, &mut journal).unwrap();
    let _ = act(kept, &mut journal).unwrap();
    let undo = (PayloadClass::Undo, b"before".to_vec());
    assert!(journal.payloads.contains(&undo));
}

/// FR-2, FR-4, FR-3: without a rule there is no clearance, and the decision is written.
#[test]
fn what_is_denied_is_written_and_leads_nowhere() {
    let mut journal = Memory::default();
    let hands = Hands::new(NEVER);
    let args = json!({ "argv": ["ls"] });
    assert!(cleared("shell.run", &args, hands, &mut journal).is_none());
    assert_eq!(journal.kinds(), ["call.proposed", "call.decided"]);
}
