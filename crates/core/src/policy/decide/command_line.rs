//! A command line as the checks see it: read once, and each path that it names looked up once.

use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, PathFact};
use crate::policy::decide::check::PolicyInput;
use crate::policy::decide::files;
use crate::policy::model::Policy;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_command::program::ProgramFact;
use capsule_command::specs::{CommandLine, PathUse};

/// A command line with the places that its words name.
pub(super) struct LocatedCommand<'c> {
    /// The command line.
    pub line: &'c CommandLine<'c>,
    /// The words that name paths, reading by reading.
    path_arguments: Vec<Vec<PathArgument<'c>>>,
    /// The command lines that stand in it.
    pub nested: Vec<LocatedCommand<'c>>,
}

/// A word that names paths in the workspace.
pub(super) struct PathArgument<'c> {
    /// The word, and how it is used.
    pub path_use: &'c PathUse,
    /// Where it may lead, or why it leads outside.
    pub locations: Result<Vec<LocatedPath<'c>>, PathProblem>,
}

/// A path in the workspace, and what was found there.
pub(super) type LocatedPath<'c> = (WorkspacePath, Option<&'c PathFact>);

/// Reads the command line of a case that is about one.
pub(super) fn parse_command_line<'c>(
    policy: &Policy,
    input: &PolicyInput<'c>,
) -> Option<CommandLine<'c>> {
    let Action::Run { argv, .. } = input.action else { return None };
    Some(parse_argv(policy, input, argv, input.facts.program.as_ref()))
}

/// Reads words as a command line. What is only guessed from the name of a subcommand does not count where the user's
/// policy names that.
pub(super) fn parse_argv<'c>(
    policy: &Policy,
    input: &PolicyInput<'_>,
    argv: &'c [String],
    program: Option<&'c ProgramFact>,
) -> CommandLine<'c> {
    let mut line = CommandLine::parse(argv, program, false);
    line.drop_temporary_deletions(&input.facts.root_names);
    if let Some(exec) = policy.exec_rule(input.tool).filter(|_| policy.may_drop_base_rules) {
        line.drop_guesses(&|line| exec.program(line.argv)?.named_subcommand(line));
    }
    line
}

impl<'c> LocatedCommand<'c> {
    pub(super) fn of(input: &PolicyInput<'c>, line: &'c CommandLine<'c>) -> Self {
        let facts = input.facts;
        let word = |used: &'c PathUse| {
            let places = input.action.resolve_path_argument(used, facts).map(|paths| {
                let fact = |path: WorkspacePath| {
                    let fact = facts.path_fact(&path);
                    (path, fact)
                };
                paths.into_iter().map(fact).collect()
            });
            PathArgument { path_use: used, locations: places }
        };
        let words = line.parsed_argvs().map(|reading| reading.paths.iter().map(word).collect());
        let inner = line.nested.iter().map(|inner| Self::of(input, inner)).collect();
        Self { line, path_arguments: words.collect(), nested: inner }
    }

    /// It and all that stand in it.
    pub(super) fn with_nested(&self) -> Vec<&Self> {
        let inner = self.nested.iter().flat_map(Self::with_nested);
        core::iter::once(self).chain(inner).collect()
    }

    /// All words that name paths.
    pub(super) fn path_arguments(&self) -> impl Iterator<Item = &PathArgument<'c>> {
        self.path_arguments.iter().flatten()
    }

    /// The folders that its options make it work in: the word, where it leads, and where that is.
    pub(super) fn work_directories(
        &self,
    ) -> impl Iterator<Item = (&str, &WorkspacePath, &WorkspacePath)> {
        let of_option = |word: &&PathArgument<'c>| {
            word.path_use.is_work_directory && word.path_use.is_option_value
        };
        self.path_arguments().filter(of_option).flat_map(|word| {
            word.locations.iter().flatten().map(|(path, fact)| {
                let real = fact.and_then(files::real_path).unwrap_or(path);
                (word.path_use.path.as_str(), path, real)
            })
        })
    }

    /// The same, reading by reading; none where nothing is known of the program.
    pub(super) fn path_arguments_by_reading(&self) -> impl Iterator<Item = &[PathArgument<'c>]> {
        self.path_arguments.iter().map(Vec::as_slice)
    }

    /// Those of one reading of the line.
    pub(super) fn path_arguments_of(&self, reading: usize) -> &[PathArgument<'c>] {
        self.path_arguments.get(reading).map_or(&[], Vec::as_slice)
    }
}
