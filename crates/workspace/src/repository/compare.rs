//! Compares what becomes reachable with the user's own side: a path that an invariant protects may only have
//! content there that it had before, as the file itself may not be changed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_core::change::{Change, FileState};

use super::database::Database;
use super::flaw::Flaw;
use super::id::ObjectId;
use super::index::{Index, Staged};
use super::object::{Content, Entry, EntryKind, Kind, is_sound};
use super::own::Own;
use crate::change_path::join;

/// What keeps paths from being changed.
pub trait Protects {
    /// Why a change may not be made, if it may not.
    fn refuse(&self, change: &Change) -> Option<String>;

    /// Whether a protected path begins with this one.
    fn reaches(&self, path: &WorkspacePath) -> bool;

    /// The relative paths by which the user's configuration names what git runs in any repository; none where that
    /// cannot be known.
    fn relative_orders(&self) -> Option<Vec<PathBuf>>;
}

/// Why something is refused, if it is.
pub(super) type Refusal = Result<Option<String>, Flaw>;

/// Says what the submodule at a path would bring at a commit.
pub(super) type Submodules<'s> = &'s dyn Fn(&str, &ObjectId) -> Refusal;

/// What becomes reachable, and what it is compared with.
pub(super) struct Comparison<'c> {
    pub own: &'c Own<'c>,
    pub database: &'c Database<'c>,
    pub protects: &'c dyn Protects,
    submodule: Submodules<'c>,
    seen: RefCell<BTreeSet<ObjectId>>,
    entries: Cell<usize>,
}

/// A name and what it stood for, if anything, and stands for.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub before: Option<ObjectId>,
    pub after: ObjectId,
    /// Whether git takes files out of it that the user did not ask for by another name: it has to bring
    /// what the user's own side had.
    pub is_strict: bool,
    /// Whether it has to keep what it had.
    pub keeps: bool,
}

impl<'c> Comparison<'c> {
    pub(super) fn new(
        item: &'c Own<'c>,
        protects: &'c dyn Protects,
        submodule: Submodules<'c>,
    ) -> Self {
        let (seen, entries) = (RefCell::new(BTreeSet::new()), Cell::new(0));
        Self { own: item, database: item.database, protects, submodule, seen, entries }
    }

    /// What a name would bring.
    pub(super) fn moved(&self, moved: Moved) -> Refusal {
        let Some((id, kind)) = self.database.peeled(&moved.after)? else {
            return Err(Flaw::new(format!("the object `{}` is not there", moved.after)));
        };
        match kind {
            Kind::Commit => self.commit(&id, moved),
            Kind::Tree => self.tree(&id, &self.bases(None)?),
            _ => Ok(None),
        }
    }

    fn commit(&self, id: &ObjectId, moved: Moved) -> Refusal {
        if let Some(why) = self.commits(id)? {
            return Ok(Some(why));
        }
        if !moved.is_strict || self.own.has_commit(id, false)? {
            return Ok(None);
        }
        let tree = self.database.commit(id)?.tree;
        let before = match moved.before {
            Some(before) => self.own.tree_of(&before)?,
            None => None,
        };
        if let Some(why) = self.tree(&tree, &self.bases(before)?)? {
            return Ok(Some(why));
        }
        match before.filter(|_| moved.keeps) {
            Some(before) => self.removed(&before, Some(&tree), &mut Vec::new()),
            None => Ok(None),
        }
    }

    /// Trees whose entries are the user's own.
    fn bases(&self, more: Option<ObjectId>) -> Result<Vec<ObjectId>, Flaw> {
        Ok(self.own.head_tree()?.into_iter().chain(more).collect())
    }

    /// Compares every commit that nothing reached before with those that it follows.
    pub(super) fn commits(&self, id: &ObjectId) -> Refusal {
        let refused = self.new_commits(id);
        if !matches!(refused, Ok(None)) {
            // What leads to a commit that is refused is compared again for the next name.
            self.seen.borrow_mut().clear();
        }
        refused
    }

