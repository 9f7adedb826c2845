//! What must not be seen in the workspace: paths that an invariant protects, and other names of the
//! same files.
//!
//! The workspace is walked once, when the first command or the first file with several names needs
//! it; folders that changed since are walked again before the next command.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use capsule_core::limits;
use capsule_core::path::WorkspacePath;
use rustix::fs::{AtFlags, FileType, fstat, statat};

use crate::walk::{Entry, Visitor, open_folder, walk};
use crate::workspace::Workspace;

/// Says whether a path is to be kept from being seen; asked from the root down.
pub type Conceals = dyn Fn(&WorkspacePath) -> bool + Sync + Send;

/// Why the veil cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VeilError {
    /// More paths are to be hidden than can be.
    TooMany,
}

/// What must not be seen in the workspace.
pub struct Veil {
    conceals: Box<Conceals>,
    drawn: OnceCell<RefCell<Drawn>>,
    walks: Cell<u64>,
}

/// A path that is hidden from commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// The path beneath the workspace, in bytes.
    pub path: OsString,
}

/// A file's identity: its device and inode.
type Identity = (u64, u64);

/// When a folder last changed, in seconds and nanoseconds.
type Changed = (i64, i64);

#[derive(Default)]
struct Drawn {
    hidden: Vec<Hidden>,
    too_many: bool,
    /// The protected files, by identity, with one name each.
    protected: BTreeMap<Identity, OsString>,
    /// Whether one of them has other names.
    linked: bool,
    /// Whether folders list other inodes than files have, so that each file must be asked.
    inodes_differ: bool,
    /// When each folder last changed.
    folders: BTreeMap<OsString, Changed>,
}

impl Veil {
    /// A veil over what `conceals` says.
    #[must_use]
    pub fn new(conceals: Box<Conceals>) -> Self {
        Self { conceals, drawn: OnceCell::new(), walks: Cell::new(0) }
    }

    /// The protected path that is another name of this file, if there is one.
    #[must_use]
    pub(crate) fn alias(
        &self,
        workspace: &Workspace,
        device: u64,
        inode: u64,
    ) -> Option<WorkspacePath> {
        let drawn = self.drawn(workspace).borrow();
        let name = drawn.protected.get(&(device, inode))?;
        // A name that is not UTF-8 cannot be told; that it is protected can.
        WorkspacePath::parse(&name.to_string_lossy()).ok()
    }

    /// Every path that is to be hidden from commands, looked at anew where folders changed. What
    /// was hidden before stays in its place, so new ones are at the end.
    pub(crate) fn hidden(&self, workspace: &Workspace) -> Result<Rc<[Hidden]>, VeilError> {
        let first = self.drawn.get().is_none();
        let drawn = self.drawn(workspace);
        if !first {
            self.refresh(workspace, &mut drawn.borrow_mut());
        }
        let drawn = drawn.borrow();
        if drawn.too_many { Err(VeilError::TooMany) } else { Ok(drawn.hidden.as_slice().into()) }
    }

    fn drawn(&self, workspace: &Workspace) -> &RefCell<Drawn> {
        self.drawn.get_or_init(|| {
            let mut drawn = Drawn::default();
            self.look(workspace, OsStr::new(""), Pass::Names, &mut drawn);
            if drawn.linked {
                self.look(workspace, OsStr::new(""), Pass::Links, &mut drawn);
            }
            RefCell::new(drawn)
        })
    }

    fn look(&self, workspace: &Workspace, from: &OsStr, pass: Pass, drawn: &mut Drawn) {
        self.walks.set(self.walks.get() + 1);
        let looker =
            Looker { conceals: &*self.conceals, pass, drawn: Mutex::new(std::mem::take(drawn)) };
        walk(workspace, from, &looker);
        *drawn = looker.drawn.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    /// Looks again at the folders that changed since they were walked, and at new ones in them.
    fn refresh(&self, workspace: &Workspace, drawn: &mut Drawn) {
        let known: Vec<(OsString, Changed)> =
            drawn.folders.iter().map(|(path, changed)| (path.clone(), *changed)).collect();
        for (path, changed) in known {
            let now = open_folder(workspace, &path).and_then(|folder| changed_at(folder.as_fd()));
            match now {
                Some(now) if now == changed => {}
                Some(_) => self.look(workspace, &path, Pass::Again, drawn),
                None => {
                    drawn.folders.remove(&path);
                }
            }
        }
    }
}

fn changed_at(folder: BorrowedFd<'_>) -> Option<Changed> {
    let stat = fstat(folder).ok()?;
    Some((stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)))
}

