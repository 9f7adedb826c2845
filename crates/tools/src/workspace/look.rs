//! One look at a path. The facts that are judged and the descriptors that the hands get come out of
//! the same look: nothing that is swapped in between can be judged as one thing and opened as
//! another.

use std::ffi::OsStr;

use capsule_core::action::{FileKind, PathFact, PathLocation};
use capsule_core::path::{PathProblem, WorkspacePath};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use crate::veil::Veil;
use crate::workspace::{Found, LOOKS, NotFound, Workspace};

/// What stands at a path, held.
#[derive(Debug)]
pub(crate) enum Stands {
    /// A file, a folder or something odd.
    There(Found),
    /// Nothing yet.
    Vacant(Vacant),
    /// The path leads out.
    Outside(PathProblem),
    /// The system does not let us see; this is where it would be.
    Closed(WorkspacePath, Errno),
}

/// The place of a file that is not there yet.
#[derive(Debug)]
pub(crate) struct Vacant {
    /// The deepest folder on the way that is there.
    pub folder: Found,
    /// The folders that are missing beneath it.
    pub missing: Vec<String>,
    /// The file's own name.
    pub name: String,
}

impl Vacant {
    /// Where the file would stand.
    pub(crate) fn real(&self) -> WorkspacePath {
        let names = self.missing.iter().chain([&self.name]);
        names.fold(self.folder.real.clone(), |folder, name| folder.join(name))
    }

    /// Whether it is the place that another one was.
    pub(crate) fn still(&self, judged: &Self) -> bool {
        self.folder.still(&judged.folder) && self.real() == judged.real()
    }
}

impl Workspace {
    /// Looks at a path once: what is to be judged, and what holds its place.
    pub(crate) fn look(&self, path: &WorkspacePath, veil: &Veil) -> (PathFact, Stands) {
        let stands = self.stands(path);
        let (real, kind) = match &stands {
            Stands::There(found) => (PathLocation::Inside(found.real.clone()), found.kind()),
            Stands::Vacant(vacant) => (PathLocation::Inside(vacant.real()), FileKind::Missing),
            Stands::Outside(problem) => (PathLocation::Outside(*problem), FileKind::Missing),
            Stands::Closed(real, _) => (PathLocation::Inside(real.clone()), FileKind::Missing),
        };
        let found = match &stands {
            Stands::There(found) => Some(found),
            _ => None,
        };
        // A file that may have other names.
        let is_linked = |own: &&Found| own.kind() == FileKind::File && own.stat.st_nlink > 1;
        let linked = found.filter(is_linked).map(|own| (own.stat.st_dev, own.stat.st_ino));
        let aliases = linked.map(|(device, inode)| veil.aliases(self, device, inode));
        let (mut names, real) = match aliases {
            None => (Vec::new(), real),
            Some(Ok(names)) => (names, real),
            // Protected under a name that cannot be told.
            Some(Err(problem)) => (Vec::new(), PathLocation::Outside(problem)),
        };
        let alias = (!names.is_empty()).then(|| names.remove(0));
        let closed = linked.map(|(device, inode)| veil.closed_names(self, device, inode));
        let (closed, real) = match closed {
            None => (Vec::new(), real),
            Some(Ok(names)) => (names, real),
            Some(Err(problem)) => (Vec::new(), PathLocation::Outside(problem)),
        };
        let real = match real {
            PathLocation::Inside(real) if veil.was_moved(self, folder_of(&real, kind), false) => {
                PathLocation::Outside(PathProblem::Escapes)
            }
            real => real,
        };
        let ours = match &real {
            PathLocation::Inside(real) => self.is_ours(real, found),
            PathLocation::Outside(_) => false,
        };
        (
            PathFact {
                path: path.clone(),
                real,
                kind,
                alias,
                denied_names: closed,
                protected_names: names,
                absent: None,
                is_capsule_store: ours,
            },
            stands,
        )
    }

    /// What stands at a path.
    pub(crate) fn stands(&self, path: &WorkspacePath) -> Stands {
        for _ in 0..LOOKS {
            let why = match self.find(path) {
                Ok(found) => return Stands::There(found),
                Err(why) => why,
            };
            match (why, self.vacant(path)) {
                (NotFound::Outside(problem), _) | (_, Err(NotFound::Outside(problem))) => {
                    return Stands::Outside(problem);
                }
                (NotFound::Refused(errno), Ok(vacant)) => {
                    return Stands::Closed(vacant.real(), errno);
                }
                (NotFound::Missing, Ok(vacant)) => {
                    return match vacant.folder.kind() {
                        FileKind::Directory => Stands::Vacant(vacant),
                        // Nothing can ever stand beneath a file.
                        _ => Stands::Closed(vacant.real(), Errno::NOTDIR),
                    };
                }
                (_, Err(NotFound::Refused(errno))) if errno != Errno::AGAIN => {
                    return Stands::Closed(path.clone(), errno);
                }
                // It appeared between the two questions.
                (_, Err(_)) => {}
            }
        }
        Stands::Closed(path.clone(), Errno::AGAIN)
    }

