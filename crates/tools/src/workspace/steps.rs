//! Resolving a path one component at a time, for kernels without `openat2` and for learning where a
//! descriptor stands where `/proc` is missing. As strict as the kernel: every folder on the way is
//! held by a descriptor, links are read and followed by hand, and nothing climbs above the root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use capsule_core::limits;
use capsule_core::path::{PathProblem, WorkspacePath};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};

use crate::workspace::{NotFound, not_found};

/// A place that was reached: the folders above it, each with its name, and its own name.
struct Reached {
    folders: Vec<(OwnedFd, OsString)>,
    name: Option<OsString>,
}

impl Reached {
    /// Opens what was reached, to hold it.
    fn hold(&self, root: BorrowedFd<'_>) -> Result<OwnedFd, NotFound> {
        let folder = self.folders.last().map_or(root, |(folder, _)| folder.as_fd());
        let name = self.name.as_deref().unwrap_or_else(|| OsStr::new("."));
        openat(folder, name.as_bytes(), HOLD, Mode::empty()).map_err(not_found)
    }
}

/// Holds something without following a link.
const HOLD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a path leads through, beneath the root. Who changes one of these changes where it leads.
#[derive(Clone, Default)]
pub(crate) struct Way {
    /// The links.
    pub links: BTreeSet<OsString>,
    /// The folders that it only goes into to leave them again.
    pub left: BTreeSet<OsString>,
}

/// What a path leads through, as far as it leads.
pub(super) fn way(root: BorrowedFd<'_>, path: &OsStr) -> Way {
    let mut way = Way::default();
    // Where it ends, and whether it does, is not asked.
    let _ = walk(root, path, &mut way);
    way
}

/// Holds what a path leads to.
pub(super) fn hold(root: BorrowedFd<'_>, path: &OsStr) -> Result<OwnedFd, NotFound> {
    let handle = walk(root, path, &mut Way::default())?.hold(root)?;
    same_file_system(root, handle.as_fd())?;
    Ok(handle)
}

/// Opens a path beneath a folder, none of whose components may be a link.
pub(super) fn open_plain(
    folder: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
) -> Result<OwnedFd, NotFound> {
    let mut left = components(path);
    let mut here = None;
    while let Some(name) = left.pop() {
        let flags = match left.is_empty() {
            true => flags | OFlags::NOFOLLOW,
            false => HOLD | OFlags::DIRECTORY,
        };
        let from = here.as_ref().map_or(folder, AsFd::as_fd);
        let next = openat(from, name.as_bytes(), flags, Mode::empty()).map_err(not_found)?;
        let kind = FileType::from_raw_mode(fstat(&next).map_err(not_found)?.st_mode);
        if name.as_bytes() == b".." || kind == FileType::Symlink {
            return Err(NotFound::Outside(PathProblem::Escapes));
        }
        here = Some(next);
    }
    let handle = here.ok_or(NotFound::Missing)?;
    same_file_system(folder, handle.as_fd())?;
    Ok(handle)
}

/// Where a path really leads.
pub(super) fn real_path(root: BorrowedFd<'_>, path: &OsStr) -> Result<WorkspacePath, NotFound> {
    let reached = walk(root, path, &mut Way::default())?;
    let _there = reached.hold(root)?;
    let names = reached.folders.iter().map(|(_, name)| name).chain(&reached.name);
    let mut real = WorkspacePath::root();
    for name in names {
        let name = name.to_str().ok_or(NotFound::Outside(PathProblem::Invalid))?;
        real = real.join(name);
    }
    Ok(real)
}

fn walk(root: BorrowedFd<'_>, path: &OsStr, way: &mut Way) -> Result<Reached, NotFound> {
    let escapes = NotFound::Outside(PathProblem::Escapes);
    let mut folders: Vec<(OwnedFd, OsString)> = Vec::new();
    let mut left = components(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                let at = place(&folders, None);
                folders.pop().ok_or(escapes)?;
                way.left.insert(at);
                continue;
            }
            _ => {}
        }
        let here = folders.last().map_or(root, |(folder, _)| folder.as_fd());
        let last = left.is_empty();
        let handle = openat(here, name.as_bytes(), HOLD, Mode::empty()).map_err(not_found)?;
        let kind = FileType::from_raw_mode(fstat(&handle).map_err(not_found)?.st_mode);
        match kind {
            FileType::Symlink => {
                way.links.insert(place(&folders, Some(&name)));
                links += 1;
                if links > limits::SYMLINK_HOPS {
                    return Err(escapes);
                }
                let target = readlinkat(&handle, b"".as_slice(), Vec::new()).map_err(not_found)?;
                let target = OsString::from_vec(target.into_bytes());
                if target.as_bytes().starts_with(b"/") {
                    return Err(escapes);
                }
                left.extend(components(&target));
            }
            _ if last => return Ok(Reached { folders, name: Some(name) }),
            FileType::Directory => {
                same_file_system(root, handle.as_fd())?;
                folders.push((handle, name));
            }
            _ => return Err(NotFound::Missing),
        }
    }
    Ok(Reached { folders, name: None })
}

/// Where a name in the innermost of these folders stands, or that folder itself.
fn place(folders: &[(OwnedFd, OsString)], name: Option<&OsStr>) -> OsString {
    let names = folders.iter().map(|(_, name)| name.as_os_str()).chain(name);
    names.collect::<PathBuf>().into_os_string()
}

/// The components, last first, so that the next one is at the end.
fn components(path: &OsStr) -> Vec<OsString> {
    let parts = path.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    parts.rev().map(|part| OsStr::from_bytes(part).to_owned()).collect()
}

fn same_file_system(root: BorrowedFd<'_>, handle: BorrowedFd<'_>) -> Result<(), NotFound> {
    let device = |fd| fstat(fd).map(|stat| stat.st_dev).map_err(NotFound::Refused);
    if device(root)? == device(handle)? {
        Ok(())
    } else {
        Err(NotFound::Outside(PathProblem::Mounted))
    }
}
