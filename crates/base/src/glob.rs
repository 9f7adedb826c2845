//! Patterns for paths: like gitignore's, anchored at the workspace, matched component by component.
//!
//! `*` and `?` stay within a component, `[a-z]` and `[!a-z]` are classes, `\` takes the next
//! character as it is, and `**` as a whole component stands for any number of components. `dir/**`
//! and `dir/` match the folder itself and everything beneath it. A pattern knows nothing of files:
//! it sees a path that was resolved before.

pub mod foreign;
mod spelled;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::limits;
use crate::path::WorkspacePath;

/// A name that nobody gives a file.
const SAMPLE_NAME: &str = "\u{a7}any\u{a7}";

/// A compiled pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    components: Vec<Component>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Component {
    /// `**`
    AnyDepth,
    /// Text without a wildcard.
    Literal(Box<str>),
    /// Text with wildcards.
    Wild(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    AnyChar,
    AnyText,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Why a text is not a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobError {
    /// It is empty or longer than a pattern may be.
    Length,
    /// A `[` without its `]`, or a range that runs backwards.
    Class,
    /// `{a,b}` is not part of the language.
    Braces,
    /// `..`, or a control character.
    Component,
    /// `**` beside other text in one component.
    AnyDepth,
}

crate::words! {
    GlobError::why:
    Length = "a pattern has 1 to 1,024 bytes",
    Class = "a `[` needs its `]`, and a range runs upwards",
    Braces = "braces are not part of the pattern language; write two patterns",
    Component = "`..` and control characters cannot be matched",
    AnyDepth = "`**` stands alone between slashes",
}

impl Glob {
    /// Compiles a pattern that is relative to the workspace.
    ///
    /// # Errors
    /// Says what cannot be matched.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() || text.len() > limits::GLOB_BYTES {
            return Err(GlobError::Length);
        }
        let mut components = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(GlobError::Component),
                "**" => {
                    if components.last() != Some(&Component::AnyDepth) {
                        components.push(Component::AnyDepth);
                    }
                }
                _ => components.push(compile(part)?),
            }
        }
        if text.ends_with('/') && components.last() != Some(&Component::AnyDepth) {
            components.push(Component::AnyDepth);
        }
        Ok(Self { text: text.into(), components })
    }

    /// The pattern that matches one path and nothing else, whatever characters it holds.
    #[must_use]
    pub fn literal(path: &str) -> Self {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        let components = parts.map(|part| Component::Literal(part.into())).collect();
        Self { text: path.into(), components }
    }

    /// Patterns relative to `root` that match what this pattern, read from the file system's root,
    /// matches beneath `root`. Empty when it matches nothing there.
    #[must_use]
    pub fn relative_to(&self, root: &str) -> Vec<Self> {
        let root: Vec<&str> = root.split('/').filter(|part| !part.is_empty()).collect();
        residuals(&self.components, &root)
            .into_iter()
            .map(|components| Self { text: self.text.clone(), components: components.to_vec() })
            .collect()
    }

    /// Whether the pattern matches the path itself.
    #[must_use]
    pub fn matches(&self, path: &WorkspacePath) -> bool {
        let path: Vec<&str> = path.components().collect();
        matches(&self.components, &path, |_| true)
    }

    /// Whether the pattern matches these components, for paths that are not in the workspace.
    #[must_use]
    pub fn matches_components(&self, components: &[&str]) -> bool {
        matches(&self.components, components, |_| true)
    }

    /// The same, where a wildcard stands only for some names.
    #[must_use]
    pub fn matches_components_by(
        &self,
        components: &[&str],
        is_any: impl Fn(&str) -> bool,
    ) -> bool {
        matches(&self.components, components, is_any)
    }

    /// Whether the pattern matches the path or a folder above it: what a denial covers.
    #[must_use]
    pub fn covers(&self, path: &WorkspacePath) -> bool {
        let path: Vec<&str> = path.components().collect();
        // A quick no for most paths.
        if !path.is_empty() && !path.iter().any(|name| self.could_end_in(name)) {
            return false;
        }
        (0..=path.len()).any(|depth| {
            path.get(..depth).is_some_and(|prefix| {
                (depth > 0 || self.components == [Component::AnyDepth])
                    && matches(&self.components, prefix, |_| true)
            })
        })
    }

    /// Whether the pattern could match a path that ends in this name, for walks from the root down:
    /// a quick no for most names. `dir/**` is met at `dir` first.
    #[must_use]
    pub fn could_end_in(&self, name: &str) -> bool {
        let named = self.components.iter().rev().find(|part| **part != Component::AnyDepth);
        named.is_none_or(|part| part.accepts(name))
    }

    /// Whether something beneath the folder could match.
    #[must_use]
    pub fn can_match_beneath(&self, folder: &WorkspacePath) -> bool {
        let folder: Vec<&str> = folder.components().collect();
        can_match_beneath(&self.components, &folder)
    }

    /// Whether a path is part of what the pattern names, beyond a `**` at its beginning: something
    /// beneath could match, and would not match by another path.
    #[must_use]
    pub fn has_prefix(&self, path: &WorkspacePath) -> bool {
        let path: Vec<&str> = path.components().collect();
        let left = residuals(&self.components, &path);
        left.iter().any(|left| !left.is_empty() && left.len() < self.components.len())
    }

    /// Whether the pattern begins with a component for each one of a path, none of which takes every name.
    #[must_use]
    pub fn spells(&self, path: &WorkspacePath) -> bool {
        let mut parts = self.components.iter();
        let is_wide = |part: &Component| {
            *part == Component::AnyDepth || *part == Component::Wild(alloc::vec![Token::AnyText])
        };
        path.components()
            .all(|name| parts.next().is_some_and(|part| !is_wide(part) && part.accepts(name)))
    }

    /// The one place that the pattern names, and whether it names all that is beneath it; none where
    /// a wildcard makes it several.
    #[must_use]
    pub fn literal_path(&self) -> Option<(String, bool)> {
        let (named, beneath) = match self.components.split_last() {
            Some((Component::AnyDepth, folder)) => (folder, true),
            _ => (self.components.as_slice(), false),
        };
        let names: Option<Vec<&str>> = named.iter().map(Component::literal).collect();
        Some((names?.join("/"), beneath))
    }

    /// Two paths that the pattern names, with names in place of its wildcards that no other pattern is
    /// likely to have: one with nothing in place of each `**` but the last word, and one with so many
    /// folders. Another pattern that does not match them does not name all that this one does.
    pub fn sample_paths(&self, depth: usize) -> impl Iterator<Item = WorkspacePath> {
        let last = self.components.len().saturating_sub(1);
        [0, depth].into_iter().filter_map(move |folders| {
            let names = self.components.iter().enumerate().flat_map(|(place, part)| match part {
                Component::AnyDepth => {
                    let count = if place == last { depth } else { folders };
                    alloc::vec![String::from(SAMPLE_NAME); count]
                }
                Component::Literal(text) => alloc::vec![text.to_string()],
                Component::Wild(tokens) => alloc::vec![tokens.iter().map(Token::sample).collect()],
            });
            WorkspacePath::parse(&names.collect::<Vec<_>>().join("/")).ok()
        })
    }

    /// The last component that is no `**`, if it has no wildcard: all that the pattern covers goes through it.
    #[must_use]
    pub fn last_name(&self) -> Option<&str> {
        self.components.iter().rev().find(|part| **part != Component::AnyDepth)?.literal()
    }

    /// How many components it has.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.components.len()
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

