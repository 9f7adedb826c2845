//! Where a repository lies whose `.git` is a file.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use capsule_core::limits;
use rustix::fs::{FileType, OFlags, fstat};

use crate::workspace::Workspace;

/// What such a file begins with.
const POINTER: &[u8] = b"gitdir:";
/// What names the folder that several repositories share, in the folder of one.
const SHARED: &str = "commondir";

impl Workspace {
    /// The paths beneath the root under which a `.git` file says that its repository lies: its own
    /// folder, and the one that it shares with others. None for one outside.
    pub(crate) fn repository(&self, file: &OsStr) -> Vec<OsString> {
        let read = self.first_line(Path::new(file));
        let named = read.as_deref().and_then(|line| line.strip_prefix(POINTER));
        let above = Path::new(file).parent().unwrap_or(Path::new(""));
        let Some(own) = named.and_then(|named| self.beneath(above, named)) else {
            return Vec::new();
        };
        // Read where it really lies: the name of the file in it may lead through links.
        let real = self.hold(own.as_os_str()).ok().and_then(|own| self.place_of(own.as_fd()));
        let shared = real.and_then(|real| {
            let line = self.first_line(&real.join(SHARED))?;
            self.beneath(&real, &line)
        });
        [Some(own), shared].into_iter().flatten().map(PathBuf::into_os_string).collect()
    }

    /// A path that is named in a folder, as one beneath the root.
    fn beneath(&self, folder: &Path, named: &[u8]) -> Option<PathBuf> {
        let named = Path::new(OsStr::from_bytes(named.trim_ascii()));
        if named.is_relative() {
            return Some(folder.join(named));
        }
        let real = || named.canonicalize().ok()?.strip_prefix(self.path()).ok().map(Path::to_owned);
        named.strip_prefix(self.path()).ok().map(Path::to_owned).or_else(real)
    }

    fn first_line(&self, path: &Path) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = self.open_plain(self.root(), path.as_os_str(), flags).ok()?;
        let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
        let mut line = vec![0; POINTER.len() + limits::PATH_BYTES];
        let read = match kind {
            FileType::RegularFile => rustix::io::pread(&file, &mut line, 0).ok()?,
            _ => return None,
        };
        line.truncate(read);
        line.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
    }
}
