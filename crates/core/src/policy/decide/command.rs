//! A command line as the checks see it: read once, and each path that it names looked up once.

use alloc::vec::Vec;

use crate::action::{Action, PathFact};
use crate::path::{PathProblem, WorkspacePath};
use crate::policy::decide::{Case, files};
use crate::programs::{CommandLine, PathUse};

/// A command line with the places that its words name.
pub(super) struct Command<'c> {
    /// The command line.
    pub line: &'c CommandLine<'c>,
    /// The words that name paths, reading by reading.
    words: Vec<Vec<Word<'c>>>,
    /// The command lines that stand in it.
    pub inner: Vec<Command<'c>>,
}

/// A word that names paths in the workspace.
pub(super) struct Word<'c> {
    /// The word, and how it is used.
    pub used: &'c PathUse,
    /// Where it may lead, or why it leads outside.
    pub places: Result<Vec<Named<'c>>, PathProblem>,
}

/// A path in the workspace, and what was found there.
pub(super) type Named<'c> = (WorkspacePath, Option<&'c PathFact>);

/// Reads the command line of a case that is about one.
pub(super) fn line<'c>(case: &Case<'c>) -> Option<CommandLine<'c>> {
    match case.action {
        Action::Run { argv, .. } => Some(CommandLine::of(argv, case.facts.program.as_ref(), false)),
        _ => None,
    }
}

impl<'c> Command<'c> {
    pub(super) fn of(case: &Case<'c>, line: &'c CommandLine<'c>) -> Self {
        let facts = case.facts;
        let word = |used: &'c PathUse| {
            let places = case.action.argument(used, facts).map(|paths| {
                let fact = |path: WorkspacePath| {
                    let fact = facts.at(&path);
                    (path, fact)
                };
                paths.into_iter().map(fact).collect()
            });
            Word { used, places }
        };
        let words = line.readings().map(|reading| reading.paths.iter().map(word).collect());
        let inner = line.inner.iter().map(|inner| Self::of(case, inner)).collect();
        Self { line, words: words.collect(), inner }
    }

    /// It and all that stand in it.
    pub(super) fn all(&self) -> Vec<&Self> {
        let inner = self.inner.iter().flat_map(Self::all);
        core::iter::once(self).chain(inner).collect()
    }

    /// All words that name paths.
    pub(super) fn words(&self) -> impl Iterator<Item = &Word<'c>> {
        self.words.iter().flatten()
    }

    /// The folders that its options make it work in: the word, where it leads, and where that is.
    pub(super) fn folders(&self) -> impl Iterator<Item = (&str, &WorkspacePath, &WorkspacePath)> {
        let of_option = |word: &&Word<'c>| word.used.is_folder && word.used.of_option;
        self.words().filter(of_option).flat_map(|word| {
            word.places.iter().flatten().map(|(path, fact)| {
                let real = fact.and_then(files::real).unwrap_or(path);
                (word.used.path.as_str(), path, real)
            })
        })
    }

    /// The same, reading by reading; none where nothing is known of the program.
    pub(super) fn readings(&self) -> impl Iterator<Item = &[Word<'c>]> {
        self.words.iter().map(Vec::as_slice)
    }

    /// Those of one reading of the line.
    pub(super) fn words_of(&self, reading: usize) -> &[Word<'c>] {
        self.words.get(reading).map_or(&[], Vec::as_slice)
    }
}
