//! What the report of a run says of its staged changes: the lines in which they differ while they wait,
//! and afterwards what became of them.

use capsule_core::change::Change;
use capsule_report::{change_count, change_json, change_lines, when};
use capsule_runtime::{Became, ChangesError, Diffs, Subject};
use capsule_store::{RunState, Store};
use serde_json::{Value, json};

use crate::command::changes::{diff_lines, diffs, ways};
use crate::failure::Failure;
use crate::screen::Screen;
use crate::surroundings::Surroundings;

/// How many lines of all diffs are shown with a report; `changes --diff` shows the rest.
const LINES: usize = 120;
/// How many bytes of them a report has as JSON.
const BYTES: usize = 64 * 1024;

/// The changes of a run whose workspace was staged, with what became of them.
pub(super) struct Changed {
    subject: Subject,
    label: String,
    diffs: Option<Diffs>,
}

impl Changed {
    /// Those of a run; none where it staged nothing, or its record does not say what.
    pub(super) fn of(
        store: &Store,
        around: &Surroundings,
        run: &str,
    ) -> Result<Option<Self>, Failure> {
        let subject = match Subject::read(store, &around.store, run) {
            Ok(subject) => subject,
            Err(ChangesError::Store(error)) => return Err(error.into()),
            // Where payloads are not kept, nobody knows.
            Err(ChangesError::Problem(_)) => return Ok(None),
        };
        let is_own = subject.id.to_string() == run;
        // One that crashed may have staged what it did not record.
        let may_be = subject.is_staged && subject.state == RunState::Crashed;
        if !is_own || !subject.stages() || subject.changes.0.is_empty() && !may_be {
            return Ok(None);
        }
        let diffs = diffs(&subject);
        Ok(Some(Self { label: store.label(run), diffs, subject }))
    }

    /// Those of them that one call made, as they are at the end of the run.
    fn among<'s>(&'s self, call: Option<&'s [Change]>) -> impl Iterator<Item = &'s Change> {
        self.subject.changes.0.values().filter(move |own| {
            call.is_none_or(|call| call.iter().any(|change| change.path == own.path))
        })
    }

    /// Shows them, or those of one call.
    pub(super) fn tell(&self, call: Option<&[Change]>, screen: &Screen) -> Result<(), Failure> {
        let is_empty = self.among(call).next().is_none();
        if is_empty && (call.is_some() || self.subject.state != RunState::Crashed) {
            return Ok(());
        }
        let count = change_count(self.among(call));
        let after = match self.subject.became {
            Became::Waiting => ways(&self.subject, &self.label),
            ref became => words(became),
        };
        screen.say("")?;
        screen.say(&format!("staged {count} · {after}"))?;
        let Some(diffs) = &self.diffs else { return Ok(()) };
        let mut lines = Vec::new();
        for change in self.among(call) {
            lines.extend(change_lines([change]));
            lines.extend(diff_lines(change, diffs.of(change)));
            // Looked at no further than is shown.
            if lines.len() > LINES {
                lines.truncate(LINES);
                lines.push(format!("  and more: capsule changes {} --diff", self.label));
                break;
            }
        }
        screen.say_all(&lines)
    }

    /// The same for programs.
    pub(super) fn json(&self, call: Option<&[Change]>) -> Value {
        let (mut room, mut is_cut) = (BYTES, false);
        let changes: Vec<Value> = self
            .among(call)
            .map(|change| {
                let diff = self.diffs.as_ref().filter(|_| !is_cut).and_then(|own| own.of(change));
                let diff = diff.map(|(diff, _)| diff);
                is_cut |= diff.as_ref().is_some_and(|diff| diff.len() > room);
                let diff = diff.filter(|_| !is_cut);
                room = room.saturating_sub(diff.as_ref().map_or(0, String::len));
                change_json(change, diff)
            })
            .collect();
        let (state, by, at, undone) = match &self.subject.became {
            Became::Waiting => ("waiting", None, None, None),
            Became::Applied { by, undone } => ("applied", Some(by), None, undone.as_ref()),
            Became::Discarded(at) => ("discarded", None, Some(at), None),
            Became::TakenUp(by) => ("taken-up", Some(by), None, None),
            Became::Nothing => ("nothing", None, None, None),
            Became::Lost => ("lost", None, None, None),
        };
        let undone = undone.map(|own| json!({ "by": own.by, "whole": own.whole }));
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
pub(super) fn words(became: &Became) -> String {
    match became {
        Became::Waiting => "they wait".into(),
        Became::Applied { by, undone: None } => format!("applied by {by} · capsule undo {by}"),
        Became::Applied { by, undone: Some(undone) } => {
            let part = if undone.whole { "" } else { "in part " };
            format!("applied by {by}, and {part}undone by {}", undone.by.join(", "))
        }
        Became::Discarded(at) => format!("discarded at {}", when(*at)),
        Became::TakenUp(by) => format!("gone on with by {by} · capsule changes {by}"),
        Became::Nothing => "nothing is staged".into(),
        Became::Lost => "nothing of it is staged any more".into(),
    }
}
