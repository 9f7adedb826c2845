//! What the user's own side of a repository held before a run: its branches, `HEAD`, the stash, the index,
//! and the files of the working tree. What only the branches of others held, as they were fetched, is not
//! among it.

use std::cell::OnceCell;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;

use capsule_base::limits;
use rustix::fs::readlinkat;

use super::database::Database;
use super::files::{Disk, Files as _};
use super::flaw::Flaw;
use super::history::History;
use super::id::{Format, Hasher, ObjectId};
use super::index::Index;
use super::object::{Commit, Content, EntryKind, Kind};
use super::refs::Refs;
use crate::change_path::{join, split_parent};
use crate::node;

/// What references of the user's own begin with.
const OWN: [&str; 2] = ["refs/heads/", "refs/stash"];

/// The user's own side, as it was.
pub(super) struct Own<'o> {
    pub database: &'o Database<'o>,
    pub disk: Disk<'o>,
    /// The folders of the workspace that the repository's files stand in.
    pub trees: &'o [String],
    pub index: &'o Index,
    pub refs: &'o Refs<'o>,
    /// What `HEAD` stood for.
    pub head: Option<ObjectId>,
    head_tree: OnceCell<Option<ObjectId>>,
    head_history: OnceCell<History<'o>>,
    all: OnceCell<History<'o>>,
}

impl<'o> Own<'o> {
    pub(super) fn new(
        database: &'o Database<'o>,
        (disk, trees): (Disk<'o>, &'o [String]),
        (index, refs, head): (&'o Index, &'o Refs<'o>, Option<ObjectId>),
    ) -> Self {
        let (head_tree, head_history, all) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { database, disk, trees, index, refs, head, head_tree, head_history, all }
    }

    /// The tree that `HEAD` stood for.
    pub(super) fn head_tree(&self) -> Result<Option<ObjectId>, Flaw> {
        if let Some(tree) = self.head_tree.get() {
            return Ok(*tree);
        }
        let tree = match self.head {
            Some(head) => self.tree_of(&head)?,
            None => None,
        };
        Ok(*self.head_tree.get_or_init(|| tree))
    }

    /// The tree of what a name stands for.
    pub(super) fn tree_of(&self, id: &ObjectId) -> Result<Option<ObjectId>, Flaw> {
        match self.database.peeled(id)? {
            Some((id, Kind::Commit)) => self.database.commit(&id).map(|commit| Some(commit.tree)),
            Some((id, Kind::Tree)) => Ok(Some(id)),
            _ => Ok(None),
        }
    }

    /// What the user's own names reach.
    pub(super) fn history(&self) -> Result<&History<'o>, Flaw> {
        self.reached(&self.head_history, |name| OWN.iter().any(|text| name.starts_with(text)))
    }

