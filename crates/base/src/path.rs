//! Paths as a call names them, parsed once into something that cannot lead out of the workspace.
//!
//! The parser only reads text: whether a link on the way leads outside is found when the path is
//! opened. A path is relative to the workspace, or begins with a name of its root ([`RootNames`]).
//! Nothing is decoded: `%2e` is three characters.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::root_names::RootNames;

/// A path inside the workspace: relative, without `.`, `..` or doubled slashes; the root is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspacePath(String);

/// Stands for the `/tmp` that commands share in a path that the words of one name. No path of a call has such a name.
const SHARED_TMP: &str = "\u{2}tmp";

/// Why a path is not one inside the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathProblem {
    /// It begins with `/`.
    Absolute,
    /// It climbs above the root by `..`.
    Climbs,
    /// It climbs by `..` out of a folder that it names, which leads elsewhere if that is a link.
    #[serde(rename = "winds")]
    UncertainParent,
    /// It begins with `~`, which a shell would make a home folder.
    Home,
    /// It begins with a variable, which a shell would replace.
    Variable,
    /// It is empty, or holds a NUL byte or another control character than tabs and line ends.
    Invalid,
    /// It, or one component, is longer than the system allows.
    TooLong,
    /// A link on the way leads out of the workspace, or to nothing.
    Escapes,
    /// A link on the way leads to a program of the system, which every command sees.
    SystemProgram,
    /// It lies on another file system that is mounted inside the workspace.
    Mounted,
    /// It lies in a folder that takes names in another case for the same, in a workspace that does not.
    Folding,
    /// It leads to something by a name that its folder does not list, such as a short name or a stream.
    Unlisted,
}

impl PathProblem {
    /// The problem as the middle of a sentence: "the path ...".
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Absolute => "lies outside of the workspace",
            Self::Climbs => "climbs above the workspace",
            Self::UncertainParent => "climbs by `..` out of a folder that may be a link",
            Self::Home => "begins with `~`, which leads out of the workspace",
            Self::Variable => "begins with a variable, which is not expanded",
            Self::Invalid => "is empty or holds a control character",
            Self::TooLong => "is longer than the system allows",
            Self::Escapes => "goes through a link that leads out of the workspace or nowhere",
            Self::SystemProgram => "is a link to a program of the system",
            Self::Mounted => "lies on another file system, which is not part of the workspace",
            Self::Folding => {
                "lies in a folder that takes names in another case for the same, which only a workspace of its \
                 own may"
            }
            Self::Unlisted => "has a name that its folder does not list",
        }
    }
}

impl WorkspacePath {
    /// The workspace itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Reads a path as a call names it, where the root has no name but the usual one.
    ///
    /// # Errors
    /// Says why the text is not a path inside the workspace.
    pub fn parse(asked: &str) -> Result<Self, PathProblem> {
        Self::parse_named(asked, &RootNames::default())
    }

    /// Reads a path as a call names it, where the root has these names.
    ///
    /// # Errors
    /// Says why the text is not a path inside the workspace.
    pub fn parse_named(asked: &str, names: &RootNames) -> Result<Self, PathProblem> {
        if asked.is_empty() || asked.contains(is_never_in_names) {
            return Err(PathProblem::Invalid);
        }
        if asked.len() > limits::PATH_BYTES {
            return Err(PathProblem::TooLong);
        }
        let relative = match names.relative(asked) {
            Some(rest) => rest,
            None if asked.starts_with('/') => return Err(PathProblem::Absolute),
            _ if begins_with_home(asked) => return Err(PathProblem::Home),
            _ if begins_with_variable(asked) => return Err(PathProblem::Variable),
            _ => asked,
        };
        Self::from_components(relative)
    }

