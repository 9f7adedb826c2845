//! `capsule changes`, `apply` and `discard`: what commands changed in a staged workspace, and what
//! becomes of it.

use std::rc::Rc;

use capsule_core::escape;
use capsule_core::exit::Exit;
use capsule_core::journal::RunKind;
use capsule_core::json;
use capsule_core::policy::APPLY;
use capsule_core::redact::Redactor;
use capsule_report::{change_count, change_lines};
use capsule_runtime::{Commands, Hush, Subject, Waiting};
use capsule_store::Store;
use serde_json::json;

use crate::args::{Changes, OneRun};
use crate::command::call::One;
use crate::command::open_store;
use crate::failure::Failure;
use crate::screen::{GOOD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;

/// Shows what a run changed.
pub(super) fn show(args: &Changes, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around)?;
    let (subject, label) = subject(&store, around, &args.run)?;
    if screen.json {
        let changes: Vec<_> = subject.changes.iter().collect();
        screen.say_json(&json!({
            "schema": 1,
            "run": subject.id,
            "staged": subject.is_staged,
            "changes": changes,
        }))?;
        return Ok(0);
    }
    if subject.changes.is_empty() {
        screen.say("the run changed nothing in a staged workspace")?;
        return Ok(0);
    }
    let redactor = Redactor::builtin();
    let staging = args.diff.then(|| subject.staging()).flatten();
    for change in subject.changes.iter() {
        screen.say_all(&change_lines([change]).collect::<Vec<_>>())?;
        let Some(diff) = staging.as_ref().and_then(|staging| staging.diff(change)) else {
            continue;
        };
        let mut masked = 0;
        let diff = escape::block(&redactor.text(&diff, &mut masked)).into_owned();
        screen.say_all(&diff.lines().map(|line| format!("  {line}")).collect::<Vec<_>>())?;
    }
    if !subject.is_staged {
        screen.complain("they were applied or discarded");
        return Ok(0);
    }
    let count = change_count(subject.changes.iter());
    let ways = ways(subject.changes.refused().is_some(), &label);
    screen.complain(&format!("{count} · {ways}"));
    Ok(0)
}

/// Takes over what a run changed.
pub(super) fn apply(args: &OneRun, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around)?;
    let (subject, label) = subject(&store, around, &args.run)?;
    drop(store);
    let law = subject.law()?;
    let changes: Vec<_> = subject.changes.iter().collect();
    let text = String::from_utf8_lossy(&json::canonical(&changes)).into_owned();
    let one = One {
        origin: RunKind::Apply,
        subject: Some(subject.id),
        tool: APPLY,
        args: json!({ "run": subject.id, "changes": text }),
        law: &law,
        commands: Commands::off(),
        sink: Rc::new(Hush),
        cancel: signal::cancel(),
        out: None,
    };
    let done = one.submit(around)?;
    if done.exit != Exit::Ok {
        let problem = done.delivered.problem.clone();
        if screen.json {
            screen.say_json(&done.delivered.to_json())?;
            return Ok(done.exit.status());
        }
        screen.complain(&format!("recorded as {0} · capsule show-run {0}:1", done.label));
        return Err(problem.map_or_else(|| Failure::Quiet(done.exit.status()), Failure::from));
    }
    subject.clear()?;
    if screen.json {
        screen.say_json(&done.delivered.to_json())?;
        return Ok(0);
    }
    screen.say_all(&change_lines(subject.changes.iter()).collect::<Vec<_>>())?;
    let changes = counted(subject.changes.len());
    screen.complain(&format!(
        "{GOOD}✔{GOOD:#} {changes} of {label} applied · recorded as {}",
        done.label
    ));
    Ok(0)
}

/// Drops what a run changed.
pub(super) fn discard(
    args: &OneRun,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (subject, label) = subject(&open_store(around)?, around, &args.run)?;
    subject.discard(&mut Store::open(&around.store)?)?;
    let changes = subject.changes.len();
    if screen.json {
        screen.say_json(&json!({ "run": subject.id, "discarded": changes }))?;
    } else {
        let changes = counted(changes);
        screen.complain(&format!("{GOOD}✔{GOOD:#} {changes} of {label} discarded"));
    }
    Ok(0)
}

fn subject(store: &Store, around: &Surroundings, run: &str) -> Result<(Subject, String), Failure> {
    let id = store.find(run)?;
    let subject = Subject::read(store, &around.store, &id)?;
    Ok((subject, store.label(&id)))
}

/// Says that a run has changes that wait for somebody.
pub(super) fn tell_staged(staged: Option<Waiting>, label: &str, screen: &Screen) {
    let Some(Waiting { paths, refused }) = staged else { return };
    let (changes, ways) = (counted(paths), ways(refused, label));
    screen.complain(&format!("{HINT}staged{HINT:#}: {changes} · capsule changes {label} · {ways}"));
}

/// What can become of changes.
fn ways(refused: bool, label: &str) -> String {
    match refused {
        true => format!("not to be applied · capsule discard {label}"),
        false => format!("capsule apply {label} · capsule discard {label}"),
    }
}

fn counted(changes: usize) -> String {
    format!("{changes} {}", if changes == 1 { "change" } else { "changes" })
}
