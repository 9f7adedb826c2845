//! The one path. Plans, one-shot calls and replays all end here, and there is no other entrance.

use std::panic::{AssertUnwindSafe, catch_unwind};

use capsule_base::code::Code;
use capsule_base::root_names::RootNames;
use capsule_core::action::{Action, Facts};
use capsule_core::call::{Origin, ToolCall};
use capsule_core::journal::Journal;
use capsule_core::lifecycle::{self, FinishedCall, Judged, RunningCall};

use crate::approval::{ApprovalOutcome, files_read, resolve_approval};
use crate::backend::CallBackend;
use crate::call_result::CallResult;
use crate::command_list::CommandList;
use crate::run::{Run, count_usage};
use crate::script_files::with_script_texts;

/// Takes a call, and after it every part of the list that it may be, down the path. The end of a call that
/// changes and sends nothing is on record with the event after it: whoever tells somebody outside of the run what
/// came of it writes that event, or [flushes](Journal::flush_deferred), before.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else. Without a written
/// intent nothing has run.
pub fn submit<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    call: ToolCall,
) -> Result<CallResult, J::Error> {
    let call = with_script_texts((&run.policy, &run.usage), &mut run.backend, call);
    let (call, whole) = run_call(run, call)?;
    let done = match CommandList::from_result(&call, &whole) {
        Some(list) => {
            let sink = run.backend.sink();
            list.run((&call, sink), whole, |part, captures| {
                run.backend.capture_output(captures);
                run_call(run, part).map(|(_, done)| done)
            })
        }
        None => Ok(whole),
    };
    run.backend.capture_output(false);
    run.backend.end_jobs();
    run.batch_approval = None;
    done
}

/// Takes a call from what was asked to what came of it: proposed, understood, judged, cleared,
/// started, finished, each written down before anything comes of it. Gives the call that was made in the
/// end, too: a person who is asked may have changed it.
///
/// # Errors
/// When something cannot be written, or a replay's recording has something else. Without a written
/// intent nothing has run.
fn run_call<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    call: ToolCall,
) -> Result<(ToolCall, CallResult), J::Error> {
    let call = run.number_call(call);
    let (redactor, journal) = (&run.redactor, &mut run.journal);
    let proposed = lifecycle::propose(call.clone(), run.calls, redactor, journal)?;
    let (tool, made) = (call.tool.clone(), proposed.args_mac());
    let understanding = match run.backend.preflight(proposed.call()) {
        Ok(understanding) => understanding,
        Err(problem) => {
            let denied = proposed.reject_invalid(problem, redactor, journal)?;
            run.usage.count_call(&tool, made);
            run.usage.count_denial();
            return Ok((call, CallResult::denied(run.calls, &denied)));
        }
    };
    let (action, facts) = (understanding.action.clone(), &understanding.facts);
    let (names, reads_files) = (facts.root_names.clone(), reads_files(&call, &action, facts));
    let preflight = proposed.into_preflight(understanding);
    let judged = preflight.judge(&run.policy, &run.usage, redactor, journal)?;
    run.usage.count_call(&tool, made);
    let awaited = std::mem::take(&mut run.next_is_answered);
    let settled = match judged {
        Judged::Allowed(allowed) if awaited => {
            ApprovalOutcome::Denied(allowed.refuse_unasked(&run.redactor, &mut run.journal)?)
        }
        Judged::Allowed(allowed) => ApprovalOutcome::Cleared(Box::new(allowed.clear())),
        Judged::NeedsApproval(asking) => resolve_approval(run, asking)?,
        Judged::Denied(denied) => ApprovalOutcome::Denied(denied),
    };
    let mut cleared = match settled {
        ApprovalOutcome::Cleared(cleared) => cleared,
        ApprovalOutcome::Replaced(other) => return run_call(run, other),
        ApprovalOutcome::Denied(denied) => {
            if denied.decision().code == Code::ApprovalWaiting {
                run.waiting = Some(run.calls);
                run.usage.uncount_call(&tool, made);
            } else {
                run.usage.count_denial();
            }
            return Ok((call, CallResult::denied(run.calls, &denied)));
        }
    };
    run.batch_approval = cleared.take_batch_approval().or(run.batch_approval.take());
    let (redactor, journal, decision) =
        (&run.redactor, &mut run.journal, cleared.decision().clone());
    let (policy, approver) = (run.policy.digest(), run.backend.approver());
    let running = RunningCall { call: &call, policy, approver };
    let acted = catch_unwind(AssertUnwindSafe(|| {
        lifecycle::run(*cleared, running, redactor, journal, |permit, held| held.run(permit))
    }));
    let done = match acted {
        // The end of the call was written while the panic passed.
        Err(_) => return Ok((call, CallResult::broken(run.calls, decision))),
        Ok(done) => done?,
    };
    count_finished(run, &call, (&action, &names, reads_files), &done);
    Ok((call, CallResult::done(run.calls, decision, done)))
}

/// Counts a call that ran, with what it used of the network.
fn count_finished<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    call: &ToolCall,
    (action, names, reads_files): (&Action, &RootNames, bool),
    done: &FinishedCall,
) {
    count_usage(&mut run.usage, &call.tool, (action, names), &done.value, done.micros);
    run.usage.count_network(&call.tool, done.network.clone());
    note_exposure(run, call, (action, reads_files), done);
}

/// Whether a call of a model reads files.
fn reads_files(call: &ToolCall, action: &Action, facts: &Facts) -> bool {
    is_of_model(call) && !files_read(action, facts).is_empty()
}

/// Whether a model makes the call, here or in a program that hosts one.
const fn is_of_model(call: &ToolCall) -> bool {
    matches!(call.origin, Origin::Model | Origin::Mcp)
}

/// Notes where a model read what is the user's, and where it saw content from elsewhere. A plan's calls are fixed before
/// anything is seen. A command reads whatever it may, unless all that is known of it is that it asked the network.
fn note_exposure<J: Journal, H: CallBackend>(
    run: &mut Run<J, H>,
    call: &ToolCall,
    (action, reads_files): (&Action, bool),
    done: &FinishedCall,
) {
    let is_attached = matches!(action, Action::Attach { .. });
    if !is_attached && !is_of_model(call) {
        return;
    }
    let asked_network = !done.network.hosts.is_empty();
    let reads = match action {
        Action::Run { .. } | Action::Command { .. } => reads_files || !asked_network,
        Action::Attach { .. }
        | Action::Search { .. }
        | Action::Git { .. }
        | Action::Test { .. } => true,
        _ => reads_files,
    };
    let number = run.calls;
    if reads {
        run.usage.read_private.get_or_insert(number);
    }
    if asked_network || run.policy.taints(&call.tool) {
        run.usage.saw_untrusted.get_or_insert(number);
    }
}
