//! Working trees that a run links to a repository (`git worktree add`), moves or removes.
//!
//! A link has two halves: the files `commondir` and `gitdir` in `worktrees/NAME` of the repository, and the file
//! `.git` in the working tree. Their names are protected, since each may send git to orders elsewhere. Where both
//! halves hold exactly what git writes, lead to each other and to a repository that was there before, they send it to
//! the orders that it has already: so they are judged as a plain file beside them. What invariants protect in such a
//! working tree may come or go where it is what the user's own side of the repository had at that path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use capsule_base::limits;
use capsule_core::change::Change;

use super::files::{Files, RunChanges};
use super::layout::WORKTREES;
use crate::change_path::{inner_path, join, split_parent};
use crate::control_files::git_pointer::COMMONDIR;
use crate::control_files::{GIT_NAME, has_repository_parts};

/// What says where the working tree of a link is.
const GITDIR: &str = "gitdir";
/// What `commondir` holds.
const SHARED: &[u8] = b"../..\n";
/// The file beside which a link is judged.
pub(super) const PLAIN: &str = "HEAD";

/// What a run linked or unlinked, and the repositories that it made which give no orders.
#[derive(Debug, Default)]
pub struct LinkedTrees {
    /// The paths that git itself writes for a link or a new repository, each with the one by which rules judge it.
    judged: BTreeMap<String, String>,
    /// The directories of links that are there, each with its repository and its working tree.
    pub(super) links: BTreeMap<String, (String, String)>,
    /// The working trees that came or went, each with its repository.
    pub(super) trees: BTreeMap<String, String>,
}

impl LinkedTrees {
    /// The path by which rules judge a path, if that is another one.
    pub(crate) fn judged_as(&self, path: &str) -> Option<&str> {
        self.judged.get(path).map(String::as_str)
    }

    /// Whether a directory is a new link, which looks like a repository.
    pub(crate) fn is_link(&self, directory: &str) -> bool {
        self.links.contains_key(directory)
    }

    /// Says of each change by which path rules judge it.
    pub fn mark(&self, changes: &mut [Change]) {
        for change in changes {
            change.judged_as = self.judged_as(&change.path).map(str::to_owned);
        }
    }

    /// The working tree that a path lies in, of those that came or went, with its repository and the rest of the path.
    pub(super) fn tree_of<'p>(&self, path: &'p str) -> Option<(&str, &'p str)> {
        let mut directory = split_parent(path).0;
        while !directory.is_empty() {
            if let Some(repository) = self.trees.get(directory) {
                return Some((repository, path.get(directory.len() + 1..)?));
            }
            directory = split_parent(directory).0;
        }
        None
    }

    /// Adds paths of new repositories, each with the one by which rules judge it.
    pub(super) fn add_repositories(&mut self, judged: Vec<(String, String)>) {
        self.judged.extend(judged);
    }

    /// A path in a working tree is judged as a plain file of it.
    pub(super) fn add_content(&mut self, path: &str, rest: &str) {
        let tree = path.strip_suffix(rest).unwrap_or_default().trim_end_matches('/');
        self.judged.insert(path.to_owned(), join(tree, PLAIN));
    }
}

/// Looks for links among what a run changed.
pub(super) struct LinkSearch<'s> {
    /// The path of the workspace.
    pub root: &'s Path,
    /// Files as they were, and as they are.
    pub files: (&'s dyn Files, &'s dyn Files),
    /// What the run changed.
    pub all: &'s RunChanges<'s>,
}

impl LinkSearch<'_> {
    /// The links that some of the changes belong to: those in whose directory or in whose working tree they are.
    pub(super) fn find<'c>(&self, some: impl Iterator<Item = &'c Change>) -> LinkedTrees {
        let (mut seen, mut links) = (BTreeSet::new(), BTreeSet::new());
        for change in some {
            let mut directory = change.path.as_str();
            while !directory.is_empty() && seen.insert(directory) {
                if split_parent(split_parent(directory).0).1 == WORKTREES {
                    links.insert(directory.to_owned());
                }
                if self.all.get(&join(directory, GIT_NAME)).is_some() {
                    let (before, after) = self.files;
                    links.extend(
                        [before, after].iter().filter_map(|at| self.target(*at, directory)),
                    );
                }
                directory = split_parent(directory).0;
            }
        }
        let mut found = LinkedTrees::default();
        for link in &links {
            self.add_link(link, &mut found);
        }
        found
    }

    /// Adds what git writes for a link that came, moved or went as a whole.
    fn add_link(&self, link: &str, found: &mut LinkedTrees) -> Option<()> {
        let ((above, _), (before, after)) = (split_parent(link), self.files);
        let (repository, name) = split_parent(above);
        let was = |part: &str| before.exists(&join(repository, part));
        if name != WORKTREES || !has_repository_parts(was) || was(COMMONDIR) {
            return None;
        }
        let (old, new) = (self.working_tree(before, link), self.working_tree(after, link));
        let unlinked = old.as_deref().filter(|old| !after.exists(&join(old, GIT_NAME)));
        match (new.as_deref(), unlinked) {
            (Some(new), _) if Some(new) != old.as_deref() && self.is_unused(new) => {
                found.links.insert(link.to_owned(), (repository.to_owned(), new.to_owned()));
            }
            (None, Some(_)) if !after.exists(link) => {}
            _ => return None,
        }
        for path in [above, link, &join(link, COMMONDIR), &join(link, GITDIR)] {
            found.judged.insert(path.to_owned(), join(link, PLAIN));
        }
        for tree in [new.as_deref(), unlinked].into_iter().flatten() {
            found.judged.insert(join(tree, GIT_NAME), join(tree, PLAIN));
            found.trees.insert(tree.to_owned(), repository.to_owned());
        }
        Some(())
    }

    /// Whether nothing of the user's was at a path.
    fn is_unused(&self, tree: &str) -> bool {
        let before = self.files.0;
        !before.exists(tree) || before.list(tree).is_ok_and(|names| names.is_empty())
    }

    /// The working tree of a link whose two halves hold what git writes and lead to each other.
    fn working_tree(&self, files: &dyn Files, link: &str) -> Option<String> {
        if read(files, &join(link, COMMONDIR))? != SHARED {
            return None;
        }
        let file = self.inside(link, &read(files, &join(link, GITDIR))?)?;
        let tree = file.strip_suffix(GIT_NAME)?.strip_suffix('/')?;
        let is_git = tree.split('/').any(|part| part.eq_ignore_ascii_case(GIT_NAME));
        let leads_back = self.target(files, tree).is_some_and(|target| target == link);
        (!is_git && leads_back).then(|| tree.to_owned())
    }

    /// The directory that the file `.git` of a working tree names.
    fn target(&self, files: &dyn Files, tree: &str) -> Option<String> {
        let text = read(files, &join(tree, GIT_NAME))?;
        self.inside(tree, text.strip_prefix(b"gitdir: ")?)
    }

    /// A path that is alone on a line, as one inside of the workspace.
    fn inside(&self, directory: &str, line: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
        let path = Path::new(text);
        if text.contains(['\n', '\0']) || text.trim() != text {
            return None;
        }
        match path.is_absolute() {
            true => inner_path("", path.strip_prefix(self.root).ok()?),
            false => inner_path(directory, path),
        }
    }
}

fn read(files: &dyn Files, path: &str) -> Option<Vec<u8>> {
    files.read(path, u64::try_from(limits::PATH_BYTES).unwrap_or(u64::MAX)).ok()?
}