    /// Where a file that is not there would stand: its deepest folder that is there, with its links
    /// followed, and the rest of the path. A link that leads to nothing is no such place.
    fn vacant(&self, path: &WorkspacePath) -> Result<Vacant, NotFound> {
        let (Some(name), Some(mut folder)) = (path.name(), path.parent()) else {
            return Err(NotFound::Refused(Errno::NOENT));
        };
        let mut missing: Vec<String> = Vec::new();
        loop {
            match self.find(&folder) {
                Ok(found) => {
                    missing.reverse();
                    let vacant = Vacant { folder: found, missing, name: name.to_owned() };
                    return vacant.is_vacant().map(|()| vacant);
                }
                Err(NotFound::Outside(problem)) => return Err(NotFound::Outside(problem)),
                Err(why) => match (folder.name(), folder.parent()) {
                    (Some(name), Some(parent)) => {
                        missing.push(name.to_owned());
                        folder = parent;
                    }
                    _ => return Err(why),
                },
            }
        }
    }
}

/// The folder that a path is, or is in.
pub(super) fn folder_of(path: &WorkspacePath, kind: FileKind) -> &OsStr {
    let (folder, _) = path.as_str().rsplit_once('/').unwrap_or_default();
    OsStr::new(if kind == FileKind::Directory { path.as_str() } else { folder })
}

impl Vacant {
    /// Asks the held folder whether the first name that is missing really is.
    fn is_vacant(&self) -> Result<(), NotFound> {
        let first = self.missing.first().unwrap_or(&self.name);
        match statat(&self.folder.handle, first, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                Err(NotFound::Outside(PathProblem::Escapes))
            }
            Ok(_) => Err(NotFound::Refused(Errno::AGAIN)),
            Err(Errno::NAMETOOLONG) => Err(NotFound::Outside(PathProblem::TooLong)),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_will_be_has_a_place() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/file"), "x").unwrap();
        symlink("docs", root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("docs/new", root.join("dangling")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let stands = |asked: &str| match workspace.stands(&WorkspacePath::parse(asked).unwrap()) {
            Stands::There(found) => format!("there {}", found.real),
            Stands::Vacant(vacant) => {
                format!("vacant {} + {}", vacant.folder.real, vacant.real())
            }
            Stands::Outside(problem) => format!("{problem:?}"),
            Stands::Closed(real, _) => format!("closed {real}"),
        };
        let rows = [
            ("link/file", "there docs/file"),
            ("docs/new/er.md", "vacant docs + docs/new/er.md"),
            ("link/new.md", "vacant docs + docs/new.md"),
            ("up/new.md", "Escapes"),
            ("dangling", "Escapes"),
            ("dangling/x", "Escapes"),
            ("docs/file/x", "closed docs/file/x"),
        ];
        for (asked, expected) in rows {
            assert_eq!(stands(asked), expected, "{asked}");
        }
    }

    /// What is held stays what was found, and a name that leads elsewhere by now is noticed.
    #[test]
    fn what_is_held_is_what_was_found() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path();
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a"), "first").unwrap();
        let workspace = Workspace::open(root).unwrap();
        let path = WorkspacePath::parse("docs/a").unwrap();
        let found = workspace.find(&path).unwrap();
        fs::rename(root.join("docs"), root.join("moved")).unwrap();
        let moved = workspace.find(&WorkspacePath::parse("moved/a").unwrap()).unwrap();
        assert!(moved.is(&found) && !moved.still(&found), "it was moved");
        fs::remove_file(root.join("moved/a")).unwrap();
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a"), "second").unwrap();
        assert!(!workspace.find(&path).unwrap().is(&found));
        let mut text = String::new();
        let held = found.open(&workspace, rustix::fs::OFlags::RDONLY).unwrap();
        std::io::Read::read_to_string(&mut fs::File::from(held), &mut text).unwrap();
        assert_eq!(text, "first", "removed, and still held");
        assert!(!workspace.leads_to(&found.real, &found.stat));
    }
}