    fn new_commits(&self, id: &ObjectId) -> Refusal {
        let mut waiting = vec![*id];
        while let Some(id) = waiting.pop() {
            if !self.seen.borrow_mut().insert(id) || self.own.has_commit(&id, true)? {
                continue;
            }
            if self.seen.borrow().len() > limits::GIT_HISTORY {
                return Err(Flaw::new("it has more new commits than can be compared"));
            }
            let commit = self.database.commit(&id)?;
            let mut bases = self.bases(None)?;
            for parent in &commit.parents {
                // A shallow repository has not all of them.
                if !self.database.has(parent)? {
                    continue;
                }
                waiting.push(*parent);
                // One that nothing reached is compared itself.
                if self.own.has_commit(parent, false)? || !self.own.has_commit(parent, true)? {
                    bases.push(self.database.commit(parent)?.tree);
                }
            }
            if let Some(why) = self.tree(&commit.tree, &bases)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// What a commit would bring where git applies what differs between it and the one before it, or takes that back.
    pub(super) fn applied(&self, id: &ObjectId, is_reverted: bool) -> Refusal {
        if let Some(why) = self.commits(id)? {
            return Ok(Some(why));
        }
        if self.own.has_commit(id, false)? {
            return Ok(None);
        }
        let commit = self.database.commit(id)?;
        let mut parents = Vec::new();
        for parent in &commit.parents {
            if self.database.has(parent)? {
                parents.push(self.database.commit(parent)?.tree);
            }
        }
        if is_reverted {
            let bases = self.bases(Some(commit.tree))?;
            for parent in &parents {
                if let Some(why) = self.tree(parent, &bases)? {
                    return Ok(Some(why));
                }
            }
            return Ok(None);
        }
        // Of several parents, any may be meant.
        self.tree(
            &commit.tree,
            &self.bases(parents.first().filter(|_| parents.len() == 1).copied())?,
        )
    }

    fn tree(&self, tree: &ObjectId, bases: &[ObjectId]) -> Refusal {
        self.differing(tree, bases, &mut Vec::new())
    }

    /// Looks at what a tree has and none of its bases has at the same path.
    fn differing(&self, tree: &ObjectId, bases: &[ObjectId], path: &mut Vec<u8>) -> Refusal {
        if bases.contains(tree) {
            return Ok(None);
        }
        let entries = self.database.tree(tree)?;
        if !is_sound(&entries) {
            return Err(Flaw::new(format!("the tree `{tree}` can be read in more than one way")));
        }
        self.count(entries.len(), path)?;
        let bases =
            bases.iter().map(|base| self.database.tree(base)).collect::<Result<Vec<_>, _>>()?;
        let bases: Vec<BTreeMap<&[u8], Content>> = bases.iter().map(|base| by_name(base)).collect();
        for Entry { name, content } in entries.iter() {
            let there: Vec<Content> =
                bases.iter().filter_map(|base| base.get(name.as_slice()).copied()).collect();
            if there.contains(content) {
                continue;
            }
            let length = path.len();
            push(path, name);
            let refused = match content.kind {
                EntryKind::Tree => {
                    let trees = there.iter().filter(|content| content.kind == EntryKind::Tree);
                    let trees: Vec<ObjectId> = trees.map(|tree| tree.id).collect();
                    self.differing(&content.id, &trees, path)?
                }
                _ => self.content(path, *content)?,
            };
            path.truncate(length);
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    /// Looks for what a tree had and the one in its place has not.
    fn removed(&self, before: &ObjectId, after: Option<&ObjectId>, path: &mut Vec<u8>) -> Refusal {
        if Some(before) == after {
            return Ok(None);
        }
        let had = self.database.tree(before)?;
        self.count(had.len(), path)?;
        let has = after.map(|after| self.database.tree(after)).transpose()?;
        let has = has.as_deref().map(|has| by_name(has)).unwrap_or_default();
        for Entry { name, content } in had.iter() {
            let now = has.get(name.as_slice());
            let length = path.len();
            push(path, name);
            let refused = match (content.kind, now) {
                (EntryKind::Tree, now) => {
                    let inner = now.filter(|content| content.kind == EntryKind::Tree);
                    self.removed(&content.id, inner.map(|content| &content.id), path)?
                }
                (_, None) => self.absence(path)?,
                _ => None,
            };
            path.truncate(length);
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    fn count(&self, more: usize, path: &[u8]) -> Result<(), Flaw> {
        self.entries.set(self.entries.get() + more);
        let depth = path.iter().filter(|byte| **byte == b'/').count();
        if self.entries.get() > limits::GIT_ENTRIES || depth > limits::STAGED_DEPTH {
            return Err(Flaw::new("it has more entries than can be compared"));
        }
        Ok(())
    }

    /// What would stand at a path.
    fn content(&self, path: &[u8], content: Content) -> Refusal {
        match self.protected(path, content)? {
            Some(why) if !self.own.has(path, content)? => Ok(Some(other(path, &why))),
            None if content.kind == EntryKind::Submodule => self.submodule(path, content),
            _ => Ok(None),
        }
    }

    /// A submodule is to be at a commit: one that a name reached before, or one that brings nothing which is
    /// protected.
    fn submodule(&self, path: &[u8], content: Content) -> Refusal {
        if self.own.has_now(path, content)? {
            return Ok(None);
        }
        let name = String::from_utf8_lossy(path);
        match (self.submodule)(&name, &content.id) {
            Ok(None) => Ok(None),
            _ if self.own.was_named(path, content)? => Ok(None),
            refused => refused,
        }
    }

    /// That nothing would stand there any more.
    fn absence(&self, path: &[u8]) -> Refusal {
        let gone = |path: String| Change { path, before: Some(file()), ..Change::default() };
        match self.by_path(path, &|path| self.protects.refuse(&gone(path))) {
            Some(why) if !self.own.lacks(path)? => {
                let path = String::from_utf8_lossy(path);
                Ok(Some(format!("it is without `{path}`, which was there: {why}")))
            }
            _ => Ok(None),
        }
    }

    /// Why a file may not come to a path, if it may not.
    fn protected(&self, path: &[u8], content: Content) -> Refusal {
        let after = match content.kind {
            EntryKind::Link => {
                let target = self.database.blob(&content.id)?;
                match String::from_utf8(target) {
                    Ok(target) => FileState::Link { target },
                    Err(_) => FileState::Special,
                }
            }
            EntryKind::Submodule => {
                let reaches = |path: String| {
                    let path = WorkspacePath::from_fs_name(&path)?;
                    let why = "another repository in a place where orders are looked for";
                    self.protects.reaches(&path).then(|| why.to_owned())
                };
                return Ok(self.by_path(path, &reaches));
            }
            _ => file(),
        };
        let change = |path| {
            let after = Some(after.clone());
            self.protects.refuse(&Change { path, after, ..Change::default() })
        };
        Ok(self.by_path(path, &change))
    }

    /// Asks about a path in every folder that the repository's files stand in.
    fn by_path(&self, path: &[u8], ask: &dyn Fn(String) -> Option<String>) -> Option<String> {
        let path = String::from_utf8_lossy(path);
        // Where it is checked out, letters may not count as large or small.
        let small = Some(path.to_lowercase()).filter(|small| *small != path);
        let spellings = || [Some(path.as_ref()), small.as_deref()].into_iter().flatten();
        self.own
            .trees
            .iter()
            .flat_map(|tree| spellings().map(|path| join(tree, path)))
            .find_map(ask)
    }

    /// What the next commit would hold.
    pub(super) fn index(&self, index: &Index, head: Option<ObjectId>) -> Refusal {
        let before = self.own.index;
        let head = head.map(|head| self.own.tree_of(&head)).transpose()?.flatten();
        for ((path, stage), staged) in &index.entries {
            let there = before.entries.get(&(path.clone(), *stage));
            if there == Some(staged) {
                continue;
            }
            if let Some(why) = self.staged(path, staged, (there, head))? {
                return Ok(Some(why));
            }
        }
        let resolved = index
            .resolved
            .iter()
            .filter(|(key, content)| before.resolved.get(key) != Some(content));
        for ((path, _), content) in resolved {
            if let Some(why) = self.content(path, *content)? {
                return Ok(Some(why));
            }
        }
        let mut paths: BTreeSet<&Vec<u8>> = before.entries.keys().map(|(path, _)| path).collect();
        paths.retain(|path| !index.has(path));
        for path in paths {
            if let Some(why) = self.absence(path)?
                && self.at(head, path)?.is_some()
            {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn staged(
        &self,
        path: &[u8],
        staged: &Staged,
        (there, head): (Option<&Staged>, Option<ObjectId>),
    ) -> Refusal {
        let content = staged.content;
        let path = path.strip_suffix(b"/").unwrap_or(path);
        if content.kind == EntryKind::Tree {
            let bases =
                [there.map(|staged| staged.content), self.at(head, path)?].into_iter().flatten();
            let bases = bases.filter(|base| base.kind == EntryKind::Tree);
            let bases: Vec<ObjectId> = bases.map(|base| base.id).collect();
            return self.differing(&content.id, &bases, &mut path.to_vec());
        }
        let Some(why) = self.protected(path, content)? else {
            let is_submodule = content.kind == EntryKind::Submodule;
            return if is_submodule { self.submodule(path, content) } else { Ok(None) };
        };
        if staged.is_hidden() && there.is_none_or(|staged| !staged.is_hidden()) {
            let path = String::from_utf8_lossy(path);
            return Ok(Some(format!("it hides what becomes of `{path}`: {why}")));
        }
        // What a commit holds was compared with that.
        if self.at(head, path)? == Some(content) || self.own.has(path, content)? {
            return Ok(None);
        }
        Ok(Some(other(path, &why)))
    }

    fn at(&self, tree: Option<ObjectId>, path: &[u8]) -> Result<Option<Content>, Flaw> {
        let Some(id) = tree else { return Ok(None) };
        self.database.at(&id, path)
    }
}

fn other(path: &[u8], why: &str) -> String {
    format!("it holds another `{}` than there was: {why}", String::from_utf8_lossy(path))
}

fn by_name(entries: &[Entry]) -> BTreeMap<&[u8], Content> {
    entries.iter().map(|entry| (entry.name.as_slice(), entry.content)).collect()
}

/// A file, whatever it holds: which one is not asked.
fn file() -> FileState {
    FileState::File { sha256: Digest::of(b""), bytes: 0, mode: 0o644 }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
