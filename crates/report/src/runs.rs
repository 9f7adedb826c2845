//! A list of runs.

use capsule_core::action::show_argv;
use capsule_core::escape;
use capsule_core::units::{counted, show_duration};
use capsule_store::{RunState, RunSummary};
use serde_json::{Value, json};

use crate::columns::{Layout, clip, pad, width};
use crate::summary::Summary;

fn word(run: &RunSummary) -> String {
    match run.state {
        RunState::Sealed(_) if run.suspended => "suspended".into(),
        RunState::Sealed(exit) => Summary::exit_word(exit).into(),
        RunState::Running => "running".into(),
        RunState::Crashed if run.unknown > 0 => "crashed, outcome unknown".into(),
        RunState::Crashed => "crashed".into(),
    }
}

/// A time in microseconds since 1970, to the minute.
#[must_use]
pub fn when(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros);
    let text = time.map(|time| time.to_string()).unwrap_or_default();
    // `2026-11-21T22:19`, with the zone that it is in.
    format!("{}Z", text.get(..16).unwrap_or("").replace('T', " "))
}

/// How much of a run's name is always shown.
const LEAST_NAME: usize = 40;

/// The lines of a list, the newest run first.
#[must_use]
pub fn run_list(runs: &[RunSummary], layout: Layout) -> Vec<String> {
    if runs.is_empty() {
        return vec!["no runs".into()];
    }
    let rows: Vec<[String; 6]> = runs.iter().map(row).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    rows.iter()
        .map(|row| {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, widest)| pad(cell, widest)).collect();
            let line = cells.join("  ");
            // A name that has no room is as long as a terminal makes it.
            let own = width(row.last().map_or("", String::as_str)).min(LEAST_NAME);
            let before: usize = widths.iter().take(5).map(|widest| widest + 2).sum();
            clip(line.trim_end(), layout.width.max(before + own))
        })
        .collect()
}

/// The cells of a run: its label, when it began, how it ended, its calls, how long it took, its name.
fn row(run: &RunSummary) -> [String; 6] {
    let took = run.ended.map(|ended| show_duration(ended.saturating_sub(run.started)));
    let mut calls = counted(run.calls, "call");
    if run.denied > 0 {
        calls.push_str(&format!(", {} denied", run.denied));
    }
    if run.asked > 0 {
        calls.push_str(&format!(", {} asked", run.asked));
    }
    let name = command(run).unwrap_or_else(|| run.name.clone());
    [
        run.label.clone(),
        when(run.started),
        word(run),
        calls,
        took.unwrap_or_default(),
        escape::line(&name).into_owned(),
    ]
}

/// The command line of a run that is one command.
fn command(run: &RunSummary) -> Option<String> {
    let args: Value = serde_json::from_str(run.command.as_deref()?).ok()?;
    if let Some(text) = args.get("command").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let argv = args.get("argv")?.as_array()?;
    let argv: Vec<String> = argv.iter().filter_map(|own| Some(own.as_str()?.to_owned())).collect();
    Some(show_argv(&argv))
}

/// The list as JSON.
#[must_use]
pub fn run_list_json(runs: &[RunSummary]) -> Value {
    runs.iter()
        .map(|run| {
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
                    RunState::Crashed => "crashed",
                },
                "exit": match run.state {
                    RunState::Sealed(exit) => Some(exit.status()),
                    RunState::Running | RunState::Crashed => None,
                },
                "calls": run.calls,
                "denied": run.denied,
                "approval_needed": run.asked,
                "unknown": run.unknown,
                "suspended": run.suspended,
            })
        })
        .collect()
}
