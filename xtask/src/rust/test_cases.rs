//! The tests of a file, those that a macro makes included.

use crate::rust::items::Items;
use crate::rust::tokens::{PlacedToken, Token, Tokens};

/// One test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestCase {
    /// Its name.
    pub(crate) name: String,
    /// Where its first attribute stands.
    pub(crate) line: usize,
    /// The comments above it and between its attributes.
    pub(crate) comment: String,
}

/// The tests of a target that brings its own harness (`harness = false`). A function is one where a
/// table of the file names it, `("name", name)`; in a file with a `main`, also every other function
/// that says in a comment what it shows.
pub(crate) fn harness_tests(path: &str, items: &Items, lines: &[String]) -> Vec<TestCase> {
    if !path.split('/').any(|part| part == "tests") {
        return Vec::new();
    }
    let has_main = items.functions.iter().any(|function| function.name == "main");
    let is_listed = |name: &str| {
        let entry = format!("(\"{name}\", {name})");
        lines.iter().any(|line| line.contains(&entry))
    };
    let others = items.functions.iter().filter(|function| function.name != "main");
    let cases = others
        .map(|other| commented(other.name.clone(), other.first_line, other.first_line, lines));
    cases.filter(|case| is_listed(&case.name) || has_main && !case.comment.is_empty()).collect()
}

/// Every function that is marked as a test.
pub(crate) fn find_tests(words: &Tokens, lines: &[String]) -> Vec<TestCase> {
    let marks = words.0.windows(4).enumerate().filter(|(_, window)| is_test_attribute(window));
    marks.filter_map(|(index, _)| test_case(words.0.get(index..)?, lines)).collect()
}

/// `#[test]`, with or without a path before it.
fn is_test_attribute(window: &[PlacedToken]) -> bool {
    let [sign, open, name, close] = window else { return false };
    sign.token == Token::Sign('#')
        && open.token == Token::Open('[')
        && name.token == Token::Name("test".to_owned())
        && close.token == Token::Close(']')
}

fn test_case(words: &[PlacedToken], lines: &[String]) -> Option<TestCase> {
    let mark = words.first()?.line;
    let keyword = words.iter().position(|placed| placed.token == Token::Name("fn".to_owned()))?;
    let placed = words.get(keyword + 1)?;
    let Token::Name(name) = &placed.token else { return None };
    Some(commented(name.clone(), mark, placed.line, lines))
}

/// A test with the comments above its mark, and between that and its name.
fn commented(name: String, mark: usize, named: usize, lines: &[String]) -> TestCase {
    let line = |number: usize| lines.get(number.checked_sub(1)?).map(|text| text.trim());
    let belongs = |text: &str| text.starts_with("//") || text.starts_with("#[");
    let mut first = mark;
    while line(first - 1).is_some_and(belongs) {
        first -= 1;
    }
    let above = (first..named).filter_map(line);
    let comments: Vec<&str> =
        above.filter(|text| text.starts_with("//") && !text.starts_with("//!")).collect();
    TestCase { name, line: first, comment: comments.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Vec<TestCase> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        find_tests(&Tokens::from_stream(text.parse().unwrap()), &lines)
    }

    #[test]
    fn comments_above_and_between_belong_to_a_test() {
        let found =
            cases("// CAP-1\n/// CAP-2\n#[test]\n// CAP-3\nfn a() {}\n\n// no\nfn b() {}\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "a");
        assert_eq!(found[0].comment, "// CAP-1\n/// CAP-2\n// CAP-3");
    }

    #[test]
    fn a_file_with_its_own_harness_has_tests() {
        let text =
            "fn main() { run(&[walls_hold]); }\n/// NFR-1: held.\nfn walls_hold() {}\nfn bare() {}";
        let items = Items::parse(&syn::parse_file(text).unwrap(), &[]);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let found = harness_tests("crates/x/tests/walls.rs", &items, &lines);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].comment.as_str()),
            ("walls_hold", "/// NFR-1: held.")
        );
        assert_eq!(harness_tests("crates/x/src/main.rs", &items, &lines), []);
        let text = "const TESTS: &[Test] = &[(\"held\", held)];\nfn held() {}\nfn other() {}";
        let items = Items::parse(&syn::parse_file(text).unwrap(), &[]);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let found = harness_tests("crates/x/tests/walls/sight.rs", &items, &lines);
        assert_eq!(found.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["held"]);
    }

    #[test]
    fn tests_inside_of_macros_are_tests() {
        let found = cases("proptest! {\n    // FR-7\n    #[test]\n    fn p(x in 0..9) {}\n}\n");
        assert_eq!((found[0].name.as_str(), found[0].comment.as_str()), ("p", "// FR-7"));
    }
}
