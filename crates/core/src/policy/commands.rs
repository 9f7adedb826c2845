//! What a policy says about programs.

use alloc::string::String;
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::confinement::ProcessLimits;
use crate::decision::Verdict;
use crate::policy::argv_pattern::TokenMatcher;
use crate::policy::path_pattern::PathPattern;
use crate::policy::source_location::SourceLocation;
use capsule_base::digest::Digest;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, Effect, ParsedArgv};

/// Constraints on programs.
#[derive(Clone, Debug)]
pub struct ExecRule {
    /// The programs that may run.
    pub programs: Vec<ProgramRule>,
    /// Whether commands come as lists of words only.
    pub form: CommandForm,
    /// What decides about programs that no rule names, by what they do.
    pub effects: Option<EffectRule>,
    /// Words that no command line may hold.
    pub denied_tokens: Vec<DeniedToken>,
    /// The folders that commands may run in; any of the workspace if none are named.
    pub cwd: Option<WorkDirectories>,
    /// What programs find in their environment.
    pub env: EnvironmentRule,
    /// The bounds of a command.
    pub limits: ProcessLimits,
    /// The longest time that a call may ask for, in milliseconds.
    pub timeout_max_ms: u64,
}

impl ExecRule {
    /// The rule for the program of a command line: by its plain name, or by the very path that the rule names.
    pub(crate) fn program(&self, argv: &[String]) -> Option<&ProgramRule> {
        let asked = argv.first()?;
        self.programs.iter().find(|program| match asked.contains('/') {
            true => program.path.as_ref() == Some(asked),
            false => program.name == *asked,
        })
    }
}

/// Folders that commands may run in.
#[derive(Clone, Debug)]
pub struct WorkDirectories {
    /// Where they are named.
    pub source: SourceLocation,
    /// Whether the workspace itself is one: `.`.
    pub root: bool,
    /// Patterns of those beneath it.
    pub beneath: Vec<PathPattern>,
}

impl WorkDirectories {
    /// Whether a folder is one of them.
    #[must_use]
    pub fn contain(&self, folder: &WorkspacePath) -> bool {
        match folder.is_root() {
            true => self.root,
            false => self.beneath.iter().any(|pattern| pattern.matches(folder)),
        }
    }

    /// As they are written.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        let root = self.root.then_some(".");
        root.into_iter().chain(self.beneath.iter().map(|pattern| pattern.text.as_str())).collect()
    }
}

/// How commands may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandForm {
    /// As a list of words.
    #[default]
    Argv,
    /// As a list, or as a text of the command language.
    Command,
}

/// A word for everything that a command can do. What is not named is denied.
#[derive(Clone, Debug, Default)]
pub struct EffectRule {
    /// Where it stands.
    pub source: SourceLocation,
    /// The words.
    pub verdicts: Vec<(Effect, Verdict, SourceLocation)>,
}

impl EffectRule {
    /// The word for an effect, and where it stands.
    #[must_use]
    pub fn verdict(&self, effect: Effect) -> (Verdict, &SourceLocation) {
        let named = self.verdicts.iter().find(|(candidate, ..)| *candidate == effect);
        named.map_or((Verdict::Deny, &self.source), |(_, verdict, source)| (*verdict, source))
    }
}

/// A word that no command line may hold.
#[derive(Clone, Debug)]
pub struct DeniedToken {
    /// Where it stands.
    pub source: SourceLocation,
    /// The word, or what words it is.
    pub token: TokenMatcher,
}

/// What programs find in their environment besides what every sandbox sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRule {
    /// Variables that are passed on from the user's own.
    pub pass: Vec<String>,
    /// Variables with their values.
    pub set: Vec<(String, String)>,
    /// Variables that a command line may set: `CI=1 npm test`. An entry `NAME=VALUE` holds for this
    /// value alone; a `*` at its end stands for letters, digits, `.`, `_` and `-`.
    pub accept: Vec<String>,
}

impl EnvironmentRule {
    /// Whether a command line may set this variable to this value.
    #[must_use]
    pub fn accepts(&self, name: &str, value: &str) -> bool {
        self.accept.iter().any(|text| match text.split_once('=') {
            None => text == name,
            Some((named, wanted)) => named == name && matches_value(wanted, value),
        })
    }

    /// Whether every command line that this entry of another list lets through is let through here.
    pub(super) fn covers_entry(&self, entry: &str) -> bool {
        let name = entry.split('=').next();
        self.accept.iter().any(|text| text == entry || Some(text.as_str()) == name)
    }
}

/// Whether a value is the one that an entry names.
fn matches_value(wanted: &str, value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match wanted.strip_suffix('*') {
        Some(begun) => value.strip_prefix(begun).is_some_and(|rest| rest.chars().all(plain)),
        None => wanted == value,
    }
}

impl CommandRule {
    /// Whether it may run where there is no sandbox.
    #[must_use]
    pub fn is_unconfined(&self) -> bool {
        self.needs.is_some_and(|need| need.contains(Capability::ProcUnconfined))
    }

    /// Whether it or one of its subcommands may run where there is no sandbox.
    #[must_use]
    pub fn names_unconfined(&self) -> bool {
        self.is_unconfined() || self.subcommands.iter().any(|(_, inner)| inner.names_unconfined())
    }

