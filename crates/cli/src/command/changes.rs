//! `capsule changes`, `apply` and `discard`: what commands changed in a staged workspace, and what
//! becomes of it.

use std::collections::BTreeSet;
use std::rc::Rc;

use capsule_base::escape;
use capsule_base::exit::Exit;
use capsule_base::json;
use capsule_base::units::counted;
use capsule_core::call::Origin;
use capsule_core::change::Change;
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::APPLY_TOOL;
use capsule_report::{change_count, change_json, change_lines};
use capsule_runtime::{Cancel, CommandRunner, HeldSession, NullSink, SplitRepositories, StagedRun};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::{Apply, Changes, LayerArg, OneRun};
use crate::command::chosen::chosen;
use crate::command::single_call::{SingleCall, SingleCallResult, call_json};
use crate::command::staged_changes::{diff_lines, next_steps, open_diffs, status_text};
use crate::command::{open_store, pending, require_workspace};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{SUCCESS, Screen, WARNING, problem_text};
use crate::signal;

/// Shows what a run changed; without a run, what waits in the workspace.
pub(super) fn show(args: &Changes, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let Some(run) = &args.run else { return pending::show(ctx, screen) };
    let store = open_store(ctx, screen)?;
    let (subject, label) = find_run(&store, ctx, run)?;
    let made = pending::DirectChanges::find(&store, ctx, &subject)?;
    let diffs = args.diff.then(|| open_diffs(&subject)).flatten();
    let diff = |change: &Change| diffs.as_ref()?.diff(change);
    if screen.json {
        let changes = subject.changes.0.values();
        let changes = changes.map(|change| change_json(change, diff(change).map(|item| item.0)));
        screen.print_json(&changes_json(&subject, &made, changes.collect()))?;
        return Ok(0);
    }
    for change in subject.changes.0.values() {
        screen.print_lines(&change_lines([change]).collect::<Vec<_>>())?;
        if diffs.is_some() {
            screen.print_lines(&diff_lines(change, diff(change)))?;
        }
    }
    match subject.is_staged {
        true => {
            let count = change_count(subject.changes.0.values());
            let ways = next_steps(&subject, &label);
            screen.eprint(&format!("{count} · {ways}"));
        }
        false if subject.writes_directly() => {
            screen.print_line(
                "the run's commands changed the workspace itself; nothing was collected",
            )?;
        }
        false if !subject.changes.0.is_empty() => {
            screen.eprint(&status_text(&subject.status));
        }
        false if made.changes.is_empty() => {
            screen.print_line("the run changed nothing in a staged workspace")?;
        }
        false => {
            screen.print_lines(&change_lines(&made.changes).collect::<Vec<_>>())?;
            let count = change_count(&made.changes);
            screen.eprint(&format!("{count} in the workspace itself · capsule undo {label}"));
        }
    }
    made.show(screen)?;
    Ok(0)
}

fn changes_json(subject: &StagedRun, made: &pending::DirectChanges, changes: Vec<Value>) -> Value {
    let in_workspace = made.changes.iter().map(|change| change_json(change, None));
    json!({
        "schema": 1,
        "run": subject.id,
        "staged": subject.is_staged.then(|| staged_json(subject)),
        "direct": subject.writes_directly(),
        "changes": changes,
        "in_workspace": in_workspace.collect::<Vec<_>>(),
        "uncommitted": made.uncommitted(),
    })
}

fn staged_json(subject: &StagedRun) -> Value {
    json!({
        "paths": subject.changes.0.len(),
        "refused": subject.changes.refused().is_some(),
        "asked": subject.changes.asked().next().is_some(),
        "cut_short": subject.cut_short(),
    })
}

