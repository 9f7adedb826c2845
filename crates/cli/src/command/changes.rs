//! `capsule changes`, `apply` and `discard`: what commands changed in a staged workspace, and what
//! becomes of it.

use std::rc::Rc;

use capsule_core::change::{Change, FileState};
use capsule_core::escape;
use capsule_core::journal::RunKind;
use capsule_core::json;
use capsule_core::policy::APPLY_TOOL;
use capsule_core::units::counted;
use capsule_report::{change_count, change_json, change_lines};
use capsule_runtime::{Commands, Diffs, Hush, Subject, Variables, Waiting};
use capsule_store::{RunState, Store};
use serde_json::{Value, json};

use crate::args::{Apply, Changes, LayerArg, OneRun};
use crate::command::call::{One, one_run_json};
use crate::command::chosen::chosen;
use crate::command::{changed, means, open_store, waiting};
use crate::failure::Failure;
use crate::screen::{CARE, GOOD, HINT, Screen};
use crate::signal;
use crate::surroundings::Surroundings;

/// Shows what a run changed; without a run, what waits in the workspace.
pub(super) fn show(args: &Changes, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let Some(run) = &args.run else { return waiting::show(around, screen) };
    let store = open_store(around, screen)?;
    let (subject, label) = subject(&store, around, run)?;
    let made = waiting::Made::of(&store, around, &subject)?;
    let diffs = args.diff.then(|| diffs(&subject)).flatten();
    let diff = |change: &Change| diffs.as_ref()?.of(change);
    if screen.json {
        let changes = subject.changes.0.values();
        let changes = changes.map(|own| change_json(own, diff(own).map(|own| own.0)));
        screen.say_json(&told_json(&subject, &made, changes.collect()))?;
        return Ok(0);
    }
    for change in subject.changes.0.values() {
        screen.say_all(&change_lines([change]).collect::<Vec<_>>())?;
        if diffs.is_some() {
            screen.say_all(&diff_lines(change, diff(change)))?;
        }
    }
    match subject.is_staged {
        true => {
            let count = change_count(subject.changes.0.values());
            let ways = ways(&subject, &label);
            screen.complain(&format!("{count} · {ways}"));
        }
        false if subject.is_direct() => {
            screen.say("the run's commands changed the workspace itself; nothing was collected")?;
        }
        false if !subject.changes.0.is_empty() => {
            screen.complain(&changed::words(&subject.became));
        }
        false if made.changes.is_empty() => {
            screen.say("the run changed nothing in a staged workspace")?;
        }
        false => {
            screen.say_all(&change_lines(&made.changes).collect::<Vec<_>>())?;
            let count = change_count(&made.changes);
            screen.complain(&format!("{count} in the workspace itself · capsule undo {label}"));
        }
    }
    made.tell(screen)?;
    Ok(0)
}

fn told_json(subject: &Subject, made: &waiting::Made, changes: Vec<Value>) -> Value {
    let in_workspace = made.changes.iter().map(|own| change_json(own, None));
    json!({
        "schema": 1,
        "run": subject.id,
        "staged": subject.is_staged.then(|| staged_json(subject)),
        "direct": subject.is_direct(),
        "changes": changes,
        "in_workspace": in_workspace.collect::<Vec<_>>(),
        "uncommitted": made.uncommitted(),
    })
}

/// What shows the lines of a run's staged files.
pub(super) fn diffs(subject: &Subject) -> Option<Diffs> {
    let variables: Variables = Box::new(Surroundings::variable);
    subject.diffs(&variables)
}

/// The lines in which a file differs. What is not shown is told: it is applied with the rest.
pub(super) fn diff_lines(change: &Change, diff: Option<(String, u64)>) -> Vec<String> {
    let Some((diff, masked)) = diff else {
        let told = format!("  {CARE}not shown{CARE:#}: no text, too large, or another by now");
        let is_file = matches!(change.after, Some(FileState::File { .. }));
        return is_file.then_some(told).into_iter().collect();
    };
    let shown = escape::block(&diff).into_owned();
    let mut lines: Vec<String> = shown.lines().map(|line| format!("  {line}")).collect();
    if masked > 0 {
        lines.push(format!(
            "  {CARE}{masked} masked{CARE:#}: it looks like a secret; what stands there is applied, too"
        ));
    }
    lines
}

fn staged_json(subject: &Subject) -> Value {
    json!({
        "paths": subject.changes.0.len(),
        "refused": subject.changes.refused().is_some(),
        "asked": subject.changes.asked().next().is_some(),
        "cut_short": subject.cut_short(),
    })
}

