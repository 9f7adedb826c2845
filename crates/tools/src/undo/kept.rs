//! Finds what was kept, and believes nothing that is not what its name says.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use capsule_core::digest::Digest;
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

use super::{FILE, FOLDER, names};
use crate::workspace::kind;

/// What was kept for undoing calls.
#[derive(Clone, Debug)]
pub struct Kept {
    place: PathBuf,
}

/// Why something that was kept is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was dropped or erased.
    Gone,
    /// What is there is something else.
    Damaged,
}

impl Kept {
    /// What lies at a place.
    #[must_use]
    pub const fn at(place: PathBuf) -> Self {
        Self { place }
    }

    /// Opens the file with this digest, that the run has kept or else another one, to be read from its
    /// beginning.
    ///
    /// # Errors
    /// Nobody has it any more, or it has other bytes by now.
    pub(crate) fn open(&self, run: &str, sha256: Digest) -> Result<File, Lost> {
        let all = rustix::fs::open(&self.place, FOLDER, Mode::empty()).map_err(|_| Lost::Gone)?;
        let mut lost = Lost::Gone;
        // Where they cannot be listed, the others are not asked.
        let others = names(&all).unwrap_or_default();
        for run in std::iter::once(run.to_owned()).chain(others) {
            match whole(&all, &run, sha256) {
                Ok(file) => return Ok(file),
                Err(Lost::Damaged) => lost = Lost::Damaged,
                Err(Lost::Gone) => {}
            }
        }
        Err(lost)
    }
}

/// The file of a run, if it is what its name says.
fn whole(all: &OwnedFd, run: &str, sha256: Digest) -> Result<File, Lost> {
    let folder = openat(all, run, FOLDER, Mode::empty()).map_err(|_| Lost::Gone)?;
    let flags = FILE | OFlags::RDONLY;
    let opened = openat(&folder, sha256.to_string(), flags, Mode::empty());
    let file = opened.map_err(|_| Lost::Gone)?;
    // Neither a pipe nor a device is read from.
    if !fstat(&file).is_ok_and(|stat| kind(&stat) == FileType::RegularFile) {
        return Err(Lost::Damaged);
    }
    let mut file = File::from(file);
    let is_it = Digest::of_reader(|buffer| file.read(buffer)).is_ok_and(|own| own == sha256);
    match is_it && file.rewind().is_ok() {
        true => Ok(file),
        false => Err(Lost::Damaged),
    }
}
