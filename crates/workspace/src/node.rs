//! What stands at a path, by content.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_core::change::FileState;
use capsule_core::outcome::CodedError;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, openat,
    readlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use crate::resolve::{file_type, same_file};
use crate::system::{Stat, fstat, statat};

/// Permissions, without the kind of file.
const PERMISSION_BITS: u32 = 0o7777;

/// By what a file is known to be the same: any write changes one of these, where [`stamps_are_reliable`].
pub(crate) type FileStamp = (u64, i64, (i64, u64), (i64, u64));

pub(crate) fn file_stamp(stat: &Stat) -> FileStamp {
    let modified = (stat.st_mtime, stat.st_mtime_nsec);
    (stat.st_ino, stat.st_size, modified, (stat.st_ctime, stat.st_ctime_nsec))
}

/// Whether files that are changed look otherwise in the file system that a folder is in. In memory,
/// a page that was read through a mapping is written to later without any trace in the dates.
#[cfg(target_os = "linux")]
pub(crate) fn stamps_are_reliable(folder: BorrowedFd<'_>) -> bool {
    /// `tmpfs` and `ramfs`, as the kernel's `linux/magic.h` has them.
    const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
    // What cannot be asked is taken for one of them. The number is as wide as the machine has it.
    rustix::fs::fstatfs(folder).is_ok_and(|fstatf| {
        let kind = fstatf.f_type.to_le_bytes();
        !IN_MEMORY.iter().any(|memory| kind.starts_with(&memory.to_le_bytes()))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stamps_are_reliable(_: BorrowedFd<'_>) -> bool {
    true
}

/// When anything about it last changed, in seconds since 1970 and nanoseconds.
pub(crate) fn change_time(stat: &Stat) -> (i64, i64) {
    (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX))
}

/// Its dates, to be given to another file.
pub(crate) fn timestamps(stat: &Stat) -> Timestamps {
    let time =
        |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: i64::try_from(nanos).unwrap_or(0) };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// Whose something is.
pub(crate) fn owner_of(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))
}

/// Whether this process is in the group that something has.
pub(crate) fn is_in_our_group(stat: &Stat) -> bool {
    let group = Gid::from_raw(stat.st_gid);
    getegid() == group || getgroups().is_ok_and(|getgroup| getgroup.contains(&group))
}

/// Gives what takes the place of something, or is a copy of it, to the owner and the group of that.
///
/// # Errors
/// It is not this user's to give.
pub(crate) fn copy_owner(to: impl AsFd, before: &Stat) -> Result<(), Errno> {
    let stat = fstat(&to)?;
    if (stat.st_uid, stat.st_gid) == (before.st_uid, before.st_gid) {
        return Ok(());
    }
    let (user, group) = owner_of(before);
    fchown(to, user, group)
}

/// Gives a file of ours permissions. A file system that holds none (FAT, some of FUSE) keeps its own.
pub(crate) fn set_mode(to: impl AsFd, mode: Mode) -> Result<(), Errno> {
    match fchmod(to, mode) {
        Err(errno) if is_unsupported(errno) || errno == Errno::PERM => Ok(()),
        done => done,
    }
}

/// Whether this user can give something to the owner and the group of what stands there.
pub(crate) fn can_copy_owner(before: &Stat) -> bool {
    can_chown() || geteuid().as_raw() == before.st_uid && is_in_our_group(before)
}

/// Whether this process may give files to anybody. Root usually may, but not in every container.
#[cfg(target_os = "linux")]
fn can_chown() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|capability| capability.effective.contains(CapabilitySet::CHOWN))
}

#[cfg(not(target_os = "linux"))]
fn can_chown() -> bool {
    geteuid().is_root()
}

/// Why nothing takes the place of what belongs to somebody else: it would not be theirs any more.
pub(crate) fn not_ours_problem(path: &str, before: &Stat) -> CodedError {
    let message = format!(
        "`{path}` belongs to user {} and group {}, and what would take its place cannot be given to \
         them",
        before.st_uid, before.st_gid
    );
    CodedError::new(Code::FilePermission, message)
        .with_suggestion("ask the person to change its owner or its group, or to work as that user")
}

