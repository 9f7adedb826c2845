//! Unsafe code lives in one crate (house rule 12). That each block says why it holds is clippy's to
//! check.

use crate::house::House;
use crate::tidy::Finding;

/// The crate.
const ROOM: &str = "crates/sandbox/";

pub(super) fn check(house: &House) -> Vec<Finding> {
    let others = house.sources.iter().filter(|source| !source.path.starts_with(ROOM));
    let named = others.flat_map(|source| {
        let names = source.words.names().filter(|(name, _)| *name == "unsafe");
        names
            .map(|(_, line)| Finding::on(&source.path, line, format!("`unsafe` outside of {ROOM}")))
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
        let house =
            House::with(&[("crates/core/src/x.rs", text), ("crates/sandbox/src/x.rs", text)]);
        let found = check(&house);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/core/src/x.rs:3");
    }
}
