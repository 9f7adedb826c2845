//! Repositories as they were when a command began that changes the workspace itself, so that what it made of
//! them can be told when it has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd as _;

use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};
use rustix::fs::FileType;

use super::compare::Protects;
use super::files::{Disk, Files};
use super::flaw::Flaw;
use super::review::{Review, Reviewed};
use crate::change_path::join;
use crate::node;
use crate::resolve::{Workspace, file_type};

/// What stood at a path.
#[derive(PartialEq, Eq)]
enum Stood {
    /// A folder.
    Folder,
    /// An object, or anything else that does not change.
    Object(node::FileStamp),
    /// A file that git writes anew, and what it held.
    File(Vec<u8>),
    /// Something else, or too large to be kept.
    Other(node::FileStamp),
}

/// Repositories as they were.
#[derive(Default)]
pub struct RepositorySnapshot {
    folders: Vec<String>,
    stood: BTreeMap<String, Stood>,
}

impl RepositorySnapshot {
    /// Notes what stands in the folders of repositories.
    pub fn new(workspace: &Workspace, folders: Vec<String>) -> Self {
        let disk = Disk { workspace, root: workspace.root() };
        let mut noted = Self { folders: Vec::new(), stood: BTreeMap::new() };
        let mut left = limits::GIT_REFS_BYTES;
        for folder in &folders {
            each(disk, folder, &mut |path, stat| {
                let stood = look(disk, path, stat, &mut left);
                noted.stood.insert(path.to_owned(), stood);
            });
        }
        Self { folders, ..noted }
    }

    /// Why what became of them may not be so, by path.
    pub fn review(
        &self,
        workspace: &Workspace,
        (aliases, protects): (&PathAliases, &dyn Protects),
    ) -> Reviewed {
        let disk = Disk { workspace, root: workspace.root() };
        let (before, changes) = (Before(self), self.changes(disk));
        let files = (&before as &dyn Files, &disk as &dyn Files);
        Review::new((workspace, disk), files, vec![&disk], (aliases, protects)).of(changes.iter())
    }

    fn changes(&self, disk: Disk<'_>) -> Vec<Change> {
        let (mut changes, mut seen) = (Vec::new(), BTreeMap::new());
        for folder in &self.folders {
            each(disk, folder, &mut |path, stat| {
                let before = self.stood.get(path);
                seen.insert(path.to_owned(), ());
                let is_same = match before {
                    Some(Stood::Folder) => file_type(stat) == FileType::Directory,
                    Some(Stood::Object(looks) | Stood::Other(looks)) => {
                        *looks == node::file_stamp(stat)
                    }
                    Some(Stood::File(_)) | None => false,
                };
                if is_same {
                    return;
                }
                let (folder, name) = crate::change_path::split_parent(path);
                let after = disk.folder(folder).map(|fd| node::read_node(fd.as_fd(), name, stat));
                let after = after.and_then(Result::ok).unwrap_or(FileState::Special);
                let change = Change {
                    path: path.to_owned(),
                    before: before.map(told),
                    after: Some(after),
                    ..Change::default()
                };
                if change.before != change.after {
                    changes.push(change);
                }
            });
        }
        let gone = self.stood.iter().filter(|(path, _)| !seen.contains_key(*path));
        changes.extend(gone.map(|(path, stood)| Change {
            path: path.clone(),
            before: Some(told(stood)),
            ..Change::default()
        }));
        changes
    }
}

/// Sees everything beneath a folder that can be listed.
fn each(disk: Disk<'_>, folder: &str, see: &mut dyn FnMut(&str, &crate::system::Stat)) {
    let mut waiting = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        let Some(opened) = disk.folder(&folder) else { continue };
        for (name, is_folder) in disk.list(&folder).unwrap_or_default() {
            let Ok(Some(stat)) = node::stat_optional(opened.as_fd(), &name) else { continue };
            let path = join(&folder, &name);
            see(&path, &stat);
            seen += 1;
            if seen > limits::LIST_SCAN {
                return;
            }
            waiting.extend(is_folder.then_some(path));
        }
    }
}

fn look(disk: Disk<'_>, path: &str, stat: &crate::system::Stat, left: &mut u64) -> Stood {
    let looks = node::file_stamp(stat);
    match file_type(stat) {
        FileType::Directory => Stood::Folder,
        FileType::RegularFile if path.contains("/objects/") => Stood::Object(looks),
        FileType::RegularFile => match disk.read(path, *left) {
            Ok(Some(bytes)) => {
                *left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                Stood::File(bytes)
            }
            _ => Stood::Other(looks),
        },
        _ => Stood::Other(looks),
    }
}

/// What stood there, as far as it is compared: an object by how it looked.
fn told(stood: &Stood) -> FileState {
    let file = |bytes: &[u8]| FileState::File {
        sha256: Digest::of(bytes),
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        mode: 0,
    };
    match stood {
        Stood::Folder => FileState::Directory { mode: 0o755 },
        Stood::Object(looks) => file(format!("{looks:?}").as_bytes()),
        Stood::File(bytes) => file(bytes),
        Stood::Other(_) => FileState::Special,
    }
}

/// The files as they were.
struct Before<'b>(&'b RepositorySnapshot);

impl Files for Before<'_> {
    fn open(&self, path: &str) -> Result<Option<File>, Flaw> {
        // Objects are read as they are now: what they hold says which they are.
        Err(Flaw::new(format!("`{path}` was not kept")))
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Flaw> {
        let beneath = format!("{path}/");
        let inner = self.0.stood.range(beneath.clone()..);
        let inner = inner.take_while(|(text, _)| text.starts_with(&beneath));
        let names = inner.filter_map(|(text, stood)| {
            let name = text.strip_prefix(&beneath)?;
            (!name.contains('/')).then(|| (name.to_owned(), *stood == Stood::Folder))
        });
        Ok(names.collect())
    }

    fn exists(&self, path: &str) -> bool {
        self.0.stood.contains_key(path)
    }

    fn read(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, Flaw> {
        match self.0.stood.get(path) {
            None => Ok(None),
            Some(Stood::File(bytes))
                if u64::try_from(bytes.len()).is_ok_and(|number| number <= most) =>
            {
                Ok(Some(bytes.clone()))
            }
            Some(_) => Err(Flaw::new(format!("`{path}` was not kept"))),
        }
    }
}
