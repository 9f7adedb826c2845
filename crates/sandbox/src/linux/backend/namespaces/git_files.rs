//! Git's configuration in `/etc`, as the deciding process has put it together.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::root::Root;
use crate::GIT_CONFIG_PATH;
use crate::linux::kernel::errno;

/// Where the patterns of ignored files are.
const IGNORE_PATH: &str = "/etc/gitignore";

/// Makes the files in the root.
///
/// # Errors
/// One cannot be made.
pub(super) fn write_git_files(root: &Root, [config, ignored]: &[Vec<u8>; 2]) -> Result<(), Errno> {
    let write = |path: &str, text: &[u8]| {
        let path = Path::new(path.trim_start_matches('/'));
        let mut file = File::from(root.make_file(path, Mode::from_raw_mode(0o444))?);
        file.write_all(text).map_err(|error| errno(&error))
    };
    let names_ignored = format!("[core]\n\texcludesFile = {IGNORE_PATH}\n");
    write(GIT_CONFIG_PATH, &[config, names_ignored.as_bytes()].concat())?;
    write(IGNORE_PATH, ignored)
}
