//! P10: a staged workspace. A command that works for 0.2 s and changes 10 files of 100,000, against
//! the same command that changes 10 files of its private `/tmp` and sees the workspace read-only.

use std::path::Path;
use std::time::Duration;

use crate::Answer;
use crate::binary::{Binary, quiet};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};
use crate::tree;

const STAGED: &str = r#"version: 1
name: staged
tools:
  shell.run:
    executables:
      perl: { decision: allow, writes: ["**"] }
"#;

/// Adds a word to files of these names in a folder, those of the workspace or others, and works for a
/// while. The folder stands in the program's own text: as a word of the command it would be judged.
const SCRIPT: &str = "my @files = glob 'area000/part000/*'; for (@files[1 .. 10]) { \
                      s{.*/}{FOLDER/}; open(my $f, '>>', $_) or die; print $f 'more'; close $f } \
                      select(undef, undef, undef, 0.2)";

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let count = options.pick(100_000, 10_000);
    let rounds = options.pick(31, 7);
    let mut rows = Vec::new();
    for files in [count, count / 100] {
        let tree = tree::of(&options.folder, files)?;
        let target = if files == count { Target::TimeAtMost(1.2) } else { Target::None };
        rows.push(row(options, &tree, (files, rounds), target)?);
    }
    Ok(rows)
}

fn row(
    options: &Options,
    tree: &Path,
    (files, rounds): (usize, usize),
    target: Target,
) -> Answer<Row> {
    let [staged, plain] = ["p10-staged", "p10-plain"].map(|name| options.fresh(name));
    let read_only = STAGED.replace(", writes: [\"**\"]", "");
    let staged = Binary::new(options, &staged?, tree, STAGED)?;
    let plain = Binary::new(options, &plain?, tree, &read_only)?;
    let [inside, outside] = ["area000/part000", "/tmp"].map(|own| SCRIPT.replace("FOLDER", own));
    let pairs = Pairs::take(
        rounds,
        Duration::from_millis(20),
        || {
            let words = ["--", "perl", "-e", &inside];
            let time = seconds(|| quiet(&mut staged.command(&["exec"], &words)))?;
            // What was staged is dropped outside of what is measured.
            quiet(&mut staged.bare(&["discard", "latest"]))?;
            Ok(time)
        },
        || seconds(|| quiet(&mut plain.command(&["exec"], &["--", "perl", "-e", &outside]))),
    )?;
    let what = format!("a command of 0.2 s, 10 changes, {files} files");
    Ok(Row::new("P10", what, "the same, unstaged", pairs, target))
}
