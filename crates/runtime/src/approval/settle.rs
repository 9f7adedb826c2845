//! What becomes of a call that the policy asks about.

use capsule_core::call::ToolCall;
use capsule_core::evidence::{Answered, Asking, Cleared, Denied, Lifted};
use capsule_core::journal::Journal;

use crate::hands::Hands;
use crate::run::Run;

/// What became of a question.
pub(crate) enum Settled {
    /// The call may run.
    Cleared(Box<Cleared>),
    /// It does not.
    Denied(Denied),
    /// This one is made in its place.
    Changed(ToolCall),
}

/// Settles a question: by what was approved already, by a grant, or by asking. Behind an answer the
/// world is looked at again, and only if it is what was approved, the call may run.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else.
pub(crate) fn settle<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    asking: Box<Asking>,
) -> Result<Settled, J::Error> {
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let union = run.union.as_ref();
    let shown = match asking.lift(union, run.hands.approver(), redactor, journal)? {
        Lifted::Cleared(cleared) => return Ok(Settled::Cleared(cleared)),
        Lifted::Denied(denied) => return Ok(Settled::Denied(denied)),
        Lifted::Shown(shown) => shown,
    };
    let given = run.hands.approver().ask(shown.card());
    let approved = match shown.answered(given, redactor, journal)? {
        Answered::Approved(approved) => approved,
        Answered::Denied(denied) => return Ok(Settled::Denied(denied)),
        Answered::Changed(call) => return Ok(Settled::Changed(call)),
    };
    let now = run.hands.again(approved.call());
    Ok(match approved.again(now, &run.policy, redactor, journal)? {
        Ok(cleared) => Settled::Cleared(cleared),
        Err(denied) => Settled::Denied(denied),
    })
}
