//! `capsule feedback`: a person says that a decision was wrong. It changes no decision; it is counted.

use capsule_core::journal::DecisionFault;
use capsule_runtime::FeedbackRequest;
use capsule_store::Store;
use serde_json::json;

use crate::args::FeedbackArgs;
use crate::command::{no_such_call, open_store, read_run, run_and_step};
use crate::context::CliContext;
use crate::failure::{Failure, usage_failure};
use crate::screen::{HINT, SUCCESS, Screen};

pub(crate) fn run(args: &FeedbackArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (run, step) = run_and_step(&args.call);
    let step = step.ok_or_else(|| usage_failure("name a call as RUN:STEP, such as `latest:1`"))?;
    let store = open_store(ctx, screen)?;
    let id = store.find(run)?;
    let view = read_run(&store, &id)?;
    let call = view.find_call(step).ok_or_else(|| no_such_call(run, step))?;
    let was_refused = call.was_denied() || call.lacked_approval();
    let fault =
        if args.wrong_denial { DecisionFault::WrongDenial } else { DecisionFault::WrongAllow };
    match fault {
        DecisionFault::WrongDenial if !was_refused => {
            return Err(usage_failure(format!("`{}` was not denied", args.call)));
        }
        DecisionFault::WrongAllow if was_refused => {
            return Err(usage_failure(format!("`{}` was not allowed", args.call)));
        }
        _ => {}
    }
    let label = store.label(&id);
    drop(store);
    let feedback =
        FeedbackRequest { run: &id, call: call.call, fault, why: args.message.as_deref() };
    let text = feedback.record(Store::open(&ctx.store)?)?;
    if screen.json {
        screen.print_json(&json!({
            "schema": 1,
            "run": text,
            "subject": label,
            "call": call.call,
            "fault": fault,
        }))?;
        return Ok(0);
    }
    screen.print_line(&format!(
        "{SUCCESS}✔ noted{SUCCESS:#} {label}:{} · recorded as {text}",
        call.call
    ))?;
    screen.eprint(&match fault {
        DecisionFault::WrongDenial => {
            format!("{HINT}next{HINT:#}: capsule policy explain {label}:{}", call.call)
        }
        DecisionFault::WrongAllow => format!("{HINT}counted by{HINT:#}: capsule stats safety"),
    });
    Ok(0)
}
