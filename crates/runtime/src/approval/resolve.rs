//! What becomes of a call that the policy asks about.

use capsule_core::call::ToolCall;
use capsule_core::journal::Journal;
use capsule_core::lifecycle::{AnsweredCall, AwaitingApproval, Cleared, Denied, RoutedApproval};

use crate::backend::CallBackend;
use crate::run::Run;

/// What became of a question.
pub(crate) enum ApprovalOutcome {
    /// The call may run.
    Cleared(Box<Cleared>),
    /// It does not.
    Denied(Denied),
    /// This one is made in its place.
    Replaced(ToolCall),
}

/// Settles a question: by what was approved already, by a grant, or by asking. Behind an answer the
/// world is looked at again, and only if it is what was approved, the call may run.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else.
pub(crate) fn resolve_approval<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    asking: Box<AwaitingApproval>,
) -> Result<ApprovalOutcome, J::Error> {
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let union = run.batch_approval.as_ref();
    let shown = match asking.resolve(union, run.backend.approver(), redactor, journal)? {
        RoutedApproval::Cleared(cleared) => return Ok(ApprovalOutcome::Cleared(cleared)),
        RoutedApproval::Denied(denied) => return Ok(ApprovalOutcome::Denied(denied)),
        RoutedApproval::Shown(shown) => shown,
    };
    let given = run.backend.approver().ask(shown.card());
    let approved = match shown.accept_answer(given, redactor, journal)? {
        AnsweredCall::Approved(approved) => approved,
        AnsweredCall::Denied(denied) => return Ok(ApprovalOutcome::Denied(denied)),
        AnsweredCall::Changed(call) => return Ok(ApprovalOutcome::Replaced(call)),
    };
    let now = run.backend.preflight_again(approved.call());
    Ok(match approved.recheck(now, &run.policy, redactor, journal)? {
        Ok(cleared) => ApprovalOutcome::Cleared(cleared),
        Err(denied) => ApprovalOutcome::Denied(denied),
    })
}
