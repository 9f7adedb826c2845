//! A look at what stands at a path itself: a link, not what it leads to. The folder that it is in is
//! found as ever, and held.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use capsule_base::path::{PathProblem, WorkspacePath};
use rustix::io::Errno;

use crate::resolve::{FoundPath, LookupError, PathLookup, Workspace, listed};
use crate::system::Stat;

/// What stands at a path itself.
#[derive(Debug)]
pub enum EntryLookup {
    /// Something.
    Found(Box<NamedEntry>),
    /// Nothing.
    Missing,
    /// The path leads out.
    Outside(PathProblem),
    /// The system does not let us see.
    Refused(Errno),
}

/// Something in a folder that is held, under a name.
#[derive(Debug)]
pub struct NamedEntry {
    /// The folder.
    pub parent: FoundPath,
    /// The name.
    pub name: String,
    /// What the kernel says of it.
    pub stat: Stat,
}

impl Workspace {
    /// Finds the entry at a path itself: a link, not its target.
    pub(crate) fn find_entry(&self, path: &WorkspacePath) -> EntryLookup {
        let (Some(name), Some(above)) = (path.name(), path.parent()) else {
            return EntryLookup::Refused(Errno::BUSY);
        };
        let folder = match self.find_path(&above) {
            PathLookup::Found(found) => found,
            PathLookup::Missing(_) => return EntryLookup::Missing,
            PathLookup::Outside(problem) => return EntryLookup::Outside(problem),
            PathLookup::Refused(_, errno) => return EntryLookup::Refused(errno),
        };
        match self.stat_entry(folder.handle.as_fd(), OsStr::new(name)) {
            Ok(stat) => match self.listed_name(folder.handle.as_fd(), name) {
                Some(name) => {
                    EntryLookup::Found(Box::new(NamedEntry { parent: folder, name, stat }))
                }
                None => EntryLookup::Outside(PathProblem::Unlisted),
            },
            Err(LookupError::Missing) => EntryLookup::Missing,
            Err(LookupError::Outside(problem)) => EntryLookup::Outside(problem),
            Err(LookupError::Refused(errno)) => EntryLookup::Refused(errno),
        }
    }

    /// The name that a folder lists for something that was found in it.
    fn listed_name(&self, folder: BorrowedFd<'_>, name: &str) -> Option<String> {
        match self.has_aliases() {
            true => listed(folder, OsStr::new(name))?.into_string().ok(),
            false => Some(name.to_owned()),
        }
    }
}
