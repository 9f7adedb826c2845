//! What a run changed in the workspace, the other way round: read from its record, compared with what
//! stands there now, and brought back by a run of its own.

mod chain;
mod record;
mod undone;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::change::{Change, FileState};
use capsule_core::id::RunId;
use capsule_core::journal::{Event, RunKind, UNDO_SUFFIX};
use capsule_core::outcome::CodedError;
use capsule_store::{RunState, Store, StoreError, StoredEvent, sidecar_path};
use capsule_workspace::{BackupReader, UndoEntry, UndoPlan, UndoRecord, UndoStatus, Workspace};

use crate::bound_policy::BoundPolicy;
use crate::changes_error::ChangesError;
use chain::ChangeChain;
use record::{UndoableCall, UndoableRun};
pub use undone::UndoneBy;

/// Calls that are to be undone.
pub struct UndoRequest {
    /// The run that they are of.
    pub run: RunId,
    /// The one call, if only one is meant.
    pub call: Option<u64>,
    /// What comes of it: what the calls left, and what stood there before. By path.
    pub changes: Vec<Change>,
    /// Calls that changed something of which nothing is kept, and why.
    pub not_restorable: Vec<(u64, String)>,
    /// The runs that began to undo it, or are undone, and were killed.
    pub interrupted_undos: Vec<String>,
    record: UndoableRun,
    backups_path: PathBuf,
    /// The newest event that is part of it.
    leaf: u64,
    /// What stood at each path between the calls.
    intermediate: Vec<Vec<Option<FileState>>>,
}

fn nothing_to_undo(message: impl Into<String>) -> CodedError {
    CodedError::new(Code::UndoNone, message).with_suggestion(Code::UndoNone.next_step())
}

/// The runs among some that were killed before their end.
///
/// # Errors
/// When the store cannot be read, or one of the runs still goes on.
fn interrupted_runs(store: &Store, involved: Vec<String>) -> Result<Vec<String>, ChangesError> {
    let mut interrupted = Vec::new();
    for run in involved {
        match store.state(&run)? {
            RunState::Sealed(_) | RunState::Idle => continue,
            RunState::Crashed => {
                interrupted.push(run);
                continue;
            }
            RunState::Running => {}
        }
        let message = "a run is at work on it; it can be undone at its end";
        return Err(CodedError::new(Code::UndoConflict, message)
            .with_suggestion("wait for its end")
            .into());
    }
    Ok(interrupted)
}

