//! A list of runs.

use capsule_base::escape;
use capsule_base::units::{counted, show_duration};
use capsule_command::argv::show_argv;
use capsule_core::journal::RunKind;
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
/// From how many columns on a run has one line of a window.
const WIDE_WINDOW: usize = 110;
/// How far the name of a run is indented that has a line of its own.
const NAME_INDENT: usize = 2;

/// The line of a run in a list, with the label of the run that it is about.
#[must_use]
pub fn run_line(run: &RunSummary, subject: Option<&str>, layout: Layout) -> String {
    let [state, calls, took] = outcome_texts(run);
    let columns = [
        pad(&run.label, 8),
        time_text(run.started),
        pad(&state, 15),
        pad(&calls, 17),
        pad(&took, 7),
    ]
    .join("  ");
    let name = name_text(run, subject);
    // A name that has no room is as long as a terminal makes it.
    let most = layout.width.max(width(&columns) + 2 + width(&name).min(LEAST_NAME));
    clip_escaped(format!("{columns}  {name}").trim_end(), most)
}

/// The same in a window of so many columns: its name has a line of its own in a narrow one.
#[must_use]
pub fn run_rows(run: &RunSummary, subject: Option<&str>, window: usize) -> Vec<String> {
    if window >= WIDE_WINDOW {
        return vec![run_line(run, subject, Layout { width: window, plain: false })];
    }
    let [state, calls, took] = outcome_texts(run);
    let head = [pad(&run.label, 8), time_text(run.started), state, calls, took].join("  ");
    let name = clip_escaped(&name_text(run, subject), window.saturating_sub(NAME_INDENT));
    vec![clip(head.trim_end(), window), format!("{:NAME_INDENT$}{name}", "")]
}

/// The state of a run, the number of its calls, and the time that it took.
fn outcome_texts(run: &RunSummary) -> [String; 3] {
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
    [state_text(run), calls, took.unwrap_or_default()]
}

/// The name of a run in one line: its command or call. A session has the name that somebody gave it, and its first one.
fn name_text(run: &RunSummary, subject: Option<&str>) -> String {
    let first = command(run).unwrap_or_else(|| call_text(run));
    let named = if has_generated_name(&run.name) { "session" } else { run.name.as_str() };
    let more = if run.calls > 1 { " …" } else { "" };
    let name = match (is_session(run), arguments(run)) {
        (false, _) => first,
        (true, None) => named.to_owned(),
        (true, Some(_)) => format!("{named} · {}{more}", first_line(&first)),
    };
    let name = match subject {
        Some(label) if run.name.starts_with("changes.") => format!("{name} of {label}"),
        _ => name,
    };
    escape::line(&first_line(&name)).into_owned()
}

fn is_session(run: &RunSummary) -> bool {
    run.kind == RunKind::Session.name()
}

/// Whether a session has a generated name: of a terminal, or of the moment in which it began.
fn has_generated_name(name: &str) -> bool {
    ["terminal:", "started:"].iter().any(|prefix| name.starts_with(prefix))
}

/// The first line of a text, with a sign that there are more.
fn first_line(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => text.to_owned(),
    }
}

/// A text cut to a number of columns, but not within a character that is written out, as `⟨U+202E⟩` is.
fn clip_escaped(text: &str, columns: usize) -> String {
    let clipped = clip(text, columns);
    match clipped.rfind('⟨') {
        Some(at)
            if clipped.len() != text.len()
                && !clipped.get(at..).unwrap_or_default().contains('⟩') =>
        {
            format!("{}…", clipped.get(..at).unwrap_or_default())
        }
        _ => clipped,
    }
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
    let name = if is_session(run) { "" } else { run.name.as_str() };
    format!("{name} {}", subjects.join(" in ")).trim().to_owned()
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
        "command": command(run).filter(|_| !is_session(run)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut_in_two() {
        assert_eq!(clip_escaped("ab⟨U+202E⟩cd", 20), "ab⟨U+202E⟩cd");
        assert_eq!(clip_escaped("ab⟨U+202E⟩cd", 11), "ab⟨U+202E⟩…");
        assert_eq!(clip_escaped("ab⟨U+202E⟩cd", 7), "ab…");
    }

    #[test]
    fn a_text_is_named_by_its_first_line() {
        assert_eq!(first_line("git commit -m 'one\n\ntwo'"), "git commit -m 'one …");
        assert_eq!(first_line(" ls \n"), "ls");
    }
}
