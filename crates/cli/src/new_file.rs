//! Files that are made anew beside others, of which another user may read no more than of those.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file that is not there so far to the disk, with these permissions; without any, for its owner alone.
///
/// # Errors
/// It is there, or cannot be written; what was made of it is removed.
pub(crate) fn write_new(
    path: &Path,
    text: &str,
    permissions: Option<&Permissions>,
) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut write = || {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions.clone())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().inspect_err(|_| drop(fs::remove_file(path)))
}