impl Drawn {
    fn hide(&mut self, path: &OsStr) {
        if self.hidden.iter().any(|hidden| hidden.path == path) {
            return;
        }
        if self.hidden.len() >= limits::MASKS {
            self.too_many = true;
            return;
        }
        self.hidden.push(Hidden { path: path.to_owned() });
    }
}

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Find what is protected by its name.
    Names,
    /// Find other names of what is protected.
    Links,
    /// Both, in a folder that changed and in folders that are new.
    Again,
}

/// Collects what is to be hidden while the workspace is walked.
struct Looker<'l> {
    conceals: &'l Conceals,
    pass: Pass,
    drawn: Mutex<Drawn>,
}

impl Looker<'_> {
    fn drawn(&self) -> std::sync::MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an entry is protected by its name.
    fn is_concealed(&self, path: &OsStr) -> bool {
        // Bytes that are not UTF-8, and characters that no path of ours has, become a replacement
        // that wildcards match: an odd name does not unprotect a file.
        let text: String = path
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        // `./` keeps a name that begins with `~` or `$` what it is.
        WorkspacePath::parse(&format!("./{text}")).map_or(true, |path| (self.conceals)(&path))
    }

    fn protect(&self, entry: &Entry<'_>) {
        let stat = statat(entry.folder, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut drawn = self.drawn();
        drawn.hide(entry.path);
        if let (FileType::RegularFile, Ok(stat)) = (entry.kind, stat) {
            drawn.linked |= stat.st_nlink > 1;
            drawn.inodes_differ |= stat.st_ino != entry.inode;
            let name = || entry.path.to_owned();
            drawn.protected.entry((stat.st_dev, stat.st_ino)).or_insert_with(name);
        }
    }

    /// Hides the entry if it is another name of a protected file.
    fn unmask(&self, entry: &Entry<'_>) {
        let mut drawn = self.drawn();
        let listed = |drawn: &Drawn| drawn.protected.keys().any(|(_, inode)| *inode == entry.inode);
        if !drawn.inodes_differ && !listed(&drawn) {
            return;
        }
        let Ok(stat) = statat(entry.folder, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
        else {
            return;
        };
        if drawn.protected.contains_key(&(stat.st_dev, stat.st_ino)) {
            drawn.hide(entry.path);
        }
    }
}

impl Visitor for Looker<'_> {
    fn folder(&self, path: &OsStr, folder: BorrowedFd<'_>) {
        if let Some(changed) = changed_at(folder) {
            self.drawn().folders.insert(path.to_owned(), changed);
        }
    }

    fn entry(&self, entry: &Entry<'_>) -> bool {
        if self.is_concealed(entry.path) {
            self.protect(entry);
            return false;
        }
        if entry.kind == FileType::RegularFile && self.pass != Pass::Names {
            self.unmask(entry);
        }
        self.pass != Pass::Again || !self.drawn().folders.contains_key(entry.path)
    }

    fn stop(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn hidden(veil: &Veil, workspace: &Workspace) -> Vec<String> {
        let hidden = veil.hidden(workspace).unwrap();
        let mut names: Vec<String> =
            hidden.iter().map(|hidden| hidden.path.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn protected_files_and_their_other_names_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/.ssh")).unwrap();
        fs::write(root.join("a/.env"), "s").unwrap();
        fs::write(root.join("a/.ssh/id"), "s").unwrap();
        fs::write(root.join("plain"), "p").unwrap();
        fs::hard_link(root.join("a/.env"), root.join("innocent.txt")).unwrap();
        fs::hard_link(root.join("plain"), root.join("plain-2")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let veil =
            Veil::new(Box::new(|path| matches!(path.name(), Some(".env" | ".ssh" | "late.env"))));
        assert_eq!(hidden(&veil, &workspace), ["a/.env", "a/.ssh", "innocent.txt"]);
        let found = workspace.find(&WorkspacePath::parse("innocent.txt").unwrap()).unwrap();
        let alias = veil.alias(&workspace, found.stat.st_dev, found.stat.st_ino);
        assert_eq!(alias, WorkspacePath::parse("a/.env").ok());

        // What is made later is found before the next command.
        fs::write(root.join("a/late.env"), "s").unwrap();
        assert_eq!(hidden(&veil, &workspace), ["a/.env", "a/.ssh", "a/late.env", "innocent.txt"]);
        let walks = veil.walks.get();
        assert_eq!(walks, 3, "names, links, and the one folder that changed");
        assert_eq!(hidden(&veil, &workspace).len(), 4);
        assert_eq!(veil.walks.get(), walks, "nothing changed");
    }
}
