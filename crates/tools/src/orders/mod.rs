//! Which places of the workspace the host takes orders from, beside those that an invariant names.
//!
//! A protected name may be a link, or a file `.git` that says where the repository lies. What they lead
//! to is judged under that name, too ([`Orders`]), and so is what is in a [`repository`] by another name
//! than `.git`, and what the [`config`]uration of a repository names. It is looked for when the workspace is first walked,
//! in the workspace as the host has it, beneath whatever a run has staged.

mod config;
mod host_files;
mod mounts;
mod outer;
mod repository;
mod trail;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use capsule_core::code::Code;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_core::path::WorkspacePath;
use capsule_core::path_aliases::PathAliases;
use capsule_core::policy::Invariants;
use capsule_core::spelling::Spelling;
use rustix::fs::{AtFlags, FileType, statat};

use crate::walk::{Entry, Next, Visitor, walk};
use crate::workspace::{Workspace, told};
pub(crate) use host_files::{PATH, VARIABLES};
use mounts::Mounts;
use outer::Outer;
pub(crate) use repository::{GIT, PARTS, around, is_whole};
use trail::{End, Host, Trail};
use user::User;
pub(crate) use user::Variables;

/// What a walk found that may lead to orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leads {
    /// Links, and files that say where a repository lies.
    links: BTreeSet<OsString>,
    /// Folders that were repositories.
    repositories: BTreeSet<OsString>,
}

impl Leads {
    /// The folders that were repositories, as far as their names are text.
    pub(crate) fn repositories(&self) -> Vec<String> {
        let names = self.repositories.iter().filter_map(|own| own.to_str());
        names.map(str::to_owned).collect()
    }

    /// Notes an entry that may lead elsewhere.
    pub(crate) fn note(
        &mut self,
        entry: &Entry<'_>,
        (invariants, spelling): (&Invariants, Spelling),
    ) {
        if is_named(entry, repository::HEAD, spelling) {
            let has = |part: &str| statat(entry.folder, part, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            let folder = Path::new(entry.path).parent().filter(|_| is_whole(has));
            self.repositories.extend(folder.map(|own| own.as_os_str().to_owned()));
        }
        if leads_on(entry, spelling)
            && told(entry.path).is_ok_and(|name| invariants.concerns(&name))
        {
            self.links.insert(entry.path.to_owned());
        }
    }
}

/// Whether an entry may lead to orders.
pub(crate) fn is_lead(entry: &Entry<'_>, spelling: Spelling) -> bool {
    leads_on(entry, spelling) || is_named(entry, repository::HEAD, spelling)
}

/// Whether an entry has a name, in whatever spelling.
fn is_named(entry: &Entry<'_>, name: &str, spelling: Spelling) -> bool {
    entry.name.to_str().is_some_and(|own| spelling.is_same(own, name))
}

/// Whether an entry may lead elsewhere.
fn leads_on(entry: &Entry<'_>, spelling: Spelling) -> bool {
    entry.kind == FileType::Symlink
        || entry.kind == FileType::RegularFile && is_named(entry, GIT, spelling)
}

/// Follows what was found.
///
/// # Errors
/// [`Code::PathOrders`] where it is too much, so that not all of it can be known.
pub(crate) fn gather(
    workspace: &Workspace,
    leads: &Leads,
    (invariants, home): (&Invariants, Option<&Path>),
    (names, variables): (&[OsString], Variables<'_>),
) -> Result<PathAliases, CodedError> {
    let root = workspace.lower().unwrap_or_else(|| workspace.root());
    let mounts = Mounts::read(workspace.path());
    let host = Host { root, path: workspace.path(), mounts: &mounts };
    let named = |path: &OsString| Some((told(path).ok()?, path.clone()));
    let waiting = leads.links.iter().filter_map(named).collect();
    let (trees, outer, seen) = (BTreeMap::new(), Outer::new(), 0);
    let orders = PathAliases::spelled(workspace.spelling());
    let home = home.map(Path::to_owned);
    let user = User::of(home.as_deref(), variables);
    let mut gather =
        Gather { workspace, host, invariants, home, user, orders, trees, outer, waiting, seen };
    leads.repositories.iter().try_for_each(|folder| gather.repository(Path::new(folder)))?;
    gather.links()?;
    for folder in leads.repositories.iter().map(Path::new) {
        if gather.is_repository(folder) {
            gather.config(folder)?;
        }
    }
    gather.user()?;
    gather.above();
    gather.outer()?;
    gather.host_files(names, variables)?;
    // What configurations name may be links in turn.
    gather.links()?;
    Ok(gather.orders)
}

struct Gather<'g> {
    workspace: &'g Workspace,
    host: Host<'g>,
    invariants: &'g Invariants,
    /// The user's home, which configurations may name.
    home: Option<PathBuf>,
    /// What gives orders to every repository of the user.
    user: User,
    orders: PathAliases,
    /// The working trees of repositories that lie elsewhere.
    trees: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The repositories whose folder lies outside.
    outer: Outer,
    /// Links that are still to be followed, each with a name by which somebody comes to it.
    waiting: Vec<(WorkspacePath, OsString)>,
    /// How many entries of places were seen.
    seen: usize,
}

impl Gather<'_> {
    /// A repository goes by the name that rules know, whatever it is called.
    fn repository(&mut self, folder: &Path) -> Result<(), CodedError> {
        match told(folder.as_os_str()) {
            Ok(own) if !self.is_git(folder.as_os_str()) && self.is_repository(folder) => {
                self.place(&own.join(GIT), folder)
            }
            _ => Ok(()),
        }
    }

