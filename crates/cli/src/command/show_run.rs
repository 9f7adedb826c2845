//! `capsule show-run`: a run, or one of its calls.

use crate::args::{ReportArgs, ReportFormat, ShowRunArgs};
use crate::command::staged_changes::StagedChanges;
use crate::command::{no_such_call, open_store, read_run, report, run_and_step};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) fn run(args: &ShowRunArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let (run, step) = run_and_step(&args.run);
    let Some(step) = step else {
        let args = ReportArgs { run: run.to_owned(), format: ReportFormat::Console };
        return report::run(&args, ctx, screen);
    };
    let store = open_store(ctx, screen)?;
    let id = store.find(run)?;
    let view = read_run(&store, &id)?;
    let call = view.find_call(step).ok_or_else(|| no_such_call(run, step))?;
    let changed = match call.changes.is_empty() {
        true => None,
        false => StagedChanges::find(&store, ctx, &id)?,
    };
    // Of a list, what is named by its step or as a whole is all of it.
    let list = view.list_of(call);
    let list = list.filter(|(whole, _)| call.step.is_some() || whole.call == call.call);
    if screen.json {
        let mut told = capsule_report::call_json(call);
        if let (Some((_, parts)), Some(map)) = (&list, told.as_object_mut()) {
            let parts = parts.iter().map(|part| capsule_report::call_json(part));
            map.insert("parts".into(), parts.collect());
        }
        if let (Some(changed), Some(map)) = (changed, told.as_object_mut()) {
            map.insert("staged_changes".into(), changed.json(Some(&call.changes)));
        }
        screen.print_json(&told)?;
        return Ok(0);
    }
    match list {
        None => screen.print_lines(&capsule_report::call_detail(call, screen.layout()))?,
        Some((whole, parts)) => {
            screen.print_lines(&capsule_report::call_detail(whole, screen.layout()))?;
            for part in parts {
                screen.print_line("")?;
                screen.print_lines(&capsule_report::call_detail(part, screen.layout()))?;
            }
        }
    }
    if let Some(changed) = changed {
        changed.show(Some(&call.changes), screen)?;
    }
    Ok(0)
}
