//! Removes the directory that holds the changes of a run. It lies here and not in `workspace`: commands may
//! have nested it deeper than the kernel takes a path and closed it, and what removes such trees is the sandbox's.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use capsule_sandbox::remove_tree::remove_directory;

/// What the names of directories begin with that are being removed.
const REMOVED_PREFIX: &str = ".gone-";

/// Removes the changes of a run. Whatever their permissions say, it is we who made them.
///
/// # Errors
/// When something cannot be removed; what is left can be removed later.
pub fn remove_staging(folder: &Path) -> io::Result<()> {
    let Some((all, name)) = folder.parent().zip(folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // First it is nobody's any more, all of it at once: half of the changes would be something else.
    let mut gone = OsString::from(REMOVED_PREFIX);
    gone.push(name);
    let gone = all.join(gone);
    match std::fs::rename(folder, &gone) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    // What somebody was killed over goes, too, unless somebody else is at it.
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(REMOVED_PREFIX.as_bytes()) {
            let _ = remove_directory(&entry.path());
        }
    }
    match remove_directory(&gone) {
        Err(_) if !gone.exists() => Ok(()),
        removed => removed,
    }
}
