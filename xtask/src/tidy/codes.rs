//! Every code is there once, can be read, and is used (house rule 16).

use std::collections::{BTreeMap, BTreeSet};

use capsule_base::code::Code;

use crate::repository::Repository;
use crate::tidy::TidyFinding;

/// The table.
const CODE_TABLE: &str = "crates/base/src/code.rs";

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let codes: Vec<(String, &str)> =
        Code::ALL.iter().map(|code| (format!("{code:?}"), code.slug())).collect();
    let mut found = check_slugs(codes.iter().map(|(_, slug)| *slug));
    // Without the table there are no uses to be looked for either.
    if house.tree.contains(CODE_TABLE) {
        found.extend(unused_codes(house, &codes));
    }
    found
}

fn check_slugs<'s>(slugs: impl Iterator<Item = &'s str>) -> Vec<TidyFinding> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    slugs.for_each(|slug| *count.entry(slug).or_default() += 1);
    let readable =
        |slug: &str| slug.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'.');
    let mut found = Vec::new();
    for (slug, times) in count {
        if times > 1 {
            found.push(TidyFinding::at(
                CODE_TABLE,
                format!("the slug `{slug}` stands {times} times"),
            ));
        }
        if !readable(slug) {
            found.push(TidyFinding::at(
                CODE_TABLE,
                format!("the slug `{slug}` is not lower-case words"),
            ));
        }
    }
    found
}

/// Codes that no shipped line gives out: nobody can meet them, so nobody needs to read of them.
fn unused_codes(house: &Repository, codes: &[(String, &str)]) -> Vec<TidyFinding> {
    let mut used = BTreeSet::new();
    for source in house.sources.iter().filter(|source| source.path != CODE_TABLE) {
        let names = source.tokens.paths_after("Code").filter(|(_, line)| !source.is_test(*line));
        used.extend(names.map(|(name, _)| name));
    }
    let idle = codes.iter().filter(|(name, _)| !used.contains(name.as_str()));
    idle.map(|(name, slug)| {
        TidyFinding::at(
            CODE_TABLE,
            format!("`Code::{name}` (`{slug}`) is used nowhere; use it or remove it"),
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_that_stands_twice_is_found() {
        assert_eq!(check_slugs(["a.b", "a.c", "a.b"].into_iter()).len(), 1);
        assert_eq!(check_slugs(["a.B"].into_iter()).len(), 1);
        assert_eq!(check_slugs(["a.b", "a.c"].into_iter()), []);
    }

    #[test]
    fn a_code_that_only_tests_use_is_found() {
        let used =
            "fn f() { give(Code::Allowed) }\n#[cfg(test)]\nmod tests { const C: X = Code::Never; }";
        let house = Repository::from_files(&[("crates/core/src/x.rs", used)]);
        let codes =
            [("Allowed".to_owned(), "policy.allowed"), ("Never".to_owned(), "policy.never")];
        let found = unused_codes(&house, &codes);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("`Code::Never`"));
    }
}