    /// The rule for a subcommand: by its name, or the one for any.
    pub(crate) fn subcommand(&self, name: &str) -> Option<&Self> {
        let exact = self.subcommands.iter().find(|(text, _)| text == name);
        let any = || self.subcommands.iter().find(|(text, _)| text == "*");
        exact.or_else(any).map(|(_, inner)| inner)
    }

    /// Every pattern of what it, or a subcommand of it, may change.
    pub(super) fn write_patterns(&self) -> Vec<&PathPattern> {
        let inner = self.subcommands.iter().flat_map(|(_, inner)| inner.write_patterns());
        self.writes.iter().flatten().chain(inner).collect()
    }

    /// Every pattern of what it, or a subcommand of it, may see and change.
    #[must_use]
    pub fn paths(&self) -> Vec<&PathPattern> {
        let inner = self.subcommands.iter().flat_map(|(_, inner)| inner.paths());
        self.reads.iter().chain(&self.writes).flatten().chain(inner).collect()
    }

    /// The same, to be changed.
    pub(crate) fn paths_mut(&mut self) -> Vec<&mut PathPattern> {
        let inner = self.subcommands.iter_mut().flat_map(|(_, inner)| inner.paths_mut());
        self.reads.iter_mut().chain(&mut self.writes).flatten().chain(inner).collect()
    }
}

/// What a policy says about a program.
#[derive(Clone, Debug)]
pub struct ProgramRule {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub source: SourceLocation,
    /// Where the program must be.
    pub path: Option<String>,
    /// The digest of the program that is meant.
    pub sha256: Option<Digest>,
    /// Its word, flags and subcommands.
    pub command: CommandRule,
    /// The options before a subcommand.
    pub global_flags: FlagRule,
    /// The bounds of the program, where they differ from the tool's.
    pub limits: Option<ProcessLimits>,
    /// The longest time that a call may ask for, in milliseconds, where it differs.
    pub timeout_max_ms: Option<u64>,
}

impl ProgramRule {
    /// The line read anew, where nothing is known of the program and its rule names subcommands.
    pub(crate) fn reread<'c>(&self, line: &CommandLine<'c>) -> Option<CommandLine<'c>> {
        let expects =
            !self.command.subcommands.is_empty() && !line.parsed_argvs().any(ParsedArgv::known);
        expects.then(|| CommandLine::parse(line.argv, line.program, true))
    }

    /// The subcommand of an unknown program, where its rule names that.
    pub(crate) fn named_subcommand(&self, line: &CommandLine<'_>) -> Option<String> {
        let line = self.reread(line)?;
        let name = &line.parsed_argvs().next()?.levels.get(1)?.name;
        self.command.subcommands.iter().any(|(text, _)| text == name).then(|| name.clone())
    }
}

/// What a policy says about a command or subcommand.
#[derive(Clone, Debug, Default)]
pub struct CommandRule {
    /// Where it stands.
    pub source: SourceLocation,
    /// Its word.
    pub decision: Option<Verdict>,
    /// Its options.
    pub flags: FlagRule,
    /// Its subcommands by name; `*` is any other.
    pub subcommands: Vec<(String, CommandRule)>,
    /// What it may see of the workspace, where that differs from what stands above it.
    pub reads: Option<Vec<PathPattern>>,
    /// What it may change, where that differs from what stands above it.
    pub writes: Option<Vec<PathPattern>>,
    /// What it needs besides what its words show, where that is said: it counts for profiles, ceilings
    /// and grants, and gives nothing, but for `proc.unconfined`, with which it may run where there is
    /// no sandbox; no rule above it and none beside it says that for it.
    pub needs: Option<Capabilities>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
}

/// Which options may be used.
#[derive(Clone, Debug, Default)]
pub struct FlagRule {
    /// Where it stands.
    pub source: SourceLocation,
    /// Only these, if any are named.
    pub allow: Option<Vec<String>>,
    /// None of these.
    pub deny: Vec<(String, SourceLocation)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(entries: &[&str]) -> EnvironmentRule {
        let accept = entries.iter().map(|entry| String::from(*entry)).collect();
        EnvironmentRule { accept, ..EnvironmentRule::default() }
    }

    #[test]
    fn a_value_is_accepted_as_the_entry_says() {
        let rule = accepting(&["CI", "PAGER=cat", "NODE_OPTIONS=--max-old-space-size=*", "X="]);
        for (name, value, expected) in [
            ("CI", "anything", true),
            ("PAGER", "cat", true),
            ("PAGER", "cat;id", false),
            ("PAGER", "", false),
            ("NODE_OPTIONS", "--max-old-space-size=4096", true),
            ("NODE_OPTIONS", "--max-old-space-size=4096 --require=./x", false),
            ("NODE_OPTIONS", "--max-old-space-size=1,2", false),
            ("X", "", true),
            ("X", "1", false),
            ("Y", "", false),
        ] {
            assert_eq!(rule.accepts(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_list_covers_what_it_says_or_says_more_widely() {
        let rule = accepting(&["CI", "PAGER=cat"]);
        assert!(
            rule.covers_entry("CI") && rule.covers_entry("CI=1") && rule.covers_entry("PAGER=cat")
        );
        assert!(
            !rule.covers_entry("PAGER")
                && !rule.covers_entry("PAGER=less")
                && !rule.covers_entry("X")
        );
    }
}
