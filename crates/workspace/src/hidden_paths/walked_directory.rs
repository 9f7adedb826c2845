//! A folder as it was when it was walked, and by what it is known to be the same.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType};

use crate::resolve::{Workspace, file_type};
use crate::system::{Stat, fstat, statat};

/// A file's identity: its device and inode.
pub(super) type InodeKey = (u64, u64);

/// A folder that was walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WalkedDirectory {
    stamp: DirectoryStamp,
    /// How it looks beneath the changes that are laid over the workspace: of a folder in which
    /// something was changed, the kernel tells only the changes' own dates.
    lower_stamp: Option<DirectoryStamp>,
    /// Whether it or a folder above it is hidden.
    pub(super) closed: bool,
    /// Whether it had last changed long enough before it was walked. Clocks of file systems tick
    /// slowly: a change in the same tick would leave no trace.
    settled: bool,
}

impl WalkedDirectory {
    /// One that is open, at a path beneath the workspace and beneath the changes that are laid over it.
    pub(super) fn new(
        folder: BorrowedFd<'_>,
        lower: Option<BorrowedFd<'_>>,
        path: &OsStr,
        closed: bool,
    ) -> Option<Self> {
        let stat = fstat(folder).ok()?;
        let lower = lower_stat(lower, path);
        let settled = is_settled(&stat) && lower.as_ref().is_none_or(is_settled);
        Some(Self {
            stamp: directory_stamp(&stat),
            lower_stamp: lower.as_ref().map(directory_stamp),
            closed,
            settled,
        })
    }

    /// Which one lay beneath the changes.
    pub(super) fn lower_identity(&self) -> Option<InodeKey> {
        self.lower_stamp.map(|(device, inode, ..)| (device, inode))
    }

    /// Whether it surely is what stands at its path now.
    pub(super) fn is_unchanged(&self, workspace: &Workspace, path: &OsStr) -> bool {
        let now = statat(workspace.root(), syscall_path(path), AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| self.matches_stat(&now, workspace.lower(), path))
    }

    /// Whether it surely is what the system says of its path.
    pub(super) fn matches_stat(
        &self,
        now: &Stat,
        lower: Option<BorrowedFd<'_>>,
        path: &OsStr,
    ) -> bool {
        self.settled
            && directory_stamp(now) == self.stamp
            && lower_stat(lower, path).as_ref().map(directory_stamp) == self.lower_stamp
    }
}

/// By what a folder is known to be the same as before: device, inode, and the times of the last
/// changes of its entries and of itself, in seconds and nanoseconds.
type DirectoryStamp = (u64, u64, (i64, i64), (i64, i64));

/// The slowest tick of a clock that tells parts of seconds, with room to spare.
pub(super) const CLOCK_TICK: Duration = Duration::from_millis(50);
/// The same of a clock that may tell whole seconds alone (ext4 with small inodes, HFS+), or every second one
/// (FAT).
const SLOW_CLOCK_TICK: Duration = Duration::from_secs(3);

/// A path as a call of the system takes it.
pub(super) fn syscall_path(path: &OsStr) -> &[u8] {
    if path.is_empty() { b"." } else { path.as_bytes() }
}

fn directory_stamp(stat: &Stat) -> DirectoryStamp {
    let nanos = |nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
    let modified = (stat.st_mtime, nanos(stat.st_mtime_nsec));
    (stat.st_dev, stat.st_ino, modified, (stat.st_ctime, nanos(stat.st_ctime_nsec)))
}

/// Which folder lies at a path beneath the changes, if one does.
pub(super) fn lower_identity(lower: BorrowedFd<'_>, path: &OsStr) -> Option<InodeKey> {
    let stat = lower_stat(Some(lower), path)?;
    let folder = file_type(&stat) == FileType::Directory;
    folder.then_some((stat.st_dev, stat.st_ino))
}

/// What the system says of a folder beneath the changes, if it is there.
fn lower_stat(lower: Option<BorrowedFd<'_>>, path: &OsStr) -> Option<Stat> {
    statat(lower?, syscall_path(path), AtFlags::SYMLINK_NOFOLLOW).ok()
}

fn is_settled(stat: &Stat) -> bool {
    is_settled_at(stat, SystemTime::now())
}

fn is_settled_at(stat: &Stat, now: SystemTime) -> bool {
    let dates = [(stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec)];
    dates.into_iter().all(|(seconds, nanos)| {
        let nanos = u32::try_from(nanos).unwrap_or(0).min(999_999_999);
        let changed = UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or(0), nanos);
        let tick = if nanos == 0 { SLOW_CLOCK_TICK } else { CLOCK_TICK };
        now.duration_since(changed).is_ok_and(|passed| passed > tick)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a clock tells whole seconds, two changes in one second leave the same date.
    #[test]
    fn a_folder_is_settled_when_its_clock_has_moved_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut stat = crate::system::stat(folder.path()).unwrap();
        let mut settled = |nanos, seconds: f64| {
            (stat.st_mtime, stat.st_mtime_nsec) = (1_000, 1);
            (stat.st_ctime, stat.st_ctime_nsec) = (2_000, nanos);
            let changed = UNIX_EPOCH + Duration::new(2_000, u32::try_from(nanos).unwrap());
            is_settled_at(&stat, changed + Duration::from_secs_f64(seconds))
        };
        assert_eq!([0.01, 0.1].map(|seconds| settled(7, seconds)), [false, true]);
        assert_eq!([0.1, 1.5, 3.5].map(|seconds| settled(0, seconds)), [false, false, true]);
    }
}
