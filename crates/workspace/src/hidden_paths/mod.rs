//! What must not be seen in the workspace: paths that an invariant protects, and other names of the
//! same files.
//!
//! The workspace is walked once, when the first command or the first file with several names needs
//! it. Folders that changed since are walked again each time that somebody asks. What cannot be
//! looked into is hidden whole: nobody knows what lies there. What is protected and leads elsewhere is
//! followed ([`link_targets`]).

mod aliases;
mod closed_names;
mod error;
mod index;
mod link_targets;
mod scanner;
mod walked_directory;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

use capsule_base::path::{PathProblem, WorkspacePath};
use capsule_base::path_aliases::PathAliases;
use capsule_core::outcome::CodedError;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::resolve::{LinkChain, Workspace, file_type, workspace_path};
use crate::system::statat;
use crate::walk::{PendingDirectory, walk};
use closed_names::ClosedNames;
use index::{HiddenIndex, whole_workspace};
use scanner::{ScanPass, Scanner};
use walked_directory::{InodeKey, lower_identity, syscall_path};

pub use aliases::{Stand, names};
pub use error::HiddenPathsError;
pub use index::HidePredicate;

/// The variables of the user's environment.
pub trait UserVariables {
    /// The value of one.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// The names of all of them.
    fn variables(&self) -> Vec<OsString>;
}

/// What must not be seen in the workspace.
pub struct HiddenPaths {
    hides: Box<HidePredicate>,
    /// Whether pipes, sockets and devices of the host are hidden, too.
    hides_special_files: bool,
    index: OnceCell<RefCell<HiddenIndex>>,
    /// The folders that lay beneath the changes of a staged workspace when it was first walked.
    lower_directories: OnceCell<BTreeMap<OsString, InodeKey>>,
    /// What rules close to a tool, if they close anything.
    closed_to_tools: Option<Box<HidePredicate>>,
    /// The names that are closed, as they were when somebody last needed them.
    closed_names: RefCell<Option<ClosedNames>>,
    /// What keeps paths from being changed, if anybody asks for other names of those.
    invariants: Option<Invariants>,
    /// The user's home, from where git takes orders, too.
    home: Option<PathBuf>,
    /// What tells the variables of the user's environment, by which programs find their orders.
    variables: Option<Rc<dyn UserVariables>>,
    /// The places that the host takes orders from, as they were before the first change.
    aliases: OnceCell<AliasResult>,
    walks: Cell<u64>,
}

/// What is known of orders, or why it is not.
type AliasResult = Result<Rc<PathAliases>, CodedError>;

/// Up to how many folders a workspace is small: walking them takes less time than an executor needs to
/// begin.
const SMALL_WORKSPACE: usize = 64;

impl HiddenPaths {
    /// A veil over what `conceals` says.
    #[must_use]
    pub fn new(conceals: Box<HidePredicate>) -> Self {
        let (drawn, beneath, aliases) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (cuts_off, walks) = (false, Cell::new(0));
        let (closes, names) = (None, RefCell::new(None));
        let (invariants, home, variables) = (None, None, None);
        Self {
            hides: conceals,
            hides_special_files: cuts_off,
            index: drawn,
            lower_directories: beneath,
            closed_to_tools: closes,
            closed_names: names,
            invariants,
            home,
            variables,
            aliases,
            walks,
        }
    }

    /// The same, which knows what rules close to a tool, so that it is closed under other names, too.
    #[must_use]
    pub fn with_tool_rules(self, closes: Box<HidePredicate>) -> Self {
        Self { closed_to_tools: Some(closes), ..self }
    }

    /// The same, which hides what leads to processes of the host as well: a pipe that a command reads gives
    /// it what was meant for somebody else. In changes that are laid over a workspace, and in a copy, there
    /// is no such thing.
    #[must_use]
    pub fn hiding_special_files(self) -> Self {
        Self { hides_special_files: true, ..self }
    }