/// The run whose changes are applied or discarded, and its label; of a session that goes on, no call can change
/// anything meanwhile.
fn take_subject(
    run: &str,
    (ctx, cancel): (&CliContext, &Cancel),
    screen: &Screen,
) -> Result<(StagedRun, String, Option<HeldSession>), Failure> {
    let store = open_store(ctx, screen)?;
    let (subject, label) = find_run(&store, ctx, run)?;
    require_workspace(ctx, (run, &label), subject.workspace())?;
    if !subject.is_open_session() {
        return Ok((subject, label, None));
    }
    let id = subject.id.to_string();
    let session = HeldSession::take(&ctx.store, &id, cancel)?;
    // Another process may have worked in it meanwhile.
    let subject = StagedRun::read(&store, &ctx.store, &id)?;
    Ok((subject, label, Some(session)))
}

/// Makes what a run changed in the workspace itself, or what every run did.
pub(super) fn apply(args: &Apply, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let cancel = signal::cancel_on_signal();
    let Some(run) = &args.run else { return apply_all(args, (ctx, &cancel), screen) };
    let done = apply_run((run, args), (ctx, &cancel), screen)?;
    if screen.json {
        screen.print_json(&call_json(&done))?;
    }
    Ok(done.exit.status())
}

/// Applies what waits of every run of the workspace, the oldest first. One that cannot be applied does not keep the
/// others, and the first such one is the exit.
fn apply_all(
    args: &Apply,
    (ctx, cancel): (&CliContext, &Cancel),
    screen: &Screen,
) -> Result<u8, Failure> {
    let (_, waiting) = pending::waiting_runs(ctx, screen)?;
    let (mut exits, mut results) = (Vec::new(), Vec::new());
    for (run, label) in &waiting {
        if cancel.is_set() {
            break;
        }
        match apply_run((&run.run, args), (ctx, cancel), screen) {
            Ok(done) => {
                exits.push(done.exit.status());
                results.push(json!({ "of": label, "result": call_json(&done) }));
            }
            Err(failure) => {
                exits.push(failure.exit());
                results.push(json!({ "of": label, "result": failure.to_json() }));
                if !screen.json {
                    screen.eprint(&format!("{WARNING}{label} is not applied{WARNING:#}"));
                    failure.show(screen);
                }
            }
        }
    }
    let failed = exits.iter().filter(|exit| **exit != 0).count();
    if screen.json {
        screen.print_json(&json!({ "schema": 1, "runs": results }))?;
    } else if waiting.is_empty() {
        screen.eprint("nothing waits in this workspace");
    } else if waiting.len() > 1 {
        let applied = exits.len() - failed;
        screen.eprint(&format!("{applied} of {} applied", counted(waiting.len(), "run")));
    }
    Ok(exits.into_iter().find(|exit| *exit != 0).unwrap_or(0))
}

/// Makes what a run changed in the workspace itself, and says so.
fn apply_run(
    (run, args): (&str, &Apply),
    (ctx, cancel): (&CliContext, &Cancel),
    screen: &Screen,
) -> Result<SingleCallResult, Failure> {
    let (subject, label, mut session) = take_subject(run, (ctx, cancel), screen)?;
    subject.check_state()?;
    let (changes, left_out) = chosen(&subject, &label, args, screen)?;
    let place = (ctx, cancel.clone());
    let done = apply_changes((&subject, &changes), session.as_mut(), place, screen)?;
    if screen.json {
        return Ok(done);
    }
    let problem = done.delivered.problem.clone();
    if let Some(problem) = problem {
        screen.eprint(&format!("recorded as {0} · capsule show-run {0}:1", done.label));
        return Err(problem.into());
    }
    screen.print_lines(&change_lines(&changes).collect::<Vec<_>>())?;
    let changes = counted(changes.len(), "change");
    let made = done.delivered.value.as_ref().and_then(|value| value["applied"].as_u64());
    let applied = match made {
        Some(0) => "applied: all of them were in the workspace already",
        _ => "applied",
    };
    let left_out = match left_out.len() {
        0 => String::new(),
        left_out => format!(", {left_out} left out and dropped"),
    };
    screen.eprint(&format!(
        "{SUCCESS}✔{SUCCESS:#} {changes} of {label} {applied}{left_out} · recorded as {} · capsule undo {label}",
        done.label
    ));
    Ok(done)
}

