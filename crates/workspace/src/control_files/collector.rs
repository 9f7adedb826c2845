//! Collects the aliases of protected names: where links, pointers and configurations lead.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_base::spelling::Spelling;
use capsule_core::outcome::CodedError;
use capsule_core::policy::Invariants;
use rustix::fs::FileType;

use super::candidates::{AliasCandidates, leads_elsewhere};
use super::link_trace::{HostView, LinkTrace, TraceEnd};
use super::mounts::Mounts;
use super::repository::{GIT_NAME, has_repository_parts};
use super::user::{User, Variables};
use crate::resolve::{Workspace, workspace_path};
use crate::walk::{Visitor, WalkStep, WalkedEntry, walk};

/// Repositories by their folder: the name that rules know each by, and its working trees.
pub(super) type OuterRepositories = BTreeMap<PathBuf, (WorkspacePath, BTreeSet<PathBuf>)>;

/// Follows what was found.
///
/// # Errors
/// [`Code::PathOrders`] where it is too much, so that not all of it can be known.
pub(crate) fn collect_aliases(
    workspace: &Workspace,
    candidates: &AliasCandidates,
    (invariants, home): (&Invariants, Option<&Path>),
    (names, variables): (&[OsString], Variables<'_>),
) -> Result<PathAliases, CodedError> {
    let root = workspace.lower().unwrap_or_else(|| workspace.root());
    let mounts = Mounts::read(workspace.path());
    let host = HostView { root, root_path: workspace.path(), mounts: &mounts };
    let named = |path: &OsString| Some((workspace_path(path).ok()?, path.clone()));
    let waiting = candidates.links.iter().filter_map(named).collect();
    let (trees, outer, seen) = (BTreeMap::new(), OuterRepositories::new(), 0);
    let aliases = PathAliases::spelled(workspace.spelling());
    let home = home.map(Path::to_owned);
    let user = User::of(home.as_deref(), variables);
    let mut gather = AliasCollector {
        workspace,
        host,
        invariants,
        home,
        user,
        aliases,
        working_trees: trees,
        outer_repositories: outer,
        pending_links: waiting,
        entries_seen: seen,
    };
    candidates
        .repositories
        .iter()
        .try_for_each(|folder| gather.add_repository(Path::new(folder)))?;
    gather.follow_links()?;
    for folder in candidates.repositories.iter().map(Path::new) {
        if gather.is_repository(folder) {
            gather.add_config(folder)?;
        }
    }
    gather.user()?;
    gather.add_enclosing_repositories();
    gather.follow_outer_repositories()?;
    gather.host_files(names, variables)?;
    // What configurations name may be links in turn.
    gather.follow_links()?;
    Ok(gather.aliases)
}

pub(super) struct AliasCollector<'g> {
    pub(super) workspace: &'g Workspace,
    pub(super) host: HostView<'g>,
    pub(super) invariants: &'g Invariants,
    /// The user's home, which configurations may name.
    pub(super) home: Option<PathBuf>,
    /// What gives orders to every repository of the user.
    pub(super) user: User,
    pub(super) aliases: PathAliases,
    /// The working trees of repositories that lie elsewhere.
    pub(super) working_trees: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The repositories whose folder lies outside.
    pub(super) outer_repositories: OuterRepositories,
    /// Links that are still to be followed, each with a name by which somebody comes to it.
    pub(super) pending_links: Vec<(WorkspacePath, OsString)>,
    /// How many entries of places were seen.
    pub(super) entries_seen: usize,
}

