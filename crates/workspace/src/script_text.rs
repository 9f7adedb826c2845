//! The texts of scripts, which are read to be judged.

use std::fs::File;
use std::io::Read as _;

use capsule_base::path::WorkspacePath;
use capsule_core::action::FileKind;
use rustix::fs::OFlags;

use crate::resolve::{FoundPath, PathLookup, Workspace};

impl Workspace {
    /// The text of a file in UTF-8 that has no more than so many bytes: of the very file that was found, whatever has its name
    /// by now. None where it is no such file.
    #[must_use]
    pub fn text_of(&self, found: &FoundPath, most: u32) -> Option<String> {
        let file = File::from(found.open(self, OFlags::RDONLY).ok()?);
        let length = file.metadata().ok().filter(|found| found.is_file())?.len();
        let mut text = String::new();
        file.take(u64::from(most) + 1).read_to_string(&mut text).ok()?;
        let is_whole = u64::try_from(text.len()) == Ok(length);
        (is_whole && length <= u64::from(most)).then_some(text)
    }

    /// Whether what is written to a path is in no file of another name: no link is on the way or at its end, and what is there
    /// has one name.
    #[must_use]
    pub fn is_only_name(&self, path: &WorkspacePath) -> bool {
        match self.find_path(path) {
            PathLookup::Found(found) => {
                let is_one = found.kind() == FileKind::File && found.stat.st_nlink == 1;
                is_one && found.real_path == *path
            }
            PathLookup::Missing(missing) => missing.real_path() == *path,
            PathLookup::Outside(_) | PathLookup::Refused(..) => false,
        }
    }
}
