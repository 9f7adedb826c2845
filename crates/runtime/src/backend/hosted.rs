//! Operations that the program which hosts a model carries out: what they replace is backed up here, and nothing else
//! happens.

use capsule_core::action::Facts;
use capsule_core::lifecycle::{Operation, Permit, PreflightReport, Preview, SavedUndo};
use capsule_core::outcome::{CodedError, Outcome, Output};

/// An operation that the host carries out once the hook has answered it.
pub(crate) struct HostOperation(Box<dyn Operation>);

impl HostOperation {
    /// The same report, of which the host carries out the operation.
    pub(crate) fn in_report(report: PreflightReport) -> PreflightReport {
        let operation = Box::new(Self(report.operation));
        let facts = Facts { by_host: true, ..report.facts };
        PreflightReport { operation, facts, ..report }
    }
}

impl Operation for HostOperation {
    fn save_undo(&mut self) -> Result<Option<SavedUndo>, CodedError> {
        self.0.save_undo()
    }

    fn preview(&mut self) -> Preview {
        self.0.preview()
    }

    fn run(self: Box<Self>, _: Permit<'_>) -> Outcome {
        Outcome::done(Output::default().with("performed_by", "host"))
    }
}