/// Makes some changes of a run in the workspace, and drops the others.
fn apply_changes(
    (subject, changes): (&StagedRun, &Vec<Change>),
    session: Option<&mut HeldSession>,
    (ctx, cancel): (&CliContext, Cancel),
    screen: &Screen,
) -> Result<SingleCallResult, Failure> {
    let bound = subject.bound_policy(changes)?;
    let text = String::from_utf8_lossy(&json::canonical(changes)).into_owned();
    let mut asked = json!({ "run": subject.id, "changes": text });
    if let (Value::Object(map), true) = (&mut asked, subject.apply_started()) {
        map.insert("again".into(), "yes".into());
    }
    let one = SingleCall {
        name: APPLY_TOOL.to_owned(),
        kind: RunKind::Apply,
        subject: Some(subject.id),
        tool: APPLY_TOOL,
        args: asked,
        policy: &bound,
        command_runner: CommandRunner::disabled(),
        sink: Rc::new(NullSink),
        prompt: Box::new(capsule_runtime::NoPrompt),
        cancel,
        out: None,
        origin: Origin::Person,
        resumption: None,
        session: None,
        layer: LayerArg { accept_layer: false },
    };
    let done = one.submit(ctx, Some(screen))?;
    match session {
        _ if done.delivered.problem.is_some() => {}
        Some(session) => session.release_changes(Some(done.run))?,
        None => subject.remove_applied()?,
    }
    Ok(done)
}

/// The fate of the changes of an agent's call.
#[derive(Debug)]
pub(crate) struct SettledChanges {
    /// The changes that were dropped, and why: refused, asked about, or in one repository with such a change.
    pub(crate) dropped: Vec<Dropped>,
    /// Why the others were dropped too, if they were.
    pub(crate) problem: Option<CodedError>,
    /// How many of those others are in the workspace nevertheless.
    pub(crate) stay: usize,
}

/// A path of which the changes were dropped.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) path: String,
    pub(crate) why: String,
}

impl Dropped {
    /// The path and the reason, which may begin with the path.
    pub(crate) fn text(&self) -> String {
        let Self { path, why } = self;
        match why.starts_with('`') {
            true => why.clone(),
            false => format!("`{path}`: {why}"),
        }
    }

    /// Each that is refused or asked about, once for each reason that names what it is about; and each repository as
    /// one, of which other changes are dropped with them.
    fn list(changes: &[Change], split: &SplitRepositories) -> Vec<Self> {
        let mut all = Vec::new();
        for directory in split.directories() {
            let inside = |change: &&Change| split.holding(&change.path) == Some(directory);
            let count = counted(changes.iter().filter(inside).count(), "change");
            let first = changes
                .iter()
                .filter(inside)
                .find(|change| change.path.starts_with(directory) && reason(change).is_some());
            let Some((first, why)) = first.and_then(|first| Some((first, reason(first)?))) else {
                continue;
            };
            let why = format!(
                "{count} of it and of its files are dropped together, since with a part of them git could neither go \
                 on nor go back; `{}`: {why}",
                first.path
            );
            all.push(Self { path: directory.to_owned(), why });
        }
        let mut told = BTreeSet::new();
        for change in changes.iter().filter(|change| split.holding(&change.path).is_none()) {
            let why = reason(change).unwrap_or_default();
            if !why.starts_with('`') || told.insert(why) {
                all.push(Self { path: change.path.clone(), why: why.to_owned() });
            }
        }
        all
    }
}

/// Why a change cannot be made without a person, if it cannot.
fn reason(change: &Change) -> Option<&str> {
    change.refused.as_deref().or(change.asked.as_deref())
}

/// The way on from a change that is refused where nothing waits at the end of the call.
pub(crate) const REFUSED_CHANGE: &str = "have commands write only where the policy lets them, or ask the user to make \
    the change that was dropped; where git stopped half way, end that in the same command line (`git rebase main || \
    git rebase --abort`)";

impl SettledChanges {
    /// Whether all of them are in the workspace.
    pub(crate) const fn is_whole(&self) -> bool {
        self.dropped.is_empty() && self.problem.is_none()
    }
}

