//! A look at what stands at a path itself: a link, not what it leads to. The folder that it is in is
//! found as ever, and held.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_core::action::{FileKind, PathFact, PathLocation};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::hidden_paths::HiddenPaths;
use crate::workspace::path_lookup::directory_of;
use crate::workspace::{
    FoundPath, LookupError, PathLookup, Workspace, file_type, listed, same_file,
};

/// What stands at a path itself.
#[derive(Debug)]
pub(crate) enum EntryLookup {
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
pub(crate) struct NamedEntry {
    /// The folder.
    pub parent: FoundPath,
    /// The name.
    pub name: String,
    /// What the kernel says of it.
    pub stat: Stat,
}

impl Workspace {
    /// Looks at what stands at a path itself, once: what is to be judged, and what holds its place.
    pub(crate) fn look_up_entry(
        &self,
        path: &WorkspacePath,
        hidden_paths: &HiddenPaths,
    ) -> (PathFact, EntryLookup) {
        let itself = self.find_entry(path);
        match &itself {
            EntryLookup::Found(named) => (self.path_fact(path, named, hidden_paths), itself),
            // Whether nothing is there or it lies outside is told as ever.
            _ => (self.look_up(path, hidden_paths).0, itself),
        }
    }

    fn find_entry(&self, path: &WorkspacePath) -> EntryLookup {
        let (Some(name), Some(above)) = (path.name(), path.parent()) else {
            return EntryLookup::Refused(Errno::BUSY);
        };
        let folder = match self.stands(&above) {
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

    /// What is judged of something that was found.
    fn path_fact(
        &self,
        path: &WorkspacePath,
        named: &NamedEntry,
        hidden_paths: &HiddenPaths,
    ) -> PathFact {
        let NamedEntry { parent: folder, name, stat } = named;
        let item = folder.real_path.join(name);
        if file_type(stat) != FileType::Symlink {
            let (fact, stands) = self.look_up(&item, hidden_paths);
            let is_it = matches!(&stands, PathLookup::Found(found) if same_file(&found.stat, stat));
            // What became something else between the two looks is not known: nothing may touch it.
            let real = if is_it { fact.real } else { PathLocation::Outside(PathProblem::Escapes) };
            return PathFact { path: path.clone(), real, ..fact };
        }
        let moved = hidden_paths.directory_moved(self, directory_of(&item, FileKind::Link), false);
        let ours = self.is_own_store(&item, None);
        let real = match moved {
            true => PathLocation::Outside(PathProblem::Escapes),
            false => PathLocation::Inside(item),
        };
        PathFact {
            path: path.clone(),
            real,
            kind: FileKind::Link,
            alias: None,
            denied_names: Vec::new(),
            protected_names: Vec::new(),
            absent: None,
            is_capsule_store: ours,
        }
    }
}
