//! Every known attack has a row: idea, defence, test (house rule 22).

use std::collections::BTreeSet;

use crate::attacks::AttackRow;
use crate::repository::Repository;
use crate::tidy::invariants::{is_proven, proofs};
use crate::tidy::{TidyFinding, code_spans};

/// Where the rows stand. That it is there is checked with its names.
const DOCUMENT: &str = "THREATS.md";

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let known = proofs(house);
    let waits = |id: &str| house.attacks.iter().any(|row| row.is_deferred && row.id == id);
    let mut found: Vec<TidyFinding> =
        house.attacks.iter().filter_map(|row| check_test(&known, row)).collect();
    let Some(text) = house.tree.text(DOCUMENT) else { return found };
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let Some((id, last)) = parse_row(line) else { continue };
        rows += 1;
        let mut say = |what: String| found.push(TidyFinding::at_line(DOCUMENT, index + 1, what));
        let tests = code_spans::spans_in_line(last);
        let says_later = last.to_lowercase().contains("later");
        match (known.contains(id) || !tests.is_empty(), waits(id), says_later) {
            (true, ..) | (false, true, true) => {}
            (false, true, false) => say(format!("{id} waits in attacks; say `later` in its row")),
            (false, false, _) => say(format!("{id} names no test, and no attack has its id")),
        }
        for test in tests.into_iter().filter(|test| !test.contains('/') && !is_proven(&known, test))
        {
            say(format!("{id}: there is no test and no attack `{test}`"));
        }
    }
    if rows == 0 {
        found.push(TidyFinding::at(
            DOCUMENT,
            "has no table of attacks: rows that begin with `| A1 |`",
        ));
    }
    found
}

/// A row of attacks that names a test elsewhere, which is gone.
fn check_test(known: &BTreeSet<&str>, row: &AttackRow) -> Option<TidyFinding> {
    let test = row.test.as_deref().filter(|test| !is_proven(known, test))?;
    Some(TidyFinding::at(&row.path, format!("{}: there is no test `{test}`", row.id)))
}

/// The id and the last cell of a row of the table of attacks.
fn parse_row(line: &str) -> Option<(&str, &str)> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let id = cells.split('|').next()?.trim().trim_matches('`');
    let mut letters = id.chars();
    let family = letters.next()?.is_ascii_uppercase();
    let number = letters.as_str();
    let is_id = family && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_id.then(|| (id, cells.rsplit('|').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> usize {
        check(&Repository::from_files(&[
            ("THREATS.md", document),
            ("attacks/paths.toml", "[[row]]\nid = \"C1\"\n[[later]]\nid = \"C3\"\n"),
            ("crates/x/src/a.rs", "#[test]\nfn links_hold() {}"),
        ]))
        .len()
    }

    #[test]
    fn an_attack_without_a_test_is_found() {
        assert_eq!(found("| C2 | climbs | handles | |\n"), 1);
        assert_eq!(found("| C2 | climbs | handles | `links_held` |\n"), 1);
        assert_eq!(
            found("| C2 | climbs | `openat2` | `links_hold` in `attacks/paths.toml` |\n"),
            0
        );
        assert_eq!(found("| C1 | climbs | handles | by its id |\n"), 0);
        assert_eq!(found("No rows.\n"), 1);
    }

    #[test]
    fn an_attack_that_waits_says_so() {
        assert_eq!(found("| C3 | climbs | handles | |\n"), 1);
        assert_eq!(found("| C3 | climbs | handles | later |\n"), 0);
        assert_eq!(found("| C4 | climbs | handles | later |\n"), 1);
    }

    #[test]
    fn an_attack_whose_test_is_gone_is_found() {
        let row = "[[row]]\nid = \"C1\"\ntest = \"links_held\"\n";
        assert_eq!(check(&Repository::from_files(&[("attacks/paths.toml", row)])).len(), 1);
    }
}
