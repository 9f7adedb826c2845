//! The facts that are judged of a path. They come out of the same lookup as the descriptors that an
//! operation gets: what is swapped in between cannot be judged as one thing and opened as another.

use std::ffi::OsStr;

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_core::action::{FileKind, PathFact, PathLocation};
use rustix::fs::FileType;

use crate::hidden_paths::HiddenPaths;
use crate::resolve::{
    EntryLookup, FoundPath, NamedEntry, PathLookup, Workspace, file_type, same_file,
};

/// The other names of a file with its location. A file with a name that cannot be told counts as outside.
fn names_or_outside(
    names: Option<Result<Vec<WorkspacePath>, PathProblem>>,
    real: PathLocation,
) -> (Vec<WorkspacePath>, PathLocation) {
    match names {
        None => (Vec::new(), real),
        Some(Ok(names)) => (names, real),
        Some(Err(problem)) => (Vec::new(), PathLocation::Outside(problem)),
    }
}

/// Looks at a path once: what is to be judged, and what holds its place.
pub fn look_up(
    workspace: &Workspace,
    path: &WorkspacePath,
    hidden_paths: &HiddenPaths,
) -> (PathFact, PathLookup) {
    let lookup = workspace.find_path(path);
    let (real, kind) = match &lookup {
        PathLookup::Found(found) => (PathLocation::Inside(found.real_path.clone()), found.kind()),
        PathLookup::Missing(missing) => {
            (PathLocation::Inside(missing.real_path()), FileKind::Missing)
        }
        PathLookup::Outside(PathProblem::Escapes) if workspace.program_of_link(path).is_some() => {
            (PathLocation::Outside(PathProblem::SystemProgram), FileKind::File)
        }
        PathLookup::Outside(problem) => (PathLocation::Outside(*problem), FileKind::Missing),
        PathLookup::Refused(real, _) => (PathLocation::Inside(real.clone()), FileKind::Missing),
    };
    let found = match &lookup {
        PathLookup::Found(found) => Some(found),
        _ => None,
    };
    // A file that may have other names.
    let is_linked = |item: &&FoundPath| item.kind() == FileKind::File && item.stat.st_nlink > 1;
    let linked = found.filter(is_linked).map(|path| (path.stat.st_dev, path.stat.st_ino));
    let aliases =
        linked.map(|(device, inode)| hidden_paths.protected_names(workspace, device, inode));
    let (mut names, real) = names_or_outside(aliases, real);
    let alias = (!names.is_empty()).then(|| names.remove(0));
    let closed = linked.map(|(device, inode)| hidden_paths.closed_names(workspace, device, inode));
    let (closed, real) = names_or_outside(closed, real);
    let real = match real {
        PathLocation::Inside(real)
            if hidden_paths.directory_moved(workspace, directory_of(&real, kind), false) =>
        {
            PathLocation::Outside(PathProblem::Escapes)
        }
        real => real,
    };
    let ours = match &real {
        PathLocation::Inside(real) => workspace.is_own_store(real, found),
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
        lookup,
    )
}

/// Looks at what stands at a path itself, once: what is to be judged, and what holds its place.
pub fn look_up_entry(
    workspace: &Workspace,
    path: &WorkspacePath,
    hidden_paths: &HiddenPaths,
) -> (PathFact, EntryLookup) {
    let entry = workspace.find_entry(path);
    match &entry {
        EntryLookup::Found(named) => (path_fact(workspace, path, named, hidden_paths), entry),
        // Whether nothing is there or it lies outside is told as ever.
        _ => (look_up(workspace, path, hidden_paths).0, entry),
    }
}

/// What is judged of something that was found.
fn path_fact(
    workspace: &Workspace,
    path: &WorkspacePath,
    named: &NamedEntry,
    hidden_paths: &HiddenPaths,
) -> PathFact {
    let NamedEntry { parent: folder, name, stat } = named;
    let item = folder.real_path.join(name);
    if file_type(stat) != FileType::Symlink {
        let (fact, lookup) = look_up(workspace, &item, hidden_paths);
        let is_it = matches!(&lookup, PathLookup::Found(found) if same_file(&found.stat, stat));
        // What became something else between the two looks is not known: nothing may touch it.
        let real = if is_it { fact.real } else { PathLocation::Outside(PathProblem::Escapes) };
        return PathFact { path: path.clone(), real, ..fact };
    }
    let moved = hidden_paths.directory_moved(workspace, directory_of(&item, FileKind::Link), false);
    let ours = workspace.is_own_store(&item, None);
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

/// The folder that a path is, or is in.
fn directory_of(path: &WorkspacePath, kind: FileKind) -> &OsStr {
    let (folder, _) = path.as_str().rsplit_once('/').unwrap_or_default();
    OsStr::new(if kind == FileKind::Directory { path.as_str() } else { folder })
}
