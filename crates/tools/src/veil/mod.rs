//! What must not be seen in the workspace: paths that an invariant protects, and other names of the
//! same files.
//!
//! The workspace is walked once, when the first command or the first file with several names needs
//! it. Folders that changed since are walked again each time that somebody asks. What cannot be
//! looked into is hidden whole: nobody knows what lies there. What is protected and leads elsewhere is
//! followed ([`follow`]).

mod error;
mod folder;
mod follow;
mod looker;
mod names;
mod orders;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::{PathProblem, WorkspacePath};
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

use crate::orders::{GIT, Leads};
use crate::tool::Host;
use crate::walk::{Waiting, walk};
use crate::workspace::{Way, Workspace, kind, told};
use folder::{Folder, Identity, here, lower_folder};
use looker::{Looker, Pass};
use names::Names;

pub use error::VeilError;
pub(crate) use orders::{Stand, names};

/// Says whether a path, which is a folder or not, is to be kept from being seen; asked from the root
/// down.
pub type Conceals = dyn Fn(&WorkspacePath, bool) -> bool + Sync + Send;

/// What must not be seen in the workspace.
pub struct Veil {
    conceals: Box<Conceals>,
    /// Whether pipes, sockets and devices of the host are hidden, too.
    cuts_off: bool,
    drawn: OnceCell<RefCell<Drawn>>,
    /// The folders that lay beneath the changes of a staged workspace when it was first walked.
    beneath: OnceCell<BTreeMap<OsString, Identity>>,
    /// What rules close to a tool, if they close anything.
    closes: Option<Box<Conceals>>,
    /// The names that are closed, as they were when somebody last needed them.
    names: RefCell<Option<Names>>,
    /// What keeps paths from being changed, if anybody asks for other names of those.
    invariants: Option<Invariants>,
    /// The user's home, from where git takes orders, too.
    home: Option<PathBuf>,
    /// What tells the variables of the user's environment, by which programs find their orders.
    host: Option<Rc<dyn Host>>,
    /// The places that the host takes orders from, as they were before the first change.
    orders: OnceCell<Known>,
    walks: Cell<u64>,
}

#[derive(Default)]
struct Drawn {
    /// What is hidden, beneath the workspace, in bytes.
    hidden: BTreeSet<OsString>,
    error: Option<VeilError>,
    /// The protected files, by identity, with the names that are protected, up to [`NAMES`].
    protected: BTreeMap<Identity, BTreeSet<OsString>>,
    /// Whether one that was found since the last look at links has other names.
    linked: bool,
    /// Whether folders list other inodes than files have, so that each file must be asked.
    inodes_differ: bool,
    /// Every folder that was walked.
    folders: BTreeMap<OsString, Folder>,
    /// The protected links, and the protected files that name a repository.
    links: BTreeSet<OsString>,
    /// What they lead through.
    way: Way,
    /// What may lead to orders.
    leads: Leads,
}

/// How many protected names of one file are told apart: different rules may protect them.
const NAMES: usize = 64;

/// What is known of orders, or why it is not.
type Known = Result<Rc<PathAliases>, CodedError>;

/// Up to how many folders a workspace is small: walking them takes less time than an executor needs to
/// begin.
const SMALL: usize = 64;

impl Veil {
    /// A veil over what `conceals` says.
    #[must_use]
    pub fn new(conceals: Box<Conceals>) -> Self {
        let (drawn, beneath, orders) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (cuts_off, walks) = (false, Cell::new(0));
        let (closes, names) = (None, RefCell::new(None));
        let (invariants, home, host) = (None, None, None);
        Self {
            conceals,
            cuts_off,
            drawn,
            beneath,
            closes,
            names,
            invariants,
            home,
            host,
            orders,
            walks,
        }
    }

    /// The same, which knows what rules close to a tool, so that it is closed under other names, too.
    #[must_use]
    pub fn closing(self, closes: Box<Conceals>) -> Self {
        Self { closes: Some(closes), ..self }
    }

    /// The same, which hides what leads to processes of the host as well: a pipe that a command reads gives
    /// it what was meant for somebody else. In changes that are laid over a workspace, and in a copy, there
    /// is no such thing.
    #[must_use]
    pub fn cutting_off(self) -> Self {
        Self { cuts_off: true, ..self }
    }

