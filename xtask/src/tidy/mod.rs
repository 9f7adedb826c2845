//! The rules of the house as tests. Every finding is reported, not only the first; what is not
//! checked here is advice.

mod banned_texts;
mod ceilings;
mod code_spans;
mod codes;
mod cycles;
mod dependencies;
mod documents;
mod glossary;
mod invariants;
mod module_docs;
mod pages;
mod threats;
mod tracked_files;
mod trusted_sites;
mod type_names;
mod unsafe_code;

use std::cmp::Ordering;
use std::path::Path;

use crate::TaskResult;
use crate::repository::Repository;

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// Where: a path, with a line where there is one.
    pub(crate) location: String,
    /// What, and what to do about it.
    pub(crate) message: String,
}

impl TidyFinding {
    /// About a file or a package.
    fn at(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { location: place.into(), message: what.into() }
    }

    /// About a line.
    fn at_line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::at(format!("{path}:{line}"), what)
    }
}

/// How much less than a number that may only fall may be there, in hundredths, before the number has to fall.
const MAX_SLACK_PERCENT: usize = 3;

/// Compares a count with a number that may only fall: `Greater` where it is exceeded, `Less` where it has to be
/// lowered.
fn compare_with_ceiling(count: usize, most: usize) -> Ordering {
    match count {
        count if count * (100 + MAX_SLACK_PERCENT) < most * 100 => Ordering::Less,
        count if count > most => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// One rule.
type Check = fn(&Repository) -> Vec<TidyFinding>;

/// The rules, by the name under which their findings are shown.
const RULES: &[(&str, Check)] = &[
    ("parses", parses),
    ("arrows", dependencies::check),
    ("ceilings", ceilings::check),
    ("module-docs", module_docs::check),
    ("glossary", glossary::check),
    ("cycles", cycles::check),
    ("type-names", type_names::check),
    ("codes", codes::check),
    ("sites", trusted_sites::check),
    ("unsafe", unsafe_code::check),
    ("texts", banned_texts::check),
    ("documents", documents::check),
    ("invariants", invariants::check),
    ("threats", threats::check),
    ("pages", pages::check),
    ("tracked", tracked_files::check),
];

/// Checks every rule; says whether all of them hold.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn run(root: &Path) -> TaskResult<bool> {
    let house = Repository::read(root)?;
    let mut broken = 0;
    let mut count = 0;
    for (name, check) in RULES {
        let mut findings = check(&house);
        findings.sort();
        findings.dedup();
        for TidyFinding { location: place, message: what } in &findings {
            println!("{name:<11} {place}: {what}");
        }
        broken += usize::from(!findings.is_empty());
        count += findings.len();
    }
    let (rules, files) = (RULES.len(), house.tree.files.len());
    match count {
        0 => println!("tidy: {rules} rules hold over {files} files"),
        _ => println!("tidy: {count} findings break {broken} of {rules} rules ({files} files)"),
    }
    Ok(count == 0)
}

/// A file that cannot be parsed is not checked by the other rules, so it must not pass in silence.
fn parses(house: &Repository) -> Vec<TidyFinding> {
    let broken = house.unparsed.iter();
    broken.map(|(path, why)| TidyFinding::at(path, format!("cannot be parsed: {why}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_found() {
        let house =
            Repository::from_files(&[("crates/x/src/lib.rs", "fn"), ("attacks/a.toml", "[[x")]);
        assert_eq!(parses(&house).len(), 2);
    }
}
