//! The mount of the workspace in the root, and the links that lead there.
//!
//! Usually it is the path on the host.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::root::Root;
use crate::linux::backend::mountinfo;
use crate::linux::backend::system::{TMP, mount_conflict};

/// The mount of the workspace in the root, and the links that lead there.
pub(super) struct WorkspaceMount {
    path: PathBuf,
    /// Absolute paths, none of which leads through another or into the workspace.
    links: Vec<PathBuf>,
}

impl WorkspaceMount {
    /// Reads the names of the root: the mount, and then those that become links to it. Names that are
    /// mounts of the sandbox become none, and no name directly in `/tmp`, where a call could put another link in its place.
    ///
    /// # Errors
    /// There is no mount, or it is one of the sandbox.
    pub(super) fn parse(names: &[Vec<u8>]) -> Result<Self, Errno> {
        let mut names = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name)));
        let path = names.next().ok_or(Errno::INVAL)?;
        if mount_conflict(&path, false).is_some() {
            return Err(Errno::EXIST);
        }
        let mut mount = Self { path, links: Vec::new() };
        let in_tmp = |name: &PathBuf| name.parent() == Some(Path::new(TMP));
        for name in names.filter(|name| mount_conflict(name, false).is_none() && !in_tmp(name)) {
            let overlaps = |other: &PathBuf| name.starts_with(other) || other.starts_with(&name);
            if !overlaps(&mount.path) && !mount.links.iter().any(overlaps) {
                mount.links.push(name);
            }
        }
        Ok(mount)
    }

    /// Its path as commands see it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its path from the root.
    pub(super) fn relative_to_root(&self) -> &Path {
        self.path.strip_prefix("/").unwrap_or(&self.path)
    }

    /// Makes the directory for it, and the links.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(super) fn prepare(&self, root: &Root) -> Result<(), Errno> {
        root.make_directory(self.relative_to_root())?;
        for link in &self.links {
            // It may be shown for another reason.
            let _ = root.make_link(link.strip_prefix("/").unwrap_or(link), &self.target()?);
        }
        Ok(())
    }

    /// The workspace as this call has it mounted.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        open(&self.path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Where something is mounted in it, seen from there.
    ///
    /// # Errors
    /// The mounts cannot be listed.
    pub(super) fn mounts(&self) -> Result<Vec<Vec<u8>>, Errno> {
        let mounts = mountinfo::mounts_within(&self.path)?;
        Ok(mounts.into_iter().map(|path| path.into_os_string().into_vec()).collect())
    }

    fn target(&self) -> Result<CString, Errno> {
        CString::new(self.path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_where_nothing_else_stands() {
        let names = |names: &[&str]| -> Vec<Vec<u8>> {
            names.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        let all = ["/home/a/p", "/workspace", "/l/p", "/l/p/x", "/home/a/p/l", "/usr/l", "/tmp/l"];
        let mount = WorkspaceMount::parse(&names(&all)).unwrap();
        let links: Vec<&str> = mount.links.iter().map(|link| link.to_str().unwrap()).collect();
        assert_eq!(links, ["/workspace", "/l/p"]);
        assert_eq!(mount.relative_to_root(), Path::new("home/a/p"));
        for bad in [&[][..], &["/"], &["/usr/p"], &["/tmp"]] {
            assert!(WorkspaceMount::parse(&names(bad)).is_err(), "{bad:?}");
        }
    }
}
