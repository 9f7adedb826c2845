//! One lookup of a path: what is there, held by a descriptor, or where it would be.

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_core::action::FileKind;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::resolve::{FoundPath, LookupError, MAX_LOOKUPS, Workspace};
use crate::system::statat;

/// What stands at a path, held.
#[derive(Debug)]
pub enum PathLookup {
    /// A file, a folder or something odd.
    Found(FoundPath),
    /// Nothing yet.
    Missing(MissingEntry),
    /// The path leads out.
    Outside(PathProblem),
    /// The system does not let us see; this is where it would be.
    Refused(WorkspacePath, Errno),
}

/// The place of a file that is not there yet.
#[derive(Debug)]
pub struct MissingEntry {
    /// The deepest folder on the way that is there.
    pub parent: FoundPath,
    /// The folders that are missing beneath it.
    pub missing_directories: Vec<String>,
    /// The file's own name.
    pub name: String,
}

impl MissingEntry {
    /// Where the file would stand.
    pub(crate) fn real_path(&self) -> WorkspacePath {
        let names = self.missing_directories.iter().chain([&self.name]);
        names.fold(self.parent.real_path.clone(), |folder, name| folder.join(name))
    }

    /// Whether it is the place that another one was.
    pub(crate) fn is_unchanged(&self, judged: &Self) -> bool {
        self.parent.is_unchanged(&judged.parent) && self.real_path() == judged.real_path()
    }
}

impl Workspace {
    /// What stands at a path.
    pub fn find_path(&self, path: &WorkspacePath) -> PathLookup {
        for _ in 0..MAX_LOOKUPS {
            let why = match self.resolve(path) {
                Ok(found) => return PathLookup::Found(found),
                Err(why) => why,
            };
            match (why, self.find_missing(path)) {
                (LookupError::Outside(problem), _) | (_, Err(LookupError::Outside(problem))) => {
                    return PathLookup::Outside(problem);
                }
                (LookupError::Refused(errno), Ok(missing)) => {
                    return PathLookup::Refused(missing.real_path(), errno);
                }
                (LookupError::Missing, Ok(missing)) => {
                    return match missing.parent.kind() {
                        FileKind::Directory => PathLookup::Missing(missing),
                        // Nothing can ever stand beneath a file.
                        _ => PathLookup::Refused(missing.real_path(), Errno::NOTDIR),
                    };
                }
                (_, Err(LookupError::Refused(errno))) if errno != Errno::AGAIN => {
                    return PathLookup::Refused(path.clone(), errno);
                }
                // It appeared between the two questions.
                (_, Err(_)) => {}
            }
        }
        PathLookup::Refused(path.clone(), Errno::AGAIN)
    }

    /// Where a file that is not there would stand: its deepest folder that is there, with its links
    /// followed, and the rest of the path. A link that leads to nothing is no such place.
    fn find_missing(&self, path: &WorkspacePath) -> Result<MissingEntry, LookupError> {
        let (Some(name), Some(mut folder)) = (path.name(), path.parent()) else {
            return Err(LookupError::Refused(Errno::NOENT));
        };
        let mut missing: Vec<String> = Vec::new();
        loop {
            match self.resolve(&folder) {
                Ok(found) => {
                    missing.reverse();
                    let vacant = MissingEntry {
                        parent: found,
                        missing_directories: missing,
                        name: name.to_owned(),
                    };
                    return vacant.require_missing().map(|()| vacant);
                }
                Err(LookupError::Outside(problem)) => return Err(LookupError::Outside(problem)),
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

impl MissingEntry {
    /// Asks the held folder whether the first name that is missing really is.
    fn require_missing(&self) -> Result<(), LookupError> {
        let first = self.missing_directories.first().unwrap_or(&self.name);
        match statat(&self.parent.handle, first, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if crate::system::file_type(stat.st_mode) == FileType::Symlink => {
                Err(LookupError::Outside(PathProblem::Escapes))
            }
            Ok(_) => Err(LookupError::Refused(Errno::AGAIN)),
            Err(Errno::NAMETOOLONG) => Err(LookupError::Outside(PathProblem::TooLong)),
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
        let lookup = |asked: &str| match workspace.find_path(&WorkspacePath::parse(asked).unwrap())
        {
            PathLookup::Found(found) => format!("there {}", found.real_path),
            PathLookup::Missing(missing) => {
                format!("vacant {} + {}", missing.parent.real_path, missing.real_path())
            }
            PathLookup::Outside(problem) => format!("{problem:?}"),
            PathLookup::Refused(real, _) => format!("closed {real}"),
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
            assert_eq!(lookup(asked), expected, "{asked}");
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
        let found = workspace.resolve(&path).unwrap();
        fs::rename(root.join("docs"), root.join("moved")).unwrap();
        let moved = workspace.resolve(&WorkspacePath::parse("moved/a").unwrap()).unwrap();
        assert!(moved.is_same_file(&found) && !moved.is_unchanged(&found), "it was moved");
        fs::remove_file(root.join("moved/a")).unwrap();
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a"), "second").unwrap();
        assert!(!workspace.resolve(&path).unwrap().is_same_file(&found));
        let mut text = String::new();
        let held = found.open(&workspace, rustix::fs::OFlags::RDONLY).unwrap();
        std::io::Read::read_to_string(&mut fs::File::from(held), &mut text).unwrap();
        assert_eq!(text, "first", "removed, and still held");
        assert!(!workspace.is_plain_path_to(&found.real_path, &found.stat));
    }
}
