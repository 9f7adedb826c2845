//! P4: `fs.search` by name, size and time over a million files in a warm cache, against `fd` and
//! `find` with the same filter. The whole process is measured on every side, and every side must
//! find the same number of files.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Answer;
use crate::binary::{Binary, printed};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};
use crate::{peer, tree};

const POLICY: &str = "version: 1
name: search
tools:
  fs.search: { decision: allow, limits: { results: 100, results_max: 100 } }
";

/// A filter, in the words of each side.
#[derive(Clone, Copy)]
enum Filter {
    /// By name, size and time: few files have the name, so few are looked at.
    Name,
    /// By size and time alone: every file must be looked at.
    Any,
}

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let (fd, find) = (peer::FD.find()?, peer::FIND.find()?);
    let count = options.pick(1_000_000, 50_000);
    let tree = tree::of(&options.folder, count)?;
    let files = options.fresh("p4")?;
    let binary = Binary::new(options, &files, &tree, POLICY)?;
    let rounds = options.pick(15, 5);
    let mut rows = Vec::new();
    for filter in [Filter::Name, Filter::Any] {
        let ours = Search { binary: &binary, filter };
        let partial = ours.check()?;
        let mut take = |name: &str, target: Target, mut command: Command| -> Answer<()> {
            agree(name, &mut command)?;
            let pairs = Pairs::take(
                rounds,
                Duration::ZERO,
                || seconds(|| ours.run().map(|_| ())),
                || seconds(|| printed(&mut command).map(|_| ())),
            )?;
            let what = format!("fs.search {}, {count} files", filter.words());
            let row = Row::new("P4", what, name, pairs, target);
            rows.push(match partial {
                true => row.cut_short("partial: the time limit of a search ended it"),
                false => row,
            });
            Ok(())
        };
        take("fd", Target::TimeAtMost(1.0), filter.fd(&fd, &tree))?;
        take("find", Target::None, filter.find(&find, &tree))?;
    }
    Ok(rows)
}

/// Our side.
struct Search<'s> {
    binary: &'s Binary,
    filter: Filter,
}

impl Search<'_> {
    fn run(&self) -> Answer<String> {
        let args = self.filter.ours().to_string();
        printed(&mut self.binary.command(&["call", "fs.search"], &["--args", &args]))
    }

    /// Whether the search ended before it had seen everything; if not, it must have found all.
    fn check(&self) -> Answer<bool> {
        let text = self.run()?;
        let answer: Value =
            serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
        let result = answer.get("result").ok_or_else(|| format!("no result: {text}"))?;
        let partial = result.get("partial").and_then(Value::as_bool).unwrap_or(false);
        let entries = result.get("entries").and_then(Value::as_array).map_or(0, Vec::len);
        if !partial && entries != tree::found() {
            return Err(format!("fs.search found {entries} and not {}", tree::found()));
        }
        Ok(partial)
    }
}

/// A reference that finds something else does something else.
fn agree(name: &str, command: &mut Command) -> Answer<()> {
    let lines = printed(command)?.lines().count();
    let wanted = tree::found();
    if lines == wanted { Ok(()) } else { Err(format!("{name} found {lines} and not {wanted}")) }
}

impl Filter {
    const fn words(self) -> &'static str {
        match self {
            Self::Name => "by name, size, time",
            Self::Any => "by size, time",
        }
    }

    fn ours(self) -> Value {
        let mut args = json!({ "min_size": 1_000_000, "modified_before": "2010-01-01" });
        if let (Self::Name, Value::Object(map)) = (self, &mut args) {
            map.insert("name".to_owned(), "*.pdf".into());
        }
        args
    }

    /// Without ignore files and with hidden files: that is what makes `fd` fastest here.
    fn fd(self, fd: &Path, tree: &Path) -> Command {
        let mut command = Command::new(fd);
        command.args(["--unrestricted", "--type", "f", "--color", "never"]);
        command.args(["--size", "+1m", "--changed-before", "2010-01-01 00:00:00"]);
        match self {
            Self::Name => command.args(["--glob", "*.pdf"]),
            Self::Any => command.arg("."),
        };
        command.arg(tree);
        command
    }

    fn find(self, find: &Path, tree: &Path) -> Command {
        let mut command = Command::new(find);
        command.arg(tree).args(["-type", "f"]);
        if let Self::Name = self {
            command.args(["-name", "*.pdf"]);
        }
        command.args(["-size", "+999999c", "!", "-newermt", "2010-01-01"]);
        command
    }
}
