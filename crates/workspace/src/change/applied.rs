//! Changes that somebody applied who was stopped before the end was recorded, and whose staged files are gone:
//! a power cut may lose the end of a record, and not that they were removed behind it. Nothing is made here,
//! only found.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use capsule_base::code::Code;
use capsule_core::change::Change;
use capsule_core::outcome::{CodedError, Output};

use super::applier::ChangeApplier;
use super::apply::applier_of_run;
use crate::resolve::Workspace;

/// Changes that are looked for in the workspace.
pub struct AppliedChanges {
    run: String,
    changes: Vec<Change>,
    applier: ChangeApplier,
    /// Nobody applies or undoes anything in the workspace meanwhile.
    _lock: OwnedFd,
}

impl AppliedChanges {
    /// # Errors
    /// [`Code::ChangeConflict`] while somebody else changes something in the same workspace.
    pub fn new(
        workspace: &Rc<Workspace>,
        run: String,
        changes: Vec<Change>,
    ) -> Result<Self, CodedError> {
        let applier = applier_of_run(workspace, &run, &changes);
        let lock = applier.lock_workspace().ok_or_else(|| {
            let message = "somebody else applies or undoes something here";
            CodedError::new(Code::ChangeConflict, message)
                .with_suggestion("try again when that is over")
        })?;
        Ok(Self { run, changes, applier, _lock: lock })
    }

    /// Whether all of them are there.
    ///
    /// # Errors
    /// [`Code::ChangeConflict`] where one is not.
    pub fn require_applied(&self) -> Result<(), CodedError> {
        for change in &self.changes {
            if self.applier.current_node(change)? != change.after {
                let Self { run, .. } = self;
                let message = format!(
                    "the run's staged changes are gone, and `{}` is not in the workspace",
                    change.path
                );
                let hint = format!(
                    "`capsule undo {run}` takes back what was applied; run it again to have all of it"
                );
                return Err(CodedError::new(Code::ChangeConflict, message).with_suggestion(hint));
            }
        }
        Ok(())
    }

    /// Says that they are there, and removes what is left beside them.
    ///
    /// # Errors
    /// One is not there, or what is left cannot be removed.
    pub fn finish(&self) -> Result<Output, CodedError> {
        self.require_applied()?;
        self.applier.clear_leftovers(&self.changes)?;
        let count = u64::try_from(self.changes.len()).unwrap_or(u64::MAX);
        let output = Output::default().with("run", self.run.clone());
        Ok(output.with("applied", 0).with("applied_before", count))
    }
}
