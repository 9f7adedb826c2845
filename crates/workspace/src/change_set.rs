//! All that a run changed.

use std::collections::BTreeMap;

use capsule_core::change::Change;

/// What a run changed in all, by path. Parents stand before what is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet(pub BTreeMap<String, Change>);

impl ChangeSet {
    /// Adds what one more call changed. What comes back to what it was before the run is no change;
    /// what was refused or asked about once stays so until then.
    pub fn add(&mut self, call: Vec<Change>) {
        for new in call {
            let old = self.0.remove(&new.path);
            let merged = match old {
                Some(old) => {
                    let (refused, asked) = (old.refused.or(new.refused), old.asked.or(new.asked));
                    Change { before: old.before, refused, asked, ..new }
                }
                None => new,
            };
            if merged.before != merged.after {
                self.0.insert(merged.path.clone(), merged);
            }
        }
    }

    /// What changed from this state to a later one.
    #[must_use]
    pub fn changes_until(&self, later: &Self) -> Vec<Change> {
        let mut between = Vec::new();
        for (path, now) in &later.0 {
            let before = self.0.get(path).map_or(&now.before, |change| &change.after);
            if *before != now.after {
                between.push(Change { before: before.clone(), ..now.clone() });
            }
        }
        let undone = self.0.iter().filter(|(path, _)| !later.0.contains_key(*path));
        between.extend(undone.map(|(path, change)| {
            let (before, after) = (change.after.clone(), change.before.clone());
            Change { path: path.clone(), before, after, ..Change::default() }
        }));
        between.sort_by(|one, other| one.path.cmp(&other.path));
        between
    }

    /// Those that a person is asked about before they are applied.
    pub fn asked(&self) -> impl Iterator<Item = &Change> {
        self.0.values().filter(|value| value.asked.is_some())
    }

    /// The first one that cannot be applied.
    #[must_use]
    pub fn refused(&self) -> Option<&Change> {
        self.0.values().find(|value| value.refused.is_some())
    }
}

#[cfg(test)]
mod tests {
    use capsule_base::digest::Digest;
    use capsule_core::change::{ChangeKind, FileState};

    use super::*;

    fn file(text: &str) -> Option<FileState> {
        let bytes = u64::try_from(text.len()).unwrap();
        Some(FileState::File { sha256: Digest::of(text.as_bytes()), bytes, mode: 0o644 })
    }

    fn change(path: &str, before: Option<FileState>, after: Option<FileState>) -> Change {
        Change { path: path.into(), before, after, ..Change::default() }
    }

    #[test]
    fn calls_add_up() {
        use ChangeKind::{Added, Modified, Removed};
        let mut spoiled = change("c", None, file("x"));
        spoiled.refused = Some("because".into());
        let first = vec![
            change("a", None, file("1")),
            change("b", file("1"), file("2")),
            spoiled,
            change("d", file("1"), None),
        ];
        let second = vec![
            change("a", file("1"), None),
            change("b", file("2"), file("3")),
            change("c", file("x"), file("y")),
        ];
        let mut all = ChangeSet::default();
        all.add(first);
        let begun = all.clone();
        all.add(second.clone());
        let told: Vec<_> =
            all.0.values().map(|value| (value.path.as_str(), value.kind())).collect();
        assert_eq!(told, [("b", Modified), ("c", Added), ("d", Removed)]);
        assert_eq!(all.0["b"].before, file("1"));
        assert_eq!(all.refused().unwrap().path, "c", "once refused, it stays so");
        // The second call again, from the two states.
        let mut between = begun.changes_until(&all);
        between.iter_mut().for_each(|change| change.refused = None);
        assert_eq!(between, second);
    }
}
