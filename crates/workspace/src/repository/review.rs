//! Looks through what a run made of repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use capsule_base::limits;
use capsule_base::path::WorkspacePath;
use capsule_base::path_aliases::PathAliases;
use capsule_core::change::{Change, FileState};

use super::compare::{Comparison, Moved, Protects, Refusal};
use super::database::Database;
use super::files::{Changed, Disk, Files, RunChanges};
use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::index::{Index, read_index};
use super::linked_trees::{LinkSearch, LinkedTrees, PLAIN};
use super::new_repositories::find_judged_paths;
use super::object::Content;
use super::own::Own;
use super::parts::{Parts, lent};
use super::refs::Refs;
use super::stopped_operation::split_name;
use crate::change_path::{inner_path, join, split_parent};
use crate::control_files::git_pointer::{COMMONDIR, git_path, named};
use crate::control_files::{GIT_NAME, has_repository_parts};
use crate::git_config;
use crate::resolve::Workspace;

/// What was found, by path: why a change may not be made.
pub type Reviewed = BTreeMap<String, String>;

/// What a run changed, and where it lies.
pub(crate) struct Review<'r> {
    workspace: &'r Workspace,
    /// The files of the working tree, as the user has them.
    disk: Disk<'r>,
    before: &'r dyn Files,
    after: &'r dyn Files,
    /// Where objects lie, old and new.
    objects: Vec<&'r dyn Files>,
    aliases: &'r PathAliases,
    protects: &'r dyn Protects,
    linked: Option<&'r LinkedTrees>,
}

/// Why some changes may not be made, among all that a run made: `before` is the workspace without them,
/// and `staged` where they lie.
pub(crate) fn review<'r>(
    workspace: &'r Workspace,
    (before, staged): (BorrowedFd<'r>, BorrowedFd<'r>),
    (all, some): (RunChanges<'r>, impl Iterator<Item = &'r Change>),
    (aliases, protects): (&'r PathAliases, &'r dyn Protects),
    linked: &'r LinkedTrees,
) -> Reviewed {
    let disk = |root| Disk { workspace, root };
    let (before, staged) = (disk(before), disk(staged));
    let after = Changed { before, staged, changes: all };
    // Those that the changes remove are still there.
    let objects: Vec<&dyn Files> = vec![&after, &before];
    let files = (&before as &dyn Files, &after as &dyn Files);
    let review = Review::new((workspace, before), files, objects, (aliases, protects));
    Review { linked: Some(linked), ..review }.of(some)
}

/// The working trees that some changes link or unlink, among all that a run made. See [`LinkedTrees`].
pub(crate) fn linked_trees<'r>(
    workspace: &'r Workspace,
    (before, staged): (BorrowedFd<'r>, BorrowedFd<'r>),
    (all, some): (RunChanges<'r>, &[Change]),
    (aliases, protects): (&'r PathAliases, &'r dyn Protects),
) -> LinkedTrees {
    let disk = |root| Disk { workspace, root };
    let (before, staged) = (disk(before), disk(staged));
    let after = Changed { before, staged, changes: all };
    let files = (&before as &dyn Files, &after as &dyn Files);
    let search = LinkSearch { root: workspace.path(), files, all: &after.changes };
    let mut found = search.find(some.iter());
    found.add_repositories(find_judged_paths(files, some, protects));
    let review =
        Review::new((workspace, before), files, vec![&after, &before], (aliases, protects));
    found.add_repositories(review.stopped_operations(some));
    if found.trees.is_empty() {
        return found;
    }
    let plain: Vec<(&str, &str)> = some
        .iter()
        .filter(|change| found.judged_as(&change.path).is_none())
        .filter(|change| {
            // By its path, whatever was found of it before.
            let unmarked = Change { judged_as: None, ..(*change).clone() };
            protects.refuse(&unmarked).is_some()
        })
        .filter_map(|change| {
            let (repository, rest) = found.tree_of(&change.path)?;
            review.had(repository, rest, change).ok()?.then_some((change.path.as_str(), rest))
        })
        .collect();
    plain.iter().for_each(|(path, rest)| found.add_content(path, rest));
    found
}

/// The folder of a repository, and the one that it shares with others.
struct Place {
    own: String,
    shared: String,
    /// The folders that its files stand in.
    trees: Vec<String>,
}

impl<'r> Review<'r> {
    pub(super) fn new(
        (workspace, disk): (&'r Workspace, Disk<'r>),
        (before, after): (&'r dyn Files, &'r dyn Files),
        objects: Vec<&'r dyn Files>,
        (aliases, protects): (&'r PathAliases, &'r dyn Protects),
    ) -> Self {
        Self { workspace, disk, before, after, objects, aliases, protects, linked: None }
    }