    /// The same, which knows what else than the names of some invariants leads to what they protect.
    #[must_use]
    pub fn under(self, invariants: Invariants, home: Option<PathBuf>) -> Self {
        Self { invariants: Some(invariants), home, ..self }
    }

    /// The same, which asks for the variables of the user's environment.
    #[must_use]
    pub fn on(self, host: Rc<dyn Host>) -> Self {
        Self { host: Some(host), ..self }
    }

    /// Walks the workspace, if nobody has done so yet.
    pub fn draw(&self, workspace: &Workspace) {
        let _ = self.up_to_date(workspace);
    }

    /// Walks a small workspace ahead of need, if nobody has done so yet; a large one is walked when a
    /// command is about to run, which may never be. Whether it is walked.
    pub fn draw_if_small(&self, workspace: &Workspace) -> bool {
        if self.drawn.get().is_none()
            && let Some(drawn) = self.first_look(workspace, SMALL)
        {
            let _ = self.drawn.set(RefCell::new(drawn));
        }
        self.drawn.get().is_some()
    }

    /// The protected paths that are names of this file; an error where one cannot be told. Either way the
    /// file is protected.
    pub(crate) fn aliases(
        &self,
        workspace: &Workspace,
        device: u64,
        inode: u64,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let drawn = self.up_to_date(workspace);
        let drawn = drawn.borrow();
        let names = drawn.protected.get(&(device, inode)).into_iter().flatten();
        names.map(|name| told(name)).collect()
    }

    /// The names of this file, which has several, that rules close to a tool; an error where one cannot be told.
    pub(crate) fn closed_names(
        &self,
        workspace: &Workspace,
        device: u64,
        inode: u64,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let Some(closes) = &self.closes else { return Ok(Vec::new()) };
        let mut names = self.names.borrow_mut();
        if names.as_ref().is_none_or(|names| !names.still(workspace)) {
            self.walks.set(self.walks.get() + 1);
            *names = Names::find(workspace, closes);
        }
        // As if it led outside: nobody can say that it does not lead to what is closed.
        let names = names.as_ref().ok_or(PathProblem::Escapes)?;
        names.of((device, inode)).map(|name| told(name)).collect()
    }

    /// Whether a folder, or one above it, is not the one that lay beneath the changes of a staged
    /// workspace when the run began: moved away, or replaced. The kernel goes on showing the one that
    /// it has looked up. `new` counts a folder that was not there then as well.
    pub(crate) fn was_moved(&self, workspace: &Workspace, path: &OsStr, new: bool) -> bool {
        let Some(lower) = workspace.lower() else { return false };
        // Drawn when the changes were laid over it.
        let Some(beneath) = self.beneath.get() else { return true };
        Path::new(path).ancestors().map(Path::as_os_str).any(|folder| {
            let now = lower_folder(lower, folder);
            match beneath.get(folder) {
                Some(then) => now != Some(*then),
                None => new && now.is_some(),
            }
        })
    }

    /// Every path that is to be hidden from commands now.
    pub(crate) fn hidden(&self, workspace: &Workspace) -> Result<Vec<OsString>, VeilError> {
        let drawn = self.up_to_date(workspace).borrow();
        match drawn.error {
            Some(error) => Err(error),
            None => Ok(drawn.hidden.iter().cloned().collect()),
        }
    }

    /// The protected links and what they lead through, as it was when what is hidden was last asked
    /// for. Nobody reaches what stands in a folder that is hidden.
    pub(crate) fn way(&self) -> Way {
        let Some(drawn) = self.drawn.get() else { return Way::default() };
        let drawn = drawn.borrow();
        let is_reached = |path: &&OsString| {
            let above = Path::new(path).ancestors().skip(1);
            !above.map(Path::as_os_str).any(|above| drawn.hidden.contains(above))
        };
        let all = drawn.links.iter().chain(&drawn.way.links);
        let left = drawn.way.left.iter().filter(is_reached).cloned().collect();
        Way { links: all.filter(is_reached).cloned().collect(), left }
    }

    /// The folders that were repositories when they were last looked at.
    #[must_use]
    pub fn repositories(&self, workspace: &Workspace) -> Vec<String> {
        self.up_to_date(workspace).borrow().leads.repositories()
    }

