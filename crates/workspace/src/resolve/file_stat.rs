//! What the system reports of a file.

use rustix::fs::{FileType, Stat};

/// What kind of file the system says that it is.
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether two files are one.
pub fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
