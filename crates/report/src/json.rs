//! A run as JSON, for programs: schema-versioned, in causal order, each record with its leaf and
//! the hash of that leaf, as the store has it.

use std::cell::RefCell;
use std::io;

use capsule_core::journal::Event;
use capsule_store::leaf_hash;
use capsule_store::{RunFilter, Store, StoreError, StoredEvent};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::call_view::CallView;
use crate::changes::change_json;
use crate::connections::ConnectionView;
use crate::feedback::FeedbackView;
use crate::payloads::{PayloadLookup, payload_json, payload_lookup};
use crate::run_view::{AnswerView, ResumedView, RunView};
use crate::runs::run_json;

/// The version of this JSON.
const SCHEMA: u64 = 1;

/// One call.
#[must_use]
pub fn call_json(call: &CallView) -> Value {
    let mut shown = call_fields(call);
    if let (Value::Object(map), Some(approval)) = (&mut shown, &call.approval) {
        map.insert("approval".into(), json!(approval));
    }
    shown
}

fn call_fields(call: &CallView) -> Value {
    json!({
        "call": call.call,
        "step": call.step,
        "attempt": call.attempt,
        "tool": call.tool,
        "args": call.args,
        "tainted": call.tainted,
        "action": call.action,
        "facts": facts_json(call),
        "decision": call.decision,
        "status": match call.status() {
            _ if call.lacked_approval() => json!("approval_needed"),
            Some(status) => json!(status),
            None if call.is_unknown() => json!("unknown"),
            None => Value::Null,
        },
        "ending": call.finished.as_ref().map(|(_, finished)| finished.ending),
        "proposed_at": call.proposed_at,
        "started_at": call.started.as_ref().map(|(at, _)| at),
        "finished_at": call.finished.as_ref().map(|(at, _)| at),
        "result": call.output,
        "problem": call.problem,
        "changes": call.changes.iter().map(|own| change_json(own, None)).collect::<Vec<_>>(),
        "connections": call.connections.iter().map(ConnectionView::to_json).collect::<Vec<_>>(),
        "direct": call.writes_directly(),
        "undo": call.can_be_undone().then(|| call.undo_coverage()),
        "irreversible": call.is_irreversible(),
        "enforcement": call.finished.as_ref().map(|(_, finished)| &finished.enforcement),
        "masked": call.finished.as_ref().map(|(_, finished)| finished.masked),
    })
}

/// What was found out about a call. The walls stand there as such, or beside them why there are none.
fn facts_json(call: &CallView) -> Value {
    let mut told = json!(call.facts);
    let status = call.facts.as_ref().and_then(|facts| facts.sandbox.as_ref());
    if let (Some(map), Some(status)) = (told.as_object_mut(), status) {
        map.insert("walls".into(), json!(status.as_ref().ok()));
        map.extend(status.as_ref().err().map(|why| ("no_walls".to_owned(), json!(why.reason()))));
    }
    told
}

/// Why a report could not be written.
#[derive(Debug)]
pub enum ReportError {
    /// The store cannot be read.
    Store(StoreError),
    /// What is written to takes no more.
    Write(io::Error),
}

impl From<StoreError> for ReportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<serde_json::Error> for ReportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.into())
    }
}

/// Writes runs as a list, the newest first, and no more than so many; gives whether there are older ones that
/// were not looked at. Memory does not grow with the list.
///
/// # Errors
/// When the store cannot be read, or the list cannot be written.
pub fn write_runs(
    out: impl io::Write,
    store: &Store,
    filter: &RunFilter,
    most: u64,
) -> Result<bool, ReportError> {
    let mut serializer = serde_json::Serializer::pretty(out);
    let mut list = serializer.serialize_seq(None)?;
    let mut left = most;
    let are_older = store.visit_runs(filter, |run| {
        left = left.saturating_sub(1);
        list.serialize_element(&run_json(&run))?;
        Ok::<_, ReportError>(left > 0)
    })?;
    SerializeSeq::end(list)?;
    Ok(are_older)
}

