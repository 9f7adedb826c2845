//! The folder in which commands may write, in the place of a private `/tmp`. It is one of the host's,
//! so its size is added up from outside, and it is emptied after each call.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::clear;

/// Where they are made.
const PLACE: &str = "/tmp";
/// What their names begin with; the executor's number follows, and a word that nobody can guess.
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
        let own = Self(place.join(format!("{NAME}{}-{:016x}", getpid().as_raw_nonzero(), word()?)));
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
            let entries = match list(&folder) {
                Ok(entries) => entries,
                // It is gone, or no folder any more.
                Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                // Too deep to be looked into, or closed for good.
                Err(_) => return u64::MAX,
            };
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

/// Lists a folder of the command's, whatever permissions it gave it: it could still add to it.
fn list(folder: &Path) -> Result<fs::ReadDir, ErrorKind> {
    let listed = fs::read_dir(folder).or_else(|error| {
        if error.kind() != ErrorKind::PermissionDenied {
            return Err(error);
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        fs::read_dir(folder)
    });
    listed.map_err(|error| error.kind())
}

/// A number that nobody can guess.
fn word() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    let got = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(u64::from_le_bytes(bytes)) } else { Err(ErrorKind::Other.into()) }
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
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME)?.split('-').next()?.parse::<u32>().ok());
        let ours =
            entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw());
        let gone = |owner| !fs::exists(format!("/proc/{owner}")).unwrap_or(true);
        if ours && owner.is_some_and(gone) {
            let _ = clear::remove(&entry.path());
        }
    }
}
