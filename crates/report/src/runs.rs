//! A list of runs.

use capsule_base::escape;
use capsule_base::units::{counted, show_duration};
use capsule_command::argv::show_argv;
use capsule_store::{RunState, RunSummary};
use serde_json::{Value, json};

use crate::columns::{Layout, clip, pad, width};
use crate::summary::Summary;

fn state_text(run: &RunSummary) -> String {
    match run.state {
        RunState::Sealed(_) if run.suspended => "suspended".into(),
        RunState::Sealed(exit) => Summary::exit_text(exit).into(),
        RunState::Running => "running".into(),
        RunState::Idle => "open".into(),
        RunState::Crashed => "crashed".into(),
    }
}

/// A time in microseconds since 1970, to the minute.
#[must_use]
pub fn time_text(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros);
    let text = time.map(|time| time.to_string()).unwrap_or_default();
    // `2026-11-21T22:19`, with the zone that it is in.
    format!("{}Z", text.get(..16).unwrap_or("").replace('T', " "))
}

/// How much of a run's name is always shown, in columns.
const LEAST_NAME: usize = 40;

/// The line of a run in a list.
#[must_use]
pub fn run_line(run: &RunSummary, layout: Layout) -> String {
    let took = run.ended.map(|ended| show_duration(ended.saturating_sub(run.started)));
    let mut calls = counted(run.calls, "call");
    if run.denied > 0 {
        calls.push_str(&format!(", {} denied", run.denied));
    }
    if run.asked > 0 {
        calls.push_str(&format!(", {} asked", run.asked));
    }
    if run.unknown > 0 && matches!(run.state, RunState::Crashed | RunState::Idle) {
        calls.push_str(&format!(", {} unknown", run.unknown));
    }
    let columns = [
        pad(&run.label, 8),
        time_text(run.started),
        pad(&state_text(run), 15),
        pad(&calls, 17),
        pad(&took.unwrap_or_default(), 7),
    ]
    .join("  ");
    let name = command(run).unwrap_or_else(|| call_text(run));
    let name = escape::line(&name);
    // A name that has no room is as long as a terminal makes it.
    let most = layout.width.max(width(&columns) + 2 + width(&name).min(LEAST_NAME));
    clip(format!("{columns}  {name}").trim_end(), most)
}

fn arguments(run: &RunSummary) -> Option<Value> {
    serde_json::from_str(run.arguments.as_deref()?).ok()
}

/// The arguments that say what a call is about.
const SUBJECTS: [&str; 7] = ["url", "question", "pattern", "name", "glob", "path", "paths"];

/// The name of a run with what its call is about, if it is one call.
fn call_text(run: &RunSummary) -> String {
    let args = arguments(run).unwrap_or_default();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(items.join(", "))
        }
        _ => None,
    };
    let subjects = SUBJECTS.iter().filter_map(|name| text(args.get(name)?));
    let subjects: Vec<String> = subjects.filter(|subject| !subject.is_empty()).collect();
    format!("{} {}", run.name, subjects.join(" in ")).trim_end().to_owned()
}

/// The command line of a run that is one command.
fn command(run: &RunSummary) -> Option<String> {
    let args = arguments(run)?;
    if let Some(text) = args.get("command").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let argv = args.get("argv")?.as_array()?;
    let argv: Vec<String> =
        argv.iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect();
    Some(show_argv(&argv))
}

/// A run of a list as JSON.
pub(crate) fn run_json(run: &RunSummary) -> Value {
    json!({
        "run": run.run,
        "label": run.label,
        "name": run.name,
        "command": command(run),
        "kind": run.kind,
        "subject": run.subject,
        "started_at": run.started,
        "ended_at": run.ended,
        "state": match run.state {
            RunState::Sealed(_) => "sealed",
            RunState::Running => "running",
            RunState::Idle => "open",
            RunState::Crashed => "crashed",
        },
        "exit": match run.state {
            RunState::Sealed(exit) => Some(exit.status()),
            RunState::Running | RunState::Idle | RunState::Crashed => None,
        },
        "calls": run.calls,
        "denied": run.denied,
        "approval_needed": run.asked,
        "unknown": run.unknown,
        "suspended": run.suspended,
    })
}
