//! The folder in which commands may write, in the place of a private `/tmp`. It is one of the host's,
//! so its size is added up from outside, and it is emptied after each call.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;
use rustix::process::{geteuid, getpid};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::remove_tree;

/// Where they are made.
const TMP_PARENT: &str = "/tmp";
/// What their names begin with; the executor's number follows, and a word that nobody can guess.
const NAME_PREFIX: &str = "capsule-tmp-";
/// How many names may be in it: names take space too.
const MAX_NAMES: u64 = 200_000;

/// How often another name is tried.
const MAX_ATTEMPTS: u32 = 8;

/// The folder. Removed when dropped.
#[derive(Debug)]
pub(crate) struct PrivateTmp {
    path: PathBuf,
    /// Locked as long as it is in use: whoever finds it unlocked may remove it.
    handle: OwnedFd,
}

impl PrivateTmp {
    /// Makes it, and removes those of executors that were killed.
    ///
    /// # Errors
    /// It cannot be made.
    pub(in crate::linux::backend) fn create() -> io::Result<Self> {
        let place = Path::new(TMP_PARENT).canonicalize()?;
        remove_leftovers(&place);
        let number = getpid().as_raw_nonzero();
        let mut made = Err(ErrorKind::AlreadyExists.into());
        for _ in 0..MAX_ATTEMPTS {
            made = Self::try_create(
                place.join(format!("{NAME_PREFIX}{number}-{:016x}", random_number()?)),
            );
            let again = [ErrorKind::AlreadyExists, ErrorKind::NotFound, ErrorKind::WouldBlock];
            if !matches!(&made, Err(error) if again.contains(&error.kind())) {
                break;
            }
        }
        made
    }

    /// Another executor that starts at the same moment may find the folder before it is locked, and
    /// remove it: then it is not found, locked by that one, or has lost its name.
    fn try_create(path: PathBuf) -> io::Result<Self> {
        // Fails if anybody else has made it before: nobody else's folder is used.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = open_directory(&path)?;
        if fstat(&folder)?.st_uid != geteuid().as_raw() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        if fstat(&folder)?.st_nlink == 0 {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(Self { path, handle: folder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it empty for the next call.
    ///
    /// # Errors
    /// Something in it cannot be removed.
    pub(in crate::linux::backend) fn empty(&self) -> io::Result<()> {
        remove_tree::empty_directory(&self.handle)
    }

    /// How many bytes of the disk it takes, or more than any bound if it has too many names. What
    /// has no name is not seen.
    pub(crate) fn bytes(&self) -> u64 {
        let (mut bytes, mut names) = (0_u64, 0_u64);
        let mut waiting = vec![self.path.clone()];
        while let Some(folder) = waiting.pop() {
            let entries = match list_directory(&folder) {
                Ok(entries) => entries,
                // It is gone, or no folder any more.
                Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                // Too deep to be looked into, or closed for good.
                Err(_) => return u64::MAX,
            };
            for entry in entries.flatten() {
                names += 1;
                if names > MAX_NAMES {
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
fn list_directory(folder: &Path) -> Result<fs::ReadDir, ErrorKind> {
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
fn random_number() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    let got = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(u64::from_le_bytes(bytes)) } else { Err(ErrorKind::Other.into()) }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        let _ = remove_tree::remove_directory(&self.path);
    }
}

/// Removes the folders of executors that are no more.
fn remove_leftovers(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = open_directory(&entry.path()) else { continue };
        let ours = fstat(&folder).is_ok_and(|facts| facts.st_uid == geteuid().as_raw());
        // Whoever made it holds the lock, in whatever container.
        if ours && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = remove_tree::remove_directory(&entry.path());
        }
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn those_who_start_together_leave_each_other_their_folders() {
        let makers: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn(|| {
                    for _ in 0..100 {
                        let made = PrivateTmp::create().unwrap();
                        fs::write(made.path().join("file"), "content").unwrap();
                        remove_leftovers(Path::new(TMP_PARENT));
                        assert!(made.path().join("file").exists());
                    }
                })
            })
            .collect();
        for maker in makers {
            maker.join().unwrap();
        }
    }
}