    /// The same, which knows what else than the names of some invariants leads to what they protect.
    #[must_use]
    pub fn with_invariants(self, invariants: Invariants, home: Option<PathBuf>) -> Self {
        Self { invariants: Some(invariants), home, ..self }
    }

    /// The same, which asks for the variables of the user's environment.
    #[must_use]
    pub fn on(self, variables: Rc<dyn UserVariables>) -> Self {
        Self { variables: Some(variables), ..self }
    }

    /// Whether a path, which is a folder or not, is hidden by its own name.
    #[must_use]
    pub fn is_hidden(&self, path: &WorkspacePath, is_folder: bool) -> bool {
        (self.hides)(path, is_folder)
    }

    /// Walks the workspace, if nobody has done so yet.
    pub fn scan(&self, workspace: &Workspace) {
        let _ = self.refreshed(workspace);
    }

    /// Walks a small workspace ahead of need, if nobody has done so yet; a large one is walked when a
    /// command is about to run, which may never be. Whether it is walked.
    pub fn scan_if_small(&self, workspace: &Workspace) -> bool {
        if self.index.get().is_none()
            && let Some(drawn) = self.first_scan(workspace, SMALL_WORKSPACE)
        {
            let _ = self.index.set(RefCell::new(drawn));
        }
        self.index.get().is_some()
    }

    /// The protected paths that are names of this file; an error where one cannot be told. Either way the
    /// file is protected.
    pub(crate) fn protected_names(
        &self,
        workspace: &Workspace,
        device: u64,
        inode: u64,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let drawn = self.refreshed(workspace);
        let drawn = drawn.borrow();
        let names = drawn.protected.get(&(device, inode)).into_iter().flatten();
        names.map(|name| workspace_path(name)).collect()
    }

    /// The names of this file, which has several, that rules close to a tool; an error where one cannot be told.
    pub(crate) fn closed_names(
        &self,
        workspace: &Workspace,
        device: u64,
        inode: u64,
    ) -> Result<Vec<WorkspacePath>, PathProblem> {
        let Some(closes) = &self.closed_to_tools else { return Ok(Vec::new()) };
        let mut names = self.closed_names.borrow_mut();
        if names.as_ref().is_none_or(|names| !names.is_unchanged(workspace)) {
            self.walks.set(self.walks.get() + 1);
            *names = ClosedNames::find(workspace, closes);
        }
        // As if it led outside: nobody can say that it does not lead to what is closed.
        let names = names.as_ref().ok_or(PathProblem::Escapes)?;
        names.names_of((device, inode)).map(|name| workspace_path(name)).collect()
    }

    /// Whether a folder, or one above it, is not the one that lay beneath the changes of a staged
    /// workspace when the run began: moved away, or replaced. The kernel goes on showing the one that
    /// it has looked up. `new` counts a folder that was not there then as well.
    pub(crate) fn directory_moved(&self, workspace: &Workspace, path: &OsStr, new: bool) -> bool {
        let Some(lower) = workspace.lower() else { return false };
        // Drawn when the changes were laid over it.
        let Some(beneath) = self.lower_directories.get() else { return true };
        Path::new(path).ancestors().map(Path::as_os_str).any(|folder| {
            let now = lower_identity(lower, folder);
            match beneath.get(folder) {
                Some(then) => now != Some(*then),
                None => new && now.is_some(),
            }
        })
    }

    /// Every path that is to be hidden from commands now.
    ///
    /// # Errors
    /// They cannot all be told.
    pub fn hidden_now(&self, workspace: &Workspace) -> Result<Vec<OsString>, HiddenPathsError> {
        let drawn = self.refreshed(workspace).borrow();
        match drawn.error {
            Some(error) => Err(error),
            None => Ok(drawn.hidden.iter().cloned().collect()),
        }
    }

