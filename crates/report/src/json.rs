//! A run as JSON, for programs: schema-versioned, in causal order, each record with its leaf and
//! the hash of that leaf, as the store has it.

use capsule_core::journal::leaf_hash;
use capsule_store::{Store, StoreError};
use serde_json::{Map, Value, json};

use crate::changes::change_json;
use crate::feedback::Feedback;
use crate::story::{Answer, CallStory, Resumed, Story, kept};

/// The version of this JSON.
const SCHEMA: u64 = 1;

/// One call.
#[must_use]
pub fn call(call: &CallStory) -> Value {
    let mut shown = plain(call);
    if let (Value::Object(map), Some(approval)) = (&mut shown, &call.approval) {
        map.insert("approval".into(), json!(approval));
    }
    shown
}

fn plain(call: &CallStory) -> Value {
    json!({
        "call": call.call,
        "step": call.step,
        "attempt": call.attempt,
        "tool": call.tool,
        "args": call.args,
        "tainted": call.tainted,
        "action": call.action,
        "facts": facts(call),
        "decision": call.decision,
        "status": match call.status() {
            _ if call.was_asked() => json!("approval_needed"),
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
        "direct": call.is_direct(),
        "undo": call.can_be_undone().then(|| call.covers()),
        "irreversible": call.is_irreversible(),
        "enforcement": call.finished.as_ref().map(|(_, finished)| &finished.enforcement),
        "masked": call.finished.as_ref().map(|(_, finished)| finished.masked),
    })
}

/// What was found out about a call. The walls stand there as such, or beside them why there are none.
fn facts(call: &CallStory) -> Value {
    let mut told = json!(call.facts);
    let walls = call.facts.as_ref().and_then(|facts| facts.walls.as_ref());
    if let (Some(map), Some(walls)) = (told.as_object_mut(), walls) {
        map.insert("walls".into(), json!(walls.as_ref().ok()));
        map.extend(walls.as_ref().err().map(|why| ("no_walls".to_owned(), json!(why))));
    }
    told
}

/// A run with everything that its events add up to, and the events themselves.
///
/// # Errors
/// When the store cannot be read.
pub fn run(store: &Store, id: &str) -> Result<Value, StoreError> {
    let mut story = Story::default();
    let mut records = Vec::new();
    store.visit::<StoreError>(id, |stored| {
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        story.see(stored.entry.at, &stored.entry.event, &kept(&payloads));
        records.push(json!({
            "leaf": stored.leaf,
            "hash": leaf_hash(&stored.bytes),
            "entry": stored.entry,
        }));
        Ok(())
    })?;
    let steps: Vec<Value> = story
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
                "call": story.call_of(step).map(|call| call.call),
            })
        })
        .collect();
    let calls: Vec<Value> = story.calls.iter().map(call).collect();
    let mut run = json!({
        "schema": SCHEMA,
        "run": id,
        "opened": story.header.as_ref().map(|header| json!({
            "at": header.at,
            "entry": header.opened,
        })),
        "calls": calls,
        "steps": steps,
        "outputs": story.sealed.as_ref().and_then(|end| end.outputs.clone()),
        "exit": story.sealed.as_ref().map(|end| end.sealed.exit.status()),
        "summary": story.summary(),
        "records": records,
    });
    if let (Some(Feedback { given, why }), Some(run)) = (&story.feedback, run.as_object_mut()) {
        let said = json!({ "call": given.call, "fault": given.fault, "why": why });
        run.insert("feedback".into(), said);
    }
    if let Some(run) = run.as_object_mut() {
        beyond(&story, run);
        if story.sealed.is_some()
            && let Some(note) = store.checkpoint_at(store.sealed_at(id)? + 1)?
        {
            run.insert("checkpoint".into(), json!(note.to_string()));
        }
    }
    Ok(run)
}

/// What only some runs have: that they wait, go on with another one, or answer one.
fn beyond(story: &Story, run: &mut Map<String, Value>) {
    if let Some(call) = story.sealed.as_ref().and_then(|end| end.sealed.suspended) {
        run.insert("suspended".into(), json!({ "call": call }));
    }
    if let Some(asked) = &story.plan {
        run.insert("plan_approval".into(), json!(asked));
    }
    if let Some(own) = &story.resumed {
        let Resumed { resumed, steps } = own;
        let said = json!({ "call": resumed.call, "answer": resumed.answer, "steps": steps });
        run.insert("resumed".into(), said);
    }
    if let Some(Answer { given, why }) = &story.answer {
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
