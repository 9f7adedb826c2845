//! Words that this project does not use: `xtask/glossary.toml` names each with the word to use instead. What
//! is left of one from before may only become less (house rule 24).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::repository::Repository;
use crate::rust::{Source, Token};
use crate::tidy::{TidyFinding, compare_with_ceiling};

/// The words.
const GLOSSARY: &str = "xtask/glossary.toml";

/// Pages whose sentences are checked; the others are history.
const PAGES: &[&str] =
    &["README.md", "ARCHITECTURE.md", "THREATS.md", "CONTRIBUTING.md", "docs/book/"];

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Glossary {
    /// Words that are no part of a declared name, tests included, or of a file's path.
    #[serde(default)]
    declared: Vec<Entry>,
    /// Words that are no part of a name in shipped code.
    #[serde(default)]
    names: Vec<Entry>,
    /// Words that stand in no sentence: in comments, in texts of the code, in pages.
    #[serde(default)]
    prose: Vec<Entry>,
}

/// A word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The word that is not used, in small letters.
    not: String,
    /// The word to use instead.
    instead: String,
    /// How often it may still be used.
    #[serde(default)]
    left: usize,
}

/// Where a word is used.
struct Use {
    word: String,
    location: String,
}

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let Some(file) = house.tree.files.iter().find(|file| file.path == GLOSSARY) else {
        return Vec::new();
    };
    let glossary: Glossary = match toml::from_str(file.text.as_deref().unwrap_or_default()) {
        Ok(glossary) => glossary,
        Err(error) => return vec![TidyFinding::at(GLOSSARY, error.message())],
    };
    let sources = || house.sources.iter();
    let declared = sources().flat_map(used_in_declarations).collect();
    let mut prose: Vec<Use> = sources().flat_map(used_in_prose).collect();
    prose.extend(house.tree.files.iter().filter(|file| is_page(&file.path)).flat_map(|file| {
        let lines = file.text.as_deref().unwrap_or_default().lines();
        lines.enumerate().flat_map(|(index, line)| used_in_line(&file.path, index + 1, line))
    }));
    let mut found = check_entries("declared name", &glossary.declared, declared);
    found.extend(check_entries(
        "name",
        &glossary.names,
        sources().flat_map(used_in_names).collect(),
    ));
    found.extend(check_entries("sentence", &glossary.prose, prose));
    found
}

/// Whether the sentences of a page are checked.
fn is_page(path: &str) -> bool {
    path.ends_with(".md") && PAGES.iter().any(|page| path.starts_with(page))
}

fn check_entries(kind: &str, entries: &[Entry], uses: Vec<Use>) -> Vec<TidyFinding> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Use { word, location } in uses {
        places.entry(word).or_default().push(location);
    }
    let check = |Entry { not, instead, left }: &Entry| -> Vec<TidyFinding> {
        let places = places.get(not).map_or(&[][..], Vec::as_slice);
        let count = places.len();
        let what = match compare_with_ceiling(count, *left) {
            Ordering::Equal => return Vec::new(),
            Ordering::Greater if *left == 0 => {
                let what = format!("a {kind} says `{not}`; say {instead}");
                return places.iter().map(|place| TidyFinding::at(place, what.as_str())).collect();
            }
            Ordering::Greater => {
                format!("{count} {kind}s say `{not}`, at most {left} may; say {instead}")
            }
            Ordering::Less => {
                format!("{count} {kind}s say `{not}`; lower what is left of it from {left}")
            }
        };
        vec![TidyFinding::at(GLOSSARY, what)]
    };
    entries.iter().flat_map(check).collect()
}

/// The words of the names that a file declares, and of its path.
fn used_in_declarations(source: &Source) -> Vec<Use> {
    let path = source.path.strip_suffix(".rs").unwrap_or(&source.path);
    let of_path = path.split('/').flat_map(split_words);
    let of_path = of_path.map(|word| Use { word, location: source.path.clone() });
    let declared = source.items.declared.iter();
    let declared = declared.flat_map(|item| used_in_name(source, &item.name, item.line));
    of_path.chain(declared).collect()
}

/// The words of the names in the shipped code of a file.
fn used_in_names(source: &Source) -> Vec<Use> {
    let names = source.tokens.names().filter(|(_, line)| !source.is_test(*line));
    names.flat_map(|(name, line)| used_in_name(source, name, line)).collect()
}

