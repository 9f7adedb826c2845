//! `capsule report`: what a run did.

use capsule_core::journal::RunKind;
use capsule_report::{Console, kept, write_run};
use capsule_store::{RunState, Store, StoreError};
use serde_json::Map;

use crate::args::{Format, Report};
use crate::command::changed::Changed;
use crate::command::open_store;
use crate::failure::Failure;
use crate::screen::{CARE, Screen};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Report, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let store = open_store(around, screen)?;
    let id = store.find(&args.run)?;
    if screen.json || args.format == Format::Json {
        let mut more = Map::new();
        if let Some(changed) = Changed::of(&store, around, &id)? {
            more.insert("staged_changes".into(), changed.json(None));
        }
        if let Some(next) = went_on(&store, &id)? {
            more.insert("resumed_by".into(), next.into());
        }
        screen.say_json_by(|out| write_run(out, &store, &id, more))?;
        return Ok(0);
    }
    let mut console = Console::counting(screen.layout());
    let mut printed = Ok(());
    store.visit::<StoreError>(&id, |stored| {
        let payloads = store.payloads(stored.leaf, &stored.entry.event)?;
        let lines = console.see(stored.entry.at, &stored.entry.event, &kept(&payloads));
        if printed.is_ok() {
            printed = screen.say_all(&lines);
        }
        Ok(())
    })?;
    printed?;
    if console.story.sealed.is_some() {
        let (tree, note) = store.sealed(&id)?;
        screen.say_all(&console.seal(tree.size(), &tree.root(), note.as_ref()))?;
    } else {
        for call in console.story.calls.iter().filter(|call| call.is_unknown()) {
            let about = capsule_core::escape::line(&call.about()).into_owned();
            screen.say(&format!(
                "{:>2} {CARE}? UNKNOWN{CARE:#} {} {about}: it was started and its end was never written",
                call.call, call.tool
            ))?;
        }
        screen.say(match store.state(&id)? {
            RunState::Running => "the run is not sealed: it goes on",
            RunState::Crashed => "the run was not sealed: it crashed",
            RunState::Sealed(_) => "the run was sealed while it was read",
        })?;
    }
    if let Some(changed) = Changed::of(&store, around, &id)? {
        changed.tell(None, screen)?;
    }
    if let Some(next) = went_on(&store, &id)?.map(|next| store.label(&next)) {
        screen.say(&format!("gone on with by {next} · capsule report {next}"))?;
    }
    Ok(0)
}

/// The last run that went on with one that waited or was ended.
fn went_on(store: &Store, run: &str) -> Result<Option<String>, StoreError> {
    Ok(store.about(run, RunKind::Resume)?.pop())
}
