//! `capsule undo`: brings back what stood in the workspace before a run, or one of its calls, changed it.
//! It is shown first, nothing that changed since is lost, and the undo is a run that is undone in turn.

use std::rc::Rc;

use capsule_base::escape;
use capsule_base::json;
use capsule_core::call::Origin;
use capsule_core::change::{Change, FileState};
use capsule_core::journal::RunKind;
use capsule_core::outcome::CodedError;
use capsule_core::policy::UNDO_TOOL;
use capsule_report::{change_count, change_json, change_lines, time_text};
use capsule_runtime::{CommandRunner, NullSink, UndoEntry, UndoRequest, UndoStatus};
use capsule_store::Store;
use serde_json::{Value, json};

use crate::args::{LayerArg, Undo};
use crate::command::single_call::{SingleCall, call_json};
use crate::command::{no_such_call, open_store, read_run, require_workspace, run_and_step};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{ERROR, HINT, SUCCESS, Screen, WARNING};
use crate::signal;

/// The words for a file that is not kept for an undo of the undo.
const NOT_KEPT_NOTE: &str =
    "  undone, but what is there now is not kept: no undo of the undo brings it back";

pub(crate) fn run(args: &Undo, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(ctx, screen)?;
    let mut asked = UndoTarget::find(&store, ctx, &args.run)?;
    let bound = asked.request.bound_policy()?;
    let looked = asked.request.compare(&bound.workspace)?;
    let told = asked.entry_views(&store, &looked)?;
    drop(store);
    let first = told.iter().find_map(EntryView::problem);
    let is_ready = looked.iter().any(is_ready);
    if first.is_none() && !is_ready && !args.dry_run {
        asked.request.clear_leftovers(&bound.workspace)?;
    }
    if first.is_some() || !is_ready || args.dry_run {
        return asked.preview(&told, first, args.dry_run, screen);
    }
    let mut call = json!({ "run": asked.request.run, "changes": asked.changes_text() });
    if let Value::Object(map) = &mut call {
        map.extend(asked.request.call.map(|call| ("call".to_owned(), call.into())));
        let again = asked.request.interrupted_undos.join(" ");
        map.extend((!again.is_empty()).then(|| ("again".to_owned(), again.into())));
        map.extend(asked.request.removes_created().then(|| ("made".to_owned(), "yes".into())));
    }
    let one = SingleCall {
        name: format!("undo {}", asked.name),
        kind: RunKind::Undo,
        subject: Some(asked.request.run),
        tool: UNDO_TOOL,
        args: call,
        policy: &bound,
        layer: LayerArg { accept_layer: false },
        prompt: Box::new(capsule_runtime::NoPrompt),
        command_runner: CommandRunner::disabled(),
        sink: Rc::new(NullSink),
        cancel: signal::cancel_on_signal(),
        out: None,
        origin: Origin::Person,
        resumption: None,
        session: None,
    };
    let done = one.submit(ctx, Some(screen))?;
    if screen.json {
        let mut answer = asked.json(&told, false);
        if let (Value::Object(answer), Value::Object(map)) = (&mut answer, call_json(&done)) {
            answer.extend(map.into_iter().filter(|(name, _)| name != "staged"));
        }
        screen.print_json(&answer)?;
        return Ok(done.exit.status());
    }
    if let Some(problem) = done.delivered.problem {
        screen.eprint(&format!("recorded as {0} · capsule show-run {0}:1", done.label));
        return Err(problem.into());
    }
    asked.show(&told, screen)?;
    let back = redo_hint(&looked, &done.label);
    screen.eprint(&format!(
        "{SUCCESS}✔ undone{SUCCESS:#} {} · recorded as {} · {back}",
        asked.name, done.label
    ));
    Ok(done.exit.status())
}

/// Whether `capsule undo` would bring something back of a run or a call.
pub(super) fn is_possible(ctx: &CliContext, asked: &str) -> bool {
    let looked = || -> Result<bool, Failure> {
        let mut asked = UndoTarget::find(&Store::open_read_only(&ctx.store)?, ctx, asked)?;
        let bound = asked.request.bound_policy()?;
        Ok(asked.request.compare(&bound.workspace)?.iter().any(is_ready))
    };
    looked().unwrap_or(false)
}

