//! The place of a change: a name in a folder that is held.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use capsule_core::change::FileState;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::node;
use crate::system::{Stat, fstat};

/// The permissions of a new folder until everything is in it.
pub(crate) const NEW_DIRECTORY_MODE: u32 = 0o700;

/// A name in a folder that is held.
pub(crate) struct ChangePath<'c> {
    /// The folder.
    pub parent: OwnedFd,
    /// The name.
    pub name: &'c str,
}

/// A folder and a name in it.
pub(crate) fn split_parent(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl ChangePath<'_> {
    /// What the system says of it now.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, Errno> {
        node::stat_optional(self.parent.as_fd(), self.name)
    }

    /// What stands there now.
    pub(crate) fn node(&self) -> Result<Option<FileState>, Errno> {
        let Some(stat) = self.stat()? else { return Ok(None) };
        node::read_node(self.parent.as_fd(), self.name, &stat).map(Some)
    }

    /// Makes a folder there; one that is there already stays.
    pub(crate) fn make_directory(&self) -> Result<(), Errno> {
        let make = || mkdirat(&self.parent, self.name, crate::system::mode(NEW_DIRECTORY_MODE));
        match with_writable_directory(&self.parent, make) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Sets the permissions of the folder that stands there.
    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let stat = self.stat()?.ok_or(Errno::NOENT)?;
        if stat.st_mode & 0o7777 == mode {
            return Ok(());
        }
        let folder = openat(&self.parent, self.name, flags, Mode::empty())?;
        node::set_mode(&folder, crate::system::mode(mode))
    }
}

/// Does something in a folder. One that its owner closed against writing is opened for it, as the
/// command had to do, and closed again.
pub(crate) fn with_writable_directory<T>(
    folder: &OwnedFd,
    act: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let done = act();
    if !matches!(done, Err(Errno::ACCESS | Errno::PERM)) {
        return done;
    }
    let mode = fstat(folder)?.st_mode & 0o7777;
    fchmod(folder, crate::system::mode(mode | NEW_DIRECTORY_MODE))?;
    let done = act();
    fchmod(folder, crate::system::mode(mode))?;
    done
}

/// Removes a file of ours, if it is there.
pub(crate) fn unlink_if_there(folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    match with_writable_directory(folder, || unlinkat(folder, name, AtFlags::empty())) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// A path in a folder; the folder may be the whole workspace.
pub(crate) fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}

/// A folder and a name in it, of any bytes.
pub(crate) fn split_os_path(path: &OsStr) -> (&OsStr, &OsStr) {
    let path = Path::new(path);
    let folder = path.parent().map_or(OsStr::new(""), Path::as_os_str);
    (folder, path.file_name().unwrap_or_default())
}

/// A path that is named in a directory, as one inside of the workspace; none where it leads out.
pub(crate) fn inner_path(directory: &str, named: &Path) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in named.to_str()?.split('/') {
        match part {
            "" if named.is_absolute() => return None,
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
