//! What a run changed in one repository belongs together. `HEAD`, the index, what git notes of an operation that
//! stopped and the files of the working tree are one state: with a part of it, git can neither go on nor go back. So
//! where a part is dropped, the rest is not made either.

use std::collections::{BTreeMap, BTreeSet};

use capsule_core::change::Change;

use super::layout::WORKTREES;
use super::new_repositories::git_directory;
use crate::change_path::split_parent;

/// Settings, and a cache: without them, the rest is as whole as before.
const SETTINGS: [&str; 7] =
    ["branches", "config", "description", "hooks", "info/attributes", "remotes", "rr-cache"];

/// Repositories of which a part would be made, and another dropped.
#[derive(Debug, Default)]
pub struct SplitRepositories {
    /// The directory `.git` of each, with the one that its files are in.
    directories: BTreeMap<String, String>,
}

impl SplitRepositories {
    /// Looks for them among what is to be made and what is dropped.
    #[must_use]
    pub fn find<'c>(
        made: impl IntoIterator<Item = &'c Change>,
        dropped: impl IntoIterator<Item = &'c Change>,
    ) -> Self {
        let directory = |change: &'c Change| Some((git_directory(&change.path)?, change));
        let made: Vec<(&str, &Change)> = made.into_iter().filter_map(directory).collect();
        let dropped: Vec<(&str, &Change)> = dropped.into_iter().filter_map(directory).collect();
        let all = || made.iter().chain(&dropped);
        // A new one is not whole without its settings.
        let new: BTreeSet<&str> = all()
            .filter(|(directory, change)| change.path == *directory && change.before.is_none())
            .map(|(directory, _)| *directory)
            .collect();
        let is_needed = |directory: &str, change: &Change| {
            new.contains(directory) || !is_setting(inner(directory, &change.path))
        };
        let mut directories = BTreeMap::new();
        for (directory, change) in &dropped {
            let is_split = is_needed(directory, change)
                && made.iter().any(|(other, made)| other == directory && is_needed(other, made));
            if is_split {
                // Other working trees lie anywhere.
                let is_linked = all().any(|(other, change)| {
                    other == directory && inner(other, &change.path).starts_with(WORKTREES)
                });
                let files = if is_linked { "" } else { split_parent(directory).0 };
                directories.insert((*directory).to_owned(), files.to_owned());
            }
        }
        Self { directories }
    }

    /// The directory `.git` of the repository that a path belongs to, of those that were found.
    #[must_use]
    pub fn holding(&self, path: &str) -> Option<&str> {
        let holds = |files: &str| {
            files.is_empty() || path.strip_prefix(files).is_some_and(|rest| rest.starts_with('/'))
        };
        let found = self.directories.iter().find(|(_, files)| holds(files))?;
        Some(found.0.as_str())
    }

    /// The directories `.git`.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.keys().map(String::as_str)
    }
}

fn inner<'p>(directory: &str, path: &'p str) -> &'p str {
    path.strip_prefix(directory).unwrap_or_default().trim_start_matches('/')
}

fn is_setting(name: &str) -> bool {
    SETTINGS.iter().any(|place| {
        name.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use capsule_core::change::FileState;

    use super::*;

    #[test]
    fn a_part_of_a_repository_is_told_from_settings() {
        let directory = || Some(FileState::Directory { mode: 0o755 });
        let change = |path: &&str| match path.strip_prefix('+') {
            Some(path) => Change { path: path.into(), after: directory(), ..Change::default() },
            None => Change { path: (*path).into(), before: directory(), ..Change::default() },
        };
        for (made, dropped, path, expected) in [
            (&[".git/HEAD", "a"][..], &[".git/rebase-merge/x"][..], "a", Some(".git")),
            (&[".git/HEAD"], &[".git/config"], "a", None),
            (&[".git/HEAD"], &[".git/configured"], "a", Some(".git")),
            (&["a"], &[".git/unknown"], "a", None),
            (&[".git/config", "a"], &[".git/unknown"], "a", None),
            (&["b/.git/HEAD"], &["b/.git/shallow"], "b/c", Some("b/.git")),
            (&["b/.git/HEAD"], &["b/.git/shallow"], "bc", None),
            (&["b/.git/HEAD"], &["c/.git/shallow"], "b/c", None),
            (&["b/.git/worktrees/w/HEAD"], &["b/.git/x"], "w/c", Some("b/.git")),
            (&["b/.git/HEAD", "+b/.git"], &["b/.git/config"], "b/c", Some("b/.git")),
            (&[".github/a"], &[".git/shallow"], ".github/a", None),
        ] {
            let made: Vec<Change> = made.iter().map(change).collect();
            let dropped: Vec<Change> = dropped.iter().map(change).collect();
            let found = SplitRepositories::find(&made, &dropped);
            assert_eq!(found.holding(path), expected, "{made:?} {dropped:?}");
        }
    }
}