/// What brings back what an undo took away, if something does.
fn redo_hint(looked: &[UndoEntry], label: &str) -> String {
    let is_unkept =
        |entry: &UndoEntry| matches!(entry.status, UndoStatus::Ready { backed_up: false, .. });
    match looked.iter().any(is_unkept) {
        true => "which cannot be taken back".to_owned(),
        false => format!("capsule undo {label} takes it back"),
    }
}

/// What is to be undone, and how it is called.
struct UndoTarget {
    request: UndoRequest,
    /// `RUN` or `RUN:STEP`, by the run's label.
    name: String,
}

/// A path, and what is told of it.
struct EntryView<'l> {
    entry: &'l UndoEntry,
    /// The later call that left what stands there now.
    changed_by: Option<(String, u64)>,
}

impl EntryView<'_> {
    /// Why nothing is undone because of this path; and who changed it, where that is known.
    fn problem(&self) -> Option<CodedError> {
        let problem = self.entry.problem()?;
        let Some((run, call)) = &self.changed_by else { return Some(problem) };
        let path = &self.entry.change.path;
        let message = format!("`{path}` was changed since by {run}:{call}");
        let first = format!("undo that first: `capsule undo {run}:{call}`");
        Some(CodedError { message, ..problem }.with_suggestion(first))
    }
}

fn is_ready(looked: &UndoEntry) -> bool {
    matches!(looked.status, UndoStatus::Ready { .. })
}

impl UndoTarget {
    fn find(store: &Store, ctx: &CliContext, text: &str) -> Result<Self, Failure> {
        let (run, step) = run_and_step(text);
        let id = store.find(run)?;
        let mut shown = store.label(&id);
        let call = match step {
            None => None,
            Some(step) => {
                shown = format!("{shown}:{}", escape::line(step));
                let view = read_run(store, &id)?;
                let call = view.find_call(step).ok_or_else(|| no_such_call(run, step))?;
                Some(call.call)
            }
        };
        let undoing = UndoRequest::read(store, &ctx.store, &id, call)?;
        require_workspace(ctx, (run, &shown), undoing.workspace())?;
        Ok(Self { request: undoing, name: shown })
    }

    /// The changes as they go into the record.
    fn changes_text(&self) -> String {
        String::from_utf8_lossy(&json::canonical(&self.request.changes)).into_owned()
    }

