//! What the report of a run says of its staged changes: the lines in which they differ while they wait,
//! and afterwards what became of them.

use capsule_base::escape;
use capsule_base::units::counted;
use capsule_core::change::{Change, FileState};
use capsule_report::{change_count, change_json, change_lines, time_text};
use capsule_runtime::{ChangeStatus, ChangesError, EnvLookup, StagedDiffs, StagedRun};
use capsule_store::{RunState, Store};
use serde_json::{Value, json};

use crate::command::run_end::ways_at_end;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{Screen, WARNING};

/// How many lines of all diffs are shown with a report; `changes --diff` shows the rest.
const MAX_DIFF_LINES: usize = 120;
/// How many bytes of them a report has as JSON.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// The changes of a run whose workspace was staged, with what became of them.
pub(super) struct StagedChanges {
    subject: StagedRun,
    label: String,
    diffs: Option<StagedDiffs>,
}

impl StagedChanges {
    /// Those of a run; none where it staged nothing, or its record does not say what.
    pub(super) fn find(
        store: &Store,
        ctx: &CliContext,
        run: &str,
    ) -> Result<Option<Self>, Failure> {
        let subject = match StagedRun::read(store, &ctx.store, run) {
            Ok(subject) => subject,
            Err(ChangesError::Store(error)) => return Err(error.into()),
            // Where payloads are not kept, nobody knows.
            Err(ChangesError::Problem(_)) => return Ok(None),
        };
        let is_own = subject.id.to_string() == run;
        // One that crashed may have staged what it did not record.
        let may_be = subject.is_staged && subject.state == RunState::Crashed;
        if !is_own || !subject.is_staging() || subject.changes.0.is_empty() && !may_be {
            return Ok(None);
        }
        let diffs = open_diffs(&subject);
        Ok(Some(Self { label: store.label(run), diffs, subject }))
    }

    /// Those of them that one call made, as they are at the end of the run.
    fn of_call<'s>(&'s self, call: Option<&'s [Change]>) -> impl Iterator<Item = &'s Change> {
        self.subject.changes.0.values().filter(move |value| {
            call.is_none_or(|call| call.iter().any(|change| change.path == value.path))
        })
    }

    /// Shows them, or those of one call.
    pub(super) fn show(&self, call: Option<&[Change]>, screen: &Screen) -> Result<(), Failure> {
        let is_empty = self.of_call(call).next().is_none();
        if is_empty && (call.is_some() || self.subject.state != RunState::Crashed) {
            return Ok(());
        }
        let count = change_count(self.of_call(call));
        let after = match self.subject.status {
            ChangeStatus::Waiting => next_steps(&self.subject, &self.label),
            ref became => status_text(became),
        };
        screen.print_line("")?;
        screen.print_line(&format!("staged {count} · {after}"))?;
        let Some(diffs) = &self.diffs else { return Ok(()) };
        let mut lines = Vec::new();
        for change in self.of_call(call) {
            lines.extend(change_lines([change]));
            lines.extend(diff_lines(change, diffs.diff(change)));
            // Looked at no further than is shown.
            if lines.len() > MAX_DIFF_LINES {
                lines.truncate(MAX_DIFF_LINES);
                lines.push(format!("  and more: capsule changes {} --diff", self.label));
                break;
            }
        }
        screen.print_lines(&lines)
    }

    /// The same for programs.
    pub(super) fn json(&self, call: Option<&[Change]>) -> Value {
        let (mut room, mut is_cut) = (MAX_DIFF_BYTES, false);
        let changes: Vec<Value> = self
            .of_call(call)
            .map(|change| {
                let diff =
                    self.diffs.as_ref().filter(|_| !is_cut).and_then(|diff| diff.diff(change));
                let diff = diff.map(|(diff, _)| diff);
                is_cut |= diff.as_ref().is_some_and(|diff| diff.len() > room);
                let diff = diff.filter(|_| !is_cut);
                room = room.saturating_sub(diff.as_ref().map_or(0, String::len));
                change_json(change, diff)
            })
            .collect();
        let (state, by, at, undone) = match &self.subject.status {
            ChangeStatus::Waiting => ("waiting", None, None, None),
            ChangeStatus::Applied { by, undone } => ("applied", Some(by), None, undone.as_ref()),
            ChangeStatus::Discarded(at) => ("discarded", None, Some(at), None),
            ChangeStatus::Resumed(by) => ("taken-up", Some(by), None, None),
            ChangeStatus::Nothing => ("nothing", None, None, None),
            ChangeStatus::Lost => ("lost", None, None, None),
        };
        let undone = undone.map(|undone| json!({ "by": undone.runs, "whole": undone.is_complete }));
        json!({
            "state": state,
            "can_be_applied": self.subject.can_be_applied(),
            "by": by,
            "at": at,
            "undone": undone,
            "changes": changes,
            "diffs_cut": is_cut,
        })
    }
}

/// What became of changes that wait no more, in words.
pub(super) fn status_text(became: &ChangeStatus) -> String {
    match became {
        ChangeStatus::Waiting => "they wait".into(),
        ChangeStatus::Applied { by, undone: None } => {
            format!("applied by {by} · capsule undo {by}")
        }
        ChangeStatus::Applied { by, undone: Some(undone) } => {
            let part = if undone.is_complete { "" } else { "in part " };
            format!("applied by {by}, and {part}undone by {}", undone.runs.join(", "))
        }
        ChangeStatus::Discarded(at) => format!("discarded at {}", time_text(*at)),
        ChangeStatus::Resumed(by) => format!("resumed as {by} · capsule changes {by}"),
        ChangeStatus::Nothing => "nothing is staged".into(),
        ChangeStatus::Lost => "nothing of it is staged any more".into(),
    }
}

/// What can become of the staged changes of a run.
pub(super) fn next_steps(subject: &StagedRun, label: &str) -> String {
    if let Some(applied) = subject.cut_short() {
        let all = counted(subject.changes.0.len(), "change");
        return format!(
            "an apply was cut short: {applied} of {all} {} in the workspace · \
             capsule apply {label} continues it · capsule undo {label} takes \
             back what it left · capsule discard {label}",
            if applied == 1 { "is" } else { "are" }
        );
    }
    match subject.state {
        RunState::Sealed(_) | RunState::Idle => {
            ways_at_end(subject.changes.refused().is_some(), label)
        }
        RunState::Running => "the run goes on; at its end they can be applied or discarded".into(),
        RunState::Crashed => format!(
            "the run crashed, so more may be staged than it recorded · capsule discard {label}"
        ),
    }
}

/// What shows the lines of a run's staged files.
pub(super) fn open_diffs(subject: &StagedRun) -> Option<StagedDiffs> {
    let variables: EnvLookup = Box::new(CliContext::variable);
    subject.diffs(&variables)
}

/// The lines in which a file differs. What is not shown is told: it is applied with the rest.
pub(super) fn diff_lines(change: &Change, diff: Option<(String, u64)>) -> Vec<String> {
    let Some((diff, masked)) = diff else {
        let told = format!("  {WARNING}no diff{WARNING:#}: binary, too large, or changed since");
        let is_file = matches!(change.after, Some(FileState::File { .. }));
        return is_file.then_some(told).into_iter().collect();
    };
    let shown = escape::block(&diff).into_owned();
    let mut lines: Vec<String> = shown.lines().map(|line| format!("  {line}")).collect();
    if masked > 0 {
        lines.push(format!(
            "  {WARNING}{masked} masked{WARNING:#}: possible secrets, which are applied as they are"
        ));
    }
    lines
}