    fn up_to_date(&self, workspace: &Workspace) -> &RefCell<Drawn> {
        match self.drawn.get() {
            Some(drawn) => {
                self.refresh(workspace, &mut drawn.borrow_mut());
                drawn
            }
            None => self.drawn.get_or_init(|| {
                // Without an end there always is one.
                RefCell::new(self.first_look(workspace, usize::MAX).unwrap_or_default())
            }),
        }
    }

    /// Walks all of the workspace; none if it is larger than `most`.
    fn first_look(&self, workspace: &Workspace, most: usize) -> Option<Drawn> {
        let mut drawn = Drawn::default();
        let from = (vec![everything()], Pass::Names);
        if !self.look_at_most(most, workspace, from, &mut drawn) {
            return None;
        }
        self.follow_up(workspace, &mut drawn);
        let known = drawn.folders.iter();
        let known = known.filter_map(|(path, own)| Some((path.clone(), own.beneath()?)));
        let _ = self.beneath.set(known.collect());
        Some(drawn)
    }

    fn look(&self, workspace: &Workspace, from: Vec<Waiting>, pass: Pass, drawn: &mut Drawn) {
        let _to_the_end = self.look_at_most(usize::MAX, workspace, (from, pass), drawn);
    }

    /// Whether it came to its end.
    fn look_at_most(
        &self,
        most: usize,
        workspace: &Workspace,
        (from, pass): (Vec<Waiting>, Pass),
        drawn: &mut Drawn,
    ) -> bool {
        self.walks.set(self.walks.get() + 1);
        let looker = Looker {
            conceals: &*self.conceals,
            cuts_off: self.cuts_off && workspace.lower().is_none(),
            invariants: self.invariants.as_ref().filter(|_| pass != Pass::Links),
            spelling: workspace.spelling(),
            lower: workspace.lower(),
            pass,
            inodes: drawn.protected.keys().map(|(_, inode)| *inode).collect(),
            every_file: drawn.inodes_differ,
            drawn: Mutex::new(std::mem::take(drawn)),
            most,
            seen: AtomicUsize::new(0),
        };
        walk(workspace, from, &looker);
        let to_the_end = !looker.is_over();
        *drawn = looker.drawn.into_inner().unwrap_or_else(PoisonError::into_inner);
        to_the_end
    }

    /// Looks again at the folders that changed since they were walked, and at new ones in them.
    fn refresh(&self, workspace: &Workspace, drawn: &mut Drawn) {
        let (mut changed, mut gone, mut shut) = (Vec::new(), Vec::new(), Vec::new());
        let lower = workspace.lower();
        for (path, folder) in &drawn.folders {
            let waiting = || (path.clone(), folder.closed);
            match statat(workspace.root(), here(path), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(now) if folder.looks_like(&now, lower, path) => {}
                Ok(now) if kind(&now) == FileType::Directory => {
                    changed.push(waiting());
                }
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => gone.push(path.clone()),
                Err(_) => shut.push(waiting()),
            }
        }
        // What the kernel goes on showing although it was moved away, perhaps to where no run may look.
        for (path, then) in self.beneath.get().into_iter().flatten() {
            if lower.is_some_and(|lower| lower_folder(lower, path) != Some(*then)) {
                drawn.hide(path);
            }
        }
        for path in gone {
            drawn.folders.remove(&path);
        }
        for (path, closed) in shut {
            drawn.shut(&path, closed);
        }
        if !changed.is_empty() {
            self.look(workspace, changed, Pass::Again, drawn);
        }
        self.follow_up(workspace, drawn);
    }
}

/// The whole workspace, as a walk is told to begin.
fn everything() -> Waiting {
    (OsString::new(), false)
}

impl Drawn {
    fn hide(&mut self, path: &OsStr) {
        if self.hidden.len() >= limits::HIDDEN_PATHS && !self.hidden.contains(path) {
            self.error = Some(VeilError::TooMany);
        } else {
            self.hidden.insert(path.to_owned());
        }
    }

    /// Notes a protected file, to know it again under other names.
    fn protect(&mut self, path: &OsStr, stat: &Stat) {
        let identity = (stat.st_dev, stat.st_ino);
        if let Some(names) = self.protected.get_mut(&identity) {
            if names.len() < NAMES {
                names.insert(path.to_owned());
            }
            return;
        }
        if self.protected.len() >= limits::PROTECTED_FILES {
            self.error = Some(VeilError::TooMany);
            return;
        }
        self.protected.insert(identity, BTreeSet::from([path.to_owned()]));
        self.linked |= stat.st_nlink > 1;
    }

