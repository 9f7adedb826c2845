//! The patterns of a policy: for paths and for command lines.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::policy::commands::TokenMatcher;
use crate::policy::model::SourceLocation;
use capsule_base::glob::{self, Glob, GlobError};
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_command::specs::{CommandLine, CommandSpec};

/// A pattern for paths, as written and as seen from the workspace.
#[derive(Clone, Debug)]
pub struct PathPattern {
    /// Where it stands.
    pub source: SourceLocation,
    /// The pattern as written.
    pub text: String,
    glob: Glob,
    /// Whether it is written from the file system's root or a home folder.
    absolute: bool,
    /// What it matches beneath the workspace; empty until it is bound.
    bound: Vec<Glob>,
    /// How names are compared.
    spelling: Spelling,
    /// What it closes, in the one spelling that stands for all, where names have several.
    closes: Vec<Glob>,
    /// What it opens, likewise.
    opens: Vec<Glob>,
    /// Whether it matches the workspace itself or a folder above it.
    covers_root: bool,
}

impl PathPattern {
    /// Reads a pattern: relative to the workspace, from the root, or from the home folder.
    ///
    /// # Errors
    /// Says what cannot be matched.
    pub fn parse(text: &str, source: SourceLocation, home: &str) -> Result<Self, GlobError> {
        let expanded = glob::expand_home(text, home);
        if expanded.is_none() && text.starts_with('~') {
            return Err(GlobError::Component);
        }
        let absolute = expanded.is_some() || text.starts_with('/');
        let glob = Glob::parse(expanded.as_deref().unwrap_or(text))?;
        Ok(Self::unbound(text, source, glob, absolute))
    }

    fn unbound(text: &str, source: SourceLocation, glob: Glob, absolute: bool) -> Self {
        Self {
            source,
            text: text.into(),
            glob,
            absolute,
            bound: Vec::new(),
            spelling: Spelling::Exact,
            closes: Vec::new(),
            opens: Vec::new(),
            covers_root: false,
        }
    }

    /// The pattern for one place of the file system, whatever characters it holds.
    #[must_use]
    pub fn literal(path: &str, source: SourceLocation) -> Self {
        Self::unbound(path, source, Glob::literal(path), true)
    }

    /// Sees the pattern from the workspace, whose file system compares names so. Says whether anything in there can
    /// match.
    pub fn bind(&mut self, root: &str, spelling: Spelling) -> bool {
        self.bound = if self.absolute {
            self.glob.relative_to(root)
        } else {
            alloc::vec![self.glob.clone()]
        };
        self.spelling = spelling;
        let spelled = |spelling| -> Vec<Glob> {
            let item = |glob: &Glob| glob.spelled(spelling).unwrap_or_else(|| glob.clone());
            let bound = self.bound.iter().filter(|_| spelling != Spelling::Exact);
            bound.map(item).collect()
        };
        (self.closes, self.opens) = (spelled(spelling), spelled(spelling.opening()));
        let folders: Vec<&str> = root.split('/').filter(|part| !part.is_empty()).collect();
        let leads_to = |depth| folders.get(..depth).map(|item| self.glob.matches_components(item));
        self.covers_root =
            self.absolute && (1..=folders.len()).filter_map(leads_to).any(|matches| matches);
        !self.bound.is_empty()
    }

    /// Whether it names anything in the workspace, or all of it.
    #[must_use]
    pub fn reaches(&self) -> bool {
        self.covers_root || !self.bound.is_empty()
    }

    /// Whether the path itself surely matches: for what is opened.
    #[must_use]
    pub fn matches(&self, path: &WorkspacePath) -> bool {
        self.surely(path, Glob::matches)
    }

    /// Whether the path itself matches in any spelling: for what is closed.
    #[must_use]
    pub fn names(&self, path: &WorkspacePath) -> bool {
        self.in_any_spelling(path, Glob::matches)
    }

    /// Whether the path or a folder above it matches in any spelling: for what is closed.
    #[must_use]
    pub fn covers(&self, path: &WorkspacePath) -> bool {
        self.covers_root || self.in_any_spelling(path, Glob::covers)
    }

    /// Whether the path or a folder above it surely matches: for what is taken out of what is closed.
    #[must_use]
    pub fn surely_covers(&self, path: &WorkspacePath) -> bool {
        self.covers_root || self.surely(path, Glob::covers)
    }

    fn surely(&self, path: &WorkspacePath, fits: impl Fits) -> bool {
        self.bound.iter().any(|glob| fits(glob, path))
            || fits_spelled(&self.opens, self.spelling.opening(), path, &fits)
    }

    fn in_any_spelling(&self, path: &WorkspacePath, fits: impl Fits) -> bool {
        self.bound.iter().any(|glob| fits(glob, path))
            || fits_spelled(&self.closes, self.spelling, path, &fits)
    }

    /// Whether the path itself matches, for walks from the root down, where the folders above were
    /// asked about before.
    #[must_use]
    pub fn matches_in_walk(&self, path: &WorkspacePath) -> bool {
        let fits = |glob: &Glob, path: &WorkspacePath| {
            path.name().is_some_and(|name| glob.could_end_in(name)) && glob.matches(path)
        };
        self.covers_root || self.in_any_spelling(path, fits)
    }

