//! Files of the workspace that the runtime itself reads, before any call: by their plain names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;

use rustix::fs::{FileType, OFlags};

use crate::resolve::{LookupError, Workspace, fallback_resolver, file_type};
use crate::system::fstat;

impl Workspace {
    /// Reads a regular file at a plain name, at most so many bytes and one more. No component of the
    /// name may be a link: a name that somebody else can put there must not lead anywhere else.
    ///
    /// # Errors
    /// Says why what stands there cannot be read; none stands for nothing.
    pub fn read_plain(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        // It neither waits for a pipe nor takes a terminal.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = match self.open_plain(self.root(), OsStr::new(path), flags) {
            // Bound onto itself, as a sandbox around this process does to keep it from being changed, it is
            // still on the same file system.
            Err(LookupError::Outside(_)) => {
                let flags = flags | OFlags::CLOEXEC;
                fallback_resolver::open_plain(self.root(), OsStr::new(path), flags)
            }
            opened => opened,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(LookupError::Missing) => return Ok(None),
            Err(LookupError::Outside(_)) => {
                return Err("it is a link, goes through one, or lies on another file system".into());
            }
            Err(LookupError::Refused(errno)) => return Err(errno.to_string()),
        };
        let stat = fstat(&opened).map_err(|errno| errno.to_string())?;
        if file_type(&stat) != FileType::RegularFile {
            return Err("it is not a regular file".into());
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let read = File::from(opened).take(limit).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        Ok(Some(bytes))
    }
}