    fn is_git(&self, path: &OsStr) -> bool {
        let name = Path::new(path).file_name().and_then(OsStr::to_str);
        name.is_some_and(|own| self.workspace.spelling().is_same(own, GIT))
    }

    fn is_repository(&self, folder: &Path) -> bool {
        is_whole(|part| self.host.kind(&folder.join(part)).is_some())
    }

    /// Follows all links that wait.
    fn links(&mut self) -> Result<(), CodedError> {
        while let Some((name, link)) = self.waiting.pop() {
            self.link(&name, &link)?;
        }
        Ok(())
    }

    /// Follows a link, or a file that says where a repository lies.
    fn link(&mut self, name: &WorkspacePath, link: &OsStr) -> Result<(), CodedError> {
        match self.host.kind(Path::new(link)) {
            Some(FileType::Symlink) => {
                let tree = Path::new(link).parent().filter(|_| self.is_git(link));
                self.leads_to(name, Path::new(link), tree)
            }
            Some(FileType::RegularFile) => {
                let named = self.workspace.repository(link);
                let tree = Path::new(link).parent();
                let outer = self.pointer(Path::new(link));
                let named = named.iter().map(PathBuf::from).chain(outer);
                named.into_iter().try_for_each(|path| self.leads_to(name, &path, tree))
            }
            _ => Ok(()),
        }
    }

    /// A name leads where a path does.
    fn leads(&mut self, name: &WorkspacePath, path: &Path) -> Result<(), CodedError> {
        self.leads_to(name, path, None)
    }

    /// A name leads where a path does, which may be the repository of a working tree.
    fn leads_to(
        &mut self,
        name: &WorkspacePath,
        path: &Path,
        tree: Option<&Path>,
    ) -> Result<(), CodedError> {
        match self.noted(name, path) {
            End::Inside(place) => {
                if let Some(tree) = tree {
                    self.trees.entry(place.clone()).or_default().insert(tree.to_owned());
                }
                self.place(name, &place)
            }
            End::Outside(folder) => {
                if tree.is_some() {
                    self.outside(folder, name, tree);
                }
                Ok(())
            }
            End::Nowhere => Ok(()),
        }
    }

    /// Where a path leads, with what the name goes through on its way noted.
    fn noted(&mut self, name: &WorkspacePath, path: &Path) -> End {
        let Trail { end, through, steps } = self.host.follow(Path::new(""), path);
        for through in through.iter().filter_map(|own| told(own.as_os_str()).ok()) {
            self.orders.add_traversal(name, through);
        }
        for step in steps.iter().filter_map(|own| told(own.as_os_str()).ok()) {
            self.orders.add_alias(name, &step);
        }
        end
    }

    /// A name leads to a place, and on through what lies in it.
    fn place(&mut self, name: &WorkspacePath, place: &Path) -> Result<(), CodedError> {
        let Ok(own) = told(place.as_os_str()) else { return Ok(()) };
        if !self.orders.add_alias(name, &own) {
            return Ok(());
        }
        if self.orders.count() > limits::PATH_ALIASES {
            return Err(too_many());
        }
        if self.host.kind(place) != Some(FileType::Directory) {
            return Ok(());
        }
        let inner = Inner { spelling: self.workspace.spelling(), found: Mutex::default() };
        walk(self.workspace, vec![(place.into(), false)], &inner);
        let found = inner.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.seen += found.seen;
        if self.seen > limits::PATH_ALIAS_ENTRIES {
            return Err(too_many());
        }
        let depth = own.components().count();
        for link in found.links {
            let Ok(at) = told(&link) else { continue };
            let inner = at.components().skip(depth).fold(name.clone(), |own, part| own.join(part));
            if self.invariants.concerns(&inner) {
                self.waiting.push((inner, link));
            }
        }
        Ok(())
    }
}

fn too_many() -> CodedError {
    let message = format!(
        "protected links lead to more than {} places, or to folders with more than {} entries",
        limits::PATH_ALIASES,
        limits::PATH_ALIAS_ENTRIES
    );
    CodedError::new(Code::PathOrders, message).with_suggestion(Code::PathOrders.next_step())
}

/// Finds what leads on from a place.
struct Inner {
    spelling: Spelling,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    links: Vec<OsString>,
    seen: usize,
}

impl Visitor for Inner {
    fn entry(&self, entry: &Entry<'_>) -> Next {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen += 1;
        if leads_on(entry, self.spelling) {
            found.links.push(entry.path.to_owned());
        }
        Next::Enter
    }

    fn stop(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen > limits::PATH_ALIAS_ENTRIES
    }
}
