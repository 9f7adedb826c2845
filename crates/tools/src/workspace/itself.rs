//! A look at what stands at a path itself: a link, not what it leads to. The folder that it is in is
//! found as ever, and held.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use capsule_core::action::{FileKind, PathFact, PathLocation};
use capsule_core::path::{PathProblem, WorkspacePath};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::veil::Veil;
use crate::workspace::look::folder_of;
use crate::workspace::{Found, NotFound, Stands, Workspace, kind, listed, same};

/// What stands at a path itself.
#[derive(Debug)]
pub(crate) enum Itself {
    /// Something.
    There(Box<Named>),
    /// Nothing.
    Missing,
    /// The path leads out.
    Outside(PathProblem),
    /// The system does not let us see.
    Closed(Errno),
}

/// Something in a folder that is held, under a name.
#[derive(Debug)]
pub(crate) struct Named {
    /// The folder.
    pub folder: Found,
    /// The name.
    pub name: String,
    /// What the kernel says of it.
    pub stat: Stat,
}

impl Workspace {
    /// Looks at what stands at a path itself, once: what is to be judged, and what holds its place.
    pub(crate) fn look_itself(&self, path: &WorkspacePath, veil: &Veil) -> (PathFact, Itself) {
        let itself = self.itself(path);
        match &itself {
            Itself::There(named) => (self.fact(path, named, veil), itself),
            // Whether nothing is there or it lies outside is told as ever.
            _ => (self.look(path, veil).0, itself),
        }
    }

    fn itself(&self, path: &WorkspacePath) -> Itself {
        let (Some(name), Some(above)) = (path.name(), path.parent()) else {
            return Itself::Closed(Errno::BUSY);
        };
        let folder = match self.stands(&above) {
            Stands::There(found) => found,
            Stands::Vacant(_) => return Itself::Missing,
            Stands::Outside(problem) => return Itself::Outside(problem),
            Stands::Closed(_, errno) => return Itself::Closed(errno),
        };
        match self.stat_itself(folder.handle.as_fd(), OsStr::new(name)) {
            Ok(stat) => match self.listed_name(folder.handle.as_fd(), name) {
                Some(name) => Itself::There(Box::new(Named { folder, name, stat })),
                None => Itself::Outside(PathProblem::Unlisted),
            },
            Err(NotFound::Missing) => Itself::Missing,
            Err(NotFound::Outside(problem)) => Itself::Outside(problem),
            Err(NotFound::Refused(errno)) => Itself::Closed(errno),
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
    fn fact(&self, path: &WorkspacePath, named: &Named, veil: &Veil) -> PathFact {
        let Named { folder, name, stat } = named;
        let own = folder.real.join(name);
        if kind(stat) != FileType::Symlink {
            let (fact, stands) = self.look(&own, veil);
            let is_it = matches!(&stands, Stands::There(found) if same(&found.stat, stat));
            // What became something else between the two looks is not known: nothing may touch it.
            let real = if is_it { fact.real } else { PathLocation::Outside(PathProblem::Escapes) };
            return PathFact { path: path.clone(), real, ..fact };
        }
        let moved = veil.was_moved(self, folder_of(&own, FileKind::Link), false);
        let ours = self.is_ours(&own, None);
        let real = match moved {
            true => PathLocation::Outside(PathProblem::Escapes),
            false => PathLocation::Inside(own),
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
