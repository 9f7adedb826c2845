//! A name of a public type is the name of one type in the whole workspace, so that a reader who meets it knows
//! which one is meant. Every crate may have its `Error` and its `Result`.

use std::collections::BTreeMap;

use crate::repository::Repository;
use crate::tidy::TidyFinding;

/// Names that every crate may give.
const SHARED: &[&str] = &["Error", "Result"];

/// Types of which every system has one, behind the same door.
const ONE_PER_SYSTEM: &[&str] = &["crates/sandbox/src/unsupported_os.rs"];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let shipped = house.sources.iter().filter(|source| {
        !source.is_for_development() && !ONE_PER_SYSTEM.contains(&source.path.as_str())
    });
    let mut declared: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in shipped {
        for item in source.items.declared.iter().filter(|item| item.kind == "type") {
            if item.is_public && !source.is_test(item.line) && !SHARED.contains(&item.name.as_str())
            {
                let place = format!("{}:{}", source.path, item.line);
                declared.entry(&item.name).or_default().push(place);
            }
        }
    }
    let repeated = declared.into_iter().filter(|(_, places)| places.len() > 1);
    let finding = |(name, places): (&str, Vec<String>)| {
        let (first, others) = (places.first().cloned().unwrap_or_default(), places.get(1..));
        let others = others.unwrap_or_default().join(", ");
        TidyFinding::at(
            first,
            format!("`{name}` is the name of another public type, too: {others}"),
        )
    };
    repeated.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_for_two_public_types_is_found() {
        let house = Repository::from_files(&[
            ("crates/x/src/a.rs", "pub struct Run; pub struct Error; struct Own;"),
            ("crates/y/src/b.rs", "pub enum Run { One } pub struct Error; pub(crate) trait Own {}"),
        ]);
        let found = check(&house);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.ends_with("crates/y/src/b.rs:1"), "{found:?}");
    }
}
