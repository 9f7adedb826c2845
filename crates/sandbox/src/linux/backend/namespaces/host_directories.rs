//! Directories of the host in the root of a run: each through a layer of its own where the kernel allows one.
//!
//! A socket in a directory that is merely bound leads to the process that listens on it on the host, and no namespace keeps a
//! command away from it. Through a layer it leads nowhere. Only where every directory is shown so may commands make
//! local sockets.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// How many names are looked at for a file by which the two sides are compared.
const COMPARED_NAMES: usize = 256;
/// How deep it is looked for.
const COMPARED_DEPTH: usize = 6;

/// How directories of the host are shown in a root.
#[derive(Default)]
pub(in crate::linux::backend) struct HostDirectories {
    /// The first that is merely bound, if one is: a socket in it may lead to the host.
    pub(super) bound: Option<String>,
    /// The devices of files as they are seen, each with the one that they have on the host.
    devices: Vec<(u64, u64)>,
}

impl HostDirectories {
    /// The device on the host of a file that is seen on this one.
    pub(in crate::linux::backend) fn host_device(&self, seen: u64) -> u64 {
        let found = self.devices.iter().find(|(device, _)| *device == seen);
        found.map_or(seen, |(_, host)| *host)
    }

    /// Looks at a layer over a directory, so that the files that were judged are known again in it.
    ///
    /// # Errors
    /// They would not be.
    pub(super) fn add_layer(
        &mut self,
        directory: BorrowedFd<'_>,
        layer: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        let mut left = COMPARED_NAMES;
        self.devices.extend(compare(directory, layer, (&mut left, COMPARED_DEPTH))?);
        Ok(())
    }

    /// Notes that a directory is shown in which sockets lead to the host.
    pub(super) fn add_bound(&mut self, path: &Path) {
        self.bound.get_or_insert_with(|| path.display().to_string());
    }
}

/// The device of the files in a layer, and the one that they have below it; none where there is no file. A kernel that
/// numbers them anew is none by which they could be known.
fn compare(
    lower: BorrowedFd<'_>,
    layer: BorrowedFd<'_>,
    (left, depth): (&mut usize, usize),
) -> Result<Option<(u64, u64)>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(layer, ".", flags, Mode::empty()) {
        // Nor can commands list it.
        Err(Errno::ACCESS) => return Ok(None),
        opened => opened?,
    };
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *left = left.checked_sub(1).ok_or(Errno::TOOBIG)?;
        let stat = |at| statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
        let (Ok(seen), Ok(host)) = (stat(layer), stat(lower)) else { continue };
        if FileType::from_raw_mode(seen.st_mode) != FileType::Directory {
            let is_known = (seen.st_ino, seen.st_size) == (host.st_ino, host.st_size);
            return if is_known {
                Ok(Some((seen.st_dev, host.st_dev)))
            } else {
                Err(Errno::NOTSUP)
            };
        }
        let into =
            |at| openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        let (Ok(seen), Ok(host)) = (into(layer), into(lower)) else { continue };
        if depth > 0
            && fstat(&host).is_ok()
            && let Some(known) = compare(host.as_fd(), seen.as_fd(), (left, depth - 1))?
        {
            return Ok(Some(known));
        }
    }
    Ok(None)
}
