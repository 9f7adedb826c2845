//! Repositories whose folder lies outside of the workspace: of a linked working tree, of a submodule, and of
//! a folder above. Hooks that they name by a relative path run from where git is at work, which is here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use capsule_base::path::WorkspacePath;
use capsule_core::outcome::CodedError;

use super::collector::AliasCollector;
use super::repository::{GIT_NAME, has_repository_parts};
use crate::control_files::git_pointer;
use crate::control_files::git_pointer::COMMONDIR;
use crate::system::stat;

/// What gives orders in a repository's folder, and may lead into the workspace from there.
const CONTROL_PATHS: [&str; 3] = ["hooks", "config", "info/attributes"];

impl AliasCollector<'_> {
    /// Notes a repository outside, and a working tree of it.
    pub(super) fn add_outer_repository(
        &mut self,
        folder: PathBuf,
        name: &WorkspacePath,
        tree: Option<&Path>,
    ) {
        let known = self
            .outer_repositories
            .entry(folder)
            .or_insert_with(|| (name.clone(), BTreeSet::new()));
        known.1.extend(tree.map(Path::to_owned));
    }

    /// Notes the repositories around the workspace, up to where another file system begins: git looks no
    /// further.
    pub(super) fn add_enclosing_repositories(&mut self) {
        let root = self.host.root_path;
        let name = WorkspacePath::root().join(GIT_NAME);
        let is_repository =
            |folder: &Path| has_repository_parts(|part| stat(folder.join(part)).is_ok());
        for above in root.ancestors().skip(1) {
            if !stat(above).is_ok_and(|stat| stat.st_dev == self.workspace.device()) {
                break;
            }
            let path = above.join(GIT_NAME);
            let path = self.gitdir_target(&path).unwrap_or(path);
            if is_repository(&path) {
                self.add_outer_repository(path, &name, Some(above));
            }
            if is_repository(above) {
                self.add_outer_repository(above.to_owned(), &name, None);
            }
        }
    }

    /// Reads the configuration of all that were noted, and follows what else in them gives orders.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub(super) fn follow_outer_repositories(&mut self) -> Result<(), CodedError> {
        for (folder, (name, trees)) in std::mem::take(&mut self.outer_repositories) {
            for path in [Some(folder.clone()), self.shared_directory(&folder)].into_iter().flatten()
            {
                for order in CONTROL_PATHS {
                    let name = order.split('/').fold(name.clone(), |name, part| name.join(part));
                    self.add_target(&name, &path.join(order))?;
                }
            }
            self.add_config_as(&folder, name, trees)?;
        }
        Ok(())
    }

    /// The folder that a repository shares with others, where its configuration is. What cannot be read
    /// names nothing, for git neither.
    pub(super) fn shared_directory(&self, folder: &Path) -> Option<PathBuf> {
        let named = git_pointer::commondir_in(self.open_optional(&folder.join(COMMONDIR)).ok()??)?;
        Some(folder.join(named))
    }

    /// Where a file says that a repository lies.
    pub(super) fn gitdir_target(&self, file: &Path) -> Option<PathBuf> {
        let named = git_pointer::gitdir_in(self.open_optional(file).ok()??)?;
        Some(file.parent()?.join(named))
    }
}
