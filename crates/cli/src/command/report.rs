//! `capsule report`: what a run did.

use capsule_core::journal::RunKind;
use capsule_report::{Console, payload_lookup, write_run};
use capsule_store::{RunState, Store, StoreError};
use serde_json::Map;

use crate::args::{ReportArgs, ReportFormat};
use crate::command::open_store;
use crate::command::staged_changes::StagedChanges;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{Screen, WARNING};

pub(crate) fn run(args: &ReportArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(ctx, screen)?;
    let id = store.find(&args.run)?;
    if screen.json || args.format == ReportFormat::Json {
        let mut more = Map::new();
        if let Some(changed) = StagedChanges::find(&store, ctx, &id)? {
            more.insert("staged_changes".into(), changed.json(None));
        }
        if let Some(next) = resumed_by(&store, &id)? {
            more.insert("resumed_by".into(), next.into());
        }
        screen.print_json_with(|out| write_run(out, &store, &id, more))?;
        return Ok(0);
    }
    let mut console = Console::counting(screen.layout());
    let mut printed = Ok(());
    store.visit::<StoreError>(&id, |stored| {
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let lines =
            console.on_event(stored.entry.at, &stored.entry.event, &payload_lookup(&payloads));
        if printed.is_ok() {
            printed = screen.print_lines(&lines);
        }
        Ok(())
    })?;
    printed?;
    if console.run.sealed.is_some() {
        let (tree, note) = store.tree_at_seal(&id)?;
        screen.print_lines(&console.seal_lines(tree.size(), &tree.root(), note.as_ref()))?;
    } else {
        for call in console.run.calls.iter().filter(|call| call.is_unknown()) {
            let about = capsule_base::escape::line(&call.summary()).into_owned();
            screen.print_line(&format!(
                "{:>2} {WARNING}? UNKNOWN{WARNING:#} {} {about}: it was started and its end was never written",
                call.call, call.tool
            ))?;
        }
        screen.print_line(match store.state(&id)? {
            RunState::Running => "the run is not sealed: it goes on",
            RunState::Idle => "the session is open: more calls may follow",
            RunState::Crashed => "the run was not sealed: it crashed",
            RunState::Sealed(_) => "the run was sealed while it was read",
        })?;
    }
    if let Some(changed) = StagedChanges::find(&store, ctx, &id)? {
        changed.show(None, screen)?;
    }
    if let Some(next) = resumed_by(&store, &id)?.map(|next| store.label(&next)) {
        screen.print_line(&format!("resumed as {next} · capsule report {next}"))?;
    }
    Ok(0)
}

/// The last run that went on with one that waited or was ended.
fn resumed_by(store: &Store, run: &str) -> Result<Option<String>, StoreError> {
    Ok(store.runs_about(run, RunKind::Resume)?.pop())
}
