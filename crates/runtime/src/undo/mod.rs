//! What a run changed in the workspace, the other way round: read from its record, compared with what
//! stands there now, and brought back by a run of its own.

mod chain;
mod record;
mod undone;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_core::change::{Change, FileState};
use capsule_core::code::Code;
use capsule_core::id::RunId;
use capsule_core::journal::{Event, RunKind, UNDO_SUFFIX};
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::undo::UndoRecord;
use capsule_store::{RunState, Store, StoreError, Stored, beside};
use capsule_tools::{Kept, Looked, Standing, Undo, Workspace};

use crate::changes::ChangesError;
use crate::law::Law;
use chain::Chain;
use record::{Call, Record};
pub use undone::Undone;

/// Calls that are to be undone.
pub struct Undoing {
    /// The run that they are of.
    pub run: RunId,
    /// The one call, if only one is meant.
    pub call: Option<u64>,
    /// What comes of it: what the calls left, and what stood there before. By path.
    pub changes: Vec<Change>,
    /// Calls that changed something of which nothing is kept, and why.
    pub uncovered: Vec<(u64, String)>,
    /// The runs that began to undo it, or are undone, and were killed.
    pub again: Vec<String>,
    record: Record,
    place: PathBuf,
    /// The newest event that is part of it.
    leaf: u64,
    /// What stood at each path between the calls.
    between: Vec<Vec<Option<FileState>>>,
}

fn none(message: impl Into<String>) -> CodedError {
    CodedError::new(Code::UndoNone, message).with_suggestion(Code::UndoNone.next_step())
}

impl Undoing {
    /// Reads what a run, or one of its calls, changed in the workspace.
    ///
    /// # Errors
    /// When the store cannot be read, nothing was changed, or nobody knows what was.
    pub fn read(
        store: &Store,
        path: &Path,
        run: &str,
        call: Option<u64>,
    ) -> Result<Self, ChangesError> {
        let mut record = Record::read(store, run)?;
        let mut involved = vec![run.to_owned()];
        // What was staged came into the workspace by the runs that applied it.
        let mut applied = Vec::new();
        if record.opened.staged {
            for run in store.about(run, RunKind::Apply)? {
                applied.extend(Record::read(store, &run)?.calls);
                involved.push(run);
            }
            if !applied.iter().any(|own| own.has_begun) {
                return Err(none("what the run changed was staged, and nobody applied it").into());
            }
        }
        involved.extend(store.about(run, RunKind::Undo)?);
        let mut again = Vec::new();
        for run in involved {
            match store.state(&run)? {
                RunState::Sealed(_) => continue,
                RunState::Crashed => {
                    again.push(run);
                    continue;
                }
                RunState::Running => {}
            }
            let message = "a run is at work on it; it can be undone at its end";
            return Err(CodedError::new(Code::UndoConflict, message)
                .with_suggestion("wait for its end")
                .into());
        }
        again.extend(record.applies().filter(|_| !again.is_empty()));
        let leaf = applied.iter().chain(&record.calls).map(|own| own.leaf).max().unwrap_or(0);
        let mut undoing = Self {
            run: record.id,
            call,
            changes: Vec::new(),
            uncovered: Vec::new(),
            again,
            place: beside(path, UNDO_SUFFIX),
            leaf,
            between: Vec::new(),
            record: Record { calls: Vec::new(), ..record.clone() },
        };
        let calls = std::mem::take(&mut record.calls);
        match (call, record.opened.staged) {
            (Some(number), staged) => undoing.one(calls, number, staged)?,
            (None, true) => undoing.whole(applied)?,
            (None, false) => undoing.whole(calls)?,
        }
        if undoing.changes.is_empty() {
            return Err(undoing.nothing().into());
        }
        Ok(undoing)
    }

    /// One call of the run. Of a staged run, what it changed is in the record; what stood there may have
    /// been kept by whoever applied it.
    fn one(&mut self, calls: Vec<Call>, number: u64, staged: bool) -> Result<(), CodedError> {
        let call = calls.into_iter().find(|own| own.number == number);
        let call = call.ok_or_else(|| none(format!("the run has no call {number}")))?;
        if !staged {
            self.leaf = call.leaf;
        }
        if let (false, Some(why)) = (staged, call.uncovered()) {
            return Err(none(format!("call {number} cannot be undone: {why}")));
        }
        let changes = if staged { call.staged } else { call.kept.unwrap_or_default() };
        self.changes = changes.into_iter().map(Change::reverted).collect();
        Ok(())
    }