fn compile(part: &str) -> Result<Component, GlobError> {
    let mut tokens = Vec::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        let token = match c {
            '*' if tokens.last() == Some(&Token::AnyText) => return Err(GlobError::AnyDepth),
            '*' => Token::AnyText,
            '?' => Token::AnyChar,
            '[' => class(&mut chars)?,
            '{' | '}' => return Err(GlobError::Braces),
            '\\' => Token::Char(chars.next().ok_or(GlobError::Component)?),
            c if c.is_control() => return Err(GlobError::Component),
            c => Token::Char(c),
        };
        tokens.push(token);
    }
    let literal: Option<String> = tokens
        .iter()
        .map(|token| if let Token::Char(c) = token { Some(*c) } else { None })
        .collect();
    Ok(literal.map_or(Component::Wild(tokens), |text| Component::Literal(text.into())))
}

fn class(chars: &mut core::str::Chars<'_>) -> Result<Token, GlobError> {
    let mut rest = chars.clone();
    let negated = matches!(rest.next(), Some('!' | '^'));
    if negated {
        chars.next();
    }
    let mut ranges = Vec::new();
    loop {
        let low = match chars.next().ok_or(GlobError::Class)? {
            ']' if !ranges.is_empty() => return Ok(Token::Class { negated, ranges }),
            '\\' => chars.next().ok_or(GlobError::Class)?,
            c => c,
        };
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *chars = ahead;
                high
            }
            _ => low,
        };
        if high < low {
            return Err(GlobError::Class);
        }
        ranges.push((low, high));
    }
}

