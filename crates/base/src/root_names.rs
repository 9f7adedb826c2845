//! The absolute names of a workspace's root.
//!
//! Commands see the workspace at one of them, its mount. A call may spell a path in it by any of them:
//! by the mount, by `/workspace`, by its real path on the host, or by a link to that.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The name of the workspace's root that is understood everywhere, and its mount where commands
/// cannot see it at its own path.
pub const WORKSPACE_MOUNT: &str = "/workspace";

/// The sign among the names that commands share a `/tmp`, in which paths lead to nothing of the host's.
const SHARED_TMP: &str = "/tmp/*";

/// The absolute names of a workspace's root, the mount first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RootNames(Vec<String>);

impl Default for RootNames {
    /// The workspace is known as `/workspace` alone, as in records that name nothing else.
    fn default() -> Self {
        Self(alloc::vec![WORKSPACE_MOUNT.into()])
    }
}

impl RootNames {
    /// Commands see the workspace at `mount`; the others mean it, too. All are absolute paths.
    #[must_use]
    pub fn new(mount: String, others: impl IntoIterator<Item = String>) -> Self {
        let mut names = alloc::vec![mount];
        for name in others {
            if !names.contains(&name) && name.split('/').any(|part| !part.is_empty()) {
                names.push(name);
            }
        }
        Self(names)
    }

    /// Where commands see the workspace.
    #[must_use]
    pub fn mount(&self) -> &str {
        self.0.first().map_or(WORKSPACE_MOUNT, String::as_str)
    }

    /// The other names.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.0.iter().skip(1).map(String::as_str).filter(|name| *name != SHARED_TMP)
    }

    /// The same names, where commands share a `/tmp`.
    #[must_use]
    pub fn with_shared_tmp(mut self) -> Self {
        self.0.push(SHARED_TMP.into());
        self
    }

    /// The part of an absolute path below the `/tmp` that commands share, if they do and the path lies there and not in
    /// the workspace.
    #[must_use]
    pub fn temporary<'w>(&self, path: &'w str) -> Option<&'w str> {
        let is_shared = self.0.iter().any(|name| name == SHARED_TMP);
        strip_directory("/tmp", path).filter(|_| is_shared && self.relative(path).is_none())
    }

    /// Whether these are the names of a record that names none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only == WORKSPACE_MOUNT)
    }

    /// The part of an absolute path below the root, if it begins with a name of the root; empty
    /// for the root itself. The longest name counts.
    #[must_use]
    pub fn relative<'w>(&self, path: &'w str) -> Option<&'w str> {
        let names = core::iter::once(self.mount()).chain(self.aliases());
        names.filter_map(|name| strip_directory(name, path)).min_by_key(|rest| rest.len())
    }

    /// A path of the workspace, by its components, as commands see it.
    pub fn absolute<'c>(&self, components: impl Iterator<Item = &'c str>) -> String {
        components.fold(self.mount().into(), |absolute: String, name| absolute + "/" + name)
    }

    /// The names without which a text that mentions paths would be read differently: none but the
    /// default where it mentions no other name.
    #[must_use]
    pub fn needed_for(&self, text: &str) -> Self {
        let usual = |name: &&String| name.as_str() == WORKSPACE_MOUNT;
        // A text may hold a name in an escaped form.
        let is_plain =
            |last: &str| !last.chars().any(|c| c.is_control() || matches!(c, '"' | '\\'));
        let mentions = |name: &String| {
            let last = name.rsplit('/').find(|part| !part.is_empty());
            last.is_some_and(|last| !is_plain(last) || text.contains(last))
        };
        let knows_usual = self.0.iter().any(|name| usual(&name));
        let is_needed = self.0.iter().filter(|name| !usual(name)).any(mentions)
            || !knows_usual && text.contains(WORKSPACE_MOUNT);
        if is_needed { self.clone() } else { Self::default() }
    }
}

/// The rest of an absolute path behind a directory that it begins with. Doubled slashes and `.` mean
/// nothing on the way.
fn strip_directory<'w>(directory: &str, path: &'w str) -> Option<&'w str> {
    let mut rest = path.strip_prefix('/').map(skip_empty)?;
    for component in directory.split('/').filter(|component| !component.is_empty()) {
        rest = rest.strip_prefix(component)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        rest = skip_empty(rest);
    }
    Some(rest)
}

/// A relative path without the slashes and dots before its first name.
fn skip_empty(mut path: &str) -> &str {
    loop {
        path = path.trim_start_matches('/');
        match path.strip_prefix('.') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => path = rest,
            _ => return path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> RootNames {
        let others = ["/workspace", "/home/a/pro j", "/l", "/"].map(String::from);
        RootNames::new("/home/a/pro j".into(), others)
    }

    #[test]
    fn a_path_is_read_by_every_name_of_the_root() {
        let names = names();
        for (path, expected) in [
            ("/workspace", Some("")),
            ("/workspace/a", Some("a")),
            ("/home/a/pro j/b/c", Some("b/c")),
            ("//home/./a//pro j/./b", Some("b")),
            ("/l/", Some("")),
            ("/l/../x", Some("../x")),
            ("/home/a/pro jx", None),
            ("/home/a", None),
            ("/workspaces/x", None),
            ("/lx", None),
            ("l/a", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(names.relative(path), expected, "{path}");
        }
    }

    #[test]
    fn a_shared_tmp_is_no_part_of_the_workspace() {
        let names = RootNames::new("/tmp/a/b".into(), []).with_shared_tmp();
        for (path, relative, temporary) in [
            ("/tmp/x", None, Some("x")),
            ("//tmp/./x/y", None, Some("x/y")),
            ("/tmp", None, Some("")),
            ("/tmp/a/b/c", Some("c"), None),
            ("/tmp/a/x", None, Some("a/x")),
            ("/tmpx", None, None),
            ("tmp/x", None, None),
            ("/tmp/*/x", None, Some("*/x")),
        ] {
            assert_eq!(names.relative(path), relative, "{path}");
            assert_eq!(names.temporary(path), temporary, "{path}");
        }
        assert_eq!(RootNames::default().temporary("/tmp/x"), None);
        assert!(!RootNames::default().with_shared_tmp().is_default());
    }

    #[test]
    fn the_longest_name_counts() {
        let names = RootNames::new("/a/b".into(), [String::from("/a")]);
        assert_eq!(names.relative("/a/b/c"), Some("c"));
        assert_eq!(names.relative("/a/x"), Some("x"));
    }

    #[test]
    fn names_are_kept_only_for_texts_that_mention_them() {
        let names = names();
        for (text, is_default) in [
            ("cat a", true),
            ("cat /workspace/a", true),
            ("cat '/home/a/pro j/b'", false),
            ("cat //home/a/./pro j", false),
            ("ls /l", false),
        ] {
            assert_eq!(names.needed_for(text).is_default(), is_default, "{text}");
        }
        let inside = RootNames::new("/workspace/x".into(), []);
        assert!(!inside.needed_for("cat /workspace/a").is_default());
        assert!(inside.needed_for("cat b").is_default());
        let kept = serde_json::to_string(&names).unwrap();
        assert_eq!(serde_json::from_str::<RootNames>(&kept).ok(), Some(names));
    }
}
