//! The page of every requirement with the tests that show it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::TaskResult;
use crate::docs::markdown;
use crate::repository::Repository;

/// The requirements in our own words, by family.
const DATA: &str = include_str!("../../data/requirements.toml");

const ABOUT: &str = "What Capsule is asked for, in our own words, and the tests that show each of it. \
A test names an id in the comment above it; a row of `attacks/` names it under `requirements`. A test names \
an id only where it would fail without what the requirement asks for.";

/// A family of requirements.
struct Family {
    title: String,
    ids: Vec<(Id, String)>,
}

/// An id such as `FR-7`: its letters, and its number as far as it has one, for the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    letters: String,
    number: u32,
    text: String,
}

impl Id {
    fn parse(text: &str) -> Self {
        let letters: String = text.chars().take_while(|c| !c.is_ascii_digit()).collect();
        let digits = text.get(letters.len()..).unwrap_or_default();
        Self { number: digits.parse().unwrap_or(u32::MAX), letters, text: text.to_owned() }
    }
}

/// The page.
///
/// # Errors
/// When the data is broken, or a test names a requirement that there is not.
pub(super) fn page(house: &Repository) -> TaskResult<String> {
    let (families, notes) = (families()?, notes()?);
    let shown = tests_by_requirement(house);
    let known =
        |id: &str| families.iter().flat_map(|family| &family.ids).any(|(item, _)| item.text == id);
    if let Some((id, by)) = shown.iter().find(|(id, _)| !known(id)) {
        return Err(format!("there is no requirement {id}; {} names it", by.join(", ")));
    }
    if let Some(id) = notes.keys().find(|id| !known(id) || shown.contains_key(*id)) {
        return Err(format!("requirements.toml has a note on {id}, which has a test or is none"));
    }
    let all: usize = families.iter().map(|family| family.ids.len()).sum();
    let mut text = markdown::head("Requirements", ABOUT);
    text.push_str(&format!("\n{} of {all} have a test.\n", shown.len()));
    for Family { title, ids } in families {
        text.push_str(&format!("\n## {title}\n"));
        for (id, summary) in ids {
            text.push_str(&format!("\n### {}\n\n{summary}\n\n", id.text));
            match shown.get(&id.text) {
                Some(by) => by.iter().for_each(|by| text.push_str(&format!("- {by}\n"))),
                None => match notes.get(&id.text) {
                    Some(note) => text.push_str(&format!("- no test yet. {note}\n")),
                    None => text.push_str("- no test yet\n"),
                },
            }
        }
    }
    Ok(text)
}

fn data() -> TaskResult<Table> {
    DATA.parse().map_err(|error| format!("requirements.toml: {error}"))
}

/// What is to be known of requirements that no test shows.
fn notes() -> TaskResult<BTreeMap<String, String>> {
    let data = data()?;
    let notes = data.get("notes").and_then(Value::as_table).ok_or("requirements.toml: no notes")?;
    let note = |(id, text): (&String, &Value)| Some((id.clone(), text.as_str()?.to_owned()));
    let notes: Option<_> = notes.iter().map(note).collect();
    notes.ok_or_else(|| "requirements.toml: a broken note".into())
}

fn families() -> TaskResult<Vec<Family>> {
    let data = data()?;
    let list =
        data.get("family").and_then(Value::as_array).ok_or("requirements.toml: no family")?;
    list.iter()
        .map(|value| family(value).ok_or("requirements.toml: a broken family".into()))
        .collect()
}

fn family(value: &Value) -> Option<Family> {
    let title = value.get("title")?.as_str()?.to_owned();
    let ids = value.get("ids")?.as_table()?.iter();
    let ids: Option<Vec<_>> =
        ids.map(|(id, text)| Some((Id::parse(id), text.as_str()?.to_owned()))).collect();
    let mut ids = ids?;
    ids.sort();
    Some(Family { title, ids })
}

/// What shows each requirement.
fn tests_by_requirement(house: &Repository) -> BTreeMap<String, Vec<String>> {
    let mut shown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in &house.sources {
        // The tests of these tasks speak of ids as examples.
        for case in source.cases.iter().filter(|_| !source.path.starts_with("xtask/")) {
            for id in ids(&case.comment) {
                let by = format!("`{}` `{}`", source.module(), case.name);
                shown.entry(id).or_default().push(by);
            }
        }
    }
    for row in &house.attacks {
        for id in &row.requirements {
            shown.entry(id.clone()).or_default().push(format!("`{}` row `{}`", row.path, row.id));
        }
    }
    for by in shown.values_mut() {
        by.sort();
        by.dedup();
    }
    shown
}

/// The ids in a text.
fn ids(text: &str) -> Vec<String> {
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
    text.split(ends).filter(|word| is_id(word)).map(str::to_owned).collect()
}

fn is_id(word: &str) -> bool {
    let Some((family, rest)) = word.split_once('-') else { return false };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match family {
        "FR" | "EI" | "II" | "NFR" | "UC" | "CAP" | "SBX" | "SAF" | "APR" => number(rest),
        "SRS" => rest == "X" || rest.strip_prefix('C').is_some_and(number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_a_summary() {
        let families = families().unwrap();
        let ids: Vec<&Id> =
            families.iter().flat_map(|family| &family.ids).map(|(id, _)| id).collect();
        let counts = [
            ("FR-", 23),
            ("EI-", 6),
            ("II-", 4),
            ("NFR-", 12),
            ("UC-", 4),
            ("SRS-C", 5),
            ("CAP-", 15),
            ("SBX-", 12),
            ("SAF-", 9),
            ("APR-", 11),
        ];
        for (letters, count) in counts {
            let item = ids.iter().filter(|id| id.letters == letters).map(|id| id.number);
            assert_eq!(item.collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>(), "{letters}");
        }
        assert!(ids.iter().any(|id| id.text == "SRS-X"));
        assert_eq!(ids.len(), 102);
        assert!(ids.iter().all(|id| is_id(&id.text)));
        let summaries = families.iter().flat_map(|family| &family.ids).map(|(_, summary)| summary);
        assert!(summaries.into_iter().all(|summary| summary.ends_with('.')));
    }

    #[test]
    fn ids_are_found_in_comments_and_in_rows() {
        let house = Repository::from_files(&[
            ("crates/x/src/a.rs", "/// CAP-10, NFR-5: shown (not CAPS-1).\n#[test]\nfn t() {}"),
            ("attacks/a.toml", "[[row]]\nid = \"A1\"\nrequirements = [\"FR-19\"]"),
        ]);
        let page = page(&house).unwrap();
        assert!(page.contains("3 of 102"));
        assert!(page.contains("### CAP-10\n"));
        assert!(page.contains("- `x::a` `t`\n"));
        assert!(page.contains("- `attacks/a.toml` row `A1`\n"));
        assert!(page.contains(
            "### NFR-7\n\nIt runs on macOS.\n\n- no test yet. Type-checked for Apple silicon"
        ));
    }

    /// Nothing is said to be untried once a test shows it.
    #[test]
    fn a_note_ends_with_the_first_test() {
        let house =
            Repository::from_files(&[("crates/x/src/a.rs", "// NFR-7\n#[test]\nfn t() {}")]);
        assert!(page(&house).unwrap_err().contains("a note on NFR-7"));
    }

    #[test]
    fn an_unknown_requirement_is_an_error() {
        let house =
            Repository::from_files(&[("crates/x/src/a.rs", "// FR-99\n#[test]\nfn t() {}")]);
        assert!(page(&house).unwrap_err().contains("FR-99"));
    }
}
