//! What rules close to a tool, closed under every name of the file, and for as long as the run goes on.
//!
//! A file with several names may come to have one name less while what it held is still there: it is written
//! anew under the name that is closed, or a copy of it takes the place of one of the others, as in changes
//! that are laid over the workspace. So what was once looked at is remembered, by the file and by the place.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use capsule_core::limits;
use capsule_core::path::PathProblem;

use super::folder::Identity;
use super::names::Names;
use super::{Conceals, Drawn};
use crate::workspace::Workspace;

/// What rules close, and where it was found.
pub(super) struct Closed {
    closes: Box<Conceals>,
    /// The names that are closed, as they were when somebody last needed them.
    names: Option<Names>,
    kept: Kept,
    /// How often the workspace was walked.
    walks: u64,
}

/// What was found closed in a run so far, with the names by which it was.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    files: BTreeMap<Identity, BTreeSet<OsString>>,
    places: BTreeMap<OsString, BTreeSet<OsString>>,
}

impl Closed {
    pub(super) fn new(closes: Box<Conceals>) -> Self {
        Self { closes, names: None, kept: Kept::default(), walks: 0 }
    }

    pub(super) const fn kept(&self) -> &Kept {
        &self.kept
    }

    #[cfg(test)]
    pub(super) const fn walks(&self) -> u64 {
        self.walks
    }

    /// The closed names of what stands at a place, in order; `linked` says whether it may have other names.
    ///
    /// # Errors
    /// Nobody can say which they are: as if the place led outside.
    pub(super) fn names(
        &mut self,
        workspace: &Workspace,
        place: &OsStr,
        (file, linked): (Identity, bool),
    ) -> Result<BTreeSet<OsString>, PathProblem> {
        if linked {
            if self.names.as_ref().is_none_or(|names| !names.still(workspace)) {
                self.walks += 1;
                self.names = Names::find(workspace, &self.closes);
            }
            let names = self.names.as_ref().ok_or(PathProblem::Escapes)?;
            self.kept.note(place, file, names.of(file))?;
        }
        let known = [self.kept.files.get(&file), self.kept.places.get(place)];
        Ok(known.into_iter().flatten().flatten().cloned().collect())
    }
}

impl Kept {
    fn note<'n>(
        &mut self,
        place: &OsStr,
        file: Identity,
        names: impl Iterator<Item = &'n OsString>,
    ) -> Result<(), PathProblem> {
        for name in names {
            if self.files.len().max(self.places.len()) >= limits::PROTECTED_FILES {
                return Err(PathProblem::Escapes);
            }
            self.files.entry(file).or_default().insert(name.clone());
            self.places.entry(place.to_owned()).or_default().insert(name.clone());
        }
        Ok(())
    }

    /// Hides all of it, under whatever name it has now.
    pub(super) fn hide(&self, drawn: &mut Drawn) {
        for place in self.places.keys() {
            drawn.hide(place);
        }
        let named =
            self.files.iter().filter_map(|(file, names)| Some((*file, names.first()?.clone())));
        drawn.protected.extend(named);
        // Files are found by what they are then, and not by what folders list.
        drawn.linked |= !self.files.is_empty();
        drawn.inodes_differ |= !self.files.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use capsule_core::path::WorkspacePath;

    use super::super::Veil;
    use super::super::folder::TICK;
    use super::super::tests::make_too_deep;
    use super::*;

    /// A workspace in which what is called `shut` is closed.
    fn bed() -> (tempfile::TempDir, Workspace, Veil) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/shut")).unwrap();
        fs::write(root.join("a/shut/x"), "s").unwrap();
        fs::write(root.join("a/plain"), "p").unwrap();
        fs::hard_link(root.join("a/shut/x"), root.join("y")).unwrap();
        fs::hard_link(root.join("a/plain"), root.join("z")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let veil = Veil::new(Box::new(|_, _| false));
        let veil = veil.closing(Box::new(|path, _| path.name() == Some("shut")));
        std::thread::sleep(TICK * 2);
        (folder, workspace, veil)
    }

    fn closed(veil: &Veil, workspace: &Workspace, path: &str) -> Result<Vec<String>, PathProblem> {
        let path = WorkspacePath::parse(path).unwrap();
        let (fact, _) = workspace.look(&path, veil);
        match fact.real {
            capsule_core::action::Place::Outside(problem) => Err(problem),
            capsule_core::action::Place::Inside(_) => {
                Ok(fact.closed.iter().map(|name| name.as_str().to_owned()).collect())
            }
        }
    }

    fn walks(veil: &Veil) -> u64 {
        veil.closed.as_ref().unwrap().borrow().walks()
    }

    #[test]
    fn names_are_looked_for_once_while_nothing_changes() {
        let (folder, workspace, veil) = bed();
        let root = folder.path();
        assert_eq!(closed(&veil, &workspace, "y").unwrap(), ["a/shut/x"]);
        assert_eq!(closed(&veil, &workspace, "z").unwrap(), [""; 0]);
        assert_eq!(closed(&veil, &workspace, "y").unwrap(), ["a/shut/x"]);
        assert_eq!(walks(&veil), 1, "nothing changed");
        // A closed name for a file that had none, and one that is renamed, with the folder's date put back.
        fs::hard_link(root.join("a/plain"), root.join("a/shut/p")).unwrap();
        assert_eq!(closed(&veil, &workspace, "z").unwrap(), ["a/shut/p"]);
        let old = fs::metadata(root.join("a/shut")).unwrap().modified().unwrap();
        fs::rename(root.join("a/shut/p"), root.join("a/shut/q")).unwrap();
        fs::File::open(root.join("a/shut")).unwrap().set_modified(old).unwrap();
        assert_eq!(closed(&veil, &workspace, "z").unwrap(), ["a/shut/p", "a/shut/q"]);
    }

    /// Whichever of its names is given another file, the text is where it was closed.
    #[test]
    fn what_was_closed_stays_closed() {
        let replace = |at: &Path| {
            fs::write(at.with_extension("new"), "n").unwrap();
            fs::rename(at.with_extension("new"), at).unwrap();
        };
        for replaced in ["y", "a/shut/x"] {
            let (folder, workspace, veil) = bed();
            let first = closed(&veil, &workspace, replaced).unwrap();
            assert_eq!(first, ["a/shut/x"]);
            replace(&folder.path().join(replaced));
            assert_eq!(closed(&veil, &workspace, "y").unwrap(), ["a/shut/x"], "{replaced}");
            assert_eq!(closed(&veil, &workspace, "z").unwrap(), [""; 0], "{replaced}");
            // For a command that may not find it, too.
            let hidden = Veil::new(Box::new(|_, _| false)).hiding(veil.kept());
            let hidden = hidden.hidden(&workspace).unwrap();
            assert!(hidden.contains(&OsString::from("y")), "{replaced}: {hidden:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_as_if_it_led_outside() {
        let (folder, workspace, veil) = bed();
        make_too_deep(folder.path());
        assert_eq!(closed(&veil, &workspace, "z"), Err(PathProblem::Escapes));
        // What has one name alone needs no walk.
        fs::write(folder.path().join("alone"), "").unwrap();
        assert_eq!(closed(&veil, &workspace, "alone").unwrap(), [""; 0]);
    }
}