impl Token {
    /// Something that it takes.
    fn sample(&self) -> String {
        match self {
            Self::Char(c) => String::from(*c),
            Self::AnyChar => String::from('\u{a7}'),
            Self::AnyText => String::from(SAMPLE_NAME),
            Self::Class { ranges, .. } => {
                let low = ranges.first().map_or('\u{a7}', |(low, _)| *low);
                String::from(if self.accepts(low) { low } else { '\u{a7}' })
            }
        }
    }

    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Char(literal) => *literal == c,
            Self::AnyChar | Self::AnyText => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

impl Component {
    fn literal(&self) -> Option<&str> {
        if let Self::Literal(text) = self { Some(text) } else { None }
    }

    fn accepts(&self, name: &str) -> bool {
        match self {
            Self::AnyDepth => true,
            Self::Literal(text) => **text == *name,
            Self::Wild(tokens) => matches_wildcards(tokens, name),
        }
    }
}

/// Matches wildcards within a component. A `*` that failed is retried one character further on;
/// only the last one needs to be, so the time is bounded by the product of the two lengths.
fn matches_wildcards(tokens: &[Token], name: &str) -> bool {
    let (mut tokens_left, mut text) = (tokens, name.chars());
    let mut retry: Option<(&[Token], core::str::Chars<'_>)> = None;
    loop {
        match tokens_left.split_first() {
            Some((Token::AnyText, rest)) => {
                retry = Some((rest, text.clone()));
                tokens_left = rest;
                continue;
            }
            Some((token, rest)) => {
                let mut ahead = text.clone();
                if ahead.next().is_some_and(|c| token.accepts(c)) {
                    (tokens_left, text) = (rest, ahead);
                    continue;
                }
            }
            None if text.as_str().is_empty() => return true,
            None => {}
        }
        let Some((rest, mut from)) = retry.take() else { return false };
        if from.next().is_none() {
            return false;
        }
        (tokens_left, text) = (rest, from.clone());
        retry = Some((rest, from));
    }
}

/// Matches components; `**` is to components what `*` is to characters.
fn matches(pattern: &[Component], path: &[&str], is_any: impl Fn(&str) -> bool) -> bool {
    let (mut pattern_left, mut path_left) = (pattern, path);
    let mut retry: Option<(&[Component], &[&str])> = None;
    loop {
        match pattern_left.split_first() {
            Some((Component::AnyDepth, [])) => return path_left.iter().all(|name| is_any(name)),
            Some((Component::AnyDepth, rest)) => {
                retry = Some((rest, path_left));
                pattern_left = rest;
                continue;
            }
            Some((component, rest)) => {
                if let Some((name, names)) = path_left.split_first()
                    && component.accepts(name)
                    && (component.literal().is_some() || is_any(name))
                {
                    (pattern_left, path_left) = (rest, names);
                    continue;
                }
            }
            None if path_left.is_empty() => return true,
            None => {}
        }
        let Some((rest, from)) = retry.take() else { return false };
        let Some((passed, from)) = from.split_first() else { return false };
        if !is_any(passed) {
            return false;
        }
        (pattern_left, path_left) = (rest, from);
        retry = Some((rest, from));
    }
}

fn can_match_beneath(pattern: &[Component], folder: &[&str]) -> bool {
    match (pattern.split_first(), folder.split_first()) {
        (None, _) => false,
        (Some(_), None) | (Some((Component::AnyDepth, _)), _) => true,
        (Some((component, rest)), Some((name, names))) => {
            component.accepts(name) && can_match_beneath(rest, names)
        }
    }
}

/// What is left of a pattern once `root` was matched by its beginning, for every way to do so. Every
/// place in the pattern is looked at once a component of `root`, however many ways lead to it.
fn residuals<'p>(pattern: &'p [Component], root: &[&str]) -> Vec<&'p [Component]> {
    let is_any = |place: usize| pattern.get(place) == Some(&Component::AnyDepth);
    // A place behind `**` is reached with it, because that may stand for nothing.
    let open = |mut places: BTreeSet<usize>| {
        for place in 0..pattern.len() {
            if places.contains(&place) && is_any(place) {
                places.insert(place + 1);
            }
        }
        places
    };
    let mut places = open(BTreeSet::from([0]));
    for name in root {
        let mut next = BTreeSet::new();
        for place in places {
            match pattern.get(place) {
                Some(Component::AnyDepth) => next.insert(place),
                Some(component) if component.accepts(name) => next.insert(place + 1),
                _ => false,
            };
        }
        places = open(next);
    }
    // What is left behind `**` is part of what is left with it.
    let with_it = |place: usize| place > 0 && is_any(place - 1) && places.contains(&(place - 1));
    places
        .iter()
        .filter(|place| !with_it(**place))
        .filter_map(|place| pattern.get(*place..))
        .collect()
}

