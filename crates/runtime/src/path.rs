//! The one path. Plans, one-shot calls and replays all end here, and there is no other entrance.

use std::panic::{AssertUnwindSafe, catch_unwind};

use capsule_core::call::ToolCall;
use capsule_core::evidence::{self, Judged};
use capsule_core::journal::Journal;

use crate::delivered::Delivered;
use crate::hands::Hands;
use crate::run::{Run, count};

/// Takes a call from what was asked to what came of it: proposed, understood, judged, cleared,
/// started, finished, each written down before the next begins.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else. Without a written
/// intent nothing has run.
pub fn submit<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    call: ToolCall,
) -> Result<Delivered, J::Error> {
    let call = run.count(call);
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let proposed = evidence::propose(call, run.calls, redactor, journal)?;
    let tool = proposed.call().tool.clone();
    let understanding = match run.hands.preflight(proposed.call()) {
        Ok(understanding) => understanding,
        Err(problem) => {
            let denied = proposed.misunderstood(problem, redactor, journal)?;
            return Ok(Delivered::denied(run.calls, &denied));
        }
    };
    let action = understanding.action.clone();
    let preflight = proposed.understood(understanding);
    let cleared = match preflight.judge(&run.policy, &run.usage, redactor, journal)? {
        Judged::Allowed(allowed) => allowed.clear(),
        Judged::Asking(asking) => return Ok(Delivered::denied(run.calls, &asking.unattended())),
        Judged::Denied(denied) => return Ok(Delivered::denied(run.calls, &denied)),
    };
    let decision = cleared.decision().clone();
    let acted = catch_unwind(AssertUnwindSafe(|| {
        evidence::run(cleared, redactor, journal, |permit, prepared| prepared.run(permit))
    }));
    match acted {
        Ok(done) => {
            let done = done?;
            count(&mut run.usage, &tool, &action, &done.value, done.micros);
            Ok(Delivered::done(run.calls, decision, done))
        }
        // The end of the call was written while the panic passed.
        Err(_) => Ok(Delivered::broken(run.calls, decision)),
    }
}
