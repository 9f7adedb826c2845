//! Compares what a replay writes with what was recorded.

use capsule_core::action::ParsedUrl;
use capsule_core::journal::{CallDecided, CallFinished, CallProposed, CallStarted, Event};
use serde_json::Value;

use super::divergence::{Difference, Divergence, DivergenceCause};
use super::recording::Recording;

/// Compares what was recorded with what the replay would write in its place.
pub(super) fn compare_events(
    recording: &Recording,
    recorded: Option<&Event>,
    now: &Event,
) -> Divergence {
    let mut divergence = empty(recording, find_cause(recording, recorded, now));
    divergence.differences = differences(recording, recorded, now);
    if let Event::CallProposed(call) = now {
        divergence.step.clone_from(&call.step);
        divergence.nearest = nearest_call(recording, call);
    }
    if divergence.step.is_none() {
        divergence.step = match (now, recorded) {
            (Event::StepEnded(ended), _) => Some(ended.step.clone()),
            (Event::CallDecided(CallDecided { call, .. }), _)
            | (Event::CallStarted(CallStarted { call, .. }), _)
            | (Event::CallFinished(CallFinished { call, .. }), _) => step_of_call(recording, *call),
            (_, Some(Event::CallProposed(call))) => call.step.clone(),
            (_, Some(Event::StepEnded(ended))) => Some(ended.step.clone()),
            _ => None,
        };
    }
    divergence
}

/// The recording goes on where the replay ended.
pub(super) fn unconsumed(recording: &Recording) -> Divergence {
    empty(recording, DivergenceCause::MissingCall)
}

fn empty(recording: &Recording, cause: DivergenceCause) -> Divergence {
    Divergence {
        cause,
        step: None,
        location: None,
        // A call that was proposed and then differed was not served.
        served: recording.served,
        calls: u64::try_from(recording.calls().len()).unwrap_or(u64::MAX),
        differences: Vec::new(),
        nearest: None,
    }
}

/// The step that made a call.
fn step_of_call(recording: &Recording, call: u64) -> Option<String> {
    recording.calls().iter().find(|known| known.call == call)?.step.clone()
}

fn find_cause(recording: &Recording, recorded: Option<&Event>, now: &Event) -> DivergenceCause {
    let by_plan = |other| if recording.changed_plan { DivergenceCause::PlanChanged } else { other };
    match (recorded, now) {
        (Some(Event::CallProposed(then)), Event::CallProposed(call)) => {
            let same = then.tool == call.tool && then.step == call.step;
            by_plan(if same {
                DivergenceCause::ArgumentsChanged
            } else {
                DivergenceCause::OrderChanged
            })
        }
        (_, Event::CallProposed(_)) => by_plan(DivergenceCause::ExtraCall),
        (Some(Event::CallProposed(_)), _) => by_plan(DivergenceCause::MissingCall),
        (Some(Event::CallDecided(then)), Event::CallDecided(call)) => {
            let word = |decided: &CallDecided| {
                (
                    decided.decision,
                    decided.code,
                    decided.rule.clone(),
                    decided.at.clone(),
                    decided.risk,
                    decided.capabilities,
                )
            };
            // What was decided is the same and its bytes are not: no policy does that.
            let same = word(then) == word(call);
            if recording.same_engine && !same {
                DivergenceCause::PolicyChanged
            } else {
                default_cause(recording)
            }
        }
        (Some(Event::StepEnded(_)), Event::StepEnded(_)) => by_plan(default_cause(recording)),
        (Some(Event::RunSealed(_)), _) | (_, Event::RunSealed(_)) => {
            by_plan(default_cause(recording))
        }
        _ => default_cause(recording),
    }
}

fn default_cause(recording: &Recording) -> DivergenceCause {
    if recording.same_engine {
        DivergenceCause::EngineBug
    } else {
        DivergenceCause::ToolVersionChanged
    }
}

