//! The texts of scripts, which are read to be judged.

use std::fs::File;
use std::io::Read as _;

use capsule_base::path::WorkspacePath;
use rustix::fs::OFlags;

use crate::resolve::Workspace;

impl Workspace {
    /// The text of a file in UTF-8 that has no more than so many bytes; none where there is no such file.
    #[must_use]
    pub fn text_of(&self, path: &WorkspacePath, most: u32) -> Option<String> {
        let file = File::from(self.resolve(path).ok()?.open(self, OFlags::RDONLY).ok()?);
        let length = file.metadata().ok().filter(|found| found.is_file())?.len();
        let mut text = String::new();
        file.take(u64::from(most) + 1).read_to_string(&mut text).ok()?;
        let is_whole = u64::try_from(text.len()) == Ok(length);
        (is_whole && length <= u64::from(most)).then_some(text)
    }
}
