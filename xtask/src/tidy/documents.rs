//! Names in ARCHITECTURE, THREATS and FORMAT are names of things that exist.
//!
//! What stands in backticks is sorted by how it is written: a command, a path, a type, a path of
//! Rust, a function, a dotted name (a code, a tool, an event), the long name of a test or a column.
//! Each kind has its own place where it must be found. Other lower-case words, and what is not a
//! name at all, are not checked.

use std::collections::BTreeSet;

use capsule_base::code::Code;

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::{TidyFinding, code_spans};

/// The documents. All of them must be there.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "THREATS.md", "FORMAT.md"];

/// Names that are others' and stand in no file of ours as a name, each with whose it is.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("Host", "a header of HTTP"),
    ("Origin", "a header of HTTP"),
    ("Authorization", "a header of HTTP"),
    ("Cookie", "a header of HTTP"),
    ("NoNewPrivs", "a field of a process's status in Linux"),
    ("Seccomp", "a field of a process's status in Linux"),
];

/// Roots of paths of Rust that are not ours.
const FOREIGN_CRATES: &[&str] =
    &["std", "alloc", "rustix", "libc", "rusqlite", "serde", "serde_json"];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let known = KnownNames::collect(house);
    let mut found = Vec::new();
    for document in DOCUMENTS {
        match house.tree.text(document) {
            Some(text) => found.extend(check_names(house, &known, document, text)),
            None => found.push(TidyFinding::at(*document, "is missing")),
        }
    }
    found
}

fn check_names(
    house: &Repository,
    known: &KnownNames,
    document: &str,
    text: &str,
) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (line, span) in code_spans::find_spans(text) {
        if let Some(why) = missing_name(house, known, span) {
            found.push(TidyFinding::at_line(document, line, format!("`{span}`: {why}")));
        }
    }
    found
}

/// Everything that has a name.
struct KnownNames {
    /// Every name in the code, as an identifier.
    names: BTreeSet<String>,
    /// Every name of a function.
    functions: BTreeSet<String>,
    /// Every word of texts in code and of files of data.
    words: BTreeSet<String>,
    /// The commands of the binary.
    commands: BTreeSet<String>,
}

impl KnownNames {
    fn collect(house: &Repository) -> Self {
        let mut known = Self {
            names: FOREIGN_NAMES.iter().map(|(name, _)| (*name).to_owned()).collect(),
            functions: BTreeSet::new(),
            words: BTreeSet::new(),
            commands: commands(house),
        };
        for source in &house.sources {
            known.names.extend(source.tokens.names().map(|(name, _)| name.to_owned()));
            known.names.extend(source.path.rsplit('/').next().map(|n| n.replace(".rs", "")));
            known.functions.extend(functions(source));
            source.tokens.texts().for_each(|(text, _)| known.add_words(text));
        }
        for file in &house.tree.files {
            let is_data =
                [".toml", ".yaml", ".json", ".sql"].iter().any(|end| file.path.ends_with(end));
            if let Some(text) = file.text.as_deref().filter(|_| is_data) {
                known.add_words(text);
            }
        }
        known.words.extend(Code::ALL.iter().map(|code| code.slug().to_owned()));
        known
    }

    fn add_words(&mut self, text: &str) {
        let ends = |letter: char| !(letter.is_alphanumeric() || "_.-/".contains(letter));
        let words = text.split(ends).map(|word| word.trim_matches(['.', '-', '/']));
        self.words.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
}

/// Functions with a body, and those that tests in macros are.
fn functions(source: &Source) -> impl Iterator<Item = String> {
    let declared = source.items.declared.iter().filter(|declared| declared.kind == "function");
    let cases = source.cases.iter().map(|case| case.name.clone());
    declared.map(|declared| declared.name.clone()).chain(cases)
}

/// The commands of the binary, as they are typed.
fn commands(house: &Repository) -> BTreeSet<String> {
    let args = house.sources.iter().filter(|source| source.path == "crates/cli/src/args.rs");
    let all = args
        .flat_map(|arg| &arg.items.enumerations)
        .filter(|enumeration| enumeration.name == "Command");
    all.flat_map(|enumeration| &enumeration.variants).map(|(name, _)| kebab(name)).collect()
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Why a name does not exist; none if it does, or if it is none.
fn missing_name(house: &Repository, known: &KnownNames, span: &str) -> Option<String> {
    let mut words = span.split_whitespace();
    match (words.next()?, words.next()) {
        ("capsule", Some(command)) => missing_command(known, command),
        ("cargo", Some("xtask")) => missing_task(words.next()),
        (_, Some(_)) => None,
        (word, None) if is_path(house, word) => missing_path(house, known, word),
        (word, None) if is_dotted(word) => missing_dotted(known, word),
        (word, None) => missing_rust_name(known, word),
    }
}

fn missing_command(known: &KnownNames, command: &str) -> Option<String> {
    let is_word = command.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let is_flag = command.starts_with('-');
    (is_word && !is_flag && !known.commands.contains(command))
        .then(|| format!("the binary has no command `{command}`"))
}

fn missing_task(task: Option<&str>) -> Option<String> {
    let task = task?;
    let known = crate::TASKS.iter().any(|(name, _)| *name == task);
    (!known).then(|| format!("there is no task `{task}`"))
}

/// A path of the repository: it begins with one of its folders, or ends like a file of it.
fn is_path(house: &Repository, word: &str) -> bool {
    let file = word.split("::").next().unwrap_or(word);
    let ends = [".rs", ".md"].iter().any(|end| file.ends_with(end));
    let folder = word.split_once('/').map(|(first, _)| first);
    let begins = folder.is_some_and(|folder| !folder.is_empty() && house.tree.contains(folder));
    !word.starts_with(['/', '~', '$']) && !word.contains("//") && (ends || begins)
}

/// A file or folder, by its whole path or by the end of it, with or without an item behind `::`.
fn missing_path(house: &Repository, known: &KnownNames, word: &str) -> Option<String> {
    let (path, item) =
        word.split_once("::").map_or((word, None), |(path, item)| (path, Some(item)));
    let path = path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let found = house.tree.files.iter().any(|file| {
        let own: Vec<&str> = file.path.split('/').collect();
        own.windows(parts.len())
            .any(|window| window.iter().zip(&parts).all(|(a, b)| matches_pattern(a, b)))
    });
    if !found {
        return Some("there is no such file or folder".to_owned());
    }
    item.and_then(|item| missing_rust_name(known, item))
}

/// Whether a part of a path fits a pattern in which `*` stands for any letters.
fn matches_pattern(part: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => part == pattern,
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
    }
}

/// Lower-case words joined by dots, such as `path.outside-workspace`.
fn is_dotted(word: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'_')
    };
    word.contains('.') && word.split('.').all(plain)
}

