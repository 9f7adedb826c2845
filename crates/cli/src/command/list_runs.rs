//! `capsule list-runs`: the runs of the store, the newest first.

use std::time::SystemTime;

use capsule_core::units::parse_duration;
use capsule_store::{Filter, Store};

use crate::args::ListRuns;
use crate::failure::{Failure, usage};
use crate::screen::Screen;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &ListRuns, around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let since = match &args.since {
        Some(text) => {
            let ago = parse_duration(text)
                .ok_or_else(|| usage(format!("`{text}` is not a duration such as `1d`")))?;
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            u64::try_from(now.saturating_sub(ago).as_micros()).ok()
        }
        None => None,
    };
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
