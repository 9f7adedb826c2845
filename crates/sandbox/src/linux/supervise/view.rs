//! What is sent to the executor for the view of a run.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use capsule_base::limits;
use capsule_base::root_names::RootNames;
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::linux::protocol::{EnterRequest, HostPath, StagingPaths, ToolchainPath};
use crate::{HiddenPath, RepositoryMount, SandboxError, SandboxView, StagingMount, ToolchainMount};

/// A view in the words of the executor.
pub(super) fn enter_request(view: &SandboxView) -> Result<EnterRequest, SandboxError> {
    let mut programs = Vec::with_capacity(view.programs.len());
    for (target, file) in &view.programs {
        if !target.is_absolute() || target.components().count() < 2 {
            return Err(SandboxError::Launch { problem: "a program's path is not absolute" });
        }
        programs.push((target.as_os_str().as_bytes().to_vec(), host_path(file)?));
    }
    let toolchains = view.toolchains.iter().map(toolchain_path).collect::<Result<_, _>>()?;
    let repository =
        view.repository.as_ref().map(repository_paths).transpose()?.unwrap_or_default();
    let staging = match &view.staging {
        Some(StagingMount::Overlay { changes, work }) => {
            Some(StagingPaths::Overlay([host_path(changes)?, host_path(work)?]))
        }
        Some(StagingMount::Copied(copy)) => Some(StagingPaths::Copied(host_path(copy)?)),
        None => None,
    };
    Ok(EnterRequest {
        workspace: host_path(&view.workspace)?,
        names: root_names(&view.root_names)?,
        staging,
        hidden: hidden_paths(&view.hidden)?,
        programs,
        git_files: [view.git.config.clone(), view.git.ignored.clone()],
        toolchains,
        repository,
    })
}

/// A directory or file of a toolchain in the words of the executor.
fn toolchain_path(shown: &ToolchainMount) -> Result<ToolchainPath, SandboxError> {
    shown_path((&shown.path, shown.source.as_ref()), &shown.hidden, shown.discards_writes)
}

/// The directory of a repository in the words of the executor, and its configuration.
fn repository_paths(shown: &RepositoryMount) -> Result<Vec<ToolchainPath>, SandboxError> {
    let directory = shown_path((&shown.path, Some(&shown.source)), &shown.hidden, false)?;
    let (name, text) = &shown.config;
    let file = shown_path((name, None), &[], false)?;
    Ok(vec![directory, ToolchainPath { text: Some(text.clone()), ..file }])
}

fn shown_path(
    (path, source): (&Path, Option<&OwnedFd>),
    hidden: &[PathBuf],
    discards_writes: bool,
) -> Result<ToolchainPath, SandboxError> {
    let is_plain =
        |path: &Path| path.components().all(|component| matches!(component, Component::Normal(_)));
    let from_root = path.strip_prefix("/").unwrap_or(Path::new(""));
    if from_root.components().count() == 0 || !is_plain(from_root) {
        return Err(SandboxError::Launch { problem: "a toolchain's path is not absolute" });
    }
    if hidden.len() > limits::HIDDEN_PATHS || !hidden.iter().all(|path| is_plain(path)) {
        return Err(SandboxError::Launch { problem: "too many paths are to be hidden" });
    }
    Ok(ToolchainPath {
        path: path.as_os_str().as_bytes().to_vec(),
        place: source.map(host_path).transpose()?,
        text: None,
        discards_writes,
        hidden: hidden.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect(),
    })
}

/// The path of an open file, and what must be found there.
pub(super) fn host_path(file: &OwnedFd) -> Result<HostPath, SandboxError> {
    let lost = |_| SandboxError::Launch { problem: "an opened file has no path any more" };
    let path: PathBuf =
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(lost)?;
    let facts = fstat(file).map_err(lost_errno)?;
    Ok(HostPath {
        path: path.into_os_string().into_vec(),
        device: facts.st_dev,
        inode: facts.st_ino,
    })
}

/// The names of the root, of which the executor takes only absolute ones without `..`.
fn root_names(names: &RootNames) -> Result<Vec<Vec<u8>>, SandboxError> {
    let is_plain = |name: &str| {
        let rest = Path::new(name).components().skip(1);
        name.starts_with('/') && rest.clone().count() > 0 && !name.contains('\0') && { rest }
            .all(|component| matches!(component, Component::Normal(_)))
    };
    let aliases = names.aliases().filter(|name| is_plain(name));
    if !is_plain(names.mount()) {
        return Err(SandboxError::Launch { problem: "the workspace's mount is no absolute path" });
    }
    Ok([names.mount()].into_iter().chain(aliases).map(|name| name.as_bytes().to_vec()).collect())
}

fn lost_errno(_: Errno) -> SandboxError {
    SandboxError::Launch { problem: "an opened file cannot be looked at" }
}

pub(super) fn hidden_paths(masks: &[HiddenPath]) -> Result<Vec<Vec<u8>>, SandboxError> {
    if masks.len() > limits::HIDDEN_PATHS {
        return Err(SandboxError::Launch { problem: "too many paths are to be hidden" });
    }
    Ok(masks.iter().map(|mask| mask.path.as_bytes().to_vec()).collect())
}