    /// What all names reach.
    fn everything(&self) -> Result<&History<'o>, Flaw> {
        self.reached(&self.all, |_| true)
    }

    fn reached<'c>(
        &self,
        cell: &'c OnceCell<History<'o>>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<&'c History<'o>, Flaw> {
        if let Some(history) = cell.get() {
            return Ok(history);
        }
        let history = History::new(self.database);
        for name in self.refs.names()?.iter().filter(|name| is_meant(name)) {
            if let Some(id) = self.refs.resolve(name)? {
                history.begin(&id)?;
            }
        }
        if let Some(head) = self.head {
            history.begin(&head)?;
        }
        Ok(cell.get_or_init(|| history))
    }

    /// Whether a commit was reached before: by the user's own names, or by any.
    pub(super) fn has_commit(&self, id: &ObjectId, by_any: bool) -> Result<bool, Flaw> {
        if self.head == Some(*id) {
            return Ok(true);
        }
        if !self.database.has(id)? {
            return Ok(false);
        }
        let Commit { date, .. } = self.database.commit(id)?;
        Ok(self.history()?.reaches(id, date)? || by_any && self.everything()?.reaches(id, date)?)
    }

    /// Whether a path had this content, before or anywhere in the user's own history.
    pub(super) fn has(&self, path: &[u8], content: Content) -> Result<bool, Flaw> {
        Ok(self.has_now(path, content)? || self.history()?.holds(path, content)?)
    }

    /// Whether a path had this content in anything that a name reached.
    pub(super) fn was_named(&self, path: &[u8], content: Content) -> Result<bool, Flaw> {
        self.everything()?.holds(path, content)
    }

    /// Whether a path had this content in the index, in the working tree or in the last commit.
    pub(super) fn has_now(&self, path: &[u8], content: Content) -> Result<bool, Flaw> {
        let resolved = |stage| self.index.resolved.get(&(path.to_vec(), stage));
        let staged = self.index.at(path).map(|staged| &staged.content);
        if staged.chain((0..4).filter_map(resolved)).any(|item| *item == content)
            || self.has_file(path, content)?
        {
            return Ok(true);
        }
        match self.head_tree()? {
            Some(tree) => Ok(self.database.at(&tree, path)? == Some(content)),
            None => Ok(false),
        }
    }

    /// Whether a path was absent: from the working tree, or from the index.
    pub(super) fn lacks(&self, path: &[u8]) -> Result<bool, Flaw> {
        let is_staged = self.index.has(path);
        let Ok(path) = std::str::from_utf8(path) else { return Ok(!is_staged) };
        let stands = self.trees.iter().any(|tree| self.disk.exists(&join(tree, path)));
        Ok(!is_staged || !stands)
    }

    /// Whether a file of the working tree has this content.
    fn has_file(&self, path: &[u8], content: Content) -> Result<bool, Flaw> {
        let Ok(path) = std::str::from_utf8(path) else { return Ok(false) };
        for tree in self.trees {
            if self.file(&join(tree, path), content.kind)?.contains(&content) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What git would take a file for: as it is, and as it would be with the other ends of lines.
    fn file(&self, path: &str, wanted: EntryKind) -> Result<Vec<Content>, Flaw> {
        let (folder, name) = split_parent(path);
        let format = self.database.format;
        let Some(folder) = self.disk.folder(folder) else { return Ok(Vec::new()) };
        let Ok(Some(stat)) = node::stat_optional(folder.as_fd(), name) else {
            return Ok(Vec::new());
        };
        let kind = EntryKind::of(stat.st_mode);
        // Where a file system keeps no permissions, the index says what a file is.
        let is_file = |item| matches!(item, Some(EntryKind::File | EntryKind::Executable));
        match kind {
            Some(EntryKind::Link) => {
                let target = readlinkat(&folder, name, Vec::new())
                    .map_err(|why| Flaw::new(why.to_string()))?;
                Ok(vec![Content { kind: EntryKind::Link, id: blob(format, target.as_bytes()) }])
            }
            kind if is_file(kind) && kind == Some(wanted) => {
                let file = node::open_regular(folder.as_fd(), name, &stat);
                let file = file.map_err(|why| Flaw::new(why.to_string()))?;
                let bytes = read(file)?;
                let plain = without_returns(&bytes);
                let ids = [blob(format, &bytes), blob(format, &plain)];
                Ok(ids.into_iter().map(|id| Content { kind: wanted, id }).collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn read(file: File) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::new();
    let most = limits::GIT_OBJECT_BYTES;
    let read = file.take(most).read_to_end(&mut bytes).map_err(|why| Flaw::io(&why))?;
    match u64::try_from(read).is_ok_and(|read| read < most) {
        true => Ok(bytes),
        false => Err(Flaw::new("a protected file is too large to be compared")),
    }
}

impl Content {
    /// A file of a working tree.
    pub(super) fn file(format: Format, mode: u32, bytes: &[u8]) -> Self {
        let kind = if mode & 0o100 == 0 { EntryKind::File } else { EntryKind::Executable };
        Self { kind, id: blob(format, bytes) }
    }

    /// A link of one.
    pub(super) fn link(format: Format, target: &str) -> Self {
        Self { kind: EntryKind::Link, id: blob(format, target.as_bytes()) }
    }
}

/// The name of a file with this content.
fn blob(format: Format, bytes: &[u8]) -> ObjectId {
    let mut hasher = Hasher::new(format);
    hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
    hasher.update(bytes);
    hasher.finish()
}

fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\r' || rest.peek() != Some(&b'\n') {
            plain.push(byte);
        }
    }
    plain
}
