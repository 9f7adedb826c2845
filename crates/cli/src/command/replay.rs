//! `capsule replay`: a recorded run, served again; executes nothing.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::units::counted;
use capsule_core::journal::Event;
use capsule_core::outcome::CodedError;
use capsule_report::write_run;
use capsule_runtime::{ReplaySource, read_text, replay};
use capsule_store::Store;
use serde_json::Map;

use crate::args::ReplayArgs;
use crate::command::{open_store, run::read_plan};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{Screen, WARNING};
use crate::timeline::Timeline;

pub(crate) fn run(args: &ReplayArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let out = ctx.check_out_file(args.out.as_deref())?;
    let store = open_store(ctx, screen)?;
    let id = store.find(&args.run)?;
    let label = store.label(&id);
    // A record that was tampered with is refused before the first step.
    if let Err(fault) = store.verify(Some(&id))? {
        let message = format!("{}: {}", fault.place, fault.what);
        return Err(CodedError::new(Code::Integrity, message)
            .with_suggestion("`capsule verify` says more")
            .into());
    }
    let plan = match &args.plan {
        Some(path) => Some(read_plan(path)?),
        None => {
            warn_of_changed_plan(&store, &id, screen);
            None
        }
    };
    let mut timeline = Timeline::new(*screen, screen.json);
    let source = ReplaySource { store, run: &id, plan, keep_going: args.keep_going };
    let replayed = replay(source, &mut timeline).map_err(|error| match error.into() {
        Failure::Diverged { divergences, .. } => {
            Failure::Diverged { label: label.clone(), divergences }
        }
        other => other,
    })?;
    let store = Store::open_read_only(&ctx.store)?;
    if screen.json {
        screen.print_json_with(|out| write_run(out, &store, &id, Map::new()))?;
    } else {
        let (tree, note) = store.tree_at_seal(&id)?;
        screen.print_lines(&timeline.console.seal_lines(
            tree.size(),
            &tree.root(),
            note.as_ref(),
        ))?;
    }
    if let Some(out) = &out {
        // Every event that the replay made equals the recorded one, so they are its record too.
        let digest = store.export(&id, out)?;
        screen.eprint(&format!("written {} · sha256 {digest}", out.display()));
    }
    screen.eprint(&format!(
        "replayed {label}: {} served from the record, nothing was executed",
        counted(replayed.calls, "call")
    ));
    Ok(replayed.status)
}

/// Says so when the plan's file is not what it was.
fn warn_of_changed_plan(store: &Store, id: &str, screen: &Screen) {
    let Ok(Some(first)) = store.event(id, 1) else { return };
    let Event::RunOpened(opened) = first.entry.event else { return };
    let Some(plan) = opened.plan else { return };
    let now = read_text(Path::new(&plan.path), limits::PLAN_BYTES, Code::PlanUnreadable);
    let note = match now {
        Ok(text) if Digest::of(text.as_bytes()) == plan.sha256 => return,
        Ok(_) => "has changed since; compare with --plan",
        Err(_) => "is not there any more",
    };
    let path = capsule_base::escape::line(&plan.path).into_owned();
    screen.eprint(&format!("{WARNING}note{WARNING:#}: the plan `{path}` {note}"));
}