    /// Whether a pattern for hidden names (`.e*`) means the last plain name of this one.
    #[must_use]
    pub fn could_be_named_by(&self, word: &str) -> bool {
        let last = word.rsplit('/').next().unwrap_or(word);
        if !last.starts_with('.') || !last.contains(['*', '?', '[']) {
            return false;
        }
        let mut names = self.text.rsplit('/').filter(|name| !name.is_empty() && *name != "**");
        let name = names.next().filter(|name| !name.contains(['*', '?', '[']));
        let path = name.and_then(WorkspacePath::from_fs_name);
        path.zip(Glob::parse(last).ok()).is_some_and(|(path, glob)| glob.matches(&path))
    }

    /// Whether it names one place, alone or with all that is beneath it.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.glob.literal_path().is_some()
    }

    /// The places in the workspace that it names, each with whether all beneath it is meant.
    pub fn literal_paths(&self) -> impl Iterator<Item = (String, bool)> {
        self.bound.iter().filter_map(Glob::literal_path)
    }

    /// Whether something beneath the folder could match.
    #[must_use]
    pub fn can_match_beneath(&self, folder: &WorkspacePath) -> bool {
        self.surely(folder, Glob::can_match_beneath)
    }

    /// Whether these together name all that this one does, as far as that can be told: no is certain.
    #[must_use]
    pub fn is_within(&self, others: &[Self]) -> bool {
        let depth =
            others.iter().flat_map(|other| &other.bound).map(Glob::depth).max().unwrap_or(0);
        let mut samples = self.bound.iter().flat_map(|glob| glob.sample_paths(depth + 1));
        samples.all(|path| others.iter().any(|other| other.matches(&path)))
    }

    /// Whether it has a path in its text, component by component.
    #[must_use]
    pub fn spells(&self, path: &WorkspacePath) -> bool {
        self.bound.iter().any(|glob| glob.spells(path))
    }

    /// Whether a path is part of what it names in particular.
    #[must_use]
    pub fn has_prefix(&self, path: &WorkspacePath) -> bool {
        self.in_any_spelling(path, Glob::has_prefix)
    }
}

/// How a pattern fits a path.
trait Fits: Fn(&Glob, &WorkspacePath) -> bool {}

impl<F: Fn(&Glob, &WorkspacePath) -> bool> Fits for F {}

/// Whether one of some patterns fits the one spelling of a path that stands for all.
fn fits_spelled(
    globs: &[Glob],
    spelling: Spelling,
    path: &WorkspacePath,
    fits: &impl Fits,
) -> bool {
    if globs.is_empty() {
        return false;
    }
    let spelled = spelling.path(path);
    globs.iter().any(|glob| fits(glob, spelled.as_ref().unwrap_or(path)))
}

/// Which of many patterns could cover a path, by the last plain name of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    /// Names as written and in the one spelling that stands for all.
    named: BTreeMap<String, Vec<usize>>,
    others: Vec<usize>,
    spelling: Spelling,
}

impl NameIndex {
    /// The index of some patterns, which are bound.
    pub(crate) fn of(patterns: &[PathPattern], spelling: Spelling) -> Self {
        let mut index = Self { spelling, ..Self::default() };
        for (at, pattern) in patterns.iter().enumerate() {
            let globs = pattern.bound.iter().chain(&pattern.closes);
            let names: Option<Vec<&str>> = globs.map(Glob::last_name).collect();
            match names.filter(|_| !pattern.covers_root) {
                Some(names) => names
                    .into_iter()
                    .for_each(|name| index.named.entry(name.into()).or_default().push(at)),
                None => index.others.push(at),
            }
        }
        index
    }

    /// Whether one of those that could cover a path does.
    pub(crate) fn any(&self, path: &WorkspacePath, mut covers: impl FnMut(usize) -> bool) -> bool {
        let spelled = self.spelling.path(path);
        let names = [Some(path), spelled.as_ref()].into_iter().flatten();
        let named = names.flat_map(WorkspacePath::components);
        let named = named.filter_map(|name| self.named.get(name)).flatten();
        self.others.iter().chain(named).any(|at| covers(*at))
    }
}

/// A pattern for command lines: the program, the words that follow it, and the options that must be
/// among the rest.
#[derive(Clone, Debug)]
pub struct ArgvPattern {
    /// Where it stands.
    pub source: SourceLocation,
    /// The words from the program on.
    pub arguments: Vec<ArgumentPattern>,
    /// Options that must be there.
    pub flags: Vec<String>,
}

/// A pattern for one word.
#[derive(Clone, Debug)]
pub enum ArgumentPattern {
    /// One of these.
    Any(Vec<TokenMatcher>),
    /// `...`: any words, or none.
    Gap,
}

impl ArgumentPattern {
    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Any(tokens) => tokens.iter().any(|token| token.matches(word)),
            Self::Gap => true,
        }
    }
}

