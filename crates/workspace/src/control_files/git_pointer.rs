//! Small files by which git is sent elsewhere: a `.git` that says where the repository lies, and the one in
//! a repository's folder that says which folder it shares with others.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use capsule_base::limits;
use rustix::fs::{FileType, OFlags};

use crate::resolve::{Workspace, file_type};
use crate::system::fstat;

/// What a `.git` file begins with.
const GITDIR_PREFIX: &[u8] = b"gitdir:";
/// What names the folder that several repositories share, in the folder of one.
pub(crate) const COMMONDIR: &str = "commondir";

/// The path that a `.git` file says its repository has.
pub(crate) fn gitdir_in(file: impl AsFd) -> Option<PathBuf> {
    git_path(small_text(file)?.strip_prefix(GITDIR_PREFIX)?)
}

/// The path that [`COMMONDIR`] says the shared folder has.
pub(crate) fn commondir_in(file: impl AsFd) -> Option<PathBuf> {
    git_path(&small_text(file)?)
}

/// The same of what stands in one.
pub(crate) fn named(text: &[u8]) -> Option<PathBuf> {
    git_path(text.strip_prefix(GITDIR_PREFIX)?)
}

/// A path as git takes it out of such a file: all that stands there, up to what a path cannot hold. So a
/// line may end in it.
pub(crate) fn git_path(text: &[u8]) -> Option<PathBuf> {
    let path = text.split(|byte| *byte == 0).next()?.trim_ascii();
    (!path.is_empty()).then(|| OsStr::from_bytes(path).into())
}

/// What stands in a small file; nothing where it is none.
fn small_text(file: impl AsFd) -> Option<Vec<u8>> {
    if file_type(&fstat(&file).ok()?) != FileType::RegularFile {
        return None;
    }
    let mut text = vec![0; GITDIR_PREFIX.len() + limits::PATH_BYTES];
    let read = rustix::io::pread(&file, &mut text, 0).ok()?;
    text.truncate(read);
    Some(text)
}

impl Workspace {
    /// The paths beneath the root under which a `.git` file says that its repository lies: its own
    /// folder, and the one that it shares with others. None for one outside.
    pub(crate) fn repository_paths(&self, file: &OsStr) -> Vec<OsString> {
        let named = self.read_pointer(Path::new(file), gitdir_in);
        let above = Path::new(file).parent().unwrap_or(Path::new(""));
        let Some(path) = named.and_then(|named| self.strip_root(above, &named)) else {
            return Vec::new();
        };
        // Read where it really lies: the name of the file in it may lead through links.
        let real = self.open_handle(path.as_os_str()).ok().and_then(|fd| self.path_of(fd.as_fd()));
        let shared = real.and_then(|real| {
            let named = self.read_pointer(&real.join(COMMONDIR), commondir_in)?;
            self.strip_root(&real, &named)
        });
        [Some(path), shared].into_iter().flatten().map(PathBuf::into_os_string).collect()
    }

    /// A path that is named in a folder, as one beneath the root.
    fn strip_root(&self, folder: &Path, named: &Path) -> Option<PathBuf> {
        if named.is_relative() {
            return Some(folder.join(named));
        }
        let real = || named.canonicalize().ok()?.strip_prefix(self.path()).ok().map(Path::to_owned);
        named.strip_prefix(self.path()).ok().map(Path::to_owned).or_else(real)
    }

    /// What a file of the workspace says.
    fn read_pointer(&self, path: &Path, says: fn(OwnedFd) -> Option<PathBuf>) -> Option<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        says(self.open_plain(self.root(), path.as_os_str(), flags).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Seek as _, Write as _};

    use super::*;

    #[test]
    fn what_is_said_is_taken_as_git_takes_it() {
        let mut file = tempfile::tempfile().unwrap();
        for (text, repository, folder) in [
            (&b"gitdir: ../a b\n"[..], Some("../a b"), Some("gitdir: ../a b")),
            (b"gitdir:/x\r\n", Some("/x"), Some("gitdir:/x")),
            // The name of a folder may have two lines.
            (b"gitdir: two\nlines\n\n", Some("two\nlines"), Some("gitdir: two\nlines")),
            (b"gitdir: x\0y\n", Some("x"), Some("gitdir: x")),
            (b"../..\n", None, Some("../..")),
            (b"gitdir: \n", None, Some("gitdir:")),
            (b"\n", None, None),
            (b"", None, None),
        ] {
            file.set_len(0).unwrap();
            file.rewind().unwrap();
            file.write_all(text).unwrap();
            assert_eq!(gitdir_in(&file), repository.map(Into::into), "{text:?}");
            assert_eq!(commondir_in(&file), folder.map(Into::into), "{text:?}");
        }
        assert_eq!(commondir_in(fs::File::open("/dev/null").unwrap()), None, "it is no file");
    }
}
