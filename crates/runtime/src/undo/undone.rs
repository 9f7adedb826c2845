//! Whether what a run did was taken back since, and by whom.

use std::collections::BTreeSet;

use capsule_base::exit::Exit;
use capsule_core::change::{Change, FileState};
use capsule_core::journal::RunKind;
use capsule_store::{RunState, Store, StoreError};
use capsule_workspace::ChangeSet;

use super::record::UndoableRun;

/// What was taken back. Runs are named by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneBy {
    /// The runs that did, the first one first.
    pub runs: Vec<String>,
    /// Whether all of it was.
    pub is_complete: bool,
}

impl UndoneBy {
    /// Looks for those who took back what a run changed, since another one applied it. What was taken back
    /// before that was applied again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn find(
        store: &Store,
        (run, applying): (&str, &str),
        changes: &ChangeSet,
    ) -> Result<Option<Self>, StoreError> {
        let (mut by, mut back) = (Vec::new(), BTreeSet::new());
        let mut is_known = true;
        for run in [run, applying] {
            for undo in standing_undos(store, run)? {
                if !store.began_after(&undo, applying)? {
                    continue;
                }
                match UndoableRun::read(store, &undo) {
                    Ok(record) => {
                        let kept = record.calls.into_iter().filter_map(|call| call.undo_changes);
                        back.extend(kept.flatten().map(|change| change.path));
                    }
                    // Its record was erased.
                    Err(_) => is_known = false,
                }
                by.push(store.label(&undo));
            }
        }
        // A folder may stay for what else is in it.
        let is_back = |change: &Change| {
            back.contains(&change.path) || matches!(change.after, Some(FileState::Directory { .. }))
        };
        let whole = !is_known || changes.0.values().all(is_back);
        Ok((!by.is_empty()).then_some(Self { runs: by, is_complete: whole }))
    }
}

/// The undos of a run that were not undone in turn.
fn standing_undos(store: &Store, run: &str) -> Result<Vec<String>, StoreError> {
    let mut holding = Vec::new();
    for undo in store.runs_about(run, RunKind::Undo)? {
        if store.state(&undo)? == RunState::Sealed(Exit::Ok)
            && standing_undos(store, &undo)?.is_empty()
        {
            holding.push(undo);
        }
    }
    Ok(holding)
}
