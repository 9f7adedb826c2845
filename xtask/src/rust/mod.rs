//! A Rust file as the checks see it: its items with their lines, its words, and its tests.

mod items;
mod test_cases;
mod tokens;

pub(crate) use items::{Function, Items};
pub(crate) use test_cases::TestCase;
pub(crate) use tokens::{Token, Tokens};

use proc_macro2::TokenStream;

use crate::TaskResult;

/// A file, parsed.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it stands.
    pub(crate) path: String,
    /// Its lines.
    pub(crate) lines: Vec<String>,
    /// Its items, as the grammar has them.
    pub(crate) items: Items,
    /// Its words in order, those inside of macros included.
    pub(crate) tokens: Tokens,
    /// Its tests.
    pub(crate) cases: Vec<TestCase>,
}

impl Source {
    /// Parses a file.
    ///
    /// # Errors
    /// When it is not Rust, with the place.
    pub(crate) fn parse(path: &str, text: &str) -> TaskResult<Self> {
        let place = |error: syn::Error| format!("line {}: {error}", error.span().start().line);
        let file = syn::parse_file(text).map_err(place)?;
        let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let words = Tokens::from_stream(tokens);
        let mut cases = test_cases::find_tests(&words, &lines);
        let items = Items::parse(&file, &cases);
        if cases.is_empty() {
            cases = test_cases::harness_tests(path, &items, &lines);
        }
        Ok(Self { path: path.to_owned(), lines, items, tokens: words, cases })
    }

    /// Whether the whole file is for development: tests, examples, the testkit, these tasks.
    pub(crate) fn is_for_development(&self) -> bool {
        let folder = |name: &str| self.path.split('/').any(|part| part == name);
        folder("tests")
            || folder("examples")
            || folder("benches")
            || self.path.starts_with("crates/testkit/")
            || self.path.starts_with("xtask/")
            || self.path.starts_with("bench/")
            || self.path.starts_with("fuzz/")
    }

    /// Whether a line belongs to a test.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.is_for_development() || self.items.tests.iter().any(|range| range.contains(&line))
    }

    /// The file's name within its crate, as a path of Rust: `core::policy::draft`.
    pub(crate) fn module(&self) -> String {
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let kept = |part: &&str| !matches!(*part, "src" | "mod" | "lib");
        let parts: Vec<&str> = path.split('/').filter(kept).collect();
        parts.join("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "//! Doc.\n\nfn one() {\n    two();\n}\n\n#[cfg(test)]\nmod tests {\n    // FR-3, CAP-2: shown.\n    #[test]\n    fn it_holds() {}\n}\n";

    #[test]
    fn lines_of_tests_are_told_apart() {
        let source = Source::parse("crates/core/src/x/mod.rs", FILE).unwrap();
        assert!(!source.is_test(3) && source.is_test(9) && source.is_test(12));
        assert_eq!(source.module(), "core::x");
        assert_eq!(source.items.functions[0].lines(), 3);
    }

    #[test]
    fn what_is_not_rust_is_named_with_its_line() {
        let error = Source::parse("x.rs", "fn one() {\n    let\n}\n").unwrap_err();
        assert!(error.starts_with("line "), "{error}");
    }
}
