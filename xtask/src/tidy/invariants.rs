//! Every numbered invariant names a test that keeps it.

use std::collections::BTreeSet;

use crate::repository::Repository;
use crate::tidy::{TidyFinding, code_spans};

/// Where the invariants stand. That it is there is checked with its names.
const DOCUMENT: &str = "ARCHITECTURE.md";

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let Some(text) = house.tree.text(DOCUMENT) else { return Vec::new() };
    let known = proofs(house);
    let mut found = Vec::new();
    let invariants = invariants(text);
    if invariants.is_empty() {
        found.push(TidyFinding::at(
            DOCUMENT,
            "has no invariant: a line that begins with `I-<number>`",
        ));
    }
    let mut seen = BTreeSet::new();
    for Invariant { number, line, text } in invariants {
        if !seen.insert(number) {
            found.push(TidyFinding::at_line(DOCUMENT, line, format!("I-{number} stands twice")));
        }
        let named = text.find("test:").and_then(|at| text.get(at..));
        let tests = named.map(code_spans::spans_in_line).unwrap_or_default();
        if tests.is_empty() {
            let what = format!("I-{number} names no test: write test: and its name in backticks");
            found.push(TidyFinding::at_line(DOCUMENT, line, what));
        }
        for test in tests.into_iter().filter(|test| !is_proven(&known, test)) {
            let what = format!("I-{number}: there is no test `{test}`");
            found.push(TidyFinding::at_line(DOCUMENT, line, what));
        }
    }
    found
}

/// What can keep a promise: a test, or a row of attacks.
pub(super) fn proofs(house: &Repository) -> BTreeSet<&str> {
    let cases = house.sources.iter().flat_map(|source| &source.cases);
    let rows = house.attacks.iter().filter(|row| !row.is_deferred).map(|row| row.id.as_str());
    cases.map(|case| case.name.as_str()).chain(rows).collect()
}

/// Whether a name in backticks is one of them. The rules of the house are tests as well.
pub(super) fn is_proven(known: &BTreeSet<&str>, name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    name == "cargo xtask tidy" || known.contains(name) || known.contains(last)
}

struct Invariant {
    number: u32,
    line: usize,
    text: String,
}

/// Each invariant with its text: from the line that begins with its number to the next one, or to
/// an empty line.
fn invariants(text: &str) -> Vec<Invariant> {
    let mut found: Vec<Invariant> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start_matches([' ', '-', '*', '#', '|', '`']);
        if let Some(number) = content.strip_prefix("I-").and_then(leading_number) {
            found.push(Invariant { number, line: index + 1, text: line.to_owned() });
            inside = true;
        } else if line.trim().is_empty() {
            inside = false;
        } else if let Some(last) = found.last_mut().filter(|_| inside) {
            last.text.push(' ');
            last.text.push_str(line);
        }
    }
    found
}

fn leading_number(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> usize {
        check(&Repository::from_files(&[
            ("ARCHITECTURE.md", document),
            ("crates/x/src/a.rs", "#[test]\nfn it_holds() {}"),
        ]))
        .len()
    }

    #[test]
    fn an_invariant_without_a_test_is_found() {
        assert_eq!(found("- **I-1** All is well.\n"), 1);
        assert_eq!(found("- **I-1** All is well. test: `it_held`\n"), 1);
        assert_eq!(found("- **I-1** All is well.\n  test: `x::it_holds`\n"), 0);
        assert_eq!(found("| I-1 | All is well. | test: `it_holds`, `cargo xtask tidy` |\n"), 0);
    }

    #[test]
    fn an_invariant_that_stands_twice_is_found() {
        assert_eq!(found("I-1 a test: `it_holds`\nI-1 b test: `it_holds`\n"), 1);
        assert_eq!(found("Nothing.\n"), 1);
    }
}
