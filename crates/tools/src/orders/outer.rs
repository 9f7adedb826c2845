//! Repositories whose folder lies outside of the workspace: of a linked working tree, of a submodule, and of
//! a folder above. Hooks that they name by a relative path run from where git is at work, which is here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use rustix::fs::stat;

use super::{GIT, Gather, is_whole};
use crate::workspace::pointer::{self, SHARED};

/// What gives orders in a repository's folder, and may lead into the workspace from there.
const ORDERS: [&str; 3] = ["hooks", "config", "info/attributes"];

/// Repositories by their folder: the name that rules know each by, and its working trees.
pub(super) type Outer = BTreeMap<PathBuf, (WorkspacePath, BTreeSet<PathBuf>)>;

impl Gather<'_> {
    /// Notes a repository outside, and a working tree of it.
    pub(super) fn outside(&mut self, folder: PathBuf, name: &WorkspacePath, tree: Option<&Path>) {
        let known = self.outer.entry(folder).or_insert_with(|| (name.clone(), BTreeSet::new()));
        known.1.extend(tree.map(Path::to_owned));
    }

    /// Notes the repositories around the workspace, up to where another file system begins: git looks no
    /// further.
    pub(super) fn above(&mut self) {
        let root = self.host.path;
        let name = WorkspacePath::root().join(GIT);
        let is_repository = |folder: &Path| is_whole(|part| stat(folder.join(part)).is_ok());
        for above in root.ancestors().skip(1) {
            if !stat(above).is_ok_and(|own| own.st_dev == self.workspace.device()) {
                break;
            }
            let own = above.join(GIT);
            let own = self.pointer(&own).unwrap_or(own);
            if is_repository(&own) {
                self.outside(own, &name, Some(above));
            }
            if is_repository(above) {
                self.outside(above.to_owned(), &name, None);
            }
        }
    }

    /// Reads the configuration of all that were noted, and follows what else in them gives orders.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub(super) fn outer(&mut self) -> Result<(), CodedError> {
        for (folder, (name, trees)) in std::mem::take(&mut self.outer) {
            for own in [Some(folder.clone()), self.shared(&folder)].into_iter().flatten() {
                for order in ORDERS {
                    let name = order.split('/').fold(name.clone(), |name, part| name.join(part));
                    self.leads(&name, &own.join(order))?;
                }
            }
            self.config_of(&folder, name, trees)?;
        }
        Ok(())
    }

    /// The folder that a repository shares with others, where its configuration is. What cannot be read
    /// names nothing, for git neither.
    pub(super) fn shared(&self, folder: &Path) -> Option<PathBuf> {
        let named = pointer::shared(self.opened(&folder.join(SHARED)).ok()??)?;
        Some(folder.join(named))
    }

    /// Where a file says that a repository lies.
    pub(super) fn pointer(&self, file: &Path) -> Option<PathBuf> {
        let named = pointer::pointed(self.opened(file).ok()??)?;
        Some(file.parent()?.join(named))
    }
}
