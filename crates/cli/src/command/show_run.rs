//! `capsule show-run`: a run, or one of its calls.

use crate::args::{Format, Report, ShowRun};
use crate::command::changed::Changed;
use crate::command::{no_such_call, open_store, report, run_and_step, story};
use crate::failure::Failure;
use crate::screen::Screen;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &ShowRun, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (run, step) = run_and_step(&args.run);
    let Some(step) = step else {
        let args = Report { run: run.to_owned(), format: Format::Console };
        return report::run(&args, around, screen);
    };
    let store = open_store(around, screen)?;
    let id = store.find(run)?;
    let story = story(&store, &id)?;
    let call = story.named(step).ok_or_else(|| no_such_call(run, step))?;
    let changed = match call.changes.is_empty() {
        true => None,
        false => Changed::of(&store, around, &id)?,
    };
    // Of a list, what is named by its step or as a whole is all of it.
    let list = story.list_of(call);
    let list = list.filter(|(whole, _)| call.step.is_some() || whole.call == call.call);
    if screen.json {
        let mut told = capsule_report::call(call);
        if let (Some((_, parts)), Some(map)) = (&list, told.as_object_mut()) {
            let parts = parts.iter().map(|part| capsule_report::call(part));
            map.insert("parts".into(), parts.collect());
        }
        if let (Some(changed), Some(map)) = (changed, told.as_object_mut()) {
            map.insert("staged_changes".into(), changed.json(Some(&call.changes)));
        }
        screen.say_json(&told)?;
        return Ok(0);
    }
    match list {
        None => screen.say_all(&capsule_report::call_detail(call, screen.layout()))?,
        Some((whole, parts)) => {
            screen.say_all(&capsule_report::call_detail(whole, screen.layout()))?;
            for part in parts {
                screen.say("")?;
                screen.say_all(&capsule_report::call_detail(part, screen.layout()))?;
            }
        }
    }
    if let Some(changed) = changed {
        changed.tell(Some(&call.changes), screen)?;
    }
    Ok(0)
}
