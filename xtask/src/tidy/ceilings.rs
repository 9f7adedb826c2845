//! Files, functions and `core` stay small enough to be read (house rule 24).

use std::cmp::Ordering;

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::{TidyFinding, compare_with_ceiling};

/// Lines of a file without its tests.
const MAX_FILE_LINES: usize = 500;
/// Lines of a function, from its signature to its brace.
const MAX_FUNCTION_LINES: usize = 60;
/// Crates that must stay small, each with the most lines of code that it may have, without tests, blank
/// lines, comments and tables. A number here falls with the code, since one that is far above what is there is a finding; only a new
/// tool, key or limit raises one, by what it adds, and that of `core` never above 10,000.
const MAX_CRATE_LINES: &[(&str, usize)] =
    &[("base", 2_681), ("command", 7_741), ("core", 9_925), ("policy", 3_273)];

/// Files that may be longer, each with the reason. Only tables of data belong here.
const LONGER_FILES: &[(&str, &str)] = &[
    ("crates/base/src/limits.rs", "the table of every bound, each a number and its reason"),
    ("crates/base/src/code.rs", "the table of every code, with the texts that users read"),
    (
        "crates/core/src/control_files.rs",
        "the table of what programs of the host obey, made by xtask",
    ),
    ("crates/policy/src/language.rs", "the table of the keys of the policy language"),
];

/// Tables that need not be followed to know what their crate does; its ceiling does not count them.
const TABLES: &[(&str, &str)] = &[
    ("crates/base/src/code.rs", "the table of every code"),
    ("crates/core/src/control_files.rs", "the table of what programs of the host obey"),
    ("crates/base/src/confusable_characters.rs", "the table of characters that pass for others"),
    (
        "crates/core/src/policy/decide/instead.rs",
        "the table of what to do instead, a sentence for each effect",
    ),
    (
        "crates/core/src/policy/decide/instruction_files.rs",
        "the table of files by which builds are told what to run",
    ),
    ("crates/command/src/specs/spec_keys.rs", "the table of the keys of specifications"),
    ("crates/command/src/specs/embedded/words.rs", "the table of words of interpreted languages"),
    ("crates/base/src/yaml/syntax_errors.rs", "the table of what a text that is no YAML lacks"),
    ("crates/policy/src/language.rs", "the table of the keys of the policy language"),
    ("crates/base/src/limits.rs", "the table of every bound, each a number and its reason"),
    ("crates/command/src/shell_syntax/unsupported.rs", "the table of what commands may not hold"),
    ("crates/command/src/shell_syntax/grammar.rs", "the table of what commands may hold"),
    ("crates/command/src/shell_syntax/reserved_words.rs", "the table of words that shells keep"),
    ("crates/command/src/variables/table.rs", "the table of variables and what they start"),
    (
        "crates/command/src/specs/embedded/sql/words.rs",
        "the table of words of SQL and what they do",
    ),
];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let sources = || house.sources.iter().filter(|source| !is_test_file(source));
    let mut found: Vec<TidyFinding> = sources().filter_map(check_file).collect();
    found.extend(sources().flat_map(check_functions));
    found.extend(MAX_CRATE_LINES.iter().filter_map(|(name, most)| check_crate(house, name, *most)));
    for (path, _) in LONGER_FILES {
        // A table that is just short enough today would be too long again tomorrow.
        let is_short = |source: &Source| lines_without_tests(source) * 10 <= MAX_FILE_LINES * 9;
        if house.sources.iter().any(|source| source.path == *path && is_short(source)) {
            found.push(TidyFinding::at(
                *path,
                "is short enough; take it off the list of longer files",
            ));
        }
    }
    found
}

/// Tests are tables and stories; they may be as long as they need to be.
fn is_test_file(source: &Source) -> bool {
    source.path.split('/').any(|part| part == "tests")
}

fn lines_without_tests(source: &Source) -> usize {
    let tests: usize = source.items.tests.iter().map(|range| range.end() + 1 - range.start()).sum();
    // Tests inside of a module of tests are counted with it.
    let nested: usize = source
        .items
        .tests
        .iter()
        .filter(|test| {
            let holds = |other: &&std::ops::RangeInclusive<usize>| {
                other != test && other.contains(test.start()) && other.contains(test.end())
            };
            source.items.tests.iter().any(|other| holds(&other))
        })
        .map(|range| range.end() + 1 - range.start())
        .sum();
    source.lines.len() - (tests - nested)
}

