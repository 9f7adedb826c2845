//! Resolving a path one component at a time, for kernels without `openat2` and for learning where a
//! descriptor stands where `/proc` is missing. As strict as the kernel: every folder on the way is
//! held by a descriptor, links are read and followed by hand, and nothing climbs above the root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use capsule_base::limits;
use capsule_base::path::{PathProblem, WorkspacePath};
use rustix::fs::{FileType, Mode, OFlags, openat, readlinkat};

use super::lookup_error::{LookupError, lookup_error};
use crate::system::{PATH_ONLY, fstat};

/// A place that was reached: the folders above it, each with its name, and its own name.
struct ReachedPath {
    parents: Vec<(OwnedFd, OsString)>,
    name: Option<OsString>,
}

impl ReachedPath {
    /// Opens what was reached, to hold it.
    fn open_handle(&self, root: BorrowedFd<'_>) -> Result<OwnedFd, LookupError> {
        let folder = self.parents.last().map_or(root, |(folder, _)| folder.as_fd());
        let name = self.name.as_deref().unwrap_or_else(|| OsStr::new("."));
        openat(folder, name.as_bytes(), HANDLE_FLAGS, Mode::empty()).map_err(lookup_error)
    }
}

/// Holds something without following a link.
const HANDLE_FLAGS: OFlags = PATH_ONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a path leads through, beneath the root. Who changes one of these changes where it leads.
#[derive(Clone, Default)]
pub struct LinkChain {
    /// The links.
    pub links: BTreeSet<OsString>,
    /// The folders that it only goes into to leave them again.
    pub left_directories: BTreeSet<OsString>,
}

/// What a path leads through, as far as it leads.
pub(super) fn link_chain(root: BorrowedFd<'_>, path: &OsStr) -> LinkChain {
    let mut link_chain = LinkChain::default();
    // Where it ends, and whether it does, is not asked.
    let _ = walk(root, path, &mut link_chain);
    link_chain
}

/// Holds what a path leads to.
pub(super) fn open_handle(root: BorrowedFd<'_>, path: &OsStr) -> Result<OwnedFd, LookupError> {
    let handle = walk(root, path, &mut LinkChain::default())?.open_handle(root)?;
    same_file_system(root, handle.as_fd())?;
    Ok(handle)
}

/// Opens a path beneath a folder, none of whose components may be a link.
pub(super) fn open_plain(
    folder: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
) -> Result<OwnedFd, LookupError> {
    let mut left = reversed_components(path);
    let mut here = None;
    while let Some(name) = left.pop() {
        let flags = match left.is_empty() {
            true => flags | OFlags::NOFOLLOW,
            // Also a link, which is refused as one.
            false => HANDLE_FLAGS,
        };
        let from = here.as_ref().map_or(folder, AsFd::as_fd);
        let next = openat(from, name.as_bytes(), flags, Mode::empty()).map_err(lookup_error)?;
        let kind = crate::system::file_type(fstat(&next).map_err(lookup_error)?.st_mode);
        if name.as_bytes() == b".." || kind == FileType::Symlink {
            return Err(LookupError::Outside(PathProblem::Escapes));
        }
        here = Some(next);
    }
    let handle = here.ok_or(LookupError::Missing)?;
    same_file_system(folder, handle.as_fd())?;
    Ok(handle)
}

/// Where a path really leads.
pub(super) fn real_path(root: BorrowedFd<'_>, path: &OsStr) -> Result<WorkspacePath, LookupError> {
    let reached = walk(root, path, &mut LinkChain::default())?;
    let _there = reached.open_handle(root)?;
    let names = reached.parents.iter().map(|(_, name)| name).chain(&reached.name);
    let mut real = WorkspacePath::root();
    for name in names {
        let name = name.to_str().ok_or(LookupError::Outside(PathProblem::Invalid))?;
        real = real.join(name);
    }
    Ok(real)
}

fn walk(
    root: BorrowedFd<'_>,
    path: &OsStr,
    link_chain: &mut LinkChain,
) -> Result<ReachedPath, LookupError> {
    let escapes = LookupError::Outside(PathProblem::Escapes);
    let mut folders: Vec<(OwnedFd, OsString)> = Vec::new();
    let mut left = reversed_components(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                let at = path_of(&folders, None);
                folders.pop().ok_or(escapes)?;
                link_chain.left_directories.insert(at);
                continue;
            }
            _ => {}
        }
        let here = folders.last().map_or(root, |(folder, _)| folder.as_fd());
        let last = left.is_empty();
        let handle =
            openat(here, name.as_bytes(), HANDLE_FLAGS, Mode::empty()).map_err(lookup_error)?;
        let kind = crate::system::file_type(fstat(&handle).map_err(lookup_error)?.st_mode);
        match kind {
            FileType::Symlink => {
                link_chain.links.insert(path_of(&folders, Some(&name)));
                links += 1;
                if links > limits::SYMLINK_HOPS {
                    return Err(escapes);
                }
                let target =
                    readlinkat(&handle, b"".as_slice(), Vec::new()).map_err(lookup_error)?;
                let target = OsString::from_vec(target.into_bytes());
                if target.as_bytes().starts_with(b"/") {
                    return Err(escapes);
                }
                left.extend(reversed_components(&target));
            }
            _ if last => return Ok(ReachedPath { parents: folders, name: Some(name) }),
            FileType::Directory => {
                same_file_system(root, handle.as_fd())?;
                folders.push((handle, name));
            }
            _ => return Err(LookupError::Missing),
        }
    }
    Ok(ReachedPath { parents: folders, name: None })
}

/// Where a name in the innermost of these folders stands, or that folder itself.
fn path_of(folders: &[(OwnedFd, OsString)], name: Option<&OsStr>) -> OsString {
    let names = folders.iter().map(|(_, name)| name.as_os_str()).chain(name);
    names.collect::<PathBuf>().into_os_string()
}

/// The components, last first, so that the next one is at the end.
fn reversed_components(path: &OsStr) -> Vec<OsString> {
    let parts = path.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    parts.rev().map(|part| OsStr::from_bytes(part).to_owned()).collect()
}

fn same_file_system(root: BorrowedFd<'_>, handle: BorrowedFd<'_>) -> Result<(), LookupError> {
    let device = |fd| fstat(fd).map(|stat| stat.st_dev).map_err(LookupError::Refused);
    if device(root)? == device(handle)? {
        Ok(())
    } else {
        Err(LookupError::Outside(PathProblem::Mounted))
    }
}