    fn entry_views<'l>(
        &self,
        store: &Store,
        looked: &'l [UndoEntry],
    ) -> Result<Vec<EntryView<'l>>, Failure> {
        let told = looked.iter().map(|looked| {
            Ok(EntryView { entry: looked, changed_by: self.request.later_call(store, looked)? })
        });
        told.collect()
    }

    /// Shows what would be undone, or why nothing is.
    fn preview(
        &self,
        told: &[EntryView<'_>],
        problem: Option<CodedError>,
        dry_run: bool,
        screen: &Screen,
    ) -> Result<u8, Failure> {
        if screen.json {
            let mut answer = self.json(told, dry_run);
            if let (Value::Object(map), Some(problem)) = (&mut answer, &problem) {
                map.insert("code".into(), json!(problem.code));
                map.insert("reason".into(), json!(problem.message));
                map.insert("suggestion".into(), json!(problem.suggestion));
            }
            screen.print_json(&answer)?;
            return Ok(problem.map_or(0, |problem| problem.code.exit().status()));
        }
        self.show(told, screen)?;
        if let Some(problem) = problem {
            screen.eprint(&format!("nothing of {} was undone", self.name));
            return Err(problem.into());
        }
        let ready = told.iter().map(|view| view.entry).filter(|entry| is_ready(entry));
        match change_count(ready.map(|entry| &entry.change)).as_str() {
            "0 changes" => screen.print_line("nothing is left to undo")?,
            count => screen.eprint(&format!(
                "{HINT}dry run{HINT:#}: {count}, and nothing was changed · capsule undo {}",
                self.name
            )),
        }
        Ok(0)
    }

    fn show(&self, told: &[EntryView<'_>], screen: &Screen) -> Result<(), Failure> {
        let workspace = escape::line(self.request.workspace()).into_owned();
        screen.print_line(&format!("undo {} in {workspace}", self.name))?;
        for view in told {
            screen.print_lines(&entry_lines(view))?;
        }
        for (call, why) in &self.request.not_restorable {
            let why = escape::line(why);
            screen.print_line(&format!("{WARNING}not covered{WARNING:#}: call {call}: {why}"))?;
        }
        Ok(())
    }

    fn json(&self, told: &[EntryView<'_>], dry_run: bool) -> Value {
        let uncovered: Vec<Value> = self
            .request
            .not_restorable
            .iter()
            .map(|(call, why)| json!({ "call": call, "why": why }))
            .collect();
        json!({
            "schema": 1,
            "subject": self.request.run,
            "call": self.request.call,
            "workspace": self.request.workspace(),
            "dry_run": dry_run,
            "run": null,
            "changes": told.iter().map(path_json).collect::<Vec<_>>(),
            "uncovered": uncovered,
        })
    }
}

const fn status_word(status: &UndoStatus) -> &'static str {
    match status {
        UndoStatus::Ready { .. } => "ready",
        UndoStatus::AlreadyRestored => "as-before",
        UndoStatus::DirectoryInUse => "stays",
        UndoStatus::Changed { .. } => "changed-since",
        UndoStatus::BackupGone => "gone",
        UndoStatus::BackupDamaged => "damaged",
    }
}

fn path_json(told: &EntryView<'_>) -> Value {
    let EntryView { entry: UndoEntry { change, status }, changed_by: by } = told;
    let mut value = change_json(change, None);
    let (lines, at) = match status {
        UndoStatus::Ready { lines, .. } => (*lines, None),
        UndoStatus::Changed { at, .. } => (None, *at),
        _ => (None, None),
    };
    if let Value::Object(map) = &mut value {
        map.insert("standing".into(), status_word(status).into());
        let kept = !matches!(status, UndoStatus::Ready { backed_up: false, .. });
        map.insert("kept".into(), kept.into());
        map.insert("added".into(), json!(lines.map(|own| own.0)));
        map.insert("removed".into(), json!(lines.map(|own| own.1)));
        map.insert("changed_at".into(), json!(at));
        map.insert(
            "by".into(),
            json!(by.as_ref().map(|(run, call)| json!({ "run": run, "call": call }))),
        );
    }
    value
}

fn entry_lines(told: &EntryView<'_>) -> Vec<String> {
    let EntryView { entry: UndoEntry { change, status }, changed_by: by } = told;
    let path = escape::line(&change.path).into_owned();
    let slash = match change.before.as_ref().or(change.after.as_ref()) {
        Some(FileState::Directory { .. }) => "/",
        _ => "",
    };
    let bad = |why: &str| vec![format!("{ERROR}✖ {path}{slash}{ERROR:#}  {why}")];
    match status {
        UndoStatus::Ready { lines, backed_up: kept } => {
            let counted = lines.map(|(added, removed)| format!("  +{added} −{removed}"));
            let kept = if *kept { "" } else { NOT_KEPT_NOTE };
            let counted = counted.unwrap_or_default() + kept;
            change_lines([change]).map(|line| format!("{line}{counted}")).collect()
        }
        UndoStatus::AlreadyRestored => vec![format!("· {path}{slash}  is as it was")],
        UndoStatus::DirectoryInUse => {
            vec![format!("· {path}{slash}  stays: something else is in it")]
        }
        UndoStatus::Changed { at, .. } => match (by, at) {
            (Some((run, call)), _) => bad(&format!("was changed since by {run}:{call}")),
            (None, Some(at)) => {
                let micros = u64::try_from(*at).unwrap_or(0).saturating_mul(1_000_000);
                bad(&format!(
                    "was changed since, last at {}, by nobody in this store",
                    time_text(micros)
                ))
            }
            (None, None) => bad(&format!("is {} by now", missing_text(change))),
        },
        UndoStatus::BackupGone => bad("what stood there is not kept"),
        UndoStatus::BackupDamaged => bad("what was kept of it is something else by now"),
    }
}

/// What became of a path where nothing is to be found of what the call left.
const fn missing_text(change: &Change) -> &'static str {
    match change.before {
        Some(_) => "gone",
        None => "without its folder",
    }
}
