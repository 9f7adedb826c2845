//! The one path. Plans, one-shot calls and replays all end here, and there is no other entrance.

use std::panic::{AssertUnwindSafe, catch_unwind};

use capsule_core::call::ToolCall;
use capsule_core::code::Code;
use capsule_core::journal::Journal;
use capsule_core::lifecycle::{self, Judged};

use crate::approval::{Settled, settle};
use crate::delivered::Delivered;
use crate::hands::Hands;
use crate::list::List;
use crate::run::{Run, count};

/// Takes a call, and after it every part of the list that it may be, down the path. The end of a call that
/// changes and sends nothing is on record with the event after it: whoever tells somebody outside of the run what
/// came of it writes that event, or [flushes](Journal::flush_deferred), before.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else. Without a written
/// intent nothing has run.
pub fn submit<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    call: ToolCall,
) -> Result<Delivered, J::Error> {
    let (call, whole) = pass(run, call)?;
    let done = match List::of(&whole) {
        Some(list) => list.run(&call, whole, |part| pass(run, part).map(|(_, done)| done)),
        None => Ok(whole),
    };
    run.union = None;
    done
}

/// Takes a call from what was asked to what came of it: proposed, understood, judged, cleared,
/// started, finished, each written down before anything comes of it. Gives the call that was made in the
/// end, too: a person who is asked may have changed it.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else. Without a written
/// intent nothing has run.
fn pass<J: Journal, H: Hands>(
    run: &mut Run<J, H>,
    call: ToolCall,
) -> Result<(ToolCall, Delivered), J::Error> {
    let call = run.count(call);
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let proposed = lifecycle::propose(call.clone(), run.calls, redactor, journal)?;
    let tool = call.tool.clone();
    let made = proposed.args_mac();
    let understanding = match run.hands.preflight(proposed.call()) {
        Ok(understanding) => understanding,
        Err(problem) => {
            let denied = proposed.reject_invalid(problem, redactor, journal)?;
            run.usage.count_call(&tool, made);
            run.usage.count_denial();
            return Ok((call, Delivered::denied(run.calls, &denied)));
        }
    };
    let action = understanding.action.clone();
    let preflight = proposed.into_preflight(understanding);
    let judged = preflight.judge(&run.policy, &run.usage, redactor, journal)?;
    run.usage.count_call(&tool, made);
    let awaited = std::mem::take(&mut run.awaited);
    let settled = match judged {
        Judged::Allowed(allowed) if awaited => {
            Settled::Denied(allowed.refuse_unasked(&run.redactor, &mut run.journal)?)
        }
        Judged::Allowed(allowed) => Settled::Cleared(Box::new(allowed.clear())),
        Judged::NeedsApproval(asking) => settle(run, asking)?,
        Judged::Denied(denied) => Settled::Denied(denied),
    };
    let mut cleared = match settled {
        Settled::Cleared(cleared) => cleared,
        Settled::Changed(other) => return pass(run, other),
        Settled::Denied(denied) => {
            if denied.decision().code == Code::ApprovalWaiting {
                run.waiting = Some(run.calls);
                run.usage.uncount_call(&tool, made);
            } else {
                run.usage.count_denial();
            }
            return Ok((call, Delivered::denied(run.calls, &denied)));
        }
    };
    run.union = cleared.take_batch_approval().or(run.union.take());
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let decision = cleared.decision().clone();
    let acted = catch_unwind(AssertUnwindSafe(|| {
        lifecycle::run(*cleared, redactor, journal, |permit, prepared| prepared.run(permit))
    }));
    match acted {
        Ok(done) => {
            let done = done?;
            count(&mut run.usage, &tool, &action, &done.value, done.micros);
            Ok((call, Delivered::done(run.calls, decision, done)))
        }
        // The end of the call was written while the panic passed.
        Err(_) => Ok((call, Delivered::broken(run.calls, decision))),
    }
}
