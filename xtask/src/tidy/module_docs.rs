//! Every file begins by saying what it is (house rule 24).

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::TidyFinding;

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let bare = house.sources.iter().filter(|source| is_shipped(source) && !begins(source));
    let what = "does not begin with `//!`: say in a sentence what the file is and why it is there";
    bare.map(|source| TidyFinding::at_line(&source.path, 1, what)).collect()
}

fn is_shipped(source: &Source) -> bool {
    let parts: Vec<&str> = source.path.split('/').collect();
    matches!(parts.as_slice(), ["crates", _, "src", ..] | ["xtask" | "bench", "src", ..])
}

fn begins(source: &Source) -> bool {
    source.lines.first().is_some_and(|line| line.starts_with("//! "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_documentation_is_found() {
        let house = Repository::from_files(&[
            ("crates/x/src/a.rs", "use x;\n"),
            ("crates/x/src/b.rs", "//! What it is.\n"),
            ("crates/x/tests/c.rs", "use x;\n"),
        ]);
        assert_eq!(check(&house).len(), 1);
    }
}