/// Writes a run with everything that its events add up to, the events themselves, and what else is known of it.
/// It is read three times, and memory does not grow with it: for what it comes to, which also compares all of
/// it with what was written; for its calls; and for its events.
///
/// # Errors
/// When the store cannot be read, or the report cannot be written.
pub fn write_run(
    out: impl io::Write,
    store: &Store,
    id: &str,
    more: Map<String, Value>,
) -> Result<(), ReportError> {
    let mut all = outline(store, id)?;
    all.extend(more);
    // In the order of their names, as all JSON of ours.
    let parts = [CALLS, CONVERSATION, RECORDS];
    let mut names: Vec<&str> = all.keys().map(String::as_str).chain(parts).collect();
    names.sort_unstable();
    let failed = RefCell::new(None);
    let visited = |visit: Visit| Visited { store, id, visit, failed: &failed };
    let mut serializer = serde_json::Serializer::pretty(out);
    let mut map = serializer.serialize_map(None)?;
    for name in names {
        let written = match all.get(name) {
            Some(value) => map.serialize_entry(name, value),
            None if name == CALLS => map.serialize_entry(name, &visited(Visit::Calls)),
            None if name == CONVERSATION => {
                map.serialize_entry(name, &visited(Visit::Conversation))
            }
            None => map.serialize_entry(name, &visited(Visit::Records)),
        };
        written.map_err(|error| failed.take().map_or_else(|| error.into(), ReportError::Store))?;
    }
    SerializeMap::end(map)?;
    Ok(())
}

/// The parts of a report that grow with its run.
const CALLS: &str = "calls";
const CONVERSATION: &str = "conversation";
const RECORDS: &str = "records";

/// What of a run is written while it is read.
#[derive(Clone, Copy)]
enum Visit {
    Calls,
    Conversation,
    Records,
}

/// A part of a run that is written while it is read.
struct Visited<'v> {
    store: &'v Store,
    id: &'v str,
    visit: Visit,
    /// Why the store could not be read.
    failed: &'v RefCell<Option<StoreError>>,
}

impl Serialize for Visited<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut view = RunView::default();
        let visited = self.store.visit::<Halted<S::Error>>(self.id, |stored| match self.visit {
            Visit::Records => {
                Ok(list.serialize_element(&record(&stored)).map_err(Halted::Write)?)
            }
            Visit::Conversation => {
                let payloads = self.store.payloads(stored.leaf, &stored.entry.event)?;
                let event = (stored.entry.at, &stored.entry.event);
                match speech_json(event, &payload_lookup(&payloads)) {
                    Some(speech) => list.serialize_element(&speech).map_err(Halted::Write),
                    None => Ok(()),
                }
            }
            Visit::Calls => {
                let payloads = self.store.payloads(stored.leaf, &stored.entry.event)?;
                view.apply_event(stored.entry.at, &stored.entry.event, &payload_lookup(&payloads));
                let over = if view.is_full() { view.take_over() } else { Vec::new() };
                let mut over = over.iter().map(call_json);
                over.try_for_each(|call| list.serialize_element(&call)).map_err(Halted::Write)
            }
        });
        match visited {
            Ok(()) => {}
            Err(Halted::Write(error)) => return Err(error),
            Err(Halted::Store(error)) => {
                let told = S::Error::custom(&error);
                *self.failed.borrow_mut() = Some(error);
                return Err(told);
            }
        }
        view.calls.iter().map(call_json).try_for_each(|call| list.serialize_element(&call))?;
        list.end()
    }
}

/// Why a part could not be written to its end.
enum Halted<E> {
    Store(StoreError),
    Write(E),
}