    fn from_components(relative: &str) -> Result<Self, PathProblem> {
        let mut components: Vec<&str> = Vec::new();
        for component in relative.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    components.pop().ok_or(PathProblem::Climbs)?;
                }
                _ if component.len() > limits::NAME_BYTES => return Err(PathProblem::TooLong),
                _ => components.push(component),
            }
        }
        Ok(Self(components.join("/")))
    }

    /// A name beneath the workspace exactly as a file system has it; none where no path of ours is
    /// the same.
    #[must_use]
    pub fn from_fs_name(name: &str) -> Option<Self> {
        // `./` keeps a name that begins with `~` or `$` what it is.
        Self::parse(&alloc::format!("./{name}")).ok().filter(|path| path.as_str() == name)
    }

    /// Reads a path that a program will follow from this folder, which must be a real one. The
    /// kernel follows a link before it climbs out of it, so a `..` behind a name says nothing that
    /// could be told from the text.
    ///
    /// # Errors
    /// Says why the text is not a path inside the workspace, or not surely.
    pub fn resolve_from(&self, word: &str) -> Result<Self, PathProblem> {
        self.resolve_named(word, &RootNames::default())
    }

    /// The same where the root has these names.
    ///
    /// # Errors
    /// Says why the text is not a path inside the workspace, or not surely.
    pub fn resolve_named(&self, word: &str, names: &RootNames) -> Result<Self, PathProblem> {
        match self.resolve_climbing(word, names)? {
            (path, left) if left.is_empty() => Ok(path),
            _ => Err(PathProblem::UncertainParent),
        }
    }

    /// Where a path leads that a program will follow from this folder, if each of the folders that it climbs out of
    /// by `..` is none but a folder; and those.
    ///
    /// # Errors
    /// Says why the text is not a path inside the workspace.
    pub fn resolve_climbing(
        &self,
        word: &str,
        names: &RootNames,
    ) -> Result<(Self, Vec<Self>), PathProblem> {
        if let Some(inner) = names.temporary(word) {
            return Self::in_shared_tmp(inner).map(|path| (path, Vec::new()));
        }
        let is_relative = !word.is_empty() && !word.starts_with('/') && !self.is_root();
        let path = match Self::parse_named(word, names) {
            Err(problem @ (PathProblem::Home | PathProblem::Variable)) => return Err(problem),
            _ if is_relative => Self::parse(&alloc::format!("./{self}/{word}"))?,
            path => path?,
        };
        let (mut reached, mut left) =
            (if is_relative { self.clone() } else { Self::root() }, Vec::new());
        let mut is_named = false;
        for component in names.relative(word).unwrap_or(word).split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    let folder = reached.parent().ok_or(PathProblem::Climbs)?;
                    left.extend(is_named.then_some(reached));
                    reached = folder;
                }
                name => {
                    is_named = true;
                    reached = reached.join(name);
                }
            }
        }
        Ok((path, left))
    }

    /// A path in the `/tmp` that commands share, whose names are plain: none is hidden, a pattern or `..`. What programs
    /// look for by themselves beside a file is no such name.
    fn in_shared_tmp(inner: &str) -> Result<Self, PathProblem> {
        let is_odd = |name: &str| name.starts_with('.') || name.contains(['*', '?', '[']);
        if inner.split('/').any(is_odd) || inner.contains(is_never_in_names) {
            return Err(PathProblem::Absolute);
        }
        let Self(inner) = Self::from_components(inner)?;
        Ok(Self(alloc::format!("{SHARED_TMP}/{inner}").trim_end_matches('/').into()))
    }

    /// The absolute path, if it lies in the `/tmp` that commands share, and not in the workspace.
    #[must_use]
    pub fn as_temporary(&self) -> Option<String> {
        self.0.strip_prefix(SHARED_TMP).map(|inner| alloc::format!("/tmp{inner}"))
    }

    /// This folder and every one above it, up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        core::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The text; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// Whether any component begins with a dot.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.components().any(|component| component.starts_with('.'))
    }

    /// Whether this is the workspace itself.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last component; none for the root.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.components().next_back()
    }

    /// The path without its last component; none for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.name()?;
        let head = self.0.rsplit_once('/').map_or("", |(head, _)| head);
        Some(Self(head.to_owned()))
    }

    /// This path and one component more. The component is taken as it is: it comes from a folder
    /// listing or from a parsed path, never from a call.
    #[must_use]
    pub fn join(&self, component: &str) -> Self {
        if self.is_root() {
            Self(component.to_owned())
        } else {
            let mut path = String::with_capacity(self.0.len() + 1 + component.len());
            path.push_str(&self.0);
            path.push('/');
            path.push_str(component);
            Self(path)
        }
    }
}

/// Whether no honest file has a character in its name. Tabs and line ends are in some, and are shown escaped.
fn is_never_in_names(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

/// Whether a path begins with a name that a shell would replace by a home directory: `~`, or `~` and
/// the name of an account. Others, such as `~$report.docx`, are names of files.
fn begins_with_home(asked: &str) -> bool {
    let account = asked.split('/').next().and_then(|first| first.strip_prefix('~'));
    let in_account = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
    account.is_some_and(|account| account.chars().all(in_account))
}

fn begins_with_variable(asked: &str) -> bool {
    let mut chars = asked.chars();
    chars.next() == Some('$')
        && chars.next().is_some_and(|c| c == '{' || c == '_' || c.is_ascii_alphabetic())
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.0.is_empty() { "." } else { &self.0 })
    }
}