    /// The protected links and what they lead through, as it was when what is hidden was last asked
    /// for. Nobody reaches what stands in a folder that is hidden.
    pub fn link_chain(&self) -> LinkChain {
        let Some(drawn) = self.index.get() else { return LinkChain::default() };
        let drawn = drawn.borrow();
        let is_reached = |path: &&OsString| {
            let above = Path::new(path).ancestors().skip(1);
            !above.map(Path::as_os_str).any(|above| drawn.hidden.contains(above))
        };
        let all = drawn.links.iter().chain(&drawn.link_chain.links);
        let left = drawn.link_chain.left_directories.iter().filter(is_reached).cloned().collect();
        LinkChain { links: all.filter(is_reached).cloned().collect(), left_directories: left }
    }

    /// The folders that were repositories when they were last looked at.
    #[must_use]
    pub fn repositories(&self, workspace: &Workspace) -> Vec<String> {
        self.refreshed(workspace).borrow().alias_candidates.repositories()
    }

    /// The same, as they were when what is hidden was last asked for.
    #[must_use]
    pub fn known_repositories(&self) -> Vec<String> {
        let index = self.index.get();
        index.map(|index| index.borrow().alias_candidates.repositories()).unwrap_or_default()
    }

    fn refreshed(&self, workspace: &Workspace) -> &RefCell<HiddenIndex> {
        match self.index.get() {
            Some(drawn) => {
                self.rescan_changed(workspace, &mut drawn.borrow_mut());
                drawn
            }
            None => self.index.get_or_init(|| {
                // Without an end there always is one.
                RefCell::new(self.first_scan(workspace, usize::MAX).unwrap_or_default())
            }),
        }
    }

    /// Walks all of the workspace; none if it is larger than `most`.
    fn first_scan(&self, workspace: &Workspace, most: usize) -> Option<HiddenIndex> {
        let mut drawn = HiddenIndex::default();
        let from = (vec![whole_workspace()], ScanPass::ByName);
        if !self.walk_at_most(most, workspace, from, &mut drawn) {
            return None;
        }
        self.hide_link_targets(workspace, &mut drawn);
        let known = drawn.directories.iter();
        let known =
            known.filter_map(|(path, directory)| Some((path.clone(), directory.lower_identity()?)));
        let _ = self.lower_directories.set(known.collect());
        Some(drawn)
    }

    fn walk_from(
        &self,
        workspace: &Workspace,
        from: Vec<PendingDirectory>,
        pass: ScanPass,
        drawn: &mut HiddenIndex,
    ) {
        let _to_the_end = self.walk_at_most(usize::MAX, workspace, (from, pass), drawn);
    }

    /// Whether it came to its end.
    fn walk_at_most(
        &self,
        most: usize,
        workspace: &Workspace,
        (from, pass): (Vec<PendingDirectory>, ScanPass),
        drawn: &mut HiddenIndex,
    ) -> bool {
        self.walks.set(self.walks.get() + 1);
        let scanner = Scanner {
            hides: &*self.hides,
            hides_special_files: self.hides_special_files && workspace.lower().is_none(),
            invariants: self.invariants.as_ref().filter(|_| pass != ScanPass::OtherNames),
            spelling: workspace.spelling(),
            lower: workspace.lower(),
            pass,
            inodes: drawn.protected.keys().map(|(_, inode)| *inode).collect(),
            every_file: drawn.inodes_differ,
            index: Mutex::new(std::mem::take(drawn)),
            limit: most,
            seen: AtomicUsize::new(0),
        };
        walk(workspace, from, &scanner);
        let to_the_end = !scanner.is_over_limit();
        *drawn = scanner.index.into_inner().unwrap_or_else(PoisonError::into_inner);
        to_the_end
    }

