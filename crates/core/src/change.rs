//! What a command changed in a staged workspace, path by path.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::capability::Capability;
use capsule_base::digest::Digest;
use capsule_base::path::{PathProblem, WorkspacePath};

/// Bits of a file's mode by which it runs as somebody else, or means nothing.
const SPECIAL_BITS: u32 = 0o7000;

/// How a path differs from what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It was there, and is another by now.
    Modified,
    /// It is gone.
    Removed,
}

impl ChangeKind {
    /// The power that it takes.
    #[must_use]
    pub const fn capability(self) -> Capability {
        match self {
            Self::Added | Self::Modified => Capability::FsWrite,
            Self::Removed => Capability::FsDelete,
        }
    }

    /// The word in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Removed => "removed",
        }
    }
}

/// What stands at a path. Owners, dates and extended attributes are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FileState {
    /// A regular file.
    File {
        /// The digest of its bytes.
        sha256: Digest,
        /// How many bytes it has.
        bytes: u64,
        /// Its permissions.
        mode: u32,
    },
    /// A folder.
    #[serde(rename = "folder")]
    Directory {
        /// Its permissions.
        mode: u32,
    },
    /// A link.
    Link {
        /// Where it leads, as it is written.
        target: String,
    },
    /// A pipe, a socket or a device.
    Special,
}

impl FileState {
    /// Whether the two are the same but for their permissions.
    #[must_use]
    pub fn same_except_mode(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { sha256, .. }, Self::File { sha256: other, .. }) => sha256 == other,
            (Self::Directory { .. }, Self::Directory { .. }) => true,
            (one, other) => one == other,
        }
    }
}

/// One path that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path beneath the workspace.
    pub path: String,
    /// What stood there before.
    pub before: Option<FileState>,
    /// What stands there now.
    pub after: Option<FileState>,
    /// Why it cannot be applied, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What a person is asked before it is applied, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

impl Change {
    /// How the path differs.
    #[must_use]
    pub const fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Added,
            (Some(_), Some(_)) => ChangeKind::Modified,
            (Some(_), None) => ChangeKind::Removed,
        }
    }

    /// Whether what stands there now is what the change left. What is new has the permissions that the
    /// user's mask leaves it, which no record knows.
    #[must_use]
    pub fn matches_after(&self, now: Option<&FileState>) -> bool {
        match (&self.after, now) {
            (Some(after), Some(now)) if self.before.is_none() => after.same_except_mode(now),
            (after, now) => after.as_ref() == now,
        }
    }

    /// The change that brings back what stood there. No file comes back as one that runs as its owner
    /// or group.
    #[must_use]
    pub fn reverted(self) -> Self {
        let after = self.before.map(|node| match node {
            FileState::File { sha256, bytes, mode } => {
                FileState::File { sha256, bytes, mode: mode & !SPECIAL_BITS }
            }
            other => other,
        });
        Self { path: self.path, before: self.after, after, refused: None, asked: None }
    }

    /// Why a change like this is never applied, whatever a policy says.
    #[must_use]
    pub fn rejection_reason(&self) -> Option<&'static str> {
        match self.after.as_ref()? {
            FileState::Special => Some("it is a pipe, a socket or a device"),
            FileState::File { mode, .. } if mode & SPECIAL_BITS != 0 => {
                Some("it would run as its owner or group")
            }
            FileState::Link { target } => self.resolve_link(target).err().map(link_problem),
            _ => None,
        }
    }

    /// Where a link leads in the workspace; none for anything else, and where it leads out.
    #[must_use]
    pub fn link_target(&self) -> Option<WorkspacePath> {
        let Some(FileState::Link { target }) = &self.after else { return None };
        self.resolve_link(target).ok()
    }

    fn resolve_link(&self, target: &str) -> Result<WorkspacePath, PathProblem> {
        // Inside, an absolute path means another place than outside.
        if target.starts_with('/') {
            return Err(PathProblem::Absolute);
        }
        let path = WorkspacePath::from_fs_name(&self.path).ok_or(PathProblem::Invalid)?;
        path.parent().ok_or(PathProblem::Climbs)?.resolve_from(target)
    }
}

/// Why a link with such a target is never made.
const fn link_problem(problem: PathProblem) -> &'static str {
    match problem {
        PathProblem::Absolute
        | PathProblem::Climbs
        | PathProblem::Escapes
        | PathProblem::Mounted
        | PathProblem::Folding
        | PathProblem::Unlisted => "it is a link that leads out of the workspace",
        PathProblem::UncertainParent => {
            "it is a link that climbs by `..` out of a folder that may be a link, so nobody knows where it leads"
        }
        PathProblem::Home | PathProblem::Variable => {
            "it is a link to a name that begins with `~` or `$`, which programs may take for a place elsewhere"
        }
        PathProblem::Invalid => "it is a link to a name that holds a control character",
        PathProblem::TooLong => "it is a link to a path, or to a name, that is too long for one",
    }
}

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
        between.extend(undone.map(|(path, change)| Change {
            path: path.clone(),
            before: change.after.clone(),
            after: change.before.clone(),
            refused: None,
            asked: None,
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
    use alloc::vec;

    use super::*;

    fn file(text: &str) -> Option<FileState> {
        let bytes = u64::try_from(text.len()).unwrap();
        Some(FileState::File { sha256: Digest::of(text.as_bytes()), bytes, mode: 0o644 })
    }

    fn change(path: &str, before: Option<FileState>, after: Option<FileState>) -> Change {
        Change { path: path.into(), before, after, refused: None, asked: None }
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

    #[test]
    fn flaws_are_found() {
        let link = |target: &str| Some(FileState::Link { target: target.into() });
        let mode = |mode| Some(FileState::File { sha256: Digest::of(b""), bytes: 0, mode });
        for (path, after, sound) in [
            ("a", link("b"), true),
            ("d/a", link("../b/./c"), true),
            ("d/a", link("../../b"), false),
            ("a", link(".."), false),
            ("a", link("/etc/passwd"), false),
            ("a", link("/workspace/b"), false),
            ("a", mode(0o755), true),
            ("a", mode(0o4755), false),
            ("a", mode(0o2644), false),
            ("a", Some(FileState::Directory { mode: 0o2755 }), true),
            ("a", Some(FileState::Special), false),
            ("a", None, true),
        ] {
            let change = change(path, file("x"), after);
            assert_eq!(change.rejection_reason().is_none(), sound, "{change:?}");
        }
        let rows: [(String, &str); 6] = [
            ("a\nb".into(), "control character"),
            ("x".repeat(256), "too long"),
            ("x/".repeat(2_050), "too long"),
            ("e/../a".into(), "may be a link"),
            ("~/a".into(), "begins with"),
            ("../../a".into(), "leads out"),
        ];
        for (target, why) in rows {
            let flaw = change("d/a", None, link(&target)).rejection_reason().unwrap();
            assert!(flaw.contains(why), "{target}: {flaw}");
        }
    }
}