impl AliasCollector<'_> {
    /// A repository goes by the name that rules know, whatever it is called.
    pub(super) fn add_repository(&mut self, folder: &Path) -> Result<(), CodedError> {
        match workspace_path(folder.as_os_str()) {
            Ok(path) if !self.is_git_name(folder.as_os_str()) && self.is_repository(folder) => {
                self.add_alias(&path.join(GIT_NAME), folder)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_git_name(&self, path: &OsStr) -> bool {
        let name = Path::new(path).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| self.workspace.spelling().is_same(name, GIT_NAME))
    }

    pub(super) fn is_repository(&self, folder: &Path) -> bool {
        has_repository_parts(|part| self.host.kind(&folder.join(part)).is_some())
    }

    /// Follows all links that wait.
    pub(super) fn follow_links(&mut self) -> Result<(), CodedError> {
        while let Some((name, link)) = self.pending_links.pop() {
            self.follow_link(&name, &link)?;
        }
        Ok(())
    }

    /// Follows a link, or a file that says where a repository lies.
    pub(super) fn follow_link(
        &mut self,
        name: &WorkspacePath,
        link: &OsStr,
    ) -> Result<(), CodedError> {
        match self.host.kind(Path::new(link)) {
            Some(FileType::Symlink) => {
                let tree = Path::new(link).parent().filter(|_| self.is_git_name(link));
                self.add_target_for_tree(name, Path::new(link), tree)
            }
            Some(FileType::RegularFile) => {
                let named = self.workspace.repository_paths(link);
                let tree = Path::new(link).parent();
                let outer = self.gitdir_target(Path::new(link));
                let named = named.iter().map(PathBuf::from).chain(outer);
                named.into_iter().try_for_each(|path| self.add_target_for_tree(name, &path, tree))
            }
            _ => Ok(()),
        }
    }

    /// A name leads where a path does.
    pub(super) fn add_target(
        &mut self,
        name: &WorkspacePath,
        path: &Path,
    ) -> Result<(), CodedError> {
        self.add_target_for_tree(name, path, None)
    }

    /// A name leads where a path does, which may be the repository of a working tree.
    pub(super) fn add_target_for_tree(
        &mut self,
        name: &WorkspacePath,
        path: &Path,
        tree: Option<&Path>,
    ) -> Result<(), CodedError> {
        match self.noted(name, path) {
            TraceEnd::Inside(place) => {
                if let Some(tree) = tree {
                    self.working_trees.entry(place.clone()).or_default().insert(tree.to_owned());
                }
                self.add_alias(name, &place)
            }
            TraceEnd::Outside(folder) => {
                if tree.is_some() {
                    self.add_outer_repository(folder, name, tree);
                }
                Ok(())
            }
            TraceEnd::TooManyLinks => Ok(()),
        }
    }

    /// Where a path leads, with what the name goes through on its way noted.
    pub(super) fn noted(&mut self, name: &WorkspacePath, path: &Path) -> TraceEnd {
        let LinkTrace { end, intermediate: through, names: steps } =
            self.host.trace(Path::new(""), path);
        for through in through.iter().filter_map(|path| workspace_path(path.as_os_str()).ok()) {
            self.aliases.add_traversal(name, through);
        }
        for step in steps.iter().filter_map(|step| workspace_path(step.as_os_str()).ok()) {
            self.aliases.add_alias(name, &step);
        }
        end
    }

    /// A name leads to a place, and on through what lies in it.
    pub(super) fn add_alias(
        &mut self,
        name: &WorkspacePath,
        place: &Path,
    ) -> Result<(), CodedError> {
        let Ok(path) = workspace_path(place.as_os_str()) else { return Ok(()) };
        if !self.aliases.add_alias(name, &path) {
            return Ok(());
        }
        if self.aliases.count() > limits::PATH_ALIASES {
            return Err(too_many_problem());
        }
        if self.host.kind(place) != Some(FileType::Directory) {
            return Ok(());
        }
        let inner = LinkFinder { spelling: self.workspace.spelling(), found: Mutex::default() };
        walk(self.workspace, vec![(place.into(), false)], &inner);
        let found = inner.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.entries_seen += found.seen;
        if self.entries_seen > limits::PATH_ALIAS_ENTRIES {
            return Err(too_many_problem());
        }
        let depth = path.components().count();
        for link in found.links {
            let Ok(at) = workspace_path(&link) else { continue };
            let inner = at
                .components()
                .skip(depth)
                .fold(name.clone(), |component, part| component.join(part));
            if self.invariants.concerns(&inner) {
                self.pending_links.push((inner, link));
            }
        }
        Ok(())
    }

    /// Notes what of the workspace gives orders to every repository of the user, whether there is one here or
    /// not, and the repositories that variables name.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn user(&mut self) -> Result<(), CodedError> {
        let name = WorkspacePath::root().join(GIT_NAME);
        for file in self.user.files.clone() {
            self.add_target(&name.join("config"), &file)?;
        }
        for file in self.user.attributes.clone() {
            self.add_target(&name.join("info").join("attributes"), &file)?;
        }
        for (folder, tree) in self.user.repositories.clone() {
            let tree = tree.unwrap_or_default();
            self.add_target_for_tree(&name, &folder, Some(&tree))?;
        }
        // What it names from a working tree is read with each of them.
        self.add_config_as(Path::new(GIT_NAME), name, BTreeSet::from([PathBuf::new()]))
    }
}

/// The problem where not all control files can be known.
pub(super) fn too_many_problem() -> CodedError {
    let message = format!(
        "protected links lead to more than {} places, or to folders with more than {} entries",
        limits::PATH_ALIASES,
        limits::PATH_ALIAS_ENTRIES
    );
    CodedError::new(Code::PathOrders, message).with_suggestion(Code::PathOrders.next_step())
}

/// Finds what leads on from a place.
struct LinkFinder {
    spelling: Spelling,
    found: Mutex<FoundLinks>,
}

#[derive(Default)]
struct FoundLinks {
    links: Vec<OsString>,
    seen: usize,
}

impl Visitor for LinkFinder {
    fn entry(&self, entry: &WalkedEntry<'_>) -> WalkStep {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen += 1;
        if leads_elsewhere(entry, self.spelling) {
            found.links.push(entry.path.to_owned());
        }
        WalkStep::Enter
    }

    fn should_stop(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen > limits::PATH_ALIAS_ENTRIES
    }
}