fn check_file(source: &Source) -> Option<TidyFinding> {
    let lines = lines_without_tests(source);
    let may = LONGER_FILES.iter().any(|(path, _)| *path == source.path);
    (lines > MAX_FILE_LINES && !may).then(|| {
        TidyFinding::at(
            &source.path,
            format!("{lines} lines without tests; at most {MAX_FILE_LINES}"),
        )
    })
}

fn check_functions(source: &Source) -> Vec<TidyFinding> {
    let long =
        source.items.functions.iter().filter(|function| function.lines() > MAX_FUNCTION_LINES);
    let shipped = long.filter(|function| {
        !source.items.tests.iter().any(|range| range.contains(&function.first_line))
    });
    let finding = |function: &crate::rust::Function| {
        let what = format!(
            "`{}` has {} lines; at most {MAX_FUNCTION_LINES}",
            function.name,
            function.lines()
        );
        TidyFinding::at_line(&source.path, function.first_line, what)
    };
    shipped.map(finding).collect()
}

fn check_crate(house: &Repository, name: &str, most: usize) -> Option<TidyFinding> {
    let is_table = |source: &&Source| TABLES.iter().any(|(path, _)| *path == source.path);
    let directory = format!("crates/{name}/src/");
    let sources = house.sources.iter().filter(|source| source.path.starts_with(&directory));
    let lines: usize = sources.filter(|source| !is_table(source)).map(code_lines).sum();
    let what = match compare_with_ceiling(lines, most) {
        Ordering::Greater => format!("{lines} lines of code; at most {most}"),
        Ordering::Less if lines > 0 => {
            format!("{lines} lines of code; lower its ceiling of {most}, which may only fall")
        }
        _ => return None,
    };
    Some(TidyFinding::at(format!("crates/{name}"), what))
}

/// Lines with something else than a comment on them, outside of tests.
fn code_lines(source: &Source) -> usize {
    let mut inside = false;
    let numbered = source.lines.iter().enumerate();
    let code = numbered.filter(|(index, text)| {
        let text = text.trim();
        let begins = text.starts_with("/*");
        let comment = inside || begins || text.starts_with("//");
        inside = (inside || begins) && !text.contains("*/");
        !text.is_empty() && !comment && !source.is_test(index + 1)
    });
    code.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(lines: usize) -> String {
        format!("fn one() {{\n{}}}\n", "    two();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found() {
        let (long, short) = (filled(61), filled(60));
        let house =
            Repository::from_files(&[("crates/x/src/a.rs", &long), ("crates/x/src/b.rs", &short)]);
        let found = check(&house);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].location.starts_with("crates/x/src/a.rs:1"));
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = "const X: u8 = 1;\n".repeat(501);
        let short = format!(
            "{}#[cfg(test)]\nmod tests {{\n#[test]\nfn t() {{\n{}}}\n}}\n",
            "const X: u8 = 1;\n".repeat(500),
            "x();\n".repeat(100)
        );
        let house =
            Repository::from_files(&[("crates/x/src/a.rs", &long), ("crates/x/src/b.rs", &short)]);
        let found = check(&house);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].location, "crates/x/src/a.rs");
    }

    #[test]
    fn a_crate_that_outgrew_its_ceiling_is_found_and_a_ceiling_that_can_fall() {
        let (name, most) = MAX_CRATE_LINES[0];
        let code = "/// Doc.\nconst X: u8 = 1;\n\n".repeat(10);
        let path = |number| format!("crates/{name}/src/f{number}.rs");
        for (files, found) in [(most / 10 + 1, 1), (most / 10, 0), (most / 20, 1)] {
            let paths: Vec<String> = (0..files).map(path).collect();
            let files: Vec<(&str, &str)> =
                paths.iter().map(|path| (path.as_str(), code.as_str())).collect();
            let number = files.len();
            assert_eq!(check(&Repository::from_files(&files)).len(), found, "{number} files");
        }
    }
}