impl ArgvPattern {
    /// Whether a command line is one of those meant. Its program goes by any of its names, and each
    /// reading counts. Where it is not known whether an option takes the next word, both do.
    #[must_use]
    pub fn matches(&self, line: &CommandLine<'_>) -> bool {
        let Some((program, words)) = self.arguments.split_first() else { return false };
        if !line.names.iter().any(|name| program.matches(name)) {
            return false;
        }
        let arguments = line.argv.get(1..).unwrap_or_default();
        line.interpretations.iter().any(|(knowledge, reading)| {
            let flags = || reading.levels.iter().flat_map(|level| &level.flags);
            self.flags.iter().all(|wanted| flags().any(|flag| flag.could_be(wanted)))
                && match_arguments(words, arguments, *knowledge)
        })
    }
}

/// Matches the words behind the program, stepping over options.
fn match_arguments(
    pattern: &[ArgumentPattern],
    words: &[String],
    knowledge: Option<&CommandSpec>,
) -> bool {
    // One entry for each place in the pattern that is reached before the next word.
    let mut reached = alloc::vec![false; pattern.len() + 1];
    let mark = |reached: &mut Vec<bool>, mut at: usize| loop {
        if let Some(slot) = reached.get_mut(at) {
            *slot = true;
        }
        match pattern.get(at) {
            Some(ArgumentPattern::Gap) => at += 1,
            _ => break,
        }
    };
    mark(&mut reached, 0);
    let complete = |reached: &[bool]| reached.last().copied().unwrap_or(false);
    // Whether the word before was an option that may take this one as its value.
    let mut maybe_value = false;
    for word in words {
        if complete(&reached) {
            return true;
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        // Either reading of an option's value keeps the places reached so far.
        let keep = is_option || maybe_value;
        let mut next = if keep { reached.clone() } else { alloc::vec![false; reached.len()] };
        for (at, expected) in pattern.iter().enumerate() {
            if !reached.get(at).copied().unwrap_or(false) {
                continue;
            }
            match expected {
                ArgumentPattern::Gap => mark(&mut next, at),
                ArgumentPattern::Any(_) if expected.matches(word) => mark(&mut next, at + 1),
                ArgumentPattern::Any(_) => {}
            }
        }
        maybe_value = is_option && !word.contains('=') && takes_value(word, knowledge);
        reached = next;
    }
    complete(&reached)
}

/// Whether an option may take the next word; without knowledge, any may.
fn takes_value(option: &str, knowledge: Option<&CommandSpec>) -> bool {
    match knowledge.and_then(|command| command.option(option)) {
        Some(known) => known.value.is_some() && !known.attached,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_denial_above_the_workspace_covers_all_of_it() {
        let path = WorkspacePath::parse("src/a.rs").unwrap();
        for (text, covers) in [
            ("/home/a*/work", true),
            ("/home/ada/work/src", true),
            ("~", true),
            ("/home/b*/work", false),
            ("/home/ada/work/docs", false),
        ] {
            let mut pattern =
                PathPattern::parse(text, SourceLocation::default(), "/home/ada").unwrap();
            pattern.bind("/home/ada/work", Spelling::Exact);
            assert_eq!(pattern.covers(&path), covers, "{text}");
        }
        let odd = "/home/ada/new\nline [x]";
        let mut place =
            PathPattern::literal(&alloc::format!("{odd}/own.db"), SourceLocation::default());
        place.bind(odd, Spelling::Exact);
        assert!(place.covers(&WorkspacePath::parse("own.db").unwrap()));
        assert!(!place.covers(&path));
    }

    fn pattern(text: &str) -> ArgvPattern {
        let (flags, words): (Vec<&str>, Vec<&str>) =
            text.split(' ').partition(|word| word.starts_with('-'));
        let words = words
            .into_iter()
            .map(|word| match word {
                "..." => ArgumentPattern::Gap,
                _ => ArgumentPattern::Any(
                    word.split('|').map(|w| TokenMatcher::Exact(w.into())).collect(),
                ),
            })
            .collect();
        let flags = flags.iter().map(ToString::to_string).collect();
        ArgvPattern { source: SourceLocation::default(), arguments: words, flags }
    }

    fn check(text: &str, line: &str, expected: bool) {
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        let got = pattern(text).matches(&CommandLine::parse(&argv, None, false));
        assert_eq!(got, expected, "{text} on {line}");
    }

    #[test]
    fn words_match_behind_any_options() {
        for (text, line, expected) in [
            ("git push", "git push origin main", true),
            ("git push", "git -c a=b push", true),
            ("git push", "git --git-dir x push", true),
            ("git push", "git --unknown x push", true),
            ("git push", "git log push", false),
            ("git push", "git log", false),
            ("git remote add|set-url", "git remote add x y", true),
            ("git remote add|set-url", "git remote -v", false),
            ("npm|cargo publish|push", "cargo publish", true),
            ("npm|cargo publish|push", "cargo +nightly publish", false),
            ("sh|bash", "bash -c id", true),
            ("env ... sh|bash", "env -i A=b sh -c id", true),
            ("env ... sh|bash", "env ls", false),
            ("rm -r", "rm -rf x", true),
            ("rm -r", "rm x", false),
        ] {
            check(text, line, expected);
        }
    }
}
