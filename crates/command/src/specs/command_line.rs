//! A command line with everything that is known about its program.
//!
//! What a program is, its file says: a rule may call it by another name, and a link may too. So
//! each name counts, the one that was typed and those on disk, and the strictest answer holds.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::program::ProgramFact;
use crate::specs::{
    ArgKind, CommandSpec, Effect, Effects, MatchedEffect, ParsedArgv, PathAccess,
    effect::{matched_effect, take_network},
    find_spec, toolchain,
};
use crate::variables::keeps_offline;
use capsule_base::limits;
use capsule_base::root_names::RootNames;

/// A command line, read once for all rules.
#[derive(Clone, Debug)]
pub struct CommandLine<'c> {
    /// Its words.
    pub argv: &'c [String],
    /// What was found on disk of its program, if that was looked up.
    pub program: Option<&'c ProgramFact>,
    /// The names that the program goes by, plainest first.
    pub names: Vec<String>,
    /// What is known of it under its names, with the command line read so; without any knowledge
    /// one reading.
    pub interpretations: Vec<(Option<&'static CommandSpec>, ParsedArgv)>,
    /// The command lines that stand among its words: what `env`, `xargs` or `find -exec` start.
    pub nested: Vec<CommandLine<'c>>,
    /// Whether command lines stand in one another deeper than is looked.
    pub too_deep: bool,
}

/// What distributions append to a program's name to tell its variants apart.
const VARIANTS: &[&str] =
    &["openbsd", "traditional", "distrib", "real", "static", "dynamic", "orig", "gnu"];

/// Programs that stand for others: started through a link, each acts as the program that the link is
/// called after.
const PROXIES: &[&str] = &["rustup", "rustup-init", "volta-shim", "mise"];

impl<'c> CommandLine<'c> {
    /// Reads a command line. `expects` says whether the policy expects subcommands of a program of
    /// which nothing is known.
    #[must_use]
    pub fn parse(argv: &'c [String], program: Option<&'c ProgramFact>, expects: bool) -> Self {
        Self::parse_nested(argv, program, expects, limits::WRAPPED_COMMANDS)
    }

