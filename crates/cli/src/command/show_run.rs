//! `capsule show-run`: a run, or one of its calls.

use capsule_core::code::Code;
use capsule_core::outcome::Problem;

use crate::args::{Format, Report, ShowRun};
use crate::command::{open_store, report, run_and_step, story};
use crate::failure::Failure;
use crate::screen::Screen;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &ShowRun, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let (run, step) = run_and_step(&args.run);
    let Some(step) = step else {
        let args = Report { run: run.to_owned(), format: Format::Console };
        return report::run(&args, around, screen);
    };
    let store = open_store(around)?;
    let id = store.find(run)?;
    let story = story(&store, &id)?;
    let call = story.named(step).ok_or_else(|| {
        let message = format!("`{run}` has no call `{step}`");
        Problem::new(Code::RunUnknown, message).suggest("`capsule report` lists its calls")
    })?;
    if screen.json {
        screen.say_json(&capsule_report::call(call))?;
    } else {
        screen.say_all(&capsule_report::call_detail(call, screen.layout()))?;
    }
    Ok(0)
}
