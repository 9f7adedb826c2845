//! P11: test suites of small projects in Python, JavaScript and Rust, staged inside and run outside: files, hashes,
//! further processes, and for Rust the build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Answer;
use crate::binary::{Binary, quiet};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: suites
extends: builtin:developer
tools:
  shell.run:
    effects: { code: allow }
"#;

/// How long the disk is given to come to rest.
const PAUSE: Duration = Duration::from_millis(50);

/// A name, what runs the tests, and the files of the project.
type Suite = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const SUITES: &[Suite] = &[
    (
        "unittest, Python",
        &["/usr/bin/python3", "-m", "unittest", "-q"],
        &[("test_notes.py", include_str!("../suites/test_notes.py"))],
    ),
    (
        "node --test",
        &["node", "--test"],
        &[("notes.test.js", include_str!("../suites/notes.test.js"))],
    ),
    (
        "cargo test, from nothing",
        &["cargo", "test", "--offline", "--quiet"],
        &[
            // A workspace of its own, wherever it is put.
            (
                "Cargo.toml",
                "[workspace]\n\n[package]\nname = \"notes\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("src/lib.rs", include_str!("../suites/notes.rs")),
        ],
    ),
];

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    SUITES.iter().map(|suite| row(options, suite)).collect()
}

fn row(options: &Options, (name, line, files): &Suite) -> Answer<Row> {
    let [inside, outside] = ["p11-inside", "p11-outside"].map(|place| options.fresh(place));
    let (inside, outside) = (inside?, outside?);
    let binary = Binary::new(options, &options.fresh("p11")?, &inside, POLICY)?;
    put(&inside, files)?;
    let pairs = Pairs::take(
        options.pick(11, 3),
        PAUSE,
        || {
            let words = [&["--"], *line].concat();
            let time = seconds(|| quiet(&mut binary.command(&["exec", "--unattended"], &words)))?;
            // What was staged is dropped outside of what is measured; one of the suites changes nothing.
            drop(quiet(&mut binary.bare(&["discard", "latest"])));
            Ok(time)
        },
        || {
            put(&outside, files)?;
            let (program, words) = line.split_first().ok_or("a suite has no program")?;
            let mut command = Command::new(program);
            // No more than a command inside has of it.
            command.args(words).env_remove("CARGO_TARGET_DIR").current_dir(&outside);
            seconds(|| quiet(&mut command))
        },
    )?;
    let what = format!("{name}, staged");
    Ok(Row::new("P11", what, "the same outside", pairs, Target::TimeAtMost(1.15)))
}

/// Has a directory hold these files and no others.
fn put(directory: &Path, files: &[(&str, &str)]) -> Answer<()> {
    let write = |(name, text): &(&str, &str)| {
        let path: PathBuf = directory.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)
    };
    std::fs::remove_dir_all(directory)
        .and_then(|()| files.iter().try_for_each(write))
        .map_err(|error| format!("{}: {error}", directory.display()))
}