/// What differs, in words.
fn differences(recording: &Recording, recorded: Option<&Event>, now: &Event) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |what: &str, recorded: String, now: String| {
        if recorded != now {
            found.push(Difference { name: what.to_owned(), recorded, now });
        }
    };
    let nothing = || String::from("(nothing)");
    match (recorded, now) {
        (Some(Event::CallProposed(then)), Event::CallProposed(call)) => {
            compare("tool", then.tool.to_string(), call.tool.to_string());
            let name = |step: &Option<String>| step.clone().unwrap_or_else(nothing);
            compare("step", name(&then.step), name(&call.step));
            if then.args != call.args {
                let recorded = recording.payload(1, &then.args).unwrap_or_default();
                found.extend(json_differences("args", &recorded, recording.unmatched_payload()));
            }
        }
        (recorded, now) => {
            let then = recorded.map_or_else(nothing, |event| event.kind().to_owned());
            compare("event", then, now.kind().to_owned());
            if let (Some(Event::CallDecided(then)), Event::CallDecided(call)) = (recorded, now) {
                compare("decision", then.decision.to_string(), call.decision.to_string());
                compare("code", then.code.to_string(), call.code.to_string());
                let rule = |rule: &Option<String>| rule.clone().unwrap_or_else(nothing);
                compare("rule", rule(&then.rule), rule(&call.rule));
            }
            if let (Some(Event::StepEnded(then)), Event::StepEnded(ended)) = (recorded, now) {
                compare("step", then.step.clone(), ended.step.clone());
                compare("ending", serialized_word(&then.ending), serialized_word(&ended.ending));
                compare("goes on", then.goes_on.to_string(), ended.goes_on.to_string());
                if then.note != ended.note {
                    let recorded = then.note.and_then(|note| recording.payload(1, &note));
                    let now =
                        if ended.note.is_some() { recording.unmatched_payload() } else { &[] };
                    compare(
                        "note",
                        problem_message(&recorded.unwrap_or_default()),
                        problem_message(now),
                    );
                }
            }
            if let (Some(Event::RunSealed(then)), Event::RunSealed(sealed)) = (recorded, now) {
                compare("exit", then.exit.status().to_string(), sealed.exit.status().to_string());
                compare("calls", then.calls.to_string(), sealed.calls.to_string());
                if then.outputs != sealed.outputs {
                    let recorded = then.outputs.and_then(|output| recording.payload(1, &output));
                    let now =
                        if sealed.outputs.is_some() { recording.unmatched_payload() } else { &[] };
                    found.extend(json_differences("outputs", &recorded.unwrap_or_default(), now));
                }
            }
        }
    }
    found
}

/// The recorded call that comes nearest to one that was not recorded: the last of the same tool in
/// the same step, else the first of the same tool.
fn nearest_call(recording: &Recording, call: &CallProposed) -> Option<u64> {
    let mut same = recording.calls().iter().filter(|then| then.tool == call.tool);
    let near = same.clone().rfind(|then| then.step == call.step).or_else(|| same.next());
    near.map(|then| then.call)
}

/// A word of a closed list, as it is recorded.
fn serialized_word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a recorded problem says.
fn problem_message(bytes: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let message = problem.get("message").and_then(Value::as_str);
    message.map_or_else(|| "(nothing)".to_owned(), str::to_owned)
}

/// The parts of arguments or outputs that differ, one by one; of URLs the query by itself.
fn json_differences(of: &str, recorded: &[u8], now: &[u8]) -> Vec<Difference> {
    let read = |bytes| serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let (recorded, now): (Value, Value) = (read(recorded), read(now));
    let empty = serde_json::Map::new();
    let (then, call) = (recorded.as_object().unwrap_or(&empty), now.as_object().unwrap_or(&empty));
    let names: std::collections::BTreeSet<&String> = then.keys().chain(call.keys()).collect();
    let show = |value: Option<&Value>| match value {
        None => "(nothing)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    names
        .into_iter()
        .filter(|name| then.get(*name) != call.get(*name))
        .map(|name| {
            let (one, other) = (show(then.get(name)), show(call.get(name)));
            match (split_query(&one), split_query(&other)) {
                (Some((base, one)), Some((other_base, other))) if base == other_base => {
                    Difference { name: format!("{name}.query"), recorded: one, now: other }
                }
                _ => Difference { name: format!("{of}.{name}"), recorded: one, now: other },
            }
        })
        .collect()
}

fn split_query(url: &str) -> Option<(String, String)> {
    let target = capsule_core::action::UrlTarget::parse(url);
    let ParsedUrl::Url(address) = target.parsed else { return None };
    let (base, query) = address.as_str().split_once('?')?;
    Some((base.to_owned(), query.to_owned()))
}
