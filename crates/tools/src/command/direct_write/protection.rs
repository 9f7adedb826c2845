//! The paths that invariants protect from a command that writes to the workspace itself, and the walk that
//! finds them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::policy::PathScope;
use capsule_workspace::{HiddenPaths, Stand, names, workspace_path};

/// Paths, as a walk finds them.
#[derive(Default)]
pub(super) struct Noted {
    /// The folders that can be written to and have to stay.
    pub(super) pinned: Mutex<BTreeSet<OsString>>,
    /// What a person would be asked about if it was new.
    pub(super) asked: Mutex<BTreeSet<OsString>>,
}

/// The paths that a walk found so far.
pub(super) fn locked(paths: &Mutex<BTreeSet<OsString>>) -> MutexGuard<'_, BTreeSet<OsString>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What invariants hold, by every name that it goes by.
pub(super) struct ProtectedPaths {
    /// The places that the rule of the command names, and the invariants.
    pub(super) write_scope: PathScope,
    /// The other names of what is protected.
    pub(super) aliases: PathAliases,
}

impl ProtectedPaths {
    /// Whether what stands at a path must stay there: it is protected, or orders are found through it.
    fn must_stay(&self, path: &WorkspacePath, stand: Stand) -> bool {
        self.is_protected(path, stand) || self.is_on_alias_route(path)
    }

    /// Whether no command may change what stands at a path, or not before a person was asked, which nobody can
    /// be while a command runs.
    fn is_protected(&self, path: &WorkspacePath, stand: Stand) -> bool {
        self.is_forbidden(path)
            || self.write_scope.asks(path, &names(&self.aliases, path, stand), false)
    }

    fn is_forbidden(&self, path: &WorkspacePath) -> bool {
        let names = self.aliases.aliases_of(path);
        self.write_scope.is_protected(path)
            || names.iter().any(|name| self.write_scope.is_protected(name))
    }

    /// Whether a person would have been asked before a path was made.
    fn is_asked(&self, path: &WorkspacePath) -> bool {
        self.write_scope.asks(path, &[], true)
    }

    /// Whether that, or what a person would have been asked before it was changed, is all that holds a path.
    pub(super) fn is_only_asked(&self, path: &OsStr) -> bool {
        let asks = |path: &WorkspacePath| {
            self.is_asked(path)
                || self.is_protected(path, Stand::File) && !self.is_on_alias_route(path)
        };
        workspace_path(path).is_ok_and(|path| !self.is_forbidden(&path) && asks(&path))
    }

    fn is_on_alias_route(&self, path: &WorkspacePath) -> bool {
        self.aliases.names_through(path).next().is_some()
    }

    /// Whether a folder may come where there was none: names led there already.
    pub(super) fn may_create(&self, folder: &OsStr) -> bool {
        workspace_path(folder).is_ok_and(|path| {
            self.is_on_alias_route(&path) && !self.is_protected(&path, Stand::Folder)
        })
    }

    /// Whether whatever is made in a folder is protected.
    fn protects_children(&self, folder: &WorkspacePath) -> bool {
        let names = names(&self.aliases, folder, Stand::Folder);
        [folder].into_iter().chain(&names).any(|name| self.write_scope.protects_children(name))
            || self.write_scope.asks_beneath(folder, &names)
    }
}

/// Finds what is held, and what else is noted of it.
pub(super) fn protection_scan(places: &Arc<ProtectedPaths>) -> (HiddenPaths, Arc<Noted>) {
    let noted = Arc::new(Noted::default());
    let (places, found) = (Arc::clone(places), Arc::clone(&noted));
    let is_odd = |path: &WorkspacePath| path.as_str().contains(char::REPLACEMENT_CHARACTER);
    let hidden_paths = HiddenPaths::new(Box::new(move |path, folder| {
        if places.is_asked(path) {
            locked(&found.asked).insert(path.as_str().into());
        }
        let stand = if folder { Stand::Folder } else { Stand::File };
        match places.must_stay(path, stand) {
            stays if !folder => stays,
            _ if places.protects_children(path) => true,
            // Its name cannot be told, so that it could not be named later: it is held whole.
            true if is_odd(path) => true,
            true => {
                locked(&found.pinned).insert(path.as_str().into());
                false
            }
            false => false,
        }
    }));
    (hidden_paths, noted)
}
