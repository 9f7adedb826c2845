//! P13: `fs_read` over MCP, on standard input and output: files of 4 KB, one and sixteen at a time, against a server
//! of rmcp that reads the same files without policy and record; and what memory both have before the first call.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Answer;
use crate::binary::Binary;
use crate::mcp::Client;
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::rmcp;
use crate::row::{Row, Target};

pub(crate) const POLICY: &str = r#"version: 1
name: mcp
budgets: { run: { calls: 1000000 } }
tools:
  fs.read: { decision: allow, paths: ["**"] }
"#;

/// How many files there are.
const FILES: usize = 16;
/// What each of them holds at its end.
pub(crate) const MARK: &str = "the end of a file";
/// How long the disk is given to come to rest.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let (calls, rounds) = (options.pick(500, 100), options.pick(21, 5));
    let workspace = options.fresh("p13-workspace")?;
    let binary = Binary::new(options, &options.fresh("p13")?, &workspace, POLICY)?;
    let paths = files(&workspace)?;
    let memory = Pairs::take(
        options.pick(5, 1),
        PAUSE,
        || ours(&binary)?.memory(),
        || theirs(&workspace)?.memory(),
    )?;
    let (mut ours, mut theirs) = (ours(&binary)?, theirs(&workspace)?);
    let mut rows = Vec::new();
    for at_once in [1, 16] {
        let pairs = Pairs::take(
            rounds,
            PAUSE,
            || seconds(|| ours.read(&paths, (calls, at_once), MARK)),
            || seconds(|| theirs.read(&paths, (calls, at_once), MARK)),
        )?;
        let what = format!("{calls} calls of fs_read, {at_once} at a time");
        rows.push(Row::new("P13", what, "rmcp", pairs, Target::SpeedAtLeast(0.3)));
    }
    let paths = &paths;
    let client = std::cell::RefCell::new(ours);
    let timed = |at_once| seconds(|| client.borrow_mut().read(paths, (calls, at_once), MARK));
    let pairs = Pairs::take(rounds, PAUSE, || timed(16), || timed(1))?;
    let what = format!("{calls} calls of fs_read, 16 at a time");
    rows.push(Row::new("P13", what, "1 at a time", pairs, Target::TimeAtMost(1.0)));
    let what = "memory before the first call";
    rows.push(Row::new("P13", what, "rmcp", memory, Target::AtMost(20e6)).in_bytes());
    Ok(rows)
}

/// Puts down the files; gives their names.
pub(crate) fn files(workspace: &Path) -> Answer<Vec<String>> {
    let name = |number| {
        let name = format!("notes{number}.md");
        let text = format!("{:4000}{number}\n{MARK}\n", "A line of some file.\n".repeat(190));
        let written = std::fs::write(workspace.join(&name), text);
        written.map(|()| name).map_err(|error| error.to_string())
    };
    (0..FILES).map(name).collect()
}

/// A client of ours.
pub(crate) fn ours(binary: &Binary) -> Answer<Client> {
    Client::start(&mut binary.command(&["mcp", "serve"], &[]))
}

/// A client of the reference.
fn theirs(workspace: &Path) -> Answer<Client> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Client::start(Command::new(program).arg(rmcp::WORD).current_dir(workspace))
}
