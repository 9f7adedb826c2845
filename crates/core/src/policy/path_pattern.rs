//! The patterns of a policy for paths.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::policy::source_location::SourceLocation;
use capsule_base::glob::{self, Glob, GlobError};
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;

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

#[cfg(test)]
mod tests {
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
}
