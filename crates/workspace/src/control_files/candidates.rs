//! The entries of a walk that may lead to control files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use capsule_base::spelling::Spelling;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, FileType};

use super::repository::{GIT_NAME, HEAD, has_repository_parts};
use crate::resolve::workspace_path;
use crate::system::statat;
use crate::walk::WalkedEntry;

/// What a walk found that may lead to orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct AliasCandidates {
    /// Links, and files that say where a repository lies.
    pub(super) links: BTreeSet<OsString>,
    /// Folders that were repositories.
    pub(super) repositories: BTreeSet<OsString>,
}

impl AliasCandidates {
    /// The folders that were repositories, as far as their names are text.
    pub(crate) fn repositories(&self) -> Vec<String> {
        let names = self.repositories.iter().filter_map(|repository| repository.to_str());
        names.map(str::to_owned).collect()
    }

    /// Notes an entry that may lead elsewhere.
    pub(crate) fn note(
        &mut self,
        entry: &WalkedEntry<'_>,
        (invariants, spelling): (&Invariants, Spelling),
    ) {
        if is_named(entry, HEAD, spelling) {
            let has = |part: &str| statat(entry.directory, part, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            let folder = Path::new(entry.path).parent().filter(|_| has_repository_parts(has));
            self.repositories.extend(folder.map(|path| path.as_os_str().to_owned()));
        }
        if leads_elsewhere(entry, spelling)
            && workspace_path(entry.path).is_ok_and(|name| invariants.concerns(&name))
        {
            self.links.insert(entry.path.to_owned());
        }
    }
}

/// Whether an entry may lead to orders.
pub(crate) fn is_candidate(entry: &WalkedEntry<'_>, spelling: Spelling) -> bool {
    leads_elsewhere(entry, spelling) || is_named(entry, HEAD, spelling)
}

/// Whether an entry has a name, in whatever spelling.
fn is_named(entry: &WalkedEntry<'_>, name: &str, spelling: Spelling) -> bool {
    entry.name.to_str().is_some_and(|text| spelling.is_same(text, name))
}

/// Whether an entry may lead elsewhere.
pub(super) fn leads_elsewhere(entry: &WalkedEntry<'_>, spelling: Spelling) -> bool {
    entry.kind == FileType::Symlink
        || entry.kind == FileType::RegularFile && is_named(entry, GIT_NAME, spelling)
}
