//! Finds what was kept, and believes nothing that is not what its name says.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use capsule_base::digest::Digest;
use rustix::fs::{FileType, Mode, OFlags, openat};

use super::{DIRECTORY_FLAGS, FILE_FLAGS, text_names};
use crate::resolve::file_type;
use crate::system::fstat;

/// What was kept for undoing calls.
#[derive(Clone, Debug)]
pub struct BackupReader {
    root: PathBuf,
}

/// Why something that was kept is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingBackup {
    /// It was dropped or erased.
    Removed,
    /// What is there is something else.
    Damaged,
}

impl BackupReader {
    /// What lies at a place.
    #[must_use]
    pub const fn new(place: PathBuf) -> Self {
        Self { root: place }
    }

    /// Opens the file with this digest, that the run has kept or else another one, to be read from its
    /// beginning.
    ///
    /// # Errors
    /// Nobody has it any more, or it has other bytes by now.
    pub(crate) fn open(&self, run: &str, sha256: Digest) -> Result<File, MissingBackup> {
        let all = rustix::fs::open(&self.root, DIRECTORY_FLAGS, Mode::empty())
            .map_err(|_| MissingBackup::Removed)?;
        let mut lost = MissingBackup::Removed;
        // Where they cannot be listed, the others are not asked.
        let others = text_names(&all).unwrap_or_default();
        for run in std::iter::once(run.to_owned()).chain(others) {
            match open_verified(&all, &run, sha256) {
                Ok(file) => return Ok(file),
                Err(MissingBackup::Damaged) => lost = MissingBackup::Damaged,
                Err(MissingBackup::Removed) => {}
            }
        }
        Err(lost)
    }
}

/// The file of a run, if it is what its name says.
fn open_verified(all: &OwnedFd, run: &str, sha256: Digest) -> Result<File, MissingBackup> {
    let folder =
        openat(all, run, DIRECTORY_FLAGS, Mode::empty()).map_err(|_| MissingBackup::Removed)?;
    let flags = FILE_FLAGS | OFlags::RDONLY;
    let opened = openat(&folder, sha256.to_string(), flags, Mode::empty());
    let file = opened.map_err(|_| MissingBackup::Removed)?;
    // Neither a pipe nor a device is read from.
    if !fstat(&file).is_ok_and(|stat| file_type(&stat) == FileType::RegularFile) {
        return Err(MissingBackup::Damaged);
    }
    let mut file = File::from(file);
    let is_it = Digest::of_reader(|buffer| file.read(buffer)).is_ok_and(|digest| digest == sha256);
    match is_it && file.rewind().is_ok() {
        true => Ok(file),
        false => Err(MissingBackup::Damaged),
    }
}