/// Makes what a call of an agent changed in the workspace, as far as no person has to say yes, and drops the rest. A stop of
/// the call does not stop this half way.
///
/// # Errors
/// When the store cannot be read or written.
pub(crate) fn settle_changes(
    run: &str,
    ctx: &CliContext,
    screen: &Screen,
) -> Result<SettledChanges, Failure> {
    let (subject, _, mut session) = take_subject(run, (ctx, &Cancel::default()), screen)?;
    subject.check_state()?;
    let all = subject.changes.0.values();
    let (changes, dropped): (Vec<Change>, Vec<Change>) =
        all.cloned().partition(|change| reason(change).is_none());
    let split = SplitRepositories::find(&changes, &dropped);
    let (joined, changes): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| split.holding(&change.path).is_some());
    let dropped = Dropped::list(&[dropped, joined].concat(), &split);
    let problem = match changes.is_empty() {
        true => None,
        false => {
            let place = (ctx, Cancel::default());
            apply_changes((&subject, &changes), session.as_mut(), place, screen)?.delivered.problem
        }
    };
    let stay = match &problem {
        None if dropped.is_empty() => 0,
        None => changes.len(),
        Some(_) => find_run(&Store::open(&ctx.store)?, ctx, run)?.0.cut_short().unwrap_or(0),
    };
    if changes.is_empty() || problem.is_some() {
        match &mut session {
            Some(session) => session.release_changes(None)?,
            None => subject.discard(&mut Store::open(&ctx.store)?)?,
        }
    }
    Ok(SettledChanges { dropped, problem, stay })
}

/// The same for the command of an agent; says what is dropped. Gives the exit that it means.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) fn settle(
    (run, label): (&str, &str),
    ctx: &CliContext,
    screen: &Screen,
) -> Result<Exit, Failure> {
    let settled = settle_changes(run, ctx, screen)?;
    for dropped in &settled.dropped {
        let line = escape::line(&dropped.text()).into_owned();
        screen.eprint(&format!("{WARNING}not applied{WARNING:#}: {line}"));
    }
    if let Some(problem) = &settled.problem {
        screen.eprint(&format!("{WARNING}not applied{WARNING:#}: {}", problem_text(problem)));
    }
    if settled.stay > 0 {
        let stay = counted(settled.stay, "change");
        screen.eprint(&format!("{stay} in the workspace · capsule undo {label} takes back"));
    }
    if settled.is_whole() {
        return Ok(Exit::Ok);
    }
    screen.eprint(&format!("what was not applied is dropped · capsule show-run {label}"));
    Ok(Exit::Denied)
}

/// Drops what a run changed.
pub(super) fn discard(args: &OneRun, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let cancel = signal::cancel_on_signal();
    let (subject, label, session) = take_subject(&args.run, (ctx, &cancel), screen)?;
    let stay = subject.cut_short();
    match session {
        Some(mut session) if subject.is_staged => session.release_changes(None)?,
        _ => subject.discard(&mut Store::open(&ctx.store)?)?,
    }
    let changes = subject.changes.0.len();
    if screen.json {
        screen.print_json(
            &json!({ "schema": 1, "run": subject.id, "discarded": changes, "stay": stay }),
        )?;
    } else if changes == 0 && stay.is_none() {
        screen.eprint(&format!("nothing of {label} waits"));
    } else {
        let changes = counted(changes, "change");
        let stay = match stay {
            None => String::new(),
            Some(stay) => format!(
                "; an apply was cut short, and {stay} of them stay in the workspace · \
                 capsule undo {label} takes back what it left"
            ),
        };
        screen.eprint(&format!("{SUCCESS}✔{SUCCESS:#} {changes} of {label} discarded{stay}"));
    }
    Ok(0)
}

fn find_run(store: &Store, ctx: &CliContext, run: &str) -> Result<(StagedRun, String), Failure> {
    let id = store.find(run)?;
    let subject = StagedRun::read(store, &ctx.store, &id)?;
    let label = store.label(&subject.id.to_string());
    Ok((subject, label))
}
