//! The files of a repository that git alone changes.

use capsule_base::path::WorkspacePath;

use super::files::{Disk, Files as _};
use super::id::Format;
use super::layout::{Part, part};
use crate::control_files::{GIT_NAME, has_repository_parts};
use crate::resolve::Workspace;

/// Why a tool that writes files does not change what stands at a path: git keeps it there, and git alone
/// changes it. Texts are open, and what invariants protect they judge themselves.
pub(crate) fn reserved_path_reason(workspace: &Workspace, path: &WorkspacePath) -> Option<String> {
    let disk = Disk { workspace, root: workspace.root() };
    let is_repository =
        |item: &WorkspacePath| has_repository_parts(|part| disk.exists(item.join(part).as_str()));
    let folder = path.ancestors().skip(1).find(is_repository)?;
    let depth = folder.components().count();
    let name: Vec<&str> = path.components().skip(depth).collect();
    let is_open = match part(Format::Sha1, &name.join("/")) {
        Part::Text | Part::Control | Part::Leftover => true,
        // A repository that is not called so may have other files beside it.
        Part::Unknown => folder.name() != Some(GIT_NAME),
        _ => false,
    };
    (!is_open)
        .then(|| format!("git keeps `{path}` for itself, and no tool that writes files changes it"))
}
