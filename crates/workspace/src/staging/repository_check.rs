//! Checks a staged change against what is around it: repositories, stores, and names that the file
//! system takes for the same. Whether it may be made is judged elsewhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};

use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};
use rustix::fs::{FileType, Mode, OFlags, openat};

use super::state::Staging;
use crate::change_path::split_parent;
use crate::control_files::git_pointer::COMMONDIR;
use crate::control_files::{
    GIT_NAME, REPOSITORY_PARTS, enclosing_repositories, has_repository_parts,
};
use crate::directory_entries::entry_names;
use crate::node;
use crate::repository::{LinkedTrees, Protects, Reviewed, RunChanges, linked_trees, review};
use crate::resolve::{LookupError, file_type, listed};
use crate::store_files::{is_store, stores_of};

/// What sends git elsewhere for its orders, whatever else is in the folder.
const GIT_POINTERS: [&str; 3] = [COMMONDIR, "config.worktree", "gitdir"];

impl Staging {
    /// Why some changes of a call may not be made for the sake of what git would make of them, among all that
    /// the run made.
    pub fn review(
        &self,
        changes: &[Change],
        (aliases, protects): (&PathAliases, &dyn Protects),
        linked: &LinkedTrees,
    ) -> Reviewed {
        let known = self.last_scan.borrow();
        let all = RunChanges::new(&known.0, changes);
        self.reviewed((all, changes.iter()), (aliases, protects), linked)
    }

    /// The working trees that some changes of a call link or unlink, among all that the run made.
    pub fn linked_trees(
        &self,
        changes: &[Change],
        (aliases, protects): (&PathAliases, &dyn Protects),
    ) -> LinkedTrees {
        let known = self.last_scan.borrow();
        let all = RunChanges::new(&known.0, changes);
        self.linked((all, changes), (aliases, protects))
    }

    /// The working trees that some changes link or unlink, among all that the run made.
    pub(crate) fn linked<'c>(
        &'c self,
        (all, some): (RunChanges<'c>, &[Change]),
        (aliases, protects): (&'c PathAliases, &'c dyn Protects),
    ) -> LinkedTrees {
        let seen = (self.layers.lower.root(), self.layers.upper.as_fd());
        linked_trees(&self.layers.lower, seen, (all, some), (aliases, protects))
    }

    /// Why some changes may not be made for the sake of what git would make of them, among all that the run
    /// made.
    pub(crate) fn reviewed<'c>(
        &'c self,
        (all, some): (RunChanges<'c>, impl Iterator<Item = &'c Change>),
        (aliases, protects): (&'c PathAliases, &'c dyn Protects),
        linked: &'c LinkedTrees,
    ) -> Reviewed {
        let seen = (self.layers.lower.root(), self.layers.upper.as_fd());
        review(&self.layers.lower, seen, (all, some), (aliases, protects), linked)
    }

    /// What is odd about a change where it stands.
    pub fn repository_refusal(&self, change: &Change, linked: &LinkedTrees) -> Option<String> {
        if self.touches_store(change) {
            return Some("it is a store of Capsule, or lies beside one by its name".into());
        }
        let (folder, name) = split_parent(&change.path);
        let name = self.layers.lower.spelling().name(name);
        // One that was there takes commits; what it takes orders from, invariants keep.
        let was = || {
            self.open_lower(folder).is_ok_and(|fd| has_repository_parts(|part| exists(&fd, part)))
        };
        let is_one = |parts: &[&str]| {
            parts.iter().any(|part| self.layers.lower.spelling().is_same(part, &name))
        };
        let is_part = is_one(&REPOSITORY_PARTS) && !was() || is_one(&["config", "hooks"]);
        let is_now = || has_repository_parts(|part| self.staged_kind(folder, part).is_some());
        let item = self.layers.lower.spelling().is_same(split_parent(folder).1, GIT_NAME);
        let is_link = || match is_one(&GIT_POINTERS) {
            true => linked.judged_as(&change.path).is_some(),
            false => linked.is_link(folder),
        };
        if change.after.is_some()
            && (is_one(&GIT_POINTERS) || is_part && !item && is_now())
            && !is_link()
        {
            return Some(
                "git would take orders from its folder, which looks like a repository".into(),
            );
        }
        let target = change.link_target()?;
        let mut way = target.parent();
        while let Some(above) = way.filter(|above| !above.is_root()) {
            let (folder, name) = split_parent(above.as_str());
            if self.staged_kind(folder, name) == Some(FileType::Symlink) {
                return Some("it is a link that leads through another link".into());
            }
            way = above.parent();
        }
        None
    }

    /// What else stands beside a change that is the same name to the file system of the workspace.
    pub fn twin(&self, change: &Change) -> Option<String> {
        let spelling = self.layers.lower.spelling();
        if spelling.is_exact() || change.after.is_none() {
            return None;
        }
        let (folder, name) = split_parent(&change.path);
        let names = entry_names(&self.open_upper(folder).ok()?).ok()?;
        let mut names = names.iter().filter_map(|name| name.to_str());
        let twin = names.find(|text| *text != name && spelling.is_same(text, name))?;
        Some(format!("`{twin}` is the same name to the file system of the workspace"))
    }

    /// The repositories that a change is made in, whatever they are called.
    pub fn enclosing_repositories(&self, change: &Change) -> PathAliases {
        let path = WorkspacePath::from_fs_name(&change.path).unwrap_or_default();
        enclosing_repositories(&path, |folder, part| {
            self.staged_kind(folder.as_str(), part).is_some()
        })
    }

    /// Whether a change is of a store, or of what would be read with one because of its name.
    fn touches_store(&self, change: &Change) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let holds = |folder: Result<OwnedFd, LookupError>, name: &str| {
            let file = folder.ok().map(|folder| openat(folder, name, flags, Mode::empty()));
            file.is_some_and(|file| file.is_ok_and(|file| is_store(file.as_fd())))
        };
        let (folder, name) = split_parent(&change.path);
        if matches!(change.before, Some(FileState::File { .. }))
            && holds(self.open_lower(folder), name)
        {
            return true;
        }
        let Ok(path) = WorkspacePath::parse(&format!("./{}", change.path)) else { return false };
        let spelled = self.layers.lower.spelling().path(&path);
        let stores: Vec<_> = [Some(path), spelled].iter().flatten().flat_map(stores_of).collect();
        stores.iter().map(|store| split_parent(store.as_str())).any(|(folder, name)| {
            holds(self.open_upper(folder), name) || holds(self.open_lower(folder), name)
        })
    }

    /// Whether nothing stood at a path before the run.
    pub fn is_new(&self, path: &WorkspacePath) -> bool {
        let (folder, name) = split_parent(path.as_str());
        !self.open_lower(folder).is_ok_and(|fd| exists(&fd, name))
    }

    /// What stands at a name, among the changes or else beneath them.
    fn staged_kind(&self, folder: &str, name: &str) -> Option<FileType> {
        let look = |folder: Result<OwnedFd, LookupError>| {
            let folder = folder.ok()?;
            let text = match self.layers.lower.spelling().is_exact() {
                true => name.to_owned(),
                false => listed(folder.as_fd(), OsStr::new(name))?.into_string().ok()?,
            };
            node::stat_optional(folder.as_fd(), &text).ok()?.map(|stat| file_type(&stat))
        };
        look(self.open_upper(folder)).or_else(|| look(self.open_lower(folder)))
    }
}

/// Whether something stands at a name in a folder.
fn exists(folder: &OwnedFd, name: &str) -> bool {
    node::stat_optional(folder.as_fd(), name).is_ok_and(|stat| stat.is_some())
}