fn used_in_name(source: &Source, name: &str, line: usize) -> Vec<Use> {
    let location = format!("{}:{line}", source.path);
    let used = |word| Use { word, location: location.clone() };
    split_words(name).into_iter().map(used).collect()
}

/// The words of comments and texts in a file.
fn used_in_prose(source: &Source) -> Vec<Use> {
    let numbered = || (1..).zip(&source.lines).filter(|(line, _)| !source.is_test(*line));
    let comments = numbered().filter_map(|(line, text)| Some((line, text.split_once("//")?.1)));
    let mut used: Vec<Use> =
        comments.flat_map(|(line, text)| used_in_line(&source.path, line, text)).collect();
    // A comment of documentation is a text of an attribute, too.
    let is_comment = |line: usize| {
        source.lines.get(line - 1).is_some_and(|text| text.trim_start().starts_with("//"))
    };
    let shipped = source.tokens.0.iter().filter(|placed| !source.is_test(placed.line));
    for placed in shipped.filter(|placed| !is_comment(placed.line)) {
        if let Token::Literal(text) = &placed.token {
            used.extend(used_in_line(&source.path, placed.line, text));
        }
    }
    used
}

fn used_in_line(path: &str, line: usize, text: &str) -> Vec<Use> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let used = |word: &str| Use { word: word.to_lowercase(), location: format!("{path}:{line}") };
    words.map(used).collect()
}

/// The words of a name, in lower case, however they are joined.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_capital = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && !after_capital;
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        after_capital = letter.is_uppercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = r#"
        declared = [{ not = "helper", instead = "the subject" }, { not = "common", instead = "the subject" }]
        names = [{ not = "veil", instead = "hidden paths", left = 2 }]
        prose = [{ not = "nobody", instead = "who it is" }]
    "#;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut files = files.to_vec();
        files.push((GLOSSARY, WORDS));
        let findings = check(&Repository::from_files(&files));
        findings
            .into_iter()
            .map(|finding| format!("{}: {}", finding.location, finding.message))
            .collect()
    }

    const VEILS: (&str, &str) = ("crates/x/src/a.rs", "fn veil(veil: u8) { common() }");

    #[test]
    fn words_that_say_nothing_are_found_wherever_they_are_declared() {
        let text = "struct PathHelper; mod helpers {}\n#[cfg(test)]\nmod tests { fn helper() {} }";
        assert_eq!(
            found(&[VEILS, ("crates/x/src/b.rs", text), ("crates/x/tests/common/mod.rs", "")]),
            [
                "crates/x/src/b.rs:1: a declared name says `helper`; say the subject",
                "crates/x/src/b.rs:3: a declared name says `helper`; say the subject",
                "crates/x/tests/common/mod.rs: a declared name says `common`; say the subject",
            ]
        );
    }

    #[test]
    fn words_that_are_not_used_are_found_in_sentences() {
        let text = "/// Nobody knows.\nfn unveiled() -> &'static str { \"nobody is there\" }";
        assert_eq!(
            found(&[VEILS, ("crates/x/src/b.rs", text), ("README.md", "For nobody.")]),
            [
                "crates/x/src/b.rs:1: a sentence says `nobody`; say who it is",
                "crates/x/src/b.rs:2: a sentence says `nobody`; say who it is",
                "README.md:1: a sentence says `nobody`; say who it is",
            ]
        );
    }

    #[test]
    fn what_is_left_may_only_become_less() {
        let more = "fn veil(veil: u8, veils: u8) { veil() }";
        let expected = "xtask/glossary.toml: 3 names say `veil`, at most 2 may; say hidden paths";
        assert_eq!(found(&[("crates/x/src/a.rs", more)]), [expected]);
        let less = "xtask/glossary.toml: 1 names say `veil`; lower what is left of it from 2";
        assert_eq!(found(&[("crates/x/src/a.rs", "fn veil() {}")]), [less]);
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(split_words("RunManager"), ["run", "manager"]);
        assert_eq!(split_words("HTTPUtil"), ["httputil"]);
        assert_eq!(split_words("in_common-place"), ["in", "common", "place"]);
    }
}