/// A path as text for [`Glob::relative_to`]: `~/x` with its home folder put in.
#[must_use]
pub fn expand_home(pattern: &str, home: &str) -> Option<String> {
    let rest = pattern.strip_prefix('~')?;
    if rest.is_empty() || rest.starts_with('/') {
        let mut path = escape(home.trim_end_matches('/'));
        path.push_str(rest);
        Some(path)
    } else {
        None
    }
}

/// A path written so that a pattern takes it literally.
#[must_use]
pub fn escape(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).unwrap()
    }

    #[test]
    fn some_patterns_name_one_place() {
        for (pattern, place) in [
            ("**", Some(("", true))),
            ("out/**", Some(("out", true))),
            ("out/deep/", Some(("out/deep", true))),
            ("./out//file", Some(("out/file", false))),
            ("with\\*star", Some(("with*star", false))),
            ("*", None),
            ("src/*.rs", None),
            ("**/file", None),
            ("a/**/b", None),
            ("[a]", None),
        ] {
            let found = Glob::parse(pattern).unwrap().literal_path();
            let expected = place.map(|(path, beneath)| (path.to_string(), beneath));
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn a_path_enters_what_names_it() {
        for (pattern, asked, enters) in [
            ("**/.github/workflows/**", ".github", true),
            ("**/.github/workflows/**", "sub/.github", true),
            ("**/.github/workflows/**", "sub/.github/workflows", true),
            ("**/.github/workflows/**", ".github/other", false),
            ("**/.github/workflows/**", "workflows", false),
            ("**/.envrc", ".envrc", false),
            ("src/own/*.rs", "src", true),
            ("src/own/*.rs", "sub/src", false),
            ("src/own/*.rs", ".", false),
            ("a/**/b", "a/x/y", true),
        ] {
            assert_eq!(
                Glob::parse(pattern).unwrap().has_prefix(&path(asked)),
                enters,
                "{pattern} {asked}"
            );
        }
    }

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, yes, no) in [
            ("docs/*.md", "docs/a.md", "docs/sub/a.md"),
            ("docs/**", "docs/sub/a.md", "docs2/a.md"),
            ("docs/**", "docs", "."),
            ("docs/", "docs/a", "doc"),
            ("**", ".", "nothing is left out"),
            ("**/.env", ".env", ".env/x"),
            ("**/.env", "a/b/.env", "a/b/.env.local"),
            ("**/*.pem", "k/server.pem", "k/server.pem.txt"),
            ("src/**/*.md", "src/a.md", "src/a.rs"),
            ("src/**/test/*.rs", "src/a/b/test/x.rs", "src/a/test/b/x.rs"),
            ("a?c", "abc", "ac"),
            ("[a-c]x", "bx", "dx"),
            ("[!a-c]x", "dx", "bx"),
            ("[]]x", "]x", "ax"),
            ("a\\*b", "a*b", "axb"),
            ("*a*b*", "xxaxxbxx", "xxbxxaxx"),
            ("über*", "überall", "ueber"),
            ("//a/./b", "a/b", "a"),
        ] {
            let glob = Glob::parse(pattern).unwrap();
            assert!(glob.matches(&path(yes)), "{pattern} should match {yes}");
            if no != "nothing is left out" {
                assert!(!glob.matches(&path(no)), "{pattern} should not match {no}");
            }
        }
    }

    #[test]
    fn a_denial_covers_what_lies_beneath() {
        let glob = Glob::parse("**/.ssh").unwrap();
        assert!(glob.covers(&path("a/.ssh/id_rsa")));
        assert!(!glob.matches(&path("a/.ssh/id_rsa")));
        assert!(!glob.covers(&path("a/.sshfoo/x")));
        assert!(!Glob::parse("*").unwrap().covers(&WorkspacePath::root()));
        assert!(Glob::parse("**").unwrap().covers(&WorkspacePath::root()));
    }

    #[test]
    fn what_cannot_be_matched_is_refused() {
        for (text, error) in [
            ("", GlobError::Length),
            ("a/../b", GlobError::Component),
            ("*.{md,txt}", GlobError::Braces),
            ("[a", GlobError::Class),
            ("[z-a]", GlobError::Class),
            ("a**", GlobError::AnyDepth),
            ("a\nb", GlobError::Component),
        ] {
            assert_eq!(Glob::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn absolute_patterns_are_seen_from_the_workspace() {
        let beneath = |pattern: &str, root: &str| -> Vec<Glob> {
            Glob::parse(&expand_home(pattern, "/home/u").unwrap()).unwrap().relative_to(root)
        };
        let all = beneath("~/projects/**", "/home/u/projects/app");
        assert!(all.iter().any(|glob| glob.matches(&path("any/thing"))));
        let aws = beneath("~/.aws/**", "/home/u");
        assert!(aws.iter().any(|glob| glob.matches(&path(".aws/credentials"))));
        assert!(beneath("~/.aws/**", "/srv/app").is_empty());
        assert_eq!(expand_home("~root/x", "/home/u"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_globset(
            pattern in "([ab*?]|\\*\\*/|/){1,8}",
            text in "[ab/]{1,8}",
        ) {
            let (Ok(ours), Ok(path)) = (Glob::parse(&pattern), WorkspacePath::parse(&text)) else {
                return Ok(());
            };
            // The two languages differ on doubled, leading and trailing slashes and on the root.
            let plain = |t: &str| !t.contains("//") && !t.starts_with('/') && !t.ends_with('/');
            prop_assume!(plain(&pattern) && plain(&text) && !path.is_root());
            prop_assume!(!pattern.ends_with("**"));
            let theirs = globset::GlobBuilder::new(&pattern).literal_separator(true).build();
            prop_assume!(theirs.is_ok());
            let theirs = theirs.unwrap().compile_matcher();
            prop_assert_eq!(ours.matches(&path), theirs.is_match(path.as_str()));
        }

        #[test]
        fn what_matches_beneath_is_reachable(
            pattern in "([ab*]|\\*\\*/|/){1,8}",
            text in "[ab/]{1,8}",
        ) {
            let (Ok(glob), Ok(path)) = (Glob::parse(&pattern), WorkspacePath::parse(&text)) else {
                return Ok(());
            };
            if let Some(parent) = path.parent() && glob.matches(&path) {
                prop_assert!(glob.can_match_beneath(&parent));
            }
        }
    }
}