    /// Hides a folder that cannot be looked into.
    fn shut(&mut self, path: &OsStr, closed: bool) {
        self.folders.remove(path);
        if path.is_empty() {
            self.error = Some(VeilError::Unlisted);
        } else if !closed {
            self.hide(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{Mode, OFlags};

    use super::folder::TICK;
    use super::*;

    fn hidden(veil: &Veil, workspace: &Workspace) -> Vec<String> {
        let hidden = veil.hidden(workspace).unwrap();
        hidden.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// A workspace in which these names are protected.
    fn veiled(names: &'static [&'static str]) -> (tempfile::TempDir, Veil) {
        let folder = tempfile::tempdir().unwrap();
        let conceals = move |path: &WorkspacePath, _| {
            path.name().is_some_and(|name| names.iter().any(|own| name.ends_with(own)))
        };
        (folder, Veil::new(Box::new(conceals)))
    }

    fn alias(veil: &Veil, workspace: &Workspace, path: &str) -> Option<String> {
        let found = workspace.find(&WorkspacePath::parse(path).unwrap()).unwrap();
        match veil.aliases(workspace, found.stat.st_dev, found.stat.st_ino) {
            Ok(names) => names.first().map(|name| name.as_str().to_owned()),
            Err(problem) => Some(format!("{problem:?}")),
        }
    }

    /// Makes folders that are too deep to be walked, by anybody.
    pub(super) fn make_too_deep(root: &Path) {
        let mut at = Workspace::open(root).unwrap().root().try_clone_to_owned().unwrap();
        for _ in 0..30 {
            let name = "d".repeat(200);
            rustix::fs::mkdirat(&at, &name, Mode::from_raw_mode(0o755)).unwrap();
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, &name, flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn protected_files_and_their_other_names_are_hidden() {
        let (folder, veil) = veiled(&[".env", ".ssh"]);
        let root = folder.path();
        fs::create_dir_all(root.join("a/.ssh")).unwrap();
        fs::write(root.join("a/.env"), "s").unwrap();
        fs::write(root.join("a/.ssh/id"), "s").unwrap();
        fs::write(root.join("plain"), "p").unwrap();
        fs::hard_link(root.join("a/.env"), root.join("innocent.txt")).unwrap();
        fs::hard_link(root.join("a/.ssh/id"), root.join("key.txt")).unwrap();
        fs::hard_link(root.join("plain"), root.join("plain-2")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        assert_eq!(hidden(&veil, &workspace), ["a/.env", "a/.ssh", "innocent.txt", "key.txt"]);
        assert_eq!(alias(&veil, &workspace, "innocent.txt").as_deref(), Some("a/.env"));
        assert_eq!(alias(&veil, &workspace, "key.txt").as_deref(), Some("a/.ssh/id"));
        assert_eq!(alias(&veil, &workspace, "plain-2"), None);
    }

    #[test]
    fn what_changes_is_looked_at_again() {
        let (folder, veil) = veiled(&[".env", ".ssh"]);
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join(".ssh")).unwrap();
        fs::write(root.join("a/inn.txt"), "s").unwrap();
        let workspace = Workspace::open(root).unwrap();
        assert_eq!(hidden(&veil, &workspace), [".ssh"]);
        // A protected name for a file that was there, and one whose folder looks unchanged.
        fs::hard_link(root.join("a/inn.txt"), root.join("a/b/.env")).unwrap();
        let old = fs::metadata(root).unwrap().modified().unwrap();
        fs::write(root.join("late.env"), "s").unwrap();
        fs::File::open(root).unwrap().set_modified(old).unwrap();
        assert_eq!(hidden(&veil, &workspace), [".ssh", "a/b/.env", "a/inn.txt", "late.env"]);
        // Another name for what lies in a hidden folder, and a folder in place of another.
        fs::write(root.join(".ssh/id"), "s").unwrap();
        fs::hard_link(root.join(".ssh/id"), root.join("a/key.txt")).unwrap();
        fs::create_dir(root.join("new")).unwrap();
        fs::write(root.join("new/x.env"), "s").unwrap();
        fs::rename(root.join("new"), root.join("a/c")).unwrap();
        let now = hidden(&veil, &workspace);
        assert!(now.contains(&"a/key.txt".into()) && now.contains(&"a/c/x.env".into()), "{now:?}");
        assert_eq!(alias(&veil, &workspace, "a/key.txt").as_deref(), Some(".ssh/id"));

        std::thread::sleep(TICK * 2);
        let _ = hidden(&veil, &workspace);
        let walks = veil.walks.get();
        let _ = hidden(&veil, &workspace);
        assert_eq!(veil.walks.get(), walks, "nothing changed");
    }

    /// A walk for each file would take long where there are many links.
    #[test]
    fn closed_names_are_looked_for_once_while_nothing_changes() {
        let (folder, veil) = veiled(&[]);
        let veil = veil.closing(Box::new(|path, _| path.name() == Some("shut")));
        let root = folder.path();
        fs::create_dir_all(root.join("a/shut")).unwrap();
        fs::write(root.join("a/shut/x"), "s").unwrap();
        fs::write(root.join("a/plain"), "p").unwrap();
        fs::hard_link(root.join("a/shut/x"), root.join("y")).unwrap();
        fs::hard_link(root.join("a/plain"), root.join("z")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let closed = |path: &str| -> Result<Vec<String>, PathProblem> {
            let found = workspace.find(&WorkspacePath::parse(path).unwrap()).unwrap();
            let names = veil.closed_names(&workspace, found.stat.st_dev, found.stat.st_ino)?;
            Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
        };
        std::thread::sleep(TICK * 2);
        assert_eq!(closed("y").unwrap(), ["a/shut/x"]);
        let walks = veil.walks.get();
        assert_eq!(closed("z").unwrap(), [""; 0]);
        assert_eq!(closed("y").unwrap(), ["a/shut/x"]);
        assert_eq!(veil.walks.get(), walks, "nothing changed");
        // A closed name for a file that had none, and one that is renamed, with the folder's date put back.
        fs::hard_link(root.join("a/plain"), root.join("a/shut/p")).unwrap();
        assert_eq!(closed("z").unwrap(), ["a/shut/p"]);
        let old = fs::metadata(root.join("a/shut")).unwrap().modified().unwrap();
        fs::rename(root.join("a/shut/x"), root.join("a/shut/w")).unwrap();
        fs::File::open(root.join("a/shut")).unwrap().set_modified(old).unwrap();
        assert_eq!(closed("y").unwrap(), ["a/shut/w"]);
        // What cannot be told is as if it led outside.
        make_too_deep(root);
        assert_eq!(closed("y"), Err(PathProblem::Escapes));
    }

    /// Many file systems give the number of a file that is gone to the next one.
    #[test]
    fn a_file_that_has_the_number_of_another_is_not_that() {
        let (folder, veil) = veiled(&[".env"]);
        let root = folder.path();
        let workspace = Workspace::open(root).unwrap();
        for round in 0..16 {
            fs::write(root.join(".env"), "s").unwrap();
            assert_eq!(hidden(&veil, &workspace), [".env"]);
            fs::remove_file(root.join(".env")).unwrap();
            fs::write(root.join(format!("plain-{round}")), "p").unwrap();
            assert_eq!(hidden(&veil, &workspace), [".env"]);
        }
    }

    #[test]
    fn odd_names_and_links_protect_too() {
        let (folder, veil) = veiled(&[".pem", ".ssh"]);
        let root = folder.path();
        for (number, name) in ["$a.pem", "~t.pem", "n\n.pem"].into_iter().enumerate() {
            fs::write(root.join(name), "s").unwrap();
            fs::hard_link(root.join(name), root.join(format!("x{number}.txt"))).unwrap();
        }
        fs::create_dir(root.join("keys")).unwrap();
        fs::write(root.join("keys/work"), "s").unwrap();
        fs::hard_link(root.join("keys/work"), root.join("w.txt")).unwrap();
        symlink("keys", root.join(".ssh")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        for number in 0..3 {
            assert!(alias(&veil, &workspace, &format!("x{number}.txt")).is_some(), "{number}");
        }
        let hidden = hidden(&veil, &workspace);
        for name in ["keys", "w.txt", "x0.txt", "x1.txt", "x2.txt", "$a.pem"] {
            assert!(hidden.contains(&name.into()), "{name} in {hidden:?}");
        }
    }

    #[test]
    fn a_folder_that_a_link_protects_stays_closed() {
        let (folder, veil) = veiled(&[".ssh"]);
        let root = folder.path();
        fs::create_dir(root.join("keys")).unwrap();
        symlink("keys", root.join(".ssh")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        std::thread::sleep(TICK * 2);
        assert_eq!(hidden(&veil, &workspace), [".ssh", "keys"]);
        fs::write(root.join("plain"), "p").unwrap();
        assert_eq!(hidden(&veil, &workspace), [".ssh", "keys"]);
        fs::write(root.join("keys/new"), "s").unwrap();
        fs::hard_link(root.join("keys/new"), root.join("n.txt")).unwrap();
        assert_eq!(hidden(&veil, &workspace), [".ssh", "keys", "n.txt"]);
    }

    #[test]
    fn only_a_small_workspace_is_walked_ahead() {
        for (folders, small) in [(SMALL - 1, true), (SMALL + 2, false)] {
            let (folder, veil) = veiled(&[".env"]);
            for number in 0..folders {
                let own = folder.path().join(format!("{number:04}"));
                fs::create_dir(&own).unwrap();
                fs::write(own.join(".env"), "s").unwrap();
            }
            let workspace = Workspace::open(folder.path()).unwrap();
            assert_eq!(veil.draw_if_small(&workspace), small, "{folders}");
            assert_eq!(veil.drawn.get().is_some(), small, "nothing is half known");
            assert_eq!(hidden(&veil, &workspace).len(), folders);
        }
    }

    #[test]
    fn what_links_lead_to_later_is_hidden_later() {
        let (folder, veil) = veiled(&[".env"]);
        let root = folder.path();
        for name in ["a", "shared", "v1", "v2"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        symlink("../shared/env", root.join("a/.env")).unwrap();
        symlink("v1", root.join("current")).unwrap();
        symlink("../current/env", root.join("a/x.env")).unwrap();
        fs::write(root.join("v1/env"), "s").unwrap();
        fs::write(root.join("v2/env"), "s").unwrap();
        let workspace = Workspace::open(root).unwrap();
        std::thread::sleep(TICK * 2);
        assert_eq!(hidden(&veil, &workspace), ["a/.env", "a/x.env", "v1/env"]);
        // What a link leads to is made; a link on the way is switched; a target is replaced.
        fs::write(root.join("shared/env"), "s").unwrap();
        fs::remove_file(root.join("current")).unwrap();
        symlink("v2", root.join("current")).unwrap();
        let now = hidden(&veil, &workspace);
        assert!(now.contains(&"shared/env".into()) && now.contains(&"v2/env".into()), "{now:?}");
        fs::remove_file(root.join("shared/env")).unwrap();
        fs::write(root.join("shared/env"), "new").unwrap();
        fs::hard_link(root.join("shared/env"), root.join("e.txt")).unwrap();
        assert!(hidden(&veil, &workspace).contains(&"e.txt".into()));
    }

    #[test]
    fn stores_of_earlier_runs_are_hidden() {
        let (folder, veil) = veiled(&[]);
        let root = folder.path();
        let mut header = vec![0; 4_096];
        header[..16].copy_from_slice(b"SQLite format 3\0");
        fs::write(root.join("other.db"), &header).unwrap();
        header[68..72].copy_from_slice(b"CPSL");
        fs::write(root.join("Run.DB"), &header).unwrap();
        fs::write(root.join("Run.DB-wal"), "log").unwrap();
        fs::write(root.join("other.db-wal"), "log").unwrap();
        fs::hard_link(root.join("Run.DB"), root.join("notes.txt")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        assert_eq!(hidden(&veil, &workspace), ["Run.DB", "Run.DB-wal", "notes.txt"]);
    }

    #[test]
    fn what_cannot_be_looked_into_is_hidden() {
        let (folder, veil) = veiled(&[".env"]);
        let root = folder.path();
        make_too_deep(root);
        fs::create_dir(root.join("shut")).unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o311)).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let hidden = veil.hidden(&workspace).unwrap();
        assert!(hidden.iter().any(|path| path.len() > 4_096), "the first folder that is too deep");
        let may_read_all = fs::read_dir(root.join("shut")).is_ok();
        assert_eq!(hidden.contains(&OsString::from("shut")), !may_read_all);
    }
}
