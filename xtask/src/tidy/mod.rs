//! The rules of the house as tests. Every finding is reported, not only the first; what is not
//! checked here is advice.

mod arrows;
mod ceilings;
mod codes;
mod documents;
mod invariants;
mod module_docs;
mod names;
mod pages;
mod sites;
mod spans;
mod texts;
mod threats;
mod tracked;
mod unsafety;

use std::path::Path;

use crate::Answer;
use crate::house::House;

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Where: a path, with a line where there is one.
    pub(crate) place: String,
    /// What, and what to do about it.
    pub(crate) what: String,
}

impl Finding {
    /// About a file or a package.
    fn at(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// About a line.
    fn on(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::at(format!("{path}:{line}"), what)
    }
}

/// One rule.
type Check = fn(&House) -> Vec<Finding>;

/// The rules, by the name under which their findings are shown.
const RULES: &[(&str, Check)] = &[
    ("parses", parses),
    ("arrows", arrows::check),
    ("ceilings", ceilings::check),
    ("module-docs", module_docs::check),
    ("names", names::check),
    ("codes", codes::check),
    ("sites", sites::check),
    ("unsafe", unsafety::check),
    ("texts", texts::check),
    ("documents", documents::check),
    ("invariants", invariants::check),
    ("threats", threats::check),
    ("pages", pages::check),
    ("tracked", tracked::check),
];

/// Checks every rule; says whether all of them hold.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn run(root: &Path) -> Answer<bool> {
    let house = House::read(root)?;
    let mut broken = 0;
    let mut count = 0;
    for (name, check) in RULES {
        let mut findings = check(&house);
        findings.sort();
        findings.dedup();
        for Finding { place, what } in &findings {
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
fn parses(house: &House) -> Vec<Finding> {
    let broken = house.broken.iter();
    broken.map(|(path, why)| Finding::at(path, format!("cannot be parsed: {why}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_found() {
        let house = House::with(&[("crates/x/src/lib.rs", "fn"), ("attacks/a.toml", "[[x")]);
        assert_eq!(parses(&house).len(), 2);
    }
}