    /// All calls of the run, the last one first.
    fn whole(&mut self, calls: Vec<Call>) -> Result<(), CodedError> {
        let mut chain = Chain::default();
        for call in calls {
            self.uncovered.extend(call.uncovered().map(|why| (call.number, why)));
            let Some(changes) = call.kept else { continue };
            chain.add(call.number, call.is_done, changes).map_err(|broken| {
                let chain::Broken { path, first, second } = broken;
                let message = format!(
                    "`{path}` was changed by something else between call {first} and call {second}, \
                     which would be lost"
                );
                let label = &self.record.opened.label;
                CodedError::new(Code::UndoConflict, message)
                    .with_suggestion(format!("undo the later one alone: `capsule undo {label}:{second}`"))
            })?;
        }
        (self.changes, self.between) = chain.back().into_iter().unzip();
        Ok(())
    }

    /// Why there is nothing to undo.
    fn nothing(&self) -> CodedError {
        match (self.call, self.uncovered.first()) {
            (Some(number), _) => none(format!("call {number} changed nothing")),
            (None, Some((number, why))) => {
                none(format!("nothing of the run can be undone; call {number}: {why}"))
            }
            (None, None) => none("the run changed nothing in the workspace"),
        }
    }

    /// Whether what goes is what the run made. What an undo brought back may be somebody's own.
    #[must_use]
    pub fn made(&self) -> bool {
        self.record.opened.origin != RunKind::Undo
    }

    /// The folder that the run worked in, by its path.
    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.record.opened.workspace.path
    }

    /// What it can be undone by: the run's own policy, for this alone, in the run's own workspace.
    ///
    /// # Errors
    /// The workspace is another one, or the policy cannot be read again.
    pub fn law(&self) -> Result<Law, CodedError> {
        Law::again(&self.record.opened, &self.record.texts, |policy| policy.for_undo())
    }

    fn undo(&self, workspace: &Rc<Workspace>) -> Undo {
        let what = (self.run.to_string(), self.changes.clone());
        let how = (self.again.as_slice(), self.made());
        Undo::new(workspace, Kept::at(self.place.clone()), what, how)
    }

    /// Removes what a run that was killed left beside the paths, where nothing else is to be undone.
    ///
    /// # Errors
    /// It cannot be removed, or somebody else is at work in the workspace.
    pub fn clear_leftovers(&self, workspace: &Rc<Workspace>) -> Result<(), CodedError> {
        self.undo(workspace).clear_leftovers()
    }

    /// Compares everything with what stands in the workspace now. Nothing is changed. Where some of the
    /// calls were undone already, what stands there is one of those that stood there between them.
    ///
    /// # Errors
    /// Something cannot be looked at.
    pub fn look(&mut self, workspace: &Rc<Workspace>) -> Result<Vec<Looked>, CodedError> {
        let look = |own: &Self| own.undo(workspace).look();
        let looked = look(self)?;
        let mut is_other = false;
        for ((change, between), own) in self.changes.iter_mut().zip(&self.between).zip(&looked) {
            if let Standing::Changed { now: Some(now), .. } = &own.standing
                && let Some(state) = between.iter().flatten().find(|state| *state == now)
            {
                change.before = Some(state.clone());
                is_other = true;
            }
        }
        if is_other { look(self) } else { Ok(looked) }
    }

    /// The call that left what stands at a path now, where it was a later one: its run's label and its
    /// number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn by(&self, store: &Store, looked: &Looked) -> Result<Option<(String, u64)>, StoreError> {
        let Standing::Changed { now, .. } = &looked.standing else { return Ok(None) };
        for stored in store.started_since(self.leaf, limits::UNDO_LATER_CALLS)? {
            if let Some(found) = self.left_by(store, &stored, &looked.change.path, now.as_ref())? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn left_by(
        &self,
        store: &Store,
        stored: &Stored,
        path: &str,
        now: Option<&FileState>,
    ) -> Result<Option<(String, u64)>, StoreError> {
        let (Event::CallStarted(started), Some(run)) = (&stored.entry.event, stored.entry.run)
        else {
            return Ok(None);
        };
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let record = payloads.iter().find(|(own, _)| Some(*own) == started.undo);
        let record = record.and_then(|(_, kept)| UndoRecord::from_bytes(kept.bytes.as_deref()?));
        let left = |own: &Change| own.path == path && own.matches_after(now);
        if !record.is_some_and(|record| record.changes.iter().any(left)) {
            return Ok(None);
        }
        let first = store.event(&run.to_string(), 1)?.map(|own| own.entry.event);
        Ok(match first {
            Some(Event::RunOpened(opened)) if opened.workspace == self.record.opened.workspace => {
                Some((opened.label, started.call))
            }
            _ => None,
        })
    }
}
