//! What of a run can be undone, and what waits to be taken over.

use capsule_core::action::Action;
use capsule_core::capability::Capability;
use capsule_core::confinement::WorkspaceAccess;
use capsule_core::journal::{PendingChanges, UndoCoverage};
use capsule_core::outcome::Ending;

use crate::call_view::CallView;
use crate::run_view::{RunView, StepView};

impl RunView {
    /// What a person would name to undo what the run did, if anything of it can be undone.
    #[must_use]
    pub fn undo_name(&self) -> Option<String> {
        let label = &self.header.as_ref()?.opened.label;
        let mut calls = self.calls.iter().filter(|call| call.can_be_undone());
        let first = calls.next()?;
        let by_step = |step: &&StepView| Some(&step.ended.step) == first.step.as_ref();
        Some(match (calls.next(), self.steps.iter().find(by_step)) {
            (Some(_), _) => label.clone(),
            (None, Some(step)) => format!("{label}:{}", step.number),
            (None, None) => format!("{label}:{}", first.call),
        })
    }
}

impl CallView {
    /// Whether it could change the workspace itself, of which nothing is collected.
    #[must_use]
    pub fn writes_directly(&self) -> bool {
        let confinement = self.started.as_ref().and_then(|(_, started)| started.confinement);
        confinement.is_some_and(|confinement| confinement.workspace == WorkspaceAccess::Direct)
    }

    /// Whether it ran with nothing around it.
    #[must_use]
    pub fn is_unconfined(&self) -> bool {
        let needs = self.decision.as_ref().map(|decision| decision.capabilities);
        self.started.is_some()
            && needs.is_some_and(|need| need.contains(Capability::ProcUnconfined))
    }

    /// Whether it changed the workspace itself, or may have, and what stood there was kept. A write or an
    /// edit that failed changed nothing.
    #[must_use]
    pub fn can_be_undone(&self) -> bool {
        let kept = self.started.as_ref().is_some_and(|(_, started)| started.undo.is_some());
        let whole = matches!(self.action, Some(Action::Write { .. } | Action::Edit { .. }));
        let failed = self.finished.as_ref().is_some_and(|(_, end)| end.ending != Ending::Done);
        kept && self.changes.is_empty() && !(whole && failed)
    }

    /// Whether it changed something, or may have, of which nothing could be kept.
    #[must_use]
    pub fn is_irreversible(&self) -> bool {
        let unkept = self.facts.as_ref().is_some_and(|facts| facts.no_undo.is_some());
        unkept && self.started.as_ref().is_some_and(|(_, started)| started.undo.is_none())
    }

    /// What its undo record covers.
    #[must_use]
    pub fn undo_coverage(&self) -> Option<UndoCoverage> {
        self.started.as_ref().and_then(|(_, started)| started.covers)
    }
}

/// The line of a header for what waits from earlier runs.
pub(crate) fn pending_text(PendingChanges { runs, paths }: PendingChanges) -> String {
    let run = if runs == 1 { "run" } else { "runs" };
    let path = if paths == 1 { "path" } else { "paths" };
    format!(
        "waiting    {runs} {run} staged {paths} {path} here that nobody applied · capsule changes"
    )
}
