//! Calls of the system whose types differ from system to system, with the types that Linux has for them.

#[cfg(not(target_os = "linux"))]
pub use portable::{PATH_ONLY, Stat, file_type, fstat, is_null_device, mode, stat, statat};
#[cfg(target_os = "linux")]
pub use rustix::fs::{Stat, fstat, stat, statat};

/// Opens something to ask about it, without a right to its content.
#[cfg(target_os = "linux")]
pub const PATH_ONLY: rustix::fs::OFlags = rustix::fs::OFlags::PATH;

/// Permissions, by their bits.
#[cfg(target_os = "linux")]
#[must_use]
pub const fn mode(bits: u32) -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode(bits)
}

/// The kind of a file, by the bits of its mode.
#[cfg(target_os = "linux")]
#[must_use]
pub const fn file_type(bits: u32) -> rustix::fs::FileType {
    rustix::fs::FileType::from_raw_mode(bits)
}

/// Whether this is the number of `/dev/null`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_null_device(number: u64) -> bool {
    (rustix::fs::major(number), rustix::fs::minor(number)) == (1, 3)
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::os::fd::AsFd;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags};
    use rustix::io::Errno;
    use rustix::path::Arg;

    /// Opens something to ask about it: other systems open it for reading, and wait for no pipe.
    pub const PATH_ONLY: OFlags = OFlags::NONBLOCK;

    /// What the system says of a file, as `stat(2)` names it.
    #[derive(Clone, Copy, Debug)]
    #[expect(missing_docs, clippy::struct_field_names, reason = "the names of the system")]
    pub struct Stat {
        pub st_dev: u64,
        pub st_ino: u64,
        pub st_nlink: u64,
        pub st_mode: u32,
        pub st_uid: u32,
        pub st_gid: u32,
        pub st_rdev: u64,
        pub st_size: i64,
        pub st_blocks: i64,
        pub st_atime: i64,
        pub st_atime_nsec: u64,
        pub st_mtime: i64,
        pub st_mtime_nsec: u64,
        pub st_ctime: i64,
        pub st_ctime_nsec: u64,
    }

    impl From<rustix::fs::Stat> for Stat {
        fn from(stat: rustix::fs::Stat) -> Self {
            // The bits of a number of a device mean the same, whether the first of them is a sign or not.
            let device = |number: i32| u64::from(number.cast_unsigned());
            let nanos = |nanos: i64| nanos.unsigned_abs();
            Self {
                st_dev: device(stat.st_dev),
                st_ino: stat.st_ino,
                st_nlink: stat.st_nlink.into(),
                st_mode: stat.st_mode.into(),
                st_uid: stat.st_uid,
                st_gid: stat.st_gid,
                st_rdev: device(stat.st_rdev),
                st_size: stat.st_size,
                st_blocks: stat.st_blocks,
                st_atime: stat.st_atime,
                st_atime_nsec: nanos(stat.st_atime_nsec),
                st_mtime: stat.st_mtime,
                st_mtime_nsec: nanos(stat.st_mtime_nsec),
                st_ctime: stat.st_ctime,
                st_ctime_nsec: nanos(stat.st_ctime_nsec),
            }
        }
    }

    /// Permissions, by their bits.
    #[must_use]
    pub const fn mode(bits: u32) -> Mode {
        Mode::from_raw_mode(low_bits(bits))
    }

    /// The kind of a file, by the bits of its mode.
    #[must_use]
    pub const fn file_type(bits: u32) -> FileType {
        FileType::from_raw_mode(low_bits(bits))
    }

    /// A mode has no other bits than these.
    #[expect(clippy::cast_possible_truncation, reason = "the bits above are not there")]
    const fn low_bits(bits: u32) -> u16 {
        (bits & 0xffff) as u16
    }

    /// Whether this is the number of `/dev/null`.
    #[must_use]
    pub fn is_null_device(number: u64) -> bool {
        stat("/dev/null").is_ok_and(|null| null.st_rdev == number)
    }

    /// What the system says of an open file.
    ///
    /// # Errors
    /// As `fstat(2)`.
    pub fn fstat(file: impl AsFd) -> Result<Stat, Errno> {
        rustix::fs::fstat(file).map(Stat::from)
    }

    /// What the system says of a path.
    ///
    /// # Errors
    /// As `stat(2)`.
    pub fn stat(path: impl Arg) -> Result<Stat, Errno> {
        rustix::fs::stat(path).map(Stat::from)
    }

    /// What the system says of a name in a folder.
    ///
    /// # Errors
    /// As `fstatat(2)`.
    pub fn statat(folder: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<Stat, Errno> {
        rustix::fs::statat(folder, name, flags).map(Stat::from)
    }
}