    /// Why some of the changes may not be made.
    pub(super) fn of<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> Reviewed {
        let (mut known, mut all) = (BTreeMap::new(), Reviewed::new());
        let mut by_repository: BTreeMap<String, Vec<&Change>> = BTreeMap::new();
        let is_link = |path: &str| self.linked.is_some_and(|all| all.judged_as(path).is_some());
        for change in changes.filter(|change| !is_link(&change.path)) {
            let folder = split_parent(&change.path).0;
            let found = known.entry(folder.to_owned()).or_insert_with(|| self.repository(folder));
            match found {
                Some(found) => by_repository.entry(found.clone()).or_default().push(change),
                None => all.extend(self.lent(change).map(|why| (change.path.clone(), why))),
            }
        }
        for (folder, changes) in by_repository {
            match self.place(&folder).and_then(|place| self.compared(&place, &changes)) {
                Ok(refused) => all.extend(refused),
                Err(flaw) => {
                    let paths = changes.iter().map(|change| change.path.clone());
                    all.extend(paths.map(|path| (path, flaw.told())));
                }
            }
        }
        all
    }

    /// The repository that a folder is, or lies in: the innermost one, before the changes or with them.
    fn repository(&self, folder: &str) -> Option<String> {
        let is_repository = |folder: &str| {
            let has =
                |files: &dyn Files| has_repository_parts(|part| files.exists(&join(folder, part)));
            has(self.before) || has(self.after)
        };
        let mut way = Some(folder);
        while let Some(folder) = way {
            if is_repository(folder) {
                return Some(folder.to_owned());
            }
            way = (!folder.is_empty()).then(|| split_parent(folder).0);
        }
        None
    }

    fn place(&self, folder: &str) -> Result<Place, Flaw> {
        let linked = self.linked.and_then(|all| all.links.get(folder));
        let (shared, trees) = match linked {
            Some((shared, tree)) => (shared.clone(), vec![tree.clone()]),
            None => self.shared_and_trees(folder)?,
        };
        Ok(Place { own: folder.to_owned(), shared, trees })
    }

    /// The directory that a repository shares with others, and those that its files are in.
    fn shared_and_trees(&self, directory: &str) -> Result<(String, Vec<String>), Flaw> {
        let names =
            self.aliases.aliases_of(&WorkspacePath::from_fs_name(directory).unwrap_or_default());
        let names = names.into_iter().chain(WorkspacePath::from_fs_name(directory));
        let tree = |name: WorkspacePath| name.parent().filter(|_| name.name() == Some(GIT_NAME));
        let mut trees: BTreeSet<String> =
            names.filter_map(tree).map(|path| path.as_str().to_owned()).collect();
        if trees.is_empty() {
            trees.insert(directory.to_owned());
        }
        let most = u64::try_from(limits::PATH_BYTES).unwrap_or(u64::MAX);
        let text = self.before.read(&join(directory, COMMONDIR), most)?;
        let shared = match text.as_deref().and_then(git_path) {
            None => directory.to_owned(),
            Some(named) => inner_path(directory, &named).ok_or_else(|| {
                Flaw::new("it shares its objects with one outside of the workspace")
            })?,
        };
        Ok((shared, trees.into_iter().collect()))
    }

    fn format(&self, place: &Place) -> Result<Format, Flaw> {
        let text = self.before.read(&join(&place.shared, "config"), limits::CONFIG_BYTES)?;
        let settings = git_config::settings(&text.unwrap_or_default());
        let settings = settings.map_err(|_| Flaw::new("its configuration is broken"))?;
        let mut formats =
            settings.iter().filter(|setting| setting.is("extensions", "objectformat"));
        match formats.next_back().and_then(|setting| setting.value.as_deref()) {
            None => Ok(Format::Sha1),
            Some(name) if name.eq_ignore_ascii_case(b"sha1") => Ok(Format::Sha1),
            Some(name) if name.eq_ignore_ascii_case(b"sha256") => Ok(Format::Sha256),
            Some(_) => Err(Flaw::new("it names its objects in a way that is not known")),
        }
    }

    fn compared(&self, place: &Place, changes: &[&Change]) -> Result<Reviewed, Flaw> {
        self.opened(place, &|parts| {
            let mut reviewed = Reviewed::new();
            for change in changes {
                let name = change.path.strip_prefix(&place.own).unwrap_or(&change.path);
                let name = name.strip_prefix('/').unwrap_or(name);
                match parts.part(name, change) {
                    Ok(None) => {}
                    Ok(Some(why)) => drop(reviewed.insert(change.path.clone(), told(&why))),
                    Err(flaw) => drop(reviewed.insert(change.path.clone(), flaw.told())),
                }
            }
            Ok(reviewed)
        })
    }

