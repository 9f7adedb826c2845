//! The confinement of a call: its filter, and what its Landlock rules are made from.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::access_rules::HiddenTree;
use crate::linux::seccomp::Filter;

/// What is around a call.
pub(super) struct CallConfinement {
    pub(super) abi: i32,
    pub(super) filter: Filter,
    /// Where the workspace or its copy is: commands see it there.
    pub(super) workspace_path: PathBuf,
    /// Where the workspace and its copy are, which no rule for anything else may open.
    pub(super) workspace_paths: Vec<PathBuf>,
    /// Programs from elsewhere, and directories of them, with what is hidden in each.
    pub(super) programs: Vec<(OwnedFd, HiddenTree)>,
    /// Git's configuration and the patterns of files that it ignores, for the home directory of the call.
    pub(super) git_files: [Vec<u8>; 2],
}