/// A dotted name whose first word begins a code must be a code, a tool, an event, a capability or a
/// key: it stands somewhere in the code or its data.
fn missing_dotted(known: &KnownNames, word: &str) -> Option<String> {
    let family = word.split('.').next()?;
    let families = Code::ALL.iter().filter_map(|code| code.slug().split_once('.'));
    let is_ours = families.map(|(first, _)| first).any(|first| first == family);
    let file = [".yaml", ".db", ".toml", ".json", ".sql", ".sh", ".lock", ".txt"];
    let is_file = file.iter().any(|end| word.ends_with(end));
    (is_ours && !is_file && !known.words.contains(word))
        .then(|| "no code, tool, event or key of that name".to_owned())
}

/// A name of Rust: a type, a path, a function with its brackets, or a long name with underscores.
fn missing_rust_name(known: &KnownNames, word: &str) -> Option<String> {
    let calls = word.contains('(');
    let word = word.split(['<', '(', '{', '!']).next()?.trim_start_matches('&');
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
    if word.is_empty() || !word.bytes().all(plain) {
        return None;
    }
    let parts: Vec<&str> = word.split("::").collect();
    if parts.len() > 1 {
        let foreign = parts.first().is_some_and(|root| FOREIGN_CRATES.contains(root));
        let absent =
            parts.iter().find(|part| !known.names.contains(**part) && !is_crate(known, part));
        return absent.filter(|_| !foreign).map(|part| format!("there is no `{part}` in the code"));
    }
    let is_type = word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains(|c: char| c.is_ascii_lowercase());
    if is_type && !known.names.contains(word) {
        return Some("there is no type or variant of that name".to_owned());
    }
    let is_lower = !word.contains(|c: char| c.is_ascii_uppercase());
    if calls && is_lower && !known.functions.contains(word) && !known.names.contains(word) {
        return Some("there is no function of that name".to_owned());
    }
    let is_long = is_lower && word.matches('_').count() >= 2;
    (is_long && !known.names.contains(word) && !known.words.contains(word))
        .then(|| "there is no test, function, column or field of that name".to_owned())
}

/// Crates are written by the name of their room.
fn is_crate(known: &KnownNames, part: &str) -> bool {
    known.names.contains(&format!("capsule_{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! D.\nmod draft { pub struct Permit; fn submit() {} }\n#[test]\nfn a_long_test_name() { sql(\"CREATE tool_calls input_hash_of\"); }\nuse capsule_core::x;\n";
    const ARGS: &str = "enum Command { Run, ListRuns }";

    fn found(document: &str) -> Vec<String> {
        let house = Repository::from_files(&[
            ("ARCHITECTURE.md", document),
            ("THREATS.md", ""),
            ("FORMAT.md", ""),
            ("crates/runtime/src/lifecycle.rs", CODE),
            ("crates/cli/src/args.rs", ARGS),
            ("attacks/paths.toml", "[[row]]\nid = \"A1\"\ntext = \"call.started\"\n"),
        ]);
        check(&house).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_missing_document_is_found() {
        assert_eq!(check(&Repository::from_files(&[("THREATS.md", "")])).len(), 2);
    }

    #[test]
    fn names_of_things_that_are_gone_are_found() {
        for gone in [
            "`Receipts`",
            "`draft::Gone`",
            "`submits()`",
            "`a_long_test_names`",
            "`exec.flag-denyed`",
            "`crates/runtime/src/gone.rs`",
            "`attacks/*.json`",
            "`runtime/src/lifecycle.rs::gone_now_too`",
            "`capsule lst-runs`",
            "`cargo xtask tidi`",
            "`Permits<'_>`",
        ] {
            assert_eq!(found(&format!("see {gone}")).len(), 1, "{gone}");
        }
    }

    #[test]
    fn names_of_things_that_exist_are_not() {
        let fine = "`Permit` `Permit<'_>` `&Permit` `draft::Permit` `core::x` `submit()` `submit` \
                    `a_long_test_name` `exec.flag-denied` `call.started` `runtime/src/lifecycle.rs` \
                    `runtime/src/lifecycle.rs::submit` `attacks/*.toml` `crates/` `capsule list-runs` \
                    `capsule run plan.yaml` `cargo xtask tidy` `cargo test` `RESOLVE_BENEATH` \
                    `/proc/self/status` `~/.ssh` `store.db` `std::fs::File` `anything` `fs.*` \
                    `SELECT * FROM Nothing` `tool_calls` `input_hash_of` `https://x.org/a`";
        assert_eq!(found(fine), Vec::<String>::new());
    }
}
