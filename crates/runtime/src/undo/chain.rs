//! What several calls changed, one after the other, as one change for each path.

use std::collections::BTreeMap;

use capsule_core::change::{Change, FileState};
use capsule_workspace::is_half_applied;

/// What calls changed so far.
#[derive(Debug, Default)]
pub(crate) struct ChangeChain(BTreeMap<String, PathChange>);

#[derive(Debug)]
struct PathChange {
    change: Change,
    /// What stood there in between.
    intermediate: Vec<Option<FileState>>,
    call: u64,
    /// Whether the last call did what it was about to do.
    is_certain: bool,
}

/// A path that something else changed between two calls: what stood there before the first one cannot be
/// brought back without losing that.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForeignChange {
    /// The path.
    pub path: String,
    /// The call before.
    pub first: u64,
    /// The call after.
    pub second: u64,
}

impl ChangeChain {
    /// Adds what one more call was about to change, and whether it did.
    ///
    /// # Errors
    /// What it found is not what the calls before it left.
    pub(crate) fn add(
        &mut self,
        call: u64,
        sure: bool,
        changes: Vec<Change>,
    ) -> Result<(), ForeignChange> {
        for new in changes {
            let Some(old) = self.0.remove(&new.path) else {
                let between = vec![new.before.clone()];
                self.0.insert(
                    new.path.clone(),
                    PathChange { change: new, intermediate: between, call, is_certain: sure },
                );
                continue;
            };
            let follows = old.change.matches_after(new.before.as_ref());
            // A call that did not come to its end left what it found, or what was half done.
            let found = old.intermediate.last();
            let begun = Change { before: found.cloned().flatten(), ..old.change.clone() };
            let is_known =
                || found == Some(&new.before) || is_half_applied(&begun, new.before.as_ref());
            if !follows && (old.is_certain || !is_known()) {
                return Err(ForeignChange { path: new.path, first: old.call, second: call });
            }
            let mut between = old.intermediate;
            between.push(new.before);
            let change = Change { before: old.change.before, ..new };
            self.0.insert(
                change.path.clone(),
                PathChange { change, intermediate: between, call, is_certain: sure },
            );
        }
        Ok(())
    }

    /// The changes that bring back what stood there before the first call, by path; each with what
    /// stood there in between, of which nothing is lost either.
    pub(crate) fn inverse(self) -> Vec<(Change, Vec<Option<FileState>>)> {
        let came_back = |link: &PathChange| {
            link.is_certain && link.change.matches_after(link.change.before.as_ref())
        };
        let links = self.0.into_values().filter(|link| !came_back(link));
        links.map(|link| (link.change.reverted(), link.intermediate)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

    use capsule_base::digest::Digest;

    use super::*;

    fn file(text: &str, mode: u32) -> Option<FileState> {
        let bytes = u64::try_from(text.len()).unwrap();
        Some(FileState::File { sha256: Digest::of(text.as_bytes()), bytes, mode })
    }

    fn change(before: Option<FileState>, after: Option<FileState>) -> Vec<Change> {
        vec![Change { path: "a".into(), before, after, ..Change::default() }]
    }

    #[test]
    fn calls_are_one_change_for_each_path() {
        let mut chain = ChangeChain::default();
        chain.add(1, true, change(None, file("1", 0o644))).unwrap();
        // The mask took something away from what is new.
        chain.add(2, true, change(file("1", 0o600), file("2", 0o600))).unwrap();
        // It failed, and changed nothing.
        chain.add(3, false, change(file("2", 0o600), None)).unwrap();
        chain.add(4, true, change(file("2", 0o600), file("3", 0o600))).unwrap();
        let broken = ForeignChange { path: "a".into(), first: 4, second: 5 };
        assert_eq!(chain.add(5, true, change(file("x", 0o600), file("y", 0o600))), Err(broken));
    }

    #[test]
    fn what_was_half_done_is_gone_on_from() {
        let folder = |mode| Some(FileState::Directory { mode });
        for half in [None, folder(0o700)] {
            let mut chain = ChangeChain::default();
            chain.add(1, false, change(file("1", 0o644), folder(0o755))).unwrap();
            chain.add(2, true, change(half, folder(0o755))).unwrap();
            assert_eq!(chain.inverse()[0].0.after, file("1", 0o644));
        }
        // By a call that came to its end, or by something else.
        for (sure, other) in [(true, None), (false, file("x", 0o644))] {
            let mut chain = ChangeChain::default();
            chain.add(1, sure, change(file("1", 0o644), folder(0o755))).unwrap();
            assert!(chain.add(2, true, change(other, folder(0o755))).is_err());
        }
    }

    #[test]
    fn what_stood_there_first_comes_back() {
        let mut chain = ChangeChain::default();
        chain.add(1, true, change(file("1", 0o4755), file("2", 0o755))).unwrap();
        chain.add(2, true, change(file("2", 0o755), None)).unwrap();
        let back = Change { path: "a".into(), after: file("1", 0o755), ..Change::default() };
        let between = vec![file("1", 0o4755), file("2", 0o755)];
        assert_eq!(chain.inverse(), [(back, between)]);
        let mut chain = ChangeChain::default();
        chain.add(1, true, change(None, file("1", 0o644))).unwrap();
        chain.add(2, true, change(file("1", 0o644), None)).unwrap();
        assert_eq!(chain.inverse(), []);
        // Nobody knows whether it is there; who looks will.
        let mut chain = ChangeChain::default();
        chain.add(1, false, change(file("1", 0o644), file("1", 0o644))).unwrap();
        assert_eq!(chain.inverse().len(), 1);
    }
}