    /// Opens a repository, as it was and as it is.
    fn opened<T>(
        &self,
        place: &Place,
        act: &dyn Fn(&Parts<'_>) -> Result<T, Flaw>,
    ) -> Result<T, Flaw> {
        let (format, root) = (self.format(place)?, self.workspace.path());
        let objects = join(&place.shared, "objects");
        let database = Database::open(format, (&self.objects, &objects), root)?;
        let folders = [place.own.as_str(), &place.shared];
        let refs = Refs::new(format, self.before, folders);
        let refs_now = Refs::new(format, self.after, folders);
        let index = read_index(format, self.before, &place.own);
        let (none, head) = (Index::default(), refs.resolve("HEAD")?);
        let known = (index.as_ref().unwrap_or(&none), &refs, head);
        let item = Own::new(&database, (self.disk, &place.trees), known);
        let submodule = |path: &str, id: &ObjectId| self.submodule(place, path, id);
        let comparison = Comparison::new(&item, self.protects, &submodule);
        act(&Parts {
            format,
            place: &place.own,
            files: (self.before, self.after),
            index: index.as_ref().err(),
            refs: (&refs, &refs_now),
            comparison: &comparison,
        })
    }

    /// The paths that git writes for an operation that stopped and that give it no orders, each with the one by which rules
    /// judge it.
    fn stopped_operations(&self, changes: &[Change]) -> Vec<(String, String)> {
        let mut by_repository: BTreeMap<&str, Vec<(&str, &Change)>> = BTreeMap::new();
        for change in changes {
            let parts = change.path.match_indices('/').map(|(at, _)| change.path.split_at(at));
            for (directory, rest) in parts {
                let name = rest.trim_start_matches('/');
                if split_parent(directory).1 == GIT_NAME && split_name(name).is_some() {
                    by_repository.entry(directory).or_default().push((name, change));
                }
            }
        }
        let mut all = Vec::new();
        for (directory, changes) in by_repository {
            let inert = self.place(directory).and_then(|place| {
                self.opened(&place, &|parts| {
                    let is_inert = |(name, change): &&(&str, &Change)| {
                        parts.is_inert(name, change).unwrap_or(false)
                    };
                    Ok(changes
                        .iter()
                        .filter(is_inert)
                        .map(|(_, change)| change.path.clone())
                        .collect())
                })
            });
            let inert: Vec<String> = inert.unwrap_or_default();
            all.extend(inert.into_iter().map(|path| (path, join(directory, PLAIN))));
        }
        all
    }

    /// Whether what a change brings to a path of a working tree, or takes from there, is what the user's own side
    /// of the repository had at that path.
    fn had(&self, repository: &str, path: &str, change: &Change) -> Result<bool, Flaw> {
        let (state, files) = match &change.after {
            Some(after) => (after, self.after),
            None => (change.before.as_ref().unwrap_or(&FileState::Special), self.before),
        };
        let place = self.place(repository)?;
        let format = self.format(&place)?;
        let content = match state {
            FileState::Directory { .. } => return Ok(true),
            FileState::Special => return Ok(false),
            FileState::Link { target } => Content::link(format, target),
            FileState::File { mode, .. } => {
                let bytes = files.read(&change.path, limits::GIT_OBJECT_BYTES)?;
                Content::file(format, *mode, &bytes.unwrap_or_default())
            }
        };
        self.opened(&place, &|parts| parts.comparison.own.has(path.as_bytes(), content))
    }

    /// What a submodule would bring that is to be at another commit.
    fn submodule(&self, place: &Place, path: &str, id: &ObjectId) -> Refusal {
        for tree in &place.trees {
            let files = join(tree, path);
            let Some(folder) = self.repository_of(&files)? else { continue };
            let inner = Place { trees: vec![files], ..self.place(&folder)? };
            let after = *id;
            let moved = Moved { before: None, after, is_strict: true, keeps: false };
            return self.opened(&inner, &|parts| parts.comparison.moved(moved));
        }
        Err(Flaw::new(format!("the repository of the submodule `{path}` is not here")))
    }

    /// The folder of the repository whose files stand in another one.
    fn repository_of(&self, files: &str) -> Result<Option<String>, Flaw> {
        let pointer = join(files, GIT_NAME);
        if self.before.exists(&join(&pointer, "HEAD")) {
            return Ok(Some(pointer));
        }
        if !self.before.exists(&pointer) {
            return Ok(None);
        }
        let most = u64::try_from(limits::PATH_BYTES).unwrap_or(u64::MAX);
        let text = self.before.read(&pointer, most)?.unwrap_or_default();
        Ok(named(&text).and_then(|named| inner_path(files, &named)))
    }

    /// A folder that lends its objects to a repository, and is in none itself.
    fn lent(&self, change: &Change) -> Option<String> {
        let path = WorkspacePath::from_fs_name(&change.path)?;
        let is_git = |part: &&str| *part == GIT_NAME;
        let rest = self.aliases.aliases_of(&path).iter().find_map(|name| {
            let mut parts = name.components().skip_while(|part| !is_git(part)).skip(1);
            (parts.next() == Some("objects")).then(|| parts.collect::<Vec<_>>().join("/"))
        })?;
        let refused = [Format::Sha1, Format::Sha256]
            .map(|format| lent(format, &rest, (change, self.after)).map_err(|flaw| flaw.told()));
        refused
            .into_iter()
            .find(Result::is_ok)
            .unwrap_or_else(|| Err("git would take it for objects, and it is none of them".into()))
            .err()
    }
}

fn told(why: &str) -> String {
    format!("git would take it for content of files: {why}")
}
