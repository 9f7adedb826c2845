//! `capsule feedback`: a person says that a decision was wrong. It changes no decision; it is counted.

use capsule_core::journal::DecisionFault;
use capsule_runtime::Feedback;
use capsule_store::Store;
use serde_json::json;

use crate::args::FeedbackArgs;
use crate::command::{no_such_call, open_store, run_and_step, story};
use crate::failure::{Failure, usage};
use crate::screen::{GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(
    args: &FeedbackArgs,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let (run, step) = run_and_step(&args.call);
    let step = step.ok_or_else(|| usage("name a call as RUN:STEP, such as `latest:1`"))?;
    let store = open_store(around, screen)?;
    let id = store.find(run)?;
    let story = story(&store, &id)?;
    let call = story.named(step).ok_or_else(|| no_such_call(run, step))?;
    let was_refused = call.was_denied() || call.was_asked();
    let fault =
        if args.wrong_denial { DecisionFault::WrongDenial } else { DecisionFault::WrongAllow };
    match fault {
        DecisionFault::WrongDenial if !was_refused => {
            return Err(usage(format!("`{}` was not denied", args.call)));
        }
        DecisionFault::WrongAllow if was_refused => {
            return Err(usage(format!("`{}` was not allowed", args.call)));
        }
        _ => {}
    }
    let label = store.label(&id);
    drop(store);
    let feedback = Feedback { run: &id, call: call.call, fault, why: args.message.as_deref() };
    let own = feedback.give(Store::open(&around.store)?)?;
    if screen.json {
        screen.say_json(&json!({
            "schema": 1,
            "run": own,
            "subject": label,
            "call": call.call,
            "fault": fault,
        }))?;
        return Ok(0);
    }
    screen.say(&format!("{GOOD}✔ noted{GOOD:#} {label}:{} · recorded as {own}", call.call))?;
    screen.complain(&match fault {
        DecisionFault::WrongDenial => {
            format!("{HINT}next{HINT:#}: capsule policy explain {label}:{}", call.call)
        }
        DecisionFault::WrongAllow => format!("{HINT}counted by{HINT:#}: capsule stats safety"),
    });
    Ok(0)
}