    fn parse_nested(
        argv: &'c [String],
        program: Option<&'c ProgramFact>,
        expects: bool,
        depth: usize,
    ) -> Self {
        let mut item: Vec<&str> = argv.first().map(|word| base_name(word)).into_iter().collect();
        if let Some(program) = program {
            item.extend([base_name(&program.path)]);
            let real = base_name(&program.real);
            let is_proxy = PROXIES.contains(&real) && find_spec(base_name(&program.path)).is_some();
            item.extend((!is_proxy).then_some(real));
        }
        let mut names: Vec<String> = Vec::new();
        let plain = item.iter().map(|name| strip_version(name));
        let tools =
            plain.clone().filter_map(|name| -> Option<&str> { toolchain::strip_target(name) });
        for name in item.iter().copied().chain(plain).chain(tools) {
            // Where a file system does not tell `Git` from `git`, both are the same program.
            for name in [name.to_string(), name.to_ascii_lowercase()] {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let mut readings: Vec<_> = names
            .iter()
            .filter_map(|name| find_spec(name))
            .map(|command| (Some(command), ParsedArgv::parse(argv, Some(command), expects)))
            .collect();
        if readings.is_empty() {
            readings.push((None, parse_unknown(argv, program, (expects, depth))));
        }
        if let Some(word) =
            argv.first().filter(|word| word.contains('/') && !is_found_by_path(word, program))
        {
            let is_known = program.is_some_and(is_known_elsewhere) || is_installed(word);
            let mark = |reading: &mut ParsedArgv| reading.mark_workspace_program(word, is_known);
            readings.iter_mut().for_each(|(_, reading)| mark(reading));
        }
        let mut places: Vec<_> =
            readings.iter().flat_map(|(_, reading)| reading.nested.iter().cloned()).collect();
        places.dedup();
        let too_deep = depth == 0 && !places.is_empty();
        let feeds =
            readings.iter().any(|(known, _)| known.is_some_and(|known| known.appends_arguments));
        let nested = places.into_iter().filter(|_| depth > 0).filter_map(|place| {
            let words = argv.get(place).filter(|words| !words.is_empty())?;
            let mut inner = Self::parse_nested(words, None, false, depth - 1);
            readings.iter().for_each(|(_, reading)| inner.set_variables(&reading.variables));
            if feeds {
                inner.add_fed_effects();
            }
            Some(inner)
        });
        let nested = nested.collect();
        Self { argv, program, names, interpretations: readings, nested, too_deep }
    }

    /// The words that come from elsewhere may be what is missing here: the subcommand, or the program
    /// that a wrapper starts. What that does is not known.
    fn add_fed_effects(&mut self) {
        for (known, reading) in &mut self.interpretations {
            let Some(command) = known else { continue };
            let wraps = command.operands.contains(&ArgKind::Command);
            let lacks = !command.subcommands.is_empty() && reading.levels.len() == 1
                || wraps && reading.nested.is_empty();
            // An address, an option or data may be among the words from elsewhere.
            if command.subcommands.is_empty() && reading.effects().contains(Effect::Network) {
                reading.base_effects.push(MatchedEffect {
                    effects: Effects::of(Effect::Sends),
                    argument: String::new(),
                    why: "may send what words from elsewhere say".into(),
                    alternative: Some("name all options in the command itself".into()),
                    guessed: false,
                });
            }
            if lacks {
                reading.base_effects.push(MatchedEffect {
                    effects: Effects::of(Effect::Starts),
                    argument: reading
                        .last_level()
                        .map(|level| level.name.clone())
                        .unwrap_or_default(),
                    why: "does what words from elsewhere say".into(),
                    alternative: Some("name the subcommand in the command itself".into()),
                    guessed: false,
                });
            }
        }
        self.nested.iter_mut().for_each(Self::add_fed_effects);
    }

    /// Has these variables be set for it: some keep a program from contacting another computer, as an option such as
    /// `--offline` does.
    pub fn set_variables(&mut self, variables: &[(String, String)]) {
        for (_, reading) in &mut self.interpretations {
            let mut names = self.names.iter().chain(&reading.modules);
            if names.any(|name| variables.iter().any(|set| keeps_offline(name, set))) {
                reading.base_effects.iter_mut().for_each(take_network);
            }
        }
        self.nested.iter_mut().for_each(|inner| inner.set_variables(variables));
    }

    /// Drops what is only guessed from the name of a subcommand, where that of a line is named elsewhere.
    pub fn drop_guesses(&mut self, named: &dyn Fn(&Self) -> Option<String>) {
        if let Some(name) = named(self) {
            let is_guess =
                |added: &MatchedEffect| added.argument == name && added.effects != UNKNOWN;
            let readings = self.interpretations.iter_mut();
            readings.for_each(|(_, reading)| reading.base_effects.retain(|added| !is_guess(added)));
        }
        self.nested.iter_mut().for_each(|inner| inner.drop_guesses(named));
    }

    /// Takes removing for writing where all that is removed lies in a shared `/tmp`, of which nothing is left at the end. A
    /// command line in it may be given more words than stand here.
    pub fn drop_temporary_deletions(&mut self, names: &RootNames) {
        for (_, argv) in &mut self.interpretations {
            let mut removed = argv.paths.iter().filter(|used| used.access == PathAccess::Delete);
            let is_any = removed.clone().next().is_some();
            if is_any && removed.all(|used| used.is_temporary(names)) {
                let effects = argv.base_effects.iter_mut().chain(&mut argv.argument_effects);
                effects.for_each(|added| {
                    added.effects = added.effects.without(Effect::Deletes).with(Effect::Writes);
                });
            }
        }
    }

    /// It and all command lines that stand in it, itself first.
    #[must_use]
    pub fn with_nested(&self) -> Vec<&Self> {
        let inner = self.nested.iter().flat_map(Self::with_nested);
        core::iter::once(self).chain(inner).collect()
    }

    /// All that it does, with what the command lines in it do.
    #[must_use]
    pub fn effects(&self) -> Effects {
        let lines = self.with_nested();
        let readings = lines.iter().flat_map(|line| line.parsed_argvs());
        readings.fold(Effects::NONE, |sum, reading| sum.union(reading.effects()))
    }

    /// Whether it does nothing but ask one program what it is: `sudo --help`.
    #[must_use]
    pub fn asks_for_help(&self) -> bool {
        let is_asked = |option: &String| HELP_OPTIONS.contains(&option.as_str());
        matches!(self.argv, [_, option] if is_asked(option))
            && self.effects() == Effects::of(Effect::Reads)
    }

    /// The readings alone.
    pub fn parsed_argvs(&self) -> impl Iterator<Item = &ParsedArgv> {
        self.interpretations.iter().map(|(_, reading)| reading)
    }

    /// The program with its subcommand, as it is shown.
    #[must_use]
    pub fn display_name(&self) -> String {
        let levels = self.parsed_argvs().next().map(|reading| reading.levels.as_slice());
        let names: Vec<&str> =
            levels.unwrap_or_default().iter().map(|level| level.name.as_str()).collect();
        names.join(" ")
    }
}

const UNKNOWN: Effects = Effects::of(Effect::Unknown);

/// What asks any program what it is, where it is the only argument.
const HELP_OPTIONS: &[&str] = &["--help", "--version", "-h", "-V"];

/// Reads a command line of an unknown program. One that is no part of another and only asks what a program of the
/// system is, reads.
fn parse_unknown(
    argv: &[String],
    program: Option<&ProgramFact>,
    (expects, depth): (bool, usize),
) -> ParsedArgv {
    let mut reading = ParsedArgv::parse(argv, None, expects);
    let is_plain = |name: &str| !name.contains('/') || is_system_program(name);
    if let [name, option] = argv
        && HELP_OPTIONS.contains(&option.as_str())
        && program.map_or(is_plain(name), |found| found.path.starts_with('/'))
        && depth == limits::WRAPPED_COMMANDS
    {
        reading.base_effects = alloc::vec![matched_effect(Effect::Reads, option)];
    }
    reading
}

/// The folders that programs of the system lie in.
const SYSTEM_DIRECTORIES: &[&str] =
    &["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Whether a word is the path of a program that is searched for by its name, too: of the system or of a toolchain.
/// Programs of the workspace have no absolute path.
fn is_found_by_path(word: &str, program: Option<&ProgramFact>) -> bool {
    let is_searched = |found: &ProgramFact| word.starts_with('/') && found.path == word;
    is_system_program(word) || program.is_some_and(is_searched)
}

/// Whether a word is the path of a program in a directory of the system.
#[must_use]
pub fn is_system_program(word: &str) -> bool {
    word.rsplit_once('/').is_some_and(|(folder, _)| SYSTEM_DIRECTORIES.contains(&folder))
}

/// The last component of a program's path.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a program lies outside of the workspace, where its path is absolute, and something is known of it.
fn is_known_elsewhere(program: &ProgramFact) -> bool {
    let name = base_name(&program.real);
    let is_known = |name| find_spec(name).is_some();
    program.real.starts_with('/') && [name, strip_version(name)].into_iter().any(is_known)
}

/// Whether a word names a known program where package managers put what a project installs. It is the project's own,
/// as is what its interpreter loads by the same name (`python -m pytest`).
fn is_installed(word: &str) -> bool {
    let (directory, name) = word.rsplit_once('/').unwrap_or_default();
    matches!(base_name(directory), "bin" | ".bin") && find_spec(name).is_some()
}

/// A name without its version or variant: `bash5.2`, `nc.openbsd`.
fn strip_version(name: &str) -> &str {
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
    use capsule_base::digest::Digest;

    fn names(typed: &str, path: &str, real: &str) -> Vec<String> {
        let argv = [typed.to_string()];
        let program =
            ProgramFact { path: path.into(), real: real.into(), sha256: Digest::of(b"x") };
        CommandLine::parse(&argv, Some(&program), false).names
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
    fn a_path_of_a_toolchain_is_no_path_of_a_project() {
        let effects = |word: &str, path: &str| {
            let argv = [word.to_string(), "build".to_string()];
            let (path, real) = (path.to_string(), "/home/u/.cargo/bin/rustup".to_string());
            let program = ProgramFact { path, real, sha256: Digest::of(b"x") };
            let line = CommandLine::parse(&argv, Some(&program), false);
            let reading = line.parsed_argvs().next().unwrap();
            (reading.known(), line.parsed_argvs().any(|reading| !reading.paths.is_empty()))
        };
        let path = "/home/u/.cargo/bin/cargo";
        assert_eq!(effects(path, path), (true, false));
        assert_eq!(effects("./cargo", "cargo"), (true, true));
        assert_eq!(effects(path, "bin/cargo"), (true, true));
    }

    #[test]
    fn knowledge_comes_with_the_file_as_well_as_with_the_name() {
        let argv = ["mycat".to_string(), "a".to_string()];
        let program = ProgramFact {
            path: "/usr/bin/cat".into(),
            real: "/usr/bin/cat".into(),
            sha256: Digest::of(b"x"),
        };
        let line = CommandLine::parse(&argv, Some(&program), false);
        assert_eq!(line.parsed_argvs().count(), 1);
        assert!(line.parsed_argvs().all(|reading| reading.known() && reading.paths.len() == 1));
    }
}
