//! Commits, trees and tags, as far as they name other objects and paths.

use super::flaw::Flaw;
use super::id::{Format, ObjectId};

/// What kind of object it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    pub(super) fn named(name: &[u8]) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }
}

/// An object that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// What a commit names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// When it was made, in seconds since 1970, as it says itself.
    pub date: i64,
}

impl Commit {
    /// Reads one as git does: the tree and then the parents come first, each on a line of its own.
    pub(super) fn parse(format: Format, bytes: &[u8]) -> Result<Self, Flaw> {
        let broken = || Flaw::new("a commit is broken");
        let id = |line: &[u8]| ObjectId::from_hex(format, line);
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let first = lines.next().and_then(|line| line.strip_prefix(b"tree "));
        let tree = first.and_then(id).ok_or_else(broken)?;
        let (mut parents, mut date) = (Vec::new(), None);
        for line in lines.take_while(|line| !line.is_empty()) {
            if let Some(parent) = line.strip_prefix(b"parent ").filter(|_| date.is_none()) {
                parents.push(id(parent).ok_or_else(broken)?);
            } else {
                // No parent counts behind anything else.
                let number = line.strip_prefix(b"committer ").and_then(stamped);
                date = number.or(date).or(Some(0));
            }
        }
        Ok(Self { tree, parents, date: date.unwrap_or(0) })
    }
}

/// The seconds behind an address.
fn stamped(line: &[u8]) -> Option<i64> {
    let behind = line.rsplit(|byte| *byte == b'>').next()?;
    std::str::from_utf8(behind).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The object that a tag names.
pub(super) fn tagged(format: Format, bytes: &[u8]) -> Result<ObjectId, Flaw> {
    let line = bytes.split(|byte| *byte == b'\n').next();
    let id = line.and_then(|line| ObjectId::from_hex(format, line.strip_prefix(b"object ")?));
    id.ok_or_else(|| Flaw::new("a tag is broken"))
}

/// What an entry of a tree, or of the index, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    File,
    Executable,
    Link,
    Tree,
    /// A commit of another repository: a submodule.
    Submodule,
}

impl EntryKind {
    /// The kind that a mode means to git.
    pub(super) const fn of(mode: u32) -> Option<Self> {
        match mode & 0o170_000 {
            0o100_000 if mode & 0o100 != 0 => Some(Self::Executable),
            0o100_000 => Some(Self::File),
            0o120_000 => Some(Self::Link),
            0o040_000 => Some(Self::Tree),
            0o160_000 => Some(Self::Submodule),
            _ => None,
        }
    }

    /// The mode as it stands in a tree.
    pub(super) const fn mode(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Tree => "40000",
            Self::Submodule => "160000",
        }
    }
}

/// What stands at a name: its kind and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Content {
    pub kind: EntryKind,
    pub id: ObjectId,
}

/// One name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: Vec<u8>,
    pub content: Content,
}

/// Reads the entries of a tree.
pub(super) fn tree(format: Format, mut bytes: &[u8]) -> Result<Vec<Entry>, Flaw> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (entry, rest) = entry(format, bytes).ok_or_else(|| Flaw::new("a tree is broken"))?;
        entries.push(entry);
        bytes = rest;
    }
    Ok(entries)
}

fn entry(format: Format, bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let (mode, rest) = (bytes.get(..space)?, bytes.get(space + 1..)?);
    let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (rest.get(..end)?.to_vec(), rest.get(end + 1..)?);
    let id = ObjectId::from_bytes(format, rest.get(..format.bytes())?)?;
    let content = Content { kind: EntryKind::of(mode)?, id };
    Some((Entry { name, content }, rest.get(format.bytes()..)?))
}

/// Whether the entries of a tree can be read in one way only: each name is one that a path can have,
/// and each follows the one before in git's order, so that none stands there twice.
pub(super) fn is_sound(entries: &[Entry]) -> bool {
    let key = |entry: &Entry| {
        let mut key = entry.name.clone();
        // A folder is sorted as if its name ended in a slash.
        key.extend((entry.content.kind == EntryKind::Tree).then_some(b'/'));
        key
    };
    let in_order = |pair: &[Entry]| match pair {
        [one, other] => key(one) < key(other),
        _ => true,
    };
    let mut names: Vec<&[u8]> = entries.iter().map(|entry| entry.name.as_slice()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    entries.iter().all(|entry| is_component(&entry.name))
        && entries.windows(2).all(in_order)
        && names.len() == count
}

/// Whether a name can be a component of a path that git takes out of a repository.
pub(super) fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
        && !name.eq_ignore_ascii_case(b".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn a_commit_names_its_tree_and_parents() {
        let read = |text: &str| Commit::parse(Format::Sha1, text.as_bytes());
        let id = ObjectId::from_hex(Format::Sha1, ID.as_bytes()).unwrap();
        let text = format!(
            "tree {ID}\nparent {ID}\nauthor A <a> 1 +0000\ncommitter B <b> 17 +0100\n\
             parent {ID}\n\nparent {ID}\n"
        );
        let commit = read(&text).unwrap();
        assert_eq!((commit.tree, commit.parents, commit.date), (id, vec![id], 17));
        for broken in ["", "tree x\n", &format!("parent {ID}\ntree {ID}\n")] {
            assert!(read(broken).is_err(), "{broken}");
        }
        assert_eq!(tagged(Format::Sha1, format!("object {ID}\ntype commit\n").as_bytes()), Ok(id));
    }

    #[test]
    fn a_tree_has_one_reading() {
        let id = ObjectId::from_hex(Format::Sha1, ID.as_bytes()).unwrap();
        let bytes = |rows: &[(&str, &str)]| {
            let mut all = Vec::new();
            for (mode, name) in rows {
                all.extend_from_slice(format!("{mode} {name}\0").as_bytes());
                all.extend_from_slice(id.as_bytes());
            }
            all
        };
        let kinds = |rows: &[(&str, &str)]| {
            let entries = tree(Format::Sha1, &bytes(rows)).unwrap();
            let kinds: Vec<_> = entries.iter().map(|entry| entry.content.kind).collect();
            (kinds, is_sound(&entries))
        };
        let sound = [("100644", "a"), ("100755", "a.b"), ("40000", "a0"), ("160000", "m")];
        let all =
            vec![EntryKind::File, EntryKind::Executable, EntryKind::Tree, EntryKind::Submodule];
        assert_eq!(kinds(&sound), (all, true));
        for rows in [
            [("100644", "b"), ("100644", "a")],
            [("100644", "a"), ("100644", "a")],
            [("100644", "a"), ("40000", "a")],
            [("100644", ".git"), ("100644", "a")],
            [("40000", ".GIT"), ("100644", "a")],
            [("100644", ".github/workflows"), ("100644", "a")],
            [("100644", ".."), ("100644", "a")],
        ] {
            assert!(!kinds(&rows).1, "{rows:?}");
        }
        for broken in [&b"100644 a"[..], b"1 a\0", b"x a\0xxxxxxxxxxxxxxxxxxxx"] {
            assert!(tree(Format::Sha1, broken).is_err());
        }
    }
}
