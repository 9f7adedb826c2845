//! The mount of the workspace in the root, and the links that lead there.
//!
//! Usually it is the path on the host. Where this is inside `/tmp`, which each call has for itself, the mount of the run is covered by that directory, and each call carries it over.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, open, symlinkat};
use rustix::io::Errno;

use super::root::{self, Root, Submounts};
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
    /// mounts of the sandbox become none.
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
        for name in names.filter(|name| mount_conflict(name, false).is_none()) {
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

    /// Makes the directory for it, and the links, but for those in the directory of each call.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(super) fn prepare(&self, root: &Root) -> Result<(), Errno> {
        root.make_directory(self.relative_to_root())?;
        for link in self.links.iter().filter(|link| !link.starts_with(TMP)) {
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

    /// The mount of the run with all that is mounted in it, before `/tmp` covers it; none where it
    /// is elsewhere.
    ///
    /// # Errors
    /// It cannot be copied.
    pub(super) fn take_from_tmp(&self) -> Result<Option<OwnedFd>, Errno> {
        if !self.path.starts_with(TMP) {
            return Ok(None);
        }
        root::copy_mount(&self.open()?, Submounts::Copied).map(Some)
    }

    /// Puts what belongs there into the `/tmp` of a call: the workspace, if it was taken from there,
    /// and links.
    ///
    /// # Errors
    /// A directory or a link cannot be made, or the workspace not be mounted.
    pub(super) fn put_into_tmp(&self, taken: Option<OwnedFd>) -> Result<(), Errno> {
        if let Some(taken) = taken {
            make_directories(&self.path)?;
            root::attach_over(&taken, self.open()?.as_fd())?;
        }
        for link in self.links.iter().filter(|link| link.starts_with(TMP)) {
            make_directories(link.parent().unwrap_or(link))?;
            symlinkat(self.target()?, CWD, link)?;
        }
        Ok(())
    }

    fn target(&self) -> Result<CString, Errno> {
        CString::new(self.path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
    }
}

/// Makes a directory in `/tmp`, and those above it.
pub(super) fn make_directories(path: &Path) -> Result<(), Errno> {
    let above: Vec<&Path> = path.ancestors().take_while(|path| *path != Path::new(TMP)).collect();
    for directory in above.into_iter().rev() {
        match mkdirat(CWD, directory, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
        assert_eq!(links, ["/workspace", "/l/p", "/tmp/l"]);
        assert_eq!(mount.relative_to_root(), Path::new("home/a/p"));
        for bad in [&[][..], &["/"], &["/usr/p"], &["/tmp"]] {
            assert!(WorkspaceMount::parse(&names(bad)).is_err(), "{bad:?}");
        }
    }
}