/// Makes what a run changed in the workspace itself.
pub(super) fn apply(args: &Apply, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    let (subject, label) = subject(&store, around, &args.run)?;
    means(around, (&args.run, &label), subject.workspace())?;
    drop(store);
    subject.check_state()?;
    let (changes, left_out) = chosen(&subject, &label, args, screen)?;
    let law = subject.law(&changes)?;
    let text = String::from_utf8_lossy(&json::canonical(&changes)).into_owned();
    let mut asked = json!({ "run": subject.id, "changes": text });
    if let (Value::Object(map), true) = (&mut asked, subject.is_begun()) {
        map.insert("again".into(), "yes".into());
    }
    let one = One {
        name: APPLY_TOOL.to_owned(),
        origin: RunKind::Apply,
        subject: Some(subject.id),
        tool: APPLY_TOOL,
        args: asked,
        law: &law,
        commands: Commands::off(),
        sink: Rc::new(Hush),
        prompt: Box::new(capsule_runtime::Empty),
        cancel: signal::cancel(),
        out: None,
        with: None,
        layer: LayerArg { accept_layer: false },
    };
    let done = one.submit(around, Some(screen))?;
    let problem = done.delivered.problem.clone();
    if problem.is_none() {
        subject.clear()?;
    }
    if screen.json {
        screen.say_json(&one_run_json(&done))?;
        return Ok(done.exit.status());
    }
    if let Some(problem) = problem {
        screen.complain(&format!("recorded as {0} · capsule show-run {0}:1", done.label));
        return Err(problem.into());
    }
    screen.say_all(&change_lines(&changes).collect::<Vec<_>>())?;
    let changes = counted(changes.len(), "change");
    let made = done.delivered.value.as_ref().and_then(|own| own["applied"].as_u64());
    let applied = match made {
        Some(0) => "applied: all of them were in the workspace already",
        _ => "applied",
    };
    let left_out = match left_out.len() {
        0 => String::new(),
        left_out => format!(", {left_out} left out and dropped"),
    };
    screen.complain(&format!(
        "{GOOD}✔{GOOD:#} {changes} of {label} {applied}{left_out} · recorded as {} · capsule undo {label}",
        done.label
    ));
    Ok(done.exit.status())
}

/// Drops what a run changed.
pub(super) fn discard(
    args: &OneRun,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (subject, label) = subject(&open_store(around, screen)?, around, &args.run)?;
    means(around, (&args.run, &label), subject.workspace())?;
    let stay = subject.cut_short();
    subject.discard(&mut Store::open(&around.store)?)?;
    let changes = subject.changes.0.len();
    if screen.json {
        screen.say_json(
            &json!({ "schema": 1, "run": subject.id, "discarded": changes, "stay": stay }),
        )?;
    } else {
        let changes = counted(changes, "change");
        let stay = match stay {
            None => String::new(),
            Some(stay) => format!(
                "; an apply was cut short, and {stay} of them stay in the workspace · \
                 capsule undo {label} takes back what it left"
            ),
        };
        screen.complain(&format!("{GOOD}✔{GOOD:#} {changes} of {label} discarded{stay}"));
    }
    Ok(0)
}

fn subject(store: &Store, around: &Surroundings, run: &str) -> Result<(Subject, String), Failure> {
    let id = store.find(run)?;
    let subject = Subject::read(store, &around.store, &id)?;
    let label = store.label(&subject.id.to_string());
    Ok((subject, label))
}

/// Says that a run has changes that wait for somebody.
pub(super) fn tell_staged(staged: Option<Waiting>, label: &str, screen: &Screen) {
    let Some(Waiting { paths, refused, asked }) = staged else { return };
    let (mut changes, ways) = (counted(paths, "change"), ways_at_end(refused, label));
    if asked > 0 && !refused {
        changes.push_str(&format!(", {asked} asked about"));
    }
    screen.complain(&format!("{HINT}staged{HINT:#}: {changes} · capsule changes {label} · {ways}"));
}

/// Says that a run works in a copy of the workspace, and why.
pub(super) fn tell_copied(copied: Option<&str>, screen: &Screen) {
    if let Some(why) = copied {
        let told = "the workspace was copied, since no changes can be laid over it";
        screen.complain(&format!("{HINT}staged{HINT:#}: {told} ({why})"));
    }
}

/// What can become of the staged changes of a run.
pub(super) fn ways(subject: &Subject, label: &str) -> String {
    if let Some(applied) = subject.cut_short() {
        let all = counted(subject.changes.0.len(), "change");
        return format!(
            "an apply was cut short: {applied} of {all} {} in the workspace · \
             capsule apply {label} goes on with it · capsule undo {label} takes \
             back what it left · capsule discard {label}",
            if applied == 1 { "is" } else { "are" }
        );
    }
    match subject.state {
        RunState::Sealed(_) => ways_at_end(subject.changes.refused().is_some(), label),
        RunState::Running => "the run goes on; at its end they can be applied or discarded".into(),
        RunState::Crashed => format!(
            "the run crashed, so more may be staged than it recorded · capsule discard {label}"
        ),
    }
}

/// What can become of the changes of a run that came to its end.
fn ways_at_end(refused: bool, label: &str) -> String {
    match refused {
        true => format!("not to be applied as a whole · capsule discard {label}"),
        false => format!("capsule apply {label} · capsule discard {label}"),
    }
}
