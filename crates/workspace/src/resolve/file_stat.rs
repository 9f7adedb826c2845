//! What the system reports of a file.

use crate::system::Stat;
use rustix::fs::FileType;

/// What kind of file the system says that it is.
pub fn file_type(stat: &Stat) -> FileType {
    crate::system::file_type(stat.st_mode)
}

/// Whether two files are one.
pub fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
