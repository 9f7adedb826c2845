//! `capsule list-runs`: the runs of the store, the newest first.

use capsule_store::{Filter, Store};

use crate::args::ListRuns;
use crate::command::since;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &ListRuns, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let since = since(args.since.as_deref())?;
    let tool = args.tool.as_ref().map(|name| {
        capsule_runtime::CATALOGUE.find(name).map_or_else(|| name.clone(), |own| own.id.to_owned())
    });
    let filter = Filter { since, denied: args.denied, tool, touched: args.touched.clone() };
    // A store that is not there yet holds no runs; looking does not make one. One that was named is
    // expected to be there.
    let runs = match around.store_named || around.store.exists() {
        true => Store::open_read_only(&around.store)?.list(&filter)?,
        false => Vec::new(),
    };
    if screen.json {
        screen.say_json(&capsule_report::run_list_json(&runs))?;
    } else {
        screen.say_all(&capsule_report::run_list(&runs, screen.layout()))?;
    }
    Ok(0)
}
