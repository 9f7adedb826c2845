//! Unsafe code lives in one crate (house rule 12). That each block says why it holds is clippy's to
//! check.

use crate::repository::Repository;
use crate::tidy::TidyFinding;

/// The crate.
const UNSAFE_CRATE: &str = "crates/sandbox/";

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let others = house.sources.iter().filter(|source| !source.path.starts_with(UNSAFE_CRATE));
    let named = others.flat_map(|source| {
        let names = source.tokens.names().filter(|(name, _)| *name == "unsafe");
        names.map(|(_, line)| {
            TidyFinding::at_line(&source.path, line, format!("`unsafe` outside of {UNSAFE_CRATE}"))
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_elsewhere_is_found() {
        let text =
            "//! unsafe in words is fine\n#![forbid(unsafe_code)]\nfn f() { m!(unsafe { g() }) }";
        let house = Repository::from_files(&[
            ("crates/core/src/x.rs", text),
            ("crates/sandbox/src/x.rs", text),
        ]);
        let found = check(&house);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].location, "crates/core/src/x.rs:3");
    }
}
