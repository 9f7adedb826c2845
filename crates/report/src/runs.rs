//! A list of runs.

use capsule_core::escape;
use capsule_core::units::show_duration;
use capsule_store::{RunState, RunSummary};
use serde_json::{Value, json};

use crate::columns::{Layout, clip, pad};
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

/// The lines of a list, the newest run first.
#[must_use]
pub fn run_list(runs: &[RunSummary], layout: Layout) -> Vec<String> {
    if runs.is_empty() {
        return vec!["no runs".into()];
    }
    runs.iter()
        .map(|run| {
            let took = run
                .ended
                .map_or_else(String::new, |ended| show_duration(ended.saturating_sub(run.started)));
            let mut calls = format!("{} calls, {} denied", run.calls, run.denied);
            if run.asked > 0 {
                calls.push_str(&format!(", {} without approval", run.asked));
            }
            let line = format!(
                "{} {} {} {} {} {}",
                pad(&run.label, 8),
                when(run.started),
                pad(&word(run), 14),
                pad(&calls, 19),
                pad(&took, 8),
                escape::line(&run.name)
            );
            clip(line.trim_end(), layout.width.max(80))
        })
        .collect()
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