impl From<WorkspacePath> for String {
    fn from(path: WorkspacePath) -> Self {
        if path.0.is_empty() { Self::from(".") } else { path.0 }
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = &'static str;
    /// Reads a path as it is kept: `$` and `~` are letters in it, whatever they mean to a shell.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.starts_with(['$', '~']) && !text.contains(is_never_in_names) {
            true => Self::from_components(&text),
            false => Self::parse(&text),
        }
        .map_err(PathProblem::reason)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        for asked in ["/workspace/$ocs/a.md", "./~x", "./$HOME/b", "a/b", "."] {
            let path = WorkspacePath::parse(asked).unwrap();
            let kept = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<WorkspacePath>(&kept).ok(), Some(path), "{asked}");
        }
        assert!(serde_json::from_str::<WorkspacePath>("\"~/../../x\"").is_err());
    }

    fn check(asked: &str, expected: Result<&str, PathProblem>) {
        let got = WorkspacePath::parse(asked);
        let got = got.as_ref().map(WorkspacePath::as_str).map_err(|problem| *problem);
        assert_eq!(got, expected, "{asked:?}");
    }

    #[test]
    fn inside_is_normalised() {
        for (asked, path) in [
            ("a", "a"),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            (".", ""),
            ("a/..", ""),
            ("/workspace", ""),
            ("/workspace/a/./b", "a/b"),
            ("a/%2e%2e/b", "a/%2e%2e/b"),
            ("$", "$"),
            ("a/~/b", "a/~/b"),
            ("...", "..."),
            ("~$report.docx", "~$report.docx"),
            ("~x.txt", "~x.txt"),
            ("/workspace//a", "a"),
            ("a\tb/c\nd", "a\tb/c\nd"),
            ("Icon\r", "Icon\r"),
        ] {
            check(asked, Ok(path));
        }
    }

    #[test]
    fn outside_is_refused() {
        use PathProblem::{Absolute, Climbs, Home, Invalid, TooLong, Variable};
        let long = "x".repeat(256);
        let longer = "x/".repeat(2100);
        for (asked, problem) in [
            ("/etc/passwd", Absolute),
            ("/workspace-evil/x", Absolute),
            ("/workspaces", Absolute),
            ("../x", Climbs),
            ("a/../../x", Climbs),
            ("/workspace/../etc/passwd", Climbs),
            ("~/.ssh/id_rsa", Home),
            ("~root", Home),
            ("$HOME/x", Variable),
            ("${HOME}/x", Variable),
            ("", Invalid),
            ("a\0b", Invalid),
            ("a\u{1b}[2Jb", Invalid),
            (long.as_str(), TooLong),
            (longer.as_str(), TooLong),
        ] {
            check(asked, Err(problem));
        }
    }

    #[test]
    fn what_a_program_follows_is_told_only_where_the_text_tells_it() {
        use PathProblem::{Absolute, Climbs, Invalid, UncertainParent};
        for (folder, word, expected) in [
            ("docs", "a.md", Ok("docs/a.md")),
            ("docs", "../a.md", Ok("a.md")),
            ("docs/x", "./../../a", Ok("a")),
            ("docs", "../../a", Err(Climbs)),
            ("docs", "", Err(Invalid)),
            ("docs", "/workspace/a", Ok("a")),
            ("docs", "/etc/passwd", Err(Absolute)),
            ("", "link/../key", Err(UncertainParent)),
            ("", "link/..", Err(UncertainParent)),
            ("", "link/./../key", Err(UncertainParent)),
            ("", "/workspace/link/../key", Err(UncertainParent)),
            ("docs", "../link/../key", Err(UncertainParent)),
            ("", "a..b/..c", Ok("a..b/..c")),
            ("docs", "~x.txt", Ok("docs/~x.txt")),
            ("docs", "$", Ok("docs/$")),
            ("docs", "~/x", Err(PathProblem::Home)),
            ("docs", "$HOME/x", Err(PathProblem::Variable)),
            ("", "/home/p/docs/a", Ok("docs/a")),
            ("docs", "/home/p/a", Ok("a")),
            ("docs", "/home/p", Ok("")),
            ("", "/home/p/link/../key", Err(UncertainParent)),
            ("", "/home/p/../q", Err(Climbs)),
            ("", "/home/px/a", Err(Absolute)),
        ] {
            let folder = WorkspacePath(folder.into());
            let names = RootNames::new("/home/p".into(), [String::from("/workspace")]);
            let got = folder.resolve_named(word, &names);
            let got = got.as_ref().map(WorkspacePath::as_str).map_err(|problem| *problem);
            assert_eq!(got, expected, "{folder:?} {word}");
        }
    }

    proptest! {
        #[test]
        fn no_text_leads_out(asked in "[/.~$a%\\x00-\\x1f]{0,40}") {
            if let Ok(path) = WorkspacePath::parse(&asked) {
                prop_assert!(path.components().all(|c| c != ".." && c != "." && !c.is_empty()));
                prop_assert!(!path.as_str().starts_with('/'));
                let kept = String::from(path.clone());
                prop_assert_eq!(WorkspacePath::try_from(kept).ok(), Some(path));
            }
        }
    }
}
