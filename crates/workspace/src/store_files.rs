//! Our own stores, told by what they hold: an earlier run may have left one anywhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use capsule_base::path::WorkspacePath;
use capsule_core::action::FileKind;
use capsule_core::journal::{self, HEADER_BYTES, SIDECAR_SUFFIXES};
use rustix::fs::{FileType, Mode, OFlags};

use crate::resolve::{FoundPath, Workspace};
use crate::system::fstat;

/// Whether a file is a store of ours.
pub(crate) fn is_store(file: BorrowedFd<'_>) -> bool {
    let mut header = [0; HEADER_BYTES];
    // Nothing but a file is read from: reading a pipe would take something away.
    fstat(file).is_ok_and(|stat| crate::system::file_type(stat.st_mode) == FileType::RegularFile)
        && rustix::io::pread(file, &mut header, 0) == Ok(HEADER_BYTES)
        && journal::is_store(&header)
}

/// The ends of the names under which stores are looked for where every file cannot be opened.
const STORE_SUFFIXES: &[&str] = &["db", "db3", "sqlite", "sqlite3", "capsule"];

/// The stores that a file would belong to by its name.
pub fn store_names(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    SIDECAR_SUFFIXES.iter().filter_map(|end| name.strip_suffix(end.as_bytes()))
}

/// Whether an entry of a folder is a store of ours, or lies beside one by its name. Only names that
/// databases have are looked at: a walk over a million files opens none of the others.
pub(crate) fn is_listed_store(folder: BorrowedFd<'_>, name: &OsStr) -> bool {
    let name = name.as_bytes();
    std::iter::once(name).chain(store_names(name)).any(|name| {
        let end = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        if !STORE_SUFFIXES.iter().any(|suffix| end.eq_ignore_ascii_case(suffix.as_bytes())) {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty());
        file.is_ok_and(|file| is_store(file.as_fd()))
    })
}

/// The paths of the stores that a path, or a folder above it, would belong to by its name.
pub(crate) fn stores_of(path: &WorkspacePath) -> Vec<WorkspacePath> {
    let (mut stores, mut folder) = (Vec::new(), WorkspacePath::root());
    for name in path.components() {
        let names = SIDECAR_SUFFIXES.iter().filter_map(|end| name.strip_suffix(end));
        stores.extend(names.filter(|store| !store.is_empty()).map(|store| folder.join(store)));
        folder = folder.join(name);
    }
    stores
}

impl Workspace {
    /// Whether a path leads to a store of ours, or lies beside one by its name.
    pub(super) fn is_own_store(&self, real: &WorkspacePath, found: Option<&FoundPath>) -> bool {
        if found.is_some_and(|found| self.contains_store(found)) {
            return true;
        }
        let holds = |store: &WorkspacePath| {
            self.resolve(store).is_ok_and(|found| self.contains_store(&found))
        };
        stores_of(real).iter().any(holds)
    }

    fn contains_store(&self, found: &FoundPath) -> bool {
        found.kind() == FileKind::File
            && found.stat.st_size > 0
            && found.open(self, OFlags::RDONLY).is_ok_and(|file| is_store(file.as_fd()))
    }
}
