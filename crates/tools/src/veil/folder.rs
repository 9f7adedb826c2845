//! A folder as it was when it was walked, and by what it is known to be the same.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Stat, statat};

use crate::workspace::kind;

/// A file's identity: its device and inode.
pub(super) type Identity = (u64, u64);

/// A folder that was walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) looks: Looks,
    /// How it looks beneath the changes that are laid over the workspace: of a folder in which
    /// something was changed, the kernel tells only the changes' own dates.
    pub(super) lower: Option<Looks>,
    /// Whether it or a folder above it is hidden.
    pub(super) closed: bool,
    /// Whether it had last changed long enough before it was walked. Clocks of file systems tick
    /// slowly: a change in the same tick would leave no trace.
    pub(super) settled: bool,
}

/// By what a folder is known to be the same as before: device, inode, and the times of the last
/// changes of its entries and of itself, in seconds and nanoseconds.
pub(super) type Looks = (u64, u64, (i64, i64), (i64, i64));

/// The slowest tick of a file system's clock, with room to spare.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// A path as a call of the system takes it.
pub(super) fn here(path: &OsStr) -> &[u8] {
    if path.is_empty() { b"." } else { path.as_bytes() }
}

pub(super) fn looks(stat: &Stat) -> Looks {
    let nanos = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
    let modified = (stat.st_mtime, nanos(stat.st_mtime_nsec));
    (stat.st_dev, stat.st_ino, modified, (stat.st_ctime, nanos(stat.st_ctime_nsec)))
}

/// Which folder lies at a path beneath the changes, if one does.
pub(super) fn lower_folder(lower: BorrowedFd<'_>, path: &OsStr) -> Option<Identity> {
    let stat = lower_stat(Some(lower), path)?;
    let folder = kind(&stat) == FileType::Directory;
    folder.then_some((stat.st_dev, stat.st_ino))
}

/// What the system says of a folder beneath the changes, if it is there.
pub(super) fn lower_stat(lower: Option<BorrowedFd<'_>>, path: &OsStr) -> Option<Stat> {
    statat(lower?, here(path), AtFlags::SYMLINK_NOFOLLOW).ok()
}

pub(super) fn is_settled(stat: &Stat) -> bool {
    let latest = stat.st_mtime.max(stat.st_ctime);
    let nanos = u32::try_from(stat.st_ctime_nsec.max(stat.st_mtime_nsec)).unwrap_or(0);
    let changed =
        UNIX_EPOCH + Duration::new(u64::try_from(latest).unwrap_or(0), nanos.min(999_999_999));
    SystemTime::now().duration_since(changed).is_ok_and(|passed| passed > TICK)
}