/// What the system says of a name in a folder; none where nothing is there.
pub(crate) fn stat_optional(folder: BorrowedFd<'_>, name: &str) -> Result<Option<Stat>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Has a file system of another machine, or of another process (FUSE), say anew what it said of a name: for a while
/// the kernel tells what it remembers, and that differs from what is told later.
#[cfg(target_os = "linux")]
pub(crate) fn refresh(folder: BorrowedFd<'_>, name: impl rustix::path::Arg) {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
    // Where it cannot be asked, it is as it was.
    let _ = rustix::fs::statx(folder, name, flags, rustix::fs::StatxFlags::BASIC_STATS);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn refresh(_: BorrowedFd<'_>, _: impl rustix::path::Arg) {}

/// What stands at a name in a folder that looks so. Links are not followed, pipes not waited for.
pub(crate) fn read_node(
    folder: BorrowedFd<'_>,
    name: &str,
    stat: &Stat,
) -> Result<FileState, Errno> {
    let mode = stat.st_mode & PERMISSION_BITS;
    match file_type(stat) {
        FileType::Directory => Ok(FileState::Directory { mode }),
        FileType::Symlink => match readlinkat(folder, name, Vec::new())?.into_string() {
            Ok(target) => Ok(FileState::Link { target }),
            // No record can hold where it leads.
            Err(_) => Ok(FileState::Special),
        },
        FileType::RegularFile => {
            let mut file = open_regular(folder, name, stat)?;
            let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
            let sha256 = Digest::of_reader(|buffer| file.read(buffer))
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            Ok(FileState::File { sha256, bytes, mode })
        }
        _ => Ok(FileState::Special),
    }
}

/// What is told of something that nobody may know more of than its name and kind.
pub(crate) fn opaque_node(stat: &Stat) -> FileState {
    match file_type(stat) {
        FileType::Directory => FileState::Directory { mode: stat.st_mode & PERMISSION_BITS },
        _ => FileState::Special,
    }
}

/// Has a new file share the bytes of another, if the file system can.
#[cfg(target_os = "linux")]
pub(crate) fn reflink(to: &File, from: &File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reflink(_: &File, _: &File) -> bool {
    false
}

/// Whether an error says that the file system has no such operation (FUSE, NFS, 9p, FAT).
pub(crate) const fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Opens the regular file that looks so.
pub(crate) fn open_regular(
    folder: BorrowedFd<'_>,
    name: impl AsRef<OsStr>,
    stat: &Stat,
) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name.as_ref().as_bytes(), flags, Mode::empty())?;
    if same_file(&fstat(file.as_fd())?, stat) { Ok(file.into()) } else { Err(Errno::AGAIN) }
}

/// Whether it is the same file, and nobody wrote to it in between.
pub(crate) fn is_unwritten(now: &Stat, then: &Stat) -> bool {
    let looks = |stat: &Stat| {
        (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
    };
    looks(now) == looks(then)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has the right gives away what they like, anybody else nothing.
    #[test]
    fn who_can_give_does() {
        let file = tempfile::tempfile().unwrap();
        let mine = fstat(&file).unwrap();
        assert!(can_copy_owner(&mine) && copy_owner(&file, &mine).is_ok());
        let mut theirs = mine;
        (theirs.st_uid, theirs.st_gid) = (12_345, 54_321);
        assert_eq!(can_copy_owner(&theirs), can_chown());
        match copy_owner(&file, &theirs) {
            Ok(()) => {
                let now = fstat(&file).unwrap();
                assert!(can_chown());
                assert_eq!((now.st_uid, now.st_gid), (12_345, 54_321));
            }
            // There is no such user where users are mapped.
            Err(Errno::INVAL) => assert!(can_chown()),
            Err(errno) => assert!(!can_chown() && errno == Errno::PERM, "{errno}"),
        }
    }

    /// Root of a container may be without the right.
    #[cfg(target_os = "linux")]
    #[test]
    fn who_was_not_left_the_right_to_give_knows() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        // What is dropped is dropped for this thread alone.
        let without = std::thread::spawn(|| {
            let mut left = capabilities(None).unwrap();
            left.effective.remove(CapabilitySet::CHOWN);
            set_capabilities(None, left).unwrap();
            let file = tempfile::tempfile().unwrap();
            let mut theirs = fstat(&file).unwrap();
            assert!(can_copy_owner(&theirs));
            (theirs.st_uid, theirs.st_gid) = (12_345, 54_321);
            assert!(!can_copy_owner(&theirs) && copy_owner(&file, &theirs).is_err());
        });
        without.join().unwrap();
    }
}
