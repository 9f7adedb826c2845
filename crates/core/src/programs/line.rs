//! A command line with everything that is known about its program.
//!
//! What a program is, its file says: a rule may call it by another name, and a link may too. So
//! each name counts, the one that was typed and those on disk, and the strictest answer holds.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::action::ProgramFact;
use crate::programs::{Command, Reading, known};

/// A command line, read once for all rules.
#[derive(Clone, Debug)]
pub struct CommandLine<'c> {
    /// Its words.
    pub argv: &'c [String],
    /// The names that the program goes by, plainest first.
    pub names: Vec<String>,
    /// What is known of it under its names, with the command line read so; without any knowledge
    /// one reading.
    pub readings: Vec<(Option<&'static Command>, Reading)>,
}

/// What distributions append to a program's name to tell its variants apart.
const VARIANTS: &[&str] =
    &["openbsd", "traditional", "distrib", "real", "static", "dynamic", "orig", "gnu"];

impl<'c> CommandLine<'c> {
    /// Reads a command line. `expects` says whether the policy expects subcommands of a program of
    /// which nothing is known.
    #[must_use]
    pub fn of(argv: &'c [String], program: Option<&ProgramFact>, expects: bool) -> Self {
        let mut own: Vec<&str> = argv.first().map(|word| base_name(word)).into_iter().collect();
        if let Some(program) = program {
            own.extend([base_name(&program.path), base_name(&program.real)]);
        }
        let mut names: Vec<String> = Vec::new();
        for name in own.iter().copied().chain(own.iter().map(|name| plain(name))) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_string());
            }
        }
        let mut readings: Vec<_> = names
            .iter()
            .filter_map(|name| known(name))
            .map(|command| (Some(command), Reading::of(argv, Some(command), expects)))
            .collect();
        if readings.is_empty() {
            readings.push((None, Reading::of(argv, None, expects)));
        }
        Self { argv, names, readings }
    }

    /// The readings alone.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().map(|(_, reading)| reading)
    }

    /// The program with its subcommand, as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        let levels = self.readings().next().map(|reading| reading.levels.as_slice());
        let names: Vec<&str> =
            levels.unwrap_or_default().iter().map(|level| level.name.as_str()).collect();
        names.join(" ")
    }
}

/// The last component of a program's path.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name without its version or variant: `bash5.2`, `nc.openbsd`.
fn plain(name: &str) -> &str {
    let varied = VARIANTS.iter().find_map(|variant| {
        let rest = name.strip_suffix(variant)?;
        rest.strip_suffix(['.', '-']).filter(|rest| !rest.is_empty())
    });
    let name = varied.unwrap_or(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if bare.is_empty() { name } else { bare }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn names(typed: &str, path: &str, real: &str) -> Vec<String> {
        let argv = [typed.to_string()];
        let program =
            ProgramFact { path: path.into(), real: real.into(), sha256: Digest::of(b"x") };
        CommandLine::of(&argv, Some(&program), false).names
    }

    #[test]
    fn a_program_goes_by_every_name_of_its_file() {
        assert_eq!(names("mycat", "/usr/bin/cat", "/usr/bin/cat"), ["mycat", "cat"]);
        assert_eq!(names("sh", "/bin/sh", "/usr/bin/dash"), ["sh", "dash"]);
        assert_eq!(names("x", "/bin/x", "/bin/nc.openbsd"), ["x", "nc.openbsd", "nc"]);
        assert_eq!(names("x", "/bin/bash5.2", "/bin/bash5.2"), ["x", "bash5.2", "bash"]);
        assert_eq!(names("ls", "/bin/ls", "/bin/busybox"), ["ls", "busybox"]);
    }

    #[test]
    fn knowledge_comes_with_the_file_as_well_as_with_the_name() {
        let argv = ["mycat".to_string(), "a".to_string()];
        let program = ProgramFact {
            path: "/usr/bin/cat".into(),
            real: "/usr/bin/cat".into(),
            sha256: Digest::of(b"x"),
        };
        let line = CommandLine::of(&argv, Some(&program), false);
        assert_eq!(line.readings().count(), 1);
        assert!(line.readings().all(|reading| reading.known() && reading.paths.len() == 1));
    }
}
