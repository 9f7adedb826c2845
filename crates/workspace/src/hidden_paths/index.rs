//! The paths of a workspace that are hidden, and what a walk found on the way to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use capsule_base::limits;
use capsule_base::path::WorkspacePath;

use super::error::HiddenPathsError;
use super::walked_directory::{InodeKey, WalkedDirectory};
use crate::control_files::AliasCandidates;
use crate::resolve::LinkChain;
use crate::system::Stat;
use crate::walk::PendingDirectory;

/// Says whether a path, which is a folder or not, is to be kept from being seen; asked from the root
/// down.
pub type HidePredicate = dyn Fn(&WorkspacePath, bool) -> bool + Sync + Send;

/// How many protected names of one file are told apart: different rules may protect them.
const MAX_NAMES: usize = 64;

/// What is known of the hidden paths of a workspace.
#[derive(Default)]
pub(super) struct HiddenIndex {
    /// What is hidden, beneath the workspace, in bytes.
    pub(super) hidden: BTreeSet<OsString>,
    pub(super) error: Option<HiddenPathsError>,
    /// The protected files, by identity, with the names that are protected, up to [`MAX_NAMES`].
    pub(super) protected: BTreeMap<InodeKey, BTreeSet<OsString>>,
    /// Whether one that was found since the last look at links has other names.
    pub(super) has_hard_links: bool,
    /// Whether folders list other inodes than files have, so that each file must be asked.
    pub(super) inodes_differ: bool,
    /// Every folder that was walked.
    pub(super) directories: BTreeMap<OsString, WalkedDirectory>,
    /// The protected links, and the protected files that name a repository.
    pub(super) links: BTreeSet<OsString>,
    /// What they lead through.
    pub(super) link_chain: LinkChain,
    /// What may lead to orders.
    pub(super) alias_candidates: AliasCandidates,
}

impl HiddenIndex {
    /// Hides a path.
    pub(super) fn hide(&mut self, path: &OsStr) {
        if self.hidden.len() >= limits::HIDDEN_PATHS && !self.hidden.contains(path) {
            self.error = Some(HiddenPathsError::TooMany);
        } else {
            self.hidden.insert(path.to_owned());
        }
    }

    /// Notes a protected file, to know it again under other names.
    pub(super) fn add_protected(&mut self, path: &OsStr, stat: &Stat) {
        let identity = (stat.st_dev, stat.st_ino);
        if let Some(names) = self.protected.get_mut(&identity) {
            if names.len() < MAX_NAMES {
                names.insert(path.to_owned());
            }
            return;
        }
        if self.protected.len() >= limits::PROTECTED_FILES {
            self.error = Some(HiddenPathsError::TooMany);
            return;
        }
        self.protected.insert(identity, BTreeSet::from([path.to_owned()]));
        self.has_hard_links |= stat.st_nlink > 1;
    }

    /// Hides a folder that cannot be looked into.
    pub(super) fn hide_unreadable(&mut self, path: &OsStr, closed: bool) {
        self.directories.remove(path);
        if path.is_empty() {
            self.error = Some(HiddenPathsError::Unlisted);
        } else if !closed {
            self.hide(path);
        }
    }
}

/// The whole workspace, as a walk is told to begin.
pub(super) fn whole_workspace() -> PendingDirectory {
    (OsString::new(), false)
}
