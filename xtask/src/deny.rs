//! Checks the dependencies by `deny.toml`: licences, sources, duplicates, and known advisories.
//!
//! The advisories are a repository of others that has to be fetched. Where that is not possible they are not
//! checked, and the task says so; with `--advisories` it fails then.

use std::path::Path;
use std::process::{Command, Output};

use crate::{TaskResult, cargo};

/// The graphs that are locked, each with whether crates may stand in it in two versions: what Capsule is
/// compared with is built as its authors build it.
const GRAPHS: &[(&str, bool)] = &[("Cargo.toml", false), ("bench/Cargo.toml", true)];

/// Checks every graph; says whether nothing was found.
///
/// # Errors
/// When `cargo deny` is not there, or the advisories are demanded and cannot be had.
pub(crate) fn run(root: &Path, demands_advisories: bool) -> TaskResult<bool> {
    let mut all_good = true;
    for (manifest, duplicates) in GRAPHS {
        let mut check = check(root, manifest, *duplicates);
        check.args(["bans", "licenses", "sources"]);
        all_good &= told(manifest, &output(&mut check)?);
    }
    let fetched = output(deny(root).args(["fetch", "db"]))?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let why = why.lines().find(|line| line.contains("fatal")).unwrap_or("it cannot be fetched");
        let message =
            format!("advisories: NOT CHECKED, their database is not here: {}", why.trim());
        return if demands_advisories { Err(message) } else { Ok(say(&message, all_good)) };
    }
    for (manifest, duplicates) in GRAPHS {
        let mut check = check(root, manifest, *duplicates);
        all_good &= told(manifest, &output(check.arg("advisories"))?);
    }
    Ok(all_good)
}

/// Prints a line; gives the answer on.
fn say(line: &str, answer: bool) -> bool {
    println!("{line}");
    answer
}

/// `cargo deny`, with this repository's settings.
fn deny(root: &Path) -> Command {
    let mut deny = cargo::command(root);
    deny.args(["deny", "--locked", "--config", "deny.toml"]);
    deny
}

/// A check of one graph. Crates may have to be fetched; the advisories have been.
fn check(root: &Path, manifest: &str, duplicates: bool) -> Command {
    let mut check = deny(root);
    check.args(["--manifest-path", manifest, "check", "--hide-inclusion-graph"]);
    // An exception is for one of the graphs.
    check.args(["--allow", "unmatched-skip", "--allow", "unnecessary-skip"]);
    check.args(["--allow", "license-exception-not-encountered"]);
    if duplicates {
        check.args(["--allow", "duplicate"]);
    }
    check
}

fn output(command: &mut Command) -> TaskResult<Output> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match said.contains("no such command") {
        true => Err("`cargo deny` is not there: `cargo install cargo-deny --locked`".to_owned()),
        false => Ok(output),
    }
}

/// Prints what was found; says whether it was nothing.
fn told(manifest: &str, output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let summary = String::from_utf8_lossy(&output.stdout);
        let line = summary.lines().chain(said.lines()).last().unwrap_or_default().to_owned();
        return say(&format!("{manifest}: {line}"), true);
    }
    say(&format!("{manifest}:\n{said}"), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock file that is not among them would be checked by nobody.
    #[test]
    fn every_locked_graph_is_checked() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let locked = |folder: &Path| folder.join("Cargo.lock").exists();
        let folders = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<String> = folders
            .filter(|folder| locked(folder))
            .map(|folder| format!("{}/Cargo.toml", folder.file_name().unwrap().to_string_lossy()))
            .collect();
        found.push("Cargo.toml".to_owned());
        found.sort();
        let mut named: Vec<&str> = GRAPHS.iter().map(|(manifest, _)| *manifest).collect();
        named.sort_unstable();
        assert_eq!(found, named);
    }
}
