//! What a command changed in a staged workspace, path by path.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::capability::Capability;
use capsule_base::digest::Digest;
use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_command::specs::is_system_program;

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

capsule_base::words! {
    ChangeKind::name:
    Added = "added", Modified = "modified", Removed = "removed",
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

/// One path that was changed. By default nothing refuses the change, and nothing is asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The path by which rules judge it, where what it holds is exactly what git itself writes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_as: Option<String>,
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
        Self { before: self.after, after, refused: None, asked: None, ..self }
    }

    /// Why a change like this is never applied, whatever a policy says.
    #[must_use]
    pub fn rejection_reason(&self, program_directories: &[String]) -> Option<&'static str> {
        let in_toolchain = |target: &str| {
            !target.split('/').any(|part| part == "..")
                && program_directories
                    .iter()
                    .any(|path| target.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
        };
        match self.after.as_ref()? {
            FileState::Special => Some("it is a pipe, a socket or a device"),
            FileState::File { mode, .. } if mode & SPECIAL_BITS != 0 => {
                Some("it would run as its owner or group")
            }
            // As in the environment of a Python interpreter, which every command sees anyway.
            FileState::Link { target } if is_system_program(target) || in_toolchain(target) => None,
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
        | PathProblem::SystemProgram
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Option<FileState> {
        let bytes = u64::try_from(text.len()).unwrap();
        Some(FileState::File { sha256: Digest::of(text.as_bytes()), bytes, mode: 0o644 })
    }

    fn change(path: &str, before: Option<FileState>, after: Option<FileState>) -> Change {
        Change { path: path.into(), before, after, ..Change::default() }
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
            assert_eq!(change.rejection_reason(&[]).is_none(), sound, "{change:?}");
        }
        let rows: [(String, &str); 6] = [
            ("a\x01b".into(), "control character"),
            ("x".repeat(256), "too long"),
            ("x/".repeat(2_050), "too long"),
            ("e/../a".into(), "may be a link"),
            ("~/a".into(), "begins with"),
            ("../../a".into(), "leads out"),
        ];
        for (target, why) in rows {
            let flaw = change("d/a", None, link(&target)).rejection_reason(&[]).unwrap();
            assert!(flaw.contains(why), "{target}: {flaw}");
        }
    }
}
