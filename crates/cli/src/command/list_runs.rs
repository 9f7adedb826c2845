//! `capsule list-runs`: the runs of the store, the newest first.

use capsule_report::{run_line, run_rows, write_runs};
use capsule_store::{RunFilter, Store};
use serde_json::json;

use crate::args::ListRunsArgs;
use crate::command::{open_to_read, parse_since};
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, Screen};

pub(crate) fn run(args: &ListRunsArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let since = parse_since(args.since.as_deref())?;
    let tool = args.tool.as_ref().map(|name| {
        capsule_runtime::CATALOGUE
            .find(name)
            .map_or_else(|| name.clone(), |signature| signature.id.to_owned())
    });
    let filter = RunFilter { since, denied: args.denied, tool, touched: args.touched.clone() };
    let most = if args.all { u64::MAX } else { args.limit };
    // A store that is not there yet holds no runs; looking does not make one. One that was named is
    // expected to be there.
    let store = match ctx.store_is_explicit || ctx.store.exists() {
        true => Some(open_to_read(&ctx.store, screen)?),
        false => None,
    };
    let are_older = match store.filter(|_| most > 0) {
        Some(store) if screen.json => {
            screen.print_json_with(|out| write_runs(out, &store, &filter, most))?
        }
        Some(store) => lines(&store, &filter, most, screen)?,
        None if screen.json => {
            screen.print_json(&json!([]))?;
            false
        }
        None => {
            screen.print_line("no runs")?;
            false
        }
    };
    if are_older {
        screen.eprint(&format!(
            "{HINT}older{HINT:#}: only the newest {most} are listed · capsule list-runs --all"
        ));
    }
    Ok(0)
}

/// Prints each run; gives whether there are older ones that were not looked at.
fn lines(store: &Store, filter: &RunFilter, most: u64, screen: &Screen) -> Result<bool, Failure> {
    let mut left = most;
    let are_older = store.visit_runs(filter, |run| {
        let subject = run.subject.as_deref().map(|subject| store.label(subject));
        let rows = match screen.window() {
            Some(columns) => run_rows(&run, subject.as_deref(), columns),
            None => vec![run_line(&run, subject.as_deref(), screen.layout())],
        };
        screen.print_lines(&rows)?;
        left -= 1;
        Ok::<_, Failure>(left > 0)
    })?;
    if left == most {
        screen.print_line("no runs")?;
    }
    Ok(are_older)
}