    /// Looks again at the folders that changed since they were walked, and at new ones in them.
    fn rescan_changed(&self, workspace: &Workspace, drawn: &mut HiddenIndex) {
        let (mut changed, mut gone, mut shut) = (Vec::new(), Vec::new(), Vec::new());
        let lower = workspace.lower();
        for (path, folder) in &drawn.directories {
            let waiting = || (path.clone(), folder.closed);
            match statat(workspace.root(), syscall_path(path), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(now) if folder.matches_stat(&now, lower, path) => {}
                Ok(now) if file_type(&now) == FileType::Directory => {
                    changed.push(waiting());
                }
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => gone.push(path.clone()),
                Err(_) => shut.push(waiting()),
            }
        }
        // What the kernel goes on showing although it was moved away, perhaps to where no run may look.
        for (path, then) in self.lower_directories.get().into_iter().flatten() {
            if lower.is_some_and(|lower| lower_identity(lower, path) != Some(*then)) {
                drawn.hide(path);
            }
        }
        for path in gone {
            drawn.directories.remove(&path);
        }
        for (path, closed) in shut {
            drawn.hide_unreadable(&path, closed);
        }
        if !changed.is_empty() {
            self.walk_from(workspace, changed, ScanPass::Refresh, drawn);
        }
        self.hide_link_targets(workspace, drawn);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{Mode, OFlags};

    use super::walked_directory::CLOCK_TICK;
    use super::*;

    fn hidden(hidden_paths: &HiddenPaths, workspace: &Workspace) -> Vec<String> {
        let hidden = hidden_paths.hidden_now(workspace).unwrap();
        hidden.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// A workspace in which these names are protected.
    fn veiled(names: &'static [&'static str]) -> (tempfile::TempDir, HiddenPaths) {
        let folder = tempfile::tempdir().unwrap();
        let conceals = move |path: &WorkspacePath, _| {
            path.name().is_some_and(|name| names.iter().any(|text| name.ends_with(text)))
        };
        (folder, HiddenPaths::new(Box::new(conceals)))
    }

    fn alias(hidden_paths: &HiddenPaths, workspace: &Workspace, path: &str) -> Option<String> {
        let found = workspace.resolve(&WorkspacePath::parse(path).unwrap()).unwrap();
        match hidden_paths.protected_names(workspace, found.stat.st_dev, found.stat.st_ino) {
            Ok(names) => names.first().map(|name| name.as_str().to_owned()),
            Err(problem) => Some(format!("{problem:?}")),
        }
    }

    /// Makes folders that are too deep to be walked, by anybody.
    pub(super) fn make_too_deep(root: &Path) {
        let mut at = Workspace::open(root).unwrap().root().try_clone_to_owned().unwrap();
        for _ in 0..30 {
            let name = "d".repeat(200);
            rustix::fs::mkdirat(&at, &name, crate::system::mode(0o755)).unwrap();
            let flags = crate::system::PATH_ONLY | OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, &name, flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn protected_files_and_their_other_names_are_hidden() {
        let (folder, hidden_paths) = veiled(&[".env", ".ssh"]);
        let root = folder.path();
        fs::create_dir_all(root.join("a/.ssh")).unwrap();
        fs::write(root.join("a/.env"), "s").unwrap();
        fs::write(root.join("a/.ssh/id"), "s").unwrap();
        fs::write(root.join("plain"), "p").unwrap();
        fs::hard_link(root.join("a/.env"), root.join("innocent.txt")).unwrap();
        fs::hard_link(root.join("a/.ssh/id"), root.join("key.txt")).unwrap();
        fs::hard_link(root.join("plain"), root.join("plain-2")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        assert_eq!(
            hidden(&hidden_paths, &workspace),
            ["a/.env", "a/.ssh", "innocent.txt", "key.txt"]
        );
        assert_eq!(alias(&hidden_paths, &workspace, "innocent.txt").as_deref(), Some("a/.env"));
        assert_eq!(alias(&hidden_paths, &workspace, "key.txt").as_deref(), Some("a/.ssh/id"));
        assert_eq!(alias(&hidden_paths, &workspace, "plain-2"), None);
    }

    #[test]
    fn what_changes_is_looked_at_again() {
        let (folder, hidden_paths) = veiled(&[".env", ".ssh"]);
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join(".ssh")).unwrap();
        fs::write(root.join("a/inn.txt"), "s").unwrap();
        let workspace = Workspace::open(root).unwrap();
        assert_eq!(hidden(&hidden_paths, &workspace), [".ssh"]);
        // A protected name for a file that was there, and one whose folder looks unchanged.
        fs::hard_link(root.join("a/inn.txt"), root.join("a/b/.env")).unwrap();
        let old = fs::metadata(root).unwrap().modified().unwrap();
        fs::write(root.join("late.env"), "s").unwrap();
        fs::File::open(root).unwrap().set_modified(old).unwrap();
        assert_eq!(
            hidden(&hidden_paths, &workspace),
            [".ssh", "a/b/.env", "a/inn.txt", "late.env"]
        );
        // Another name for what lies in a hidden folder, and a folder in place of another.
        fs::write(root.join(".ssh/id"), "s").unwrap();
        fs::hard_link(root.join(".ssh/id"), root.join("a/key.txt")).unwrap();
        fs::create_dir(root.join("new")).unwrap();
        fs::write(root.join("new/x.env"), "s").unwrap();
        fs::rename(root.join("new"), root.join("a/c")).unwrap();
        let now = hidden(&hidden_paths, &workspace);
        assert!(now.contains(&"a/key.txt".into()) && now.contains(&"a/c/x.env".into()), "{now:?}");
        assert_eq!(alias(&hidden_paths, &workspace, "a/key.txt").as_deref(), Some(".ssh/id"));

        std::thread::sleep(CLOCK_TICK * 2);
        let _ = hidden(&hidden_paths, &workspace);
        let walks = hidden_paths.walks.get();
        let _ = hidden(&hidden_paths, &workspace);
        assert_eq!(hidden_paths.walks.get(), walks, "nothing changed");
    }

    /// A walk for each file would take long where there are many links.
    #[test]
    fn closed_names_are_looked_for_once_while_nothing_changes() {
        let (folder, hidden_paths) = veiled(&[]);
        let hidden_paths =
            hidden_paths.with_tool_rules(Box::new(|path, _| path.name() == Some("shut")));
        let root = folder.path();
        fs::create_dir_all(root.join("a/shut")).unwrap();
        fs::write(root.join("a/shut/x"), "s").unwrap();
        fs::write(root.join("a/plain"), "p").unwrap();
        fs::hard_link(root.join("a/shut/x"), root.join("y")).unwrap();
        fs::hard_link(root.join("a/plain"), root.join("z")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let closed = |path: &str| -> Result<Vec<String>, PathProblem> {
            let found = workspace.resolve(&WorkspacePath::parse(path).unwrap()).unwrap();
            let names =
                hidden_paths.closed_names(&workspace, found.stat.st_dev, found.stat.st_ino)?;
            Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
        };
        std::thread::sleep(CLOCK_TICK * 2);
        assert_eq!(closed("y").unwrap(), ["a/shut/x"]);
        let walks = hidden_paths.walks.get();
        assert_eq!(closed("z").unwrap(), [""; 0]);
        assert_eq!(closed("y").unwrap(), ["a/shut/x"]);
        assert_eq!(hidden_paths.walks.get(), walks, "nothing changed");
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
        let (folder, hidden_paths) = veiled(&[".env"]);
        let root = folder.path();
        let workspace = Workspace::open(root).unwrap();
        for round in 0..16 {
            fs::write(root.join(".env"), "s").unwrap();
            assert_eq!(hidden(&hidden_paths, &workspace), [".env"]);
            fs::remove_file(root.join(".env")).unwrap();
            fs::write(root.join(format!("plain-{round}")), "p").unwrap();
            assert_eq!(hidden(&hidden_paths, &workspace), [".env"]);
        }
    }

    #[test]
    fn odd_names_and_links_protect_too() {
        let (folder, hidden_paths) = veiled(&[".pem", ".ssh"]);
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
            assert!(
                alias(&hidden_paths, &workspace, &format!("x{number}.txt")).is_some(),
                "{number}"
            );
        }
        let hidden = hidden(&hidden_paths, &workspace);
        for name in ["keys", "w.txt", "x0.txt", "x1.txt", "x2.txt", "$a.pem"] {
            assert!(hidden.contains(&name.into()), "{name} in {hidden:?}");
        }
    }

    #[test]
    fn a_folder_that_a_link_protects_stays_closed() {
        let (folder, hidden_paths) = veiled(&[".ssh"]);
        let root = folder.path();
        fs::create_dir(root.join("keys")).unwrap();
        symlink("keys", root.join(".ssh")).unwrap();
        let workspace = Workspace::open(root).unwrap();
        std::thread::sleep(CLOCK_TICK * 2);
        assert_eq!(hidden(&hidden_paths, &workspace), [".ssh", "keys"]);
        fs::write(root.join("plain"), "p").unwrap();
        assert_eq!(hidden(&hidden_paths, &workspace), [".ssh", "keys"]);
        fs::write(root.join("keys/new"), "s").unwrap();
        fs::hard_link(root.join("keys/new"), root.join("n.txt")).unwrap();
        assert_eq!(hidden(&hidden_paths, &workspace), [".ssh", "keys", "n.txt"]);
    }

    #[test]
    fn only_a_small_workspace_is_walked_ahead() {
        for (folders, small) in [(SMALL_WORKSPACE - 1, true), (SMALL_WORKSPACE + 2, false)] {
            let (folder, hidden_paths) = veiled(&[".env"]);
            for number in 0..folders {
                let path = folder.path().join(format!("{number:04}"));
                fs::create_dir(&path).unwrap();
                fs::write(path.join(".env"), "s").unwrap();
            }
            let workspace = Workspace::open(folder.path()).unwrap();
            assert_eq!(hidden_paths.scan_if_small(&workspace), small, "{folders}");
            assert_eq!(hidden_paths.index.get().is_some(), small, "nothing is half known");
            assert_eq!(hidden(&hidden_paths, &workspace).len(), folders);
        }
    }

    #[test]
    fn what_links_lead_to_later_is_hidden_later() {
        let (folder, hidden_paths) = veiled(&[".env"]);
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
        std::thread::sleep(CLOCK_TICK * 2);
        assert_eq!(hidden(&hidden_paths, &workspace), ["a/.env", "a/x.env", "v1/env"]);
        // What a link leads to is made; a link on the way is switched; a target is replaced.
        fs::write(root.join("shared/env"), "s").unwrap();
        fs::remove_file(root.join("current")).unwrap();
        symlink("v2", root.join("current")).unwrap();
        let now = hidden(&hidden_paths, &workspace);
        assert!(now.contains(&"shared/env".into()) && now.contains(&"v2/env".into()), "{now:?}");
        fs::remove_file(root.join("shared/env")).unwrap();
        fs::write(root.join("shared/env"), "new").unwrap();
        fs::hard_link(root.join("shared/env"), root.join("e.txt")).unwrap();
        assert!(hidden(&hidden_paths, &workspace).contains(&"e.txt".into()));
    }

    #[test]
    fn stores_of_earlier_runs_are_hidden() {
        let (folder, hidden_paths) = veiled(&[]);
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
        assert_eq!(hidden(&hidden_paths, &workspace), ["Run.DB", "Run.DB-wal", "notes.txt"]);
    }

    #[test]
    fn what_cannot_be_looked_into_is_hidden() {
        let (folder, hidden_paths) = veiled(&[".env"]);
        let root = folder.path();
        make_too_deep(root);
        fs::create_dir(root.join("shut")).unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o311)).unwrap();
        let workspace = Workspace::open(root).unwrap();
        let hidden = hidden_paths.hidden_now(&workspace).unwrap();
        assert!(hidden.iter().any(|path| path.len() > 4_096), "the first folder that is too deep");
        let may_read_all = fs::read_dir(root.join("shut")).is_ok();
        assert_eq!(hidden.contains(&OsString::from("shut")), !may_read_all);
    }
}