impl<E> From<StoreError> for Halted<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A message of the user or a model; none for other events.
fn speech_json((at, event): (u64, &Event), payloads: &PayloadLookup<'_>) -> Option<Value> {
    match event {
        Event::UserMessage { text } => {
            let text: Option<Value> = payload_json(payloads, Some(text));
            Some(json!({ "at": at, "by": "user", "text": text }))
        }
        Event::UserAnswered { text: exchange } => {
            let exchange: Option<Value> = payload_json(payloads, Some(exchange));
            let part = |name| exchange.as_ref().and_then(|exchange| exchange.get(name));
            Some(json!({
                "at": at,
                "by": "user",
                "question": part("question"),
                "choices": part("choices"),
                "text": part("answer"),
            }))
        }
        Event::ModelAnswered(answered) => {
            let answer: Option<Value> = payload_json(payloads, Some(&answered.answer));
            let part = |name| answer.as_ref().and_then(|answer| answer.get(name));
            Some(json!({
                "at": at,
                "by": "model",
                "turn": answered.turn,
                "text": part("text"),
                "calls": part("calls"),
                "problem": answer.as_ref().filter(|_| answered.code.is_some()),
                "input_tokens": answered.input_tokens,
                "output_tokens": answered.output_tokens,
            }))
        }
        _ => None,
    }
}

fn record(stored: &StoredEvent) -> Value {
    json!({ "leaf": stored.leaf, "hash": leaf_hash(&stored.bytes), "entry": stored.entry })
}

/// What the events of a run come to, all of it but its calls and the events.
fn outline(store: &Store, id: &str) -> Result<Map<String, Value>, StoreError> {
    let mut view = RunView::counting();
    store.visit::<StoreError>(id, |stored| {
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        view.apply_event(stored.entry.at, &stored.entry.event, &payload_lookup(&payloads));
        Ok(())
    })?;
    let steps: Vec<Value> = view
        .steps
        .iter()
        .map(|step| {
            json!({
                "number": step.number,
                "step": step.ended.step,
                "ending": step.ended.ending,
                "code": step.ended.code,
                "goes_on": step.ended.goes_on,
                "note": step.note,
                "call": step.call,
            })
        })
        .collect();
    let mut run = Map::new();
    let mut add = |name: &str, value: Value| drop(run.insert(name.to_owned(), value));
    add("schema", json!(SCHEMA));
    add("run", json!(id));
    let opened = view.header.as_ref();
    add("opened", json!(opened.map(|own| json!({ "at": own.at, "entry": own.opened }))));
    add("steps", json!(steps));
    add("outputs", json!(view.sealed.as_ref().and_then(|end| end.outputs.clone())));
    add("exit", json!(view.sealed.as_ref().map(|end| end.sealed.exit.status())));
    add("summary", json!(view.summary()));
    if let Some(FeedbackView { given, why }) = &view.feedback {
        add("feedback", json!({ "call": given.call, "fault": given.fault, "why": why }));
    }
    add_optional(&view, &mut run);
    if view.sealed.is_some()
        && let Some(note) = store.checkpoint_at(store.seal_leaf(id)? + 1)?
    {
        run.insert("checkpoint".into(), json!(note.to_string()));
    }
    Ok(run)
}

/// What only some runs have: that they wait, go on with another one, or answer one.
fn add_optional(view: &RunView, run: &mut Map<String, Value>) {
    if let Some(call) = view.sealed.as_ref().and_then(|end| end.sealed.suspended) {
        run.insert("suspended".into(), json!({ "call": call }));
    }
    if let Some(asked) = &view.plan {
        run.insert("plan_approval".into(), json!(asked));
    }
    if let Some(view) = &view.resumed {
        let ResumedView { resumed, steps } = view;
        let said = json!({ "call": resumed.call, "answer": resumed.answer, "steps": steps });
        run.insert("resumed".into(), said);
    }
    if let Some(AnswerView { given, why }) = &view.answer {
        run.insert(
            "answer".into(),
            json!({
                "call": given.call,
                "outcome": given.outcome,
                "scope": given.scope,
                "stops": given.stops,
                "why": why,
            }),
        );
    }
}
