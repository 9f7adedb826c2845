//! The folder in which commands may write, in the place of a private `/tmp`. It is one of the host's,
//! so its size is added up from outside, and it is emptied after each call.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};

use crate::clear;

/// Where they are made.
const PLACE: &str = "/tmp";
/// What their names begin with; the executor's number follows.
const NAME: &str = "capsule-tmp-";
/// How many names may be in it: names take space too.
const MOST_NAMES: u64 = 200_000;

/// The folder. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Tmp(PathBuf);

impl Tmp {
    /// Makes it, and removes those of executors that were killed.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn make() -> io::Result<Self> {
        sweep();
        let place = Path::new(PLACE).canonicalize()?;
        let own = Self(place.join(format!("{NAME}{}", getpid().as_raw_nonzero())));
        own.lay()?;
        Ok(own)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it empty for the next call.
    ///
    /// # Errors
    /// Something in it cannot be removed.
    pub(super) fn empty(&self) -> io::Result<()> {
        clear::remove(&self.0)?;
        self.lay()
    }

    /// Fails if anybody else has made it before: nobody else's folder is used.
    fn lay(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.0)
    }

    /// How many bytes of the disk it takes, or more than any bound if it has too many names. What
    /// has no name is not seen.
    pub(crate) fn bytes(&self) -> u64 {
        let (mut bytes, mut names) = (0_u64, 0_u64);
        let mut waiting = vec![self.0.clone()];
        while let Some(folder) = waiting.pop() {
            // One that the command has closed to itself holds nothing that it can add to.
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries.flatten() {
                names += 1;
                if names > MOST_NAMES {
                    return u64::MAX;
                }
                let Ok(facts) = entry.metadata() else { continue };
                bytes = bytes.saturating_add(facts.blocks().saturating_mul(512));
                if facts.is_dir() {
                    waiting.push(entry.path());
                }
            }
        }
        bytes
    }
}

impl Drop for Tmp {
    fn drop(&mut self) {
        let _ = clear::remove(&self.0);
    }
}

/// Removes the folders of executors that are no more.
fn sweep() {
    let Ok(entries) = fs::read_dir(PLACE) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        let ours =
            entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw());
        let gone = |owner| !fs::exists(format!("/proc/{owner}")).unwrap_or(true);
        if ours && owner.is_some_and(gone) {
            let _ = clear::remove(&entry.path());
        }
    }
}
