//! Control files: files from which programs of the host load configuration or hooks, besides those that an
//! invariant names.
//!
//! A protected name may be a link, or a file `.git` that says where the repository is. Their targets get
//! the protected names as aliases ([`PathAliases`]), and so do the parts of a [`repository`] with another
//! name than `.git`, and the files that the configuration of a repository names ([`git_config`]). They are
//! looked for when the workspace is first walked, in the workspace as the host has it, without staged changes.

mod git_config;
pub(crate) mod git_pointer;
mod host_files;
mod link_trace;
mod mounts;
mod outer_repository;
mod repository;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_core::outcome::CodedError;
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::Invariants;
use rustix::fs::{AtFlags, FileType, statat};

use crate::resolve::{Workspace, workspace_path};
use crate::walk::{Visitor, WalkStep, WalkedEntry, walk};
pub(crate) use host_files::{PATH, VARIABLES};
use link_trace::{HostView, LinkTrace, TraceEnd};
use mounts::Mounts;
use outer_repository::OuterRepositories;
pub(crate) use repository::{
    GIT_NAME, REPOSITORY_PARTS, enclosing_repositories, has_repository_parts,
};
use user::User;
pub(crate) use user::Variables;

/// What a walk found that may lead to orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct AliasCandidates {
    /// Links, and files that say where a repository lies.
    links: BTreeSet<OsString>,
    /// Folders that were repositories.
    repositories: BTreeSet<OsString>,
}

impl AliasCandidates {
    /// The folders that were repositories, as far as their names are text.
    pub(crate) fn repositories(&self) -> Vec<String> {
        let names = self.repositories.iter().filter_map(|repository| repository.to_str());
        names.map(str::to_owned).collect()
    }

    /// Notes an entry that may lead elsewhere.
    pub(crate) fn note(
        &mut self,
        entry: &WalkedEntry<'_>,
        (invariants, spelling): (&Invariants, Spelling),
    ) {
        if is_named(entry, repository::HEAD, spelling) {
            let has = |part: &str| statat(entry.directory, part, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            let folder = Path::new(entry.path).parent().filter(|_| has_repository_parts(has));
            self.repositories.extend(folder.map(|path| path.as_os_str().to_owned()));
        }
        if leads_elsewhere(entry, spelling)
            && workspace_path(entry.path).is_ok_and(|name| invariants.concerns(&name))
        {
            self.links.insert(entry.path.to_owned());
        }
    }
}

/// Whether an entry may lead to orders.
pub(crate) fn is_candidate(entry: &WalkedEntry<'_>, spelling: Spelling) -> bool {
    leads_elsewhere(entry, spelling) || is_named(entry, repository::HEAD, spelling)
}

/// Whether an entry has a name, in whatever spelling.
fn is_named(entry: &WalkedEntry<'_>, name: &str, spelling: Spelling) -> bool {
    entry.name.to_str().is_some_and(|text| spelling.is_same(text, name))
}

/// Whether an entry may lead elsewhere.
fn leads_elsewhere(entry: &WalkedEntry<'_>, spelling: Spelling) -> bool {
    entry.kind == FileType::Symlink
        || entry.kind == FileType::RegularFile && is_named(entry, GIT_NAME, spelling)
}

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

struct AliasCollector<'g> {
    workspace: &'g Workspace,
    host: HostView<'g>,
    invariants: &'g Invariants,
    /// The user's home, which configurations may name.
    home: Option<PathBuf>,
    /// What gives orders to every repository of the user.
    user: User,
    aliases: PathAliases,
    /// The working trees of repositories that lie elsewhere.
    working_trees: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The repositories whose folder lies outside.
    outer_repositories: OuterRepositories,
    /// Links that are still to be followed, each with a name by which somebody comes to it.
    pending_links: Vec<(WorkspacePath, OsString)>,
    /// How many entries of places were seen.
    entries_seen: usize,
}

impl AliasCollector<'_> {
    /// A repository goes by the name that rules know, whatever it is called.
    fn add_repository(&mut self, folder: &Path) -> Result<(), CodedError> {
        match workspace_path(folder.as_os_str()) {
            Ok(path) if !self.is_git_name(folder.as_os_str()) && self.is_repository(folder) => {
                self.add_alias(&path.join(GIT_NAME), folder)
            }
            _ => Ok(()),
        }
    }

    fn is_git_name(&self, path: &OsStr) -> bool {
        let name = Path::new(path).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| self.workspace.spelling().is_same(name, GIT_NAME))
    }

    fn is_repository(&self, folder: &Path) -> bool {
        has_repository_parts(|part| self.host.kind(&folder.join(part)).is_some())
    }

    /// Follows all links that wait.
    fn follow_links(&mut self) -> Result<(), CodedError> {
        while let Some((name, link)) = self.pending_links.pop() {
            self.follow_link(&name, &link)?;
        }
        Ok(())
    }

    /// Follows a link, or a file that says where a repository lies.
    fn follow_link(&mut self, name: &WorkspacePath, link: &OsStr) -> Result<(), CodedError> {
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
    fn add_target(&mut self, name: &WorkspacePath, path: &Path) -> Result<(), CodedError> {
        self.add_target_for_tree(name, path, None)
    }

    /// A name leads where a path does, which may be the repository of a working tree.
    fn add_target_for_tree(
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
    fn noted(&mut self, name: &WorkspacePath, path: &Path) -> TraceEnd {
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
    fn add_alias(&mut self, name: &WorkspacePath, place: &Path) -> Result<(), CodedError> {
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
}

fn too_many_problem() -> CodedError {
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