impl UndoRequest {
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
        let mut record = UndoableRun::read(store, run)?;
        let mut involved = vec![run.to_owned()];
        // What was staged came into the workspace by the runs that applied it.
        let mut applied = Vec::new();
        if record.opened.staged {
            for run in store.runs_about(run, RunKind::Apply)? {
                applied.extend(UndoableRun::read(store, &run)?.calls);
                involved.push(run);
            }
            // What a host made is in the workspace at once.
            applied.extend(record.calls.iter().filter(|call| call.is_by_host()).cloned());
            applied.sort_by_key(|call| call.leaf);
            if !applied.iter().any(|call| call.has_begun) {
                return Err(nothing_to_undo(
                    "nothing that the run changed was applied to the workspace",
                )
                .into());
            }
        }
        involved.extend(store.runs_about(run, RunKind::Undo)?);
        let mut again = interrupted_runs(store, involved)?;
        again.extend(record.applies().filter(|_| !again.is_empty()));
        let leaf = applied.iter().chain(&record.calls).map(|call| call.leaf).max().unwrap_or(0);
        let mut undoing = Self {
            run: record.id,
            call,
            changes: Vec::new(),
            not_restorable: Vec::new(),
            interrupted_undos: again,
            backups_path: sidecar_path(path, UNDO_SUFFIX),
            leaf,
            intermediate: Vec::new(),
            record: UndoableRun { calls: Vec::new(), ..record.clone() },
        };
        let calls = std::mem::take(&mut record.calls);
        match (call, record.opened.staged) {
            (Some(number), staged) => undoing.select_call(calls, number, staged)?,
            (None, true) => undoing.select_run(applied)?,
            (None, false) => undoing.select_run(calls)?,
        }
        if undoing.changes.is_empty() {
            return Err(undoing.nothing_problem().into());
        }
        Ok(undoing)
    }

    /// One call of the run. Of a staged run, what it changed is in the record; what stood there may have
    /// been kept by whoever applied it.
    fn select_call(
        &mut self,
        calls: Vec<UndoableCall>,
        number: u64,
        staged: bool,
    ) -> Result<(), CodedError> {
        let call = calls.into_iter().find(|call| call.number == number);
        let call = call.ok_or_else(|| nothing_to_undo(format!("the run has no call {number}")))?;
        let staged = staged && !call.is_by_host();
        if !staged {
            self.leaf = call.leaf;
        }
        if let (false, Some(why)) = (staged, call.why_not_restorable()) {
            return Err(nothing_to_undo(format!("call {number} cannot be undone: {why}")));
        }
        let changes = if staged { call.staged } else { call.undo_changes.unwrap_or_default() };
        self.changes = changes.into_iter().map(Change::reverted).collect();
        Ok(())
    }

    /// All calls of the run, the last one first.
    fn select_run(&mut self, calls: Vec<UndoableCall>) -> Result<(), CodedError> {
        let mut chain = ChangeChain::default();
        for call in calls {
            self.not_restorable.extend(call.why_not_restorable().map(|why| (call.number, why)));
            let Some(changes) = call.undo_changes else { continue };
            chain.add(call.number, call.is_done, changes).map_err(|broken| {
                let chain::ForeignChange { path, first, second } = broken;
                let message = format!(
                    "`{path}` was changed by something else between call {first} and call {second}, \
                     which would be lost"
                );
                let label = &self.record.opened.label;
                CodedError::new(Code::UndoConflict, message)
                    .with_suggestion(format!("undo the later one alone: `capsule undo {label}:{second}`"))
            })?;
        }
        (self.changes, self.intermediate) = chain.inverse().into_iter().unzip();
        Ok(())
    }

    /// Why there is nothing to undo.
    fn nothing_problem(&self) -> CodedError {
        match (self.call, self.not_restorable.first()) {
            (Some(number), _) => nothing_to_undo(format!("call {number} changed nothing")),
            (None, Some((number, why))) => {
                nothing_to_undo(format!("nothing of the run can be undone; call {number}: {why}"))
            }
            (None, None) => nothing_to_undo("the run changed nothing in the workspace"),
        }
    }

    /// Whether what goes is what the run made. What an undo brought back may be somebody's own.
    #[must_use]
    pub fn removes_created(&self) -> bool {
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
    pub fn bound_policy(&self) -> Result<BoundPolicy, CodedError> {
        BoundPolicy::rebind(&self.record.opened, &self.record.texts, |policy| policy.for_undo())
    }

    fn undo(&self, workspace: &Rc<Workspace>) -> UndoPlan {
        let what = (self.run.to_string(), self.changes.clone());
        let how = (self.interrupted_undos.as_slice(), self.removes_created());
        UndoPlan::new(workspace, BackupReader::new(self.backups_path.clone()), what, how)
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
    pub fn compare(&mut self, workspace: &Rc<Workspace>) -> Result<Vec<UndoEntry>, CodedError> {
        let look = |made: &Self| made.undo(workspace).compare();
        let looked = look(self)?;
        let mut is_other = false;
        for ((change, between), entry) in
            self.changes.iter_mut().zip(&self.intermediate).zip(&looked)
        {
            if let UndoStatus::Changed { now: Some(now), .. } = &entry.status
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
    pub fn later_call(
        &self,
        store: &Store,
        looked: &UndoEntry,
    ) -> Result<Option<(String, u64)>, StoreError> {
        let UndoStatus::Changed { now, .. } = &looked.status else { return Ok(None) };
        for stored in store.calls_started_since(self.leaf, limits::UNDO_LATER_CALLS)? {
            if let Some(found) =
                self.call_that_left(store, &stored, &looked.change.path, now.as_ref())?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn call_that_left(
        &self,
        store: &Store,
        stored: &StoredEvent,
        path: &str,
        now: Option<&FileState>,
    ) -> Result<Option<(String, u64)>, StoreError> {
        let (Event::CallStarted(started), Some(run)) = (&stored.entry.event, stored.entry.run)
        else {
            return Ok(None);
        };
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let record = payloads.iter().find(|(item, _)| Some(*item) == started.undo);
        let record = record.and_then(|(_, kept)| UndoRecord::from_bytes(kept.bytes.as_deref()?));
        let left = |change: &Change| change.path == path && change.matches_after(now);
        if !record.is_some_and(|record| record.changes.iter().any(left)) {
            return Ok(None);
        }
        let first = store.event(&run.to_string(), 1)?.map(|event| event.entry.event);
        Ok(match first {
            Some(Event::RunOpened(opened)) if opened.workspace == self.record.opened.workspace => {
                Some((opened.label, started.call))
            }
            _ => None,
        })
    }
}
