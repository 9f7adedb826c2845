//! Words that say nothing do not name anything (house rule 24).

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::TidyFinding;

/// The words. A thing that seems to need one is two things, or has a name that was not found yet.
const BANNED: &[&str] = &[
    "manager",
    "managers",
    "helper",
    "helpers",
    "util",
    "utils",
    "utility",
    "utilities",
    "misc",
    "common",
    "stuff",
];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    house
        .sources
        .iter()
        .flat_map(|source| check_path(source).into_iter().chain(check_declared(source)))
        .collect()
}

fn check_path(source: &Source) -> Option<TidyFinding> {
    let path = source.path.strip_suffix(".rs").unwrap_or(&source.path);
    let word =
        path.split('/').flat_map(split_words).find(|word| BANNED.contains(&word.as_str()))?;
    Some(TidyFinding::at(&source.path, format!("the path says `{word}`; name what it does")))
}

fn check_declared(source: &Source) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for item in &source.items.declared {
        let banned =
            split_words(&item.name).into_iter().find(|word| BANNED.contains(&word.as_str()));
        if let Some(word) = banned {
            let what =
                format!("the {} `{}` says `{word}`; name what it does", item.kind, item.name);
            found.push(TidyFinding::at_line(&source.path, item.line, what));
        }
    }
    found
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

    #[test]
    fn words_that_say_nothing_are_found() {
        let text =
            "struct RunManager; fn path_utils() {} mod helper {} fn commonly() {} trait Util {}";
        let house = Repository::from_files(&[
            ("crates/x/src/a.rs", text),
            ("crates/x/tests/common/mod.rs", ""),
        ]);
        let found = check(&house);
        assert_eq!(found.len(), 5, "{found:?}");
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(split_words("RunManager"), ["run", "manager"]);
        assert_eq!(split_words("HTTPUtil"), ["httputil"]);
        assert_eq!(split_words("in_common-place"), ["in", "common", "place"]);
    }
}
