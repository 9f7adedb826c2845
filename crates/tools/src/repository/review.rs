//! Looks through what a run made of repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::Path;

use capsule_core::change::{Change, Node};
use capsule_core::limits;
use capsule_core::orders::Orders;
use capsule_core::path::WorkspacePath;

use super::compare::{Comparison, Moved, Refusal};
use super::database::{Database, pack};
use super::files::{Changed, Disk, Files};
use super::id::{Format, ObjectId};
use super::index::Index;
use super::layout::{Part, may_hold, part};
use super::own::Own;
use super::refs::{Refs, Value, logged, value};
use super::{Flaw, Protects, commit_graph, join, loose};
use crate::git_config;
use crate::making::split;
use crate::orders::{GIT, is_whole};
use crate::workspace::Workspace;
use crate::workspace::pointer::{SHARED, path};

/// What was found, by path: why a change may not be made.
pub(crate) type Reviewed = BTreeMap<String, String>;

/// What a run changed, and where it lies.
pub(crate) struct Review<'r> {
    workspace: &'r Workspace,
    /// The files of the working tree, as the user has them.
    disk: Disk<'r>,
    before: &'r dyn Files,
    after: &'r dyn Files,
    /// Where objects lie, old and new.
    objects: Vec<&'r dyn Files>,
    orders: &'r Orders,
    protects: &'r dyn Protects,
}

/// Why some changes may not be made, among all that a run made: `before` is the workspace without them,
/// and `staged` where they lie.
pub(crate) fn review<'r>(
    workspace: &'r Workspace,
    (before, staged): (BorrowedFd<'r>, BorrowedFd<'r>),
    (all, some): (impl Iterator<Item = &'r Change>, impl Iterator<Item = &'r Change>),
    (orders, protects): (&'r Orders, &'r dyn Protects),
) -> Reviewed {
    let disk = |root| Disk { workspace, root };
    let (before, staged) = (disk(before), disk(staged));
    let changes = all.map(|own| (own.path.as_str(), own)).collect();
    let after = Changed { before, staged, changes: &changes };
    // Those that the changes remove are still there.
    let objects: Vec<&dyn Files> = vec![&after, &before];
    let files = (&before as &dyn Files, &after as &dyn Files);
    Review::new((workspace, before), files, objects, (orders, protects)).of(some)
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
        (orders, protects): (&'r Orders, &'r dyn Protects),
    ) -> Self {
        Self { workspace, disk, before, after, objects, orders, protects }
    }

    /// Why some of the changes may not be made.
    pub(super) fn of<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> Reviewed {
        let mut known = BTreeMap::new();
        let mut by_repository: BTreeMap<String, Vec<&Change>> = BTreeMap::new();
        for change in changes {
            let folder = split(&change.path).0;
            let found = known.entry(folder.to_owned()).or_insert_with(|| self.repository(folder));
            if let Some(found) = found {
                by_repository.entry(found.clone()).or_default().push(change);
            }
        }
        let mut all = Reviewed::new();
        for (folder, changes) in by_repository {
            match self.place(&folder).and_then(|place| self.compared(&place, &changes)) {
                Ok(refused) => all.extend(refused),
                Err(flaw) => {
                    let paths = changes.iter().map(|own| own.path.clone());
                    all.extend(paths.map(|path| (path, flaw.told())));
                }
            }
        }
        all
    }

    /// The repository that a folder is, or lies in: the innermost one, before the changes or with them.
    fn repository(&self, folder: &str) -> Option<String> {
        let is_repository = |folder: &str| {
            let has = |files: &dyn Files| is_whole(|part| files.stands(&join(folder, part)));
            has(self.before) || has(self.after)
        };
        let mut way = Some(folder);
        while let Some(folder) = way {
            if is_repository(folder) {
                return Some(folder.to_owned());
            }
            way = (!folder.is_empty()).then(|| split(folder).0);
        }
        None
    }

    fn place(&self, folder: &str) -> Result<Place, Flaw> {
        let names = self.orders.names(&WorkspacePath::beneath(folder).unwrap_or_default());
        let names = names.into_iter().chain(WorkspacePath::beneath(folder));
        let tree = |name: WorkspacePath| name.parent().filter(|_| name.name() == Some(GIT));
        let mut trees: BTreeSet<String> =
            names.filter_map(tree).map(|own| own.as_str().to_owned()).collect();
        if trees.is_empty() {
            trees.insert(folder.to_owned());
        }
        let own = folder.to_owned();
        let most = u64::try_from(limits::PATH_BYTES).unwrap_or(u64::MAX);
        let text = self.before.read(&join(folder, SHARED), most)?;
        let shared = match text.as_deref().and_then(path) {
            None => own.clone(),
            Some(named) => beneath(folder, &named).ok_or_else(|| {
                Flaw::new("it shares its objects with one outside of the workspace")
            })?,
        };
        Ok(Place { own, shared, trees: trees.into_iter().collect() })
    }

    fn format(&self, place: &Place) -> Result<Format, Flaw> {
        let text = self.before.read(&join(&place.shared, "config"), limits::CONFIG_BYTES)?;
        let settings = git_config::settings(&text.unwrap_or_default());
        let settings = settings.map_err(|_| Flaw::new("its configuration is broken"))?;
        let mut formats = settings.iter().filter(|own| own.is("extensions", "objectformat"));
        match formats.next_back().and_then(|own| own.value.as_deref()) {
            None => Ok(Format::Sha1),
            Some(name) if name.eq_ignore_ascii_case(b"sha1") => Ok(Format::Sha1),
            Some(name) if name.eq_ignore_ascii_case(b"sha256") => Ok(Format::Sha256),
            Some(_) => Err(Flaw::new("it names its objects in a way that is not known")),
        }
    }

    fn compared(&self, place: &Place, changes: &[&Change]) -> Result<Reviewed, Flaw> {
        let (format, root) = (self.format(place)?, self.workspace.path());
        let objects = join(&place.shared, "objects");
        let database = Database::open(format, (&self.objects, &objects), root)?;
        let folders = [place.own.as_str(), &place.shared];
        let (refs, refs_now) =
            (Refs::new(format, self.before, folders), Refs::new(format, self.after, folders));
        let read = |files: &dyn Files| -> Result<Index, Flaw> {
            match files.read(&join(&place.own, "index"), limits::GIT_INDEX_BYTES)? {
                Some(bytes) => Index::parse(format, &bytes),
                None => Ok(Index::default()),
            }
        };
        let index = read(self.before);
        let none = Index::default();
        let head = refs.resolve("HEAD")?;
        let known = (index.as_ref().unwrap_or(&none), &refs, head);
        let own = Own::new(&database, (self.disk, &place.trees), known);
        let comparison = Comparison::new(&own, self.protects);
        let files = (self.before, self.after);
        let parts = Parts::new((format, place), files, (&refs, refs_now), (comparison, &database));
        let mut reviewed = Reviewed::new();
        for change in changes {
            let name = change.path.strip_prefix(&place.own).unwrap_or(&change.path);
            let name = name.strip_prefix('/').unwrap_or(name);
            let refused = match part(format, name) {
                Part::Index if is_new_file(change) || change.after.is_none() => {
                    index.as_ref().map_err(Clone::clone).and_then(|_| {
                        let head = parts.refs_now.resolve("HEAD")?;
                        parts.comparison.index(&read(self.after)?, head)
                    })
                }
                own => parts.part(name, &own, change),
            };
            match refused {
                Ok(None) => {}
                Ok(Some(why)) => drop(reviewed.insert(change.path.clone(), told(&why))),
                Err(flaw) => drop(reviewed.insert(change.path.clone(), flaw.told())),
            }
        }
        Ok(reviewed)
    }
}

fn told(why: &str) -> String {
    format!("git would take it for content of files: {why}")
}

impl Flaw {
    fn told(&self) -> String {
        format!("what git would make of it cannot be compared: {}", self.0)
    }
}

/// A path that is named in a folder, as one beneath the workspace; none where it leads out.
fn beneath(folder: &str, named: &Path) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in named.to_str()?.split('/') {
        match part {
            "" if named.is_absolute() => return None,
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Whether a change brings a regular file with other content.
fn is_new_file(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after @ Node::File { .. })) => !before.is_like(after),
        (None, Some(Node::File { .. })) => true,
        _ => false,
    }
}

/// The parts of a repository that were changed.
struct Parts<'p> {
    format: Format,
    before: &'p dyn Files,
    files: &'p dyn Files,
    database: &'p Database<'p>,
    refs: &'p Refs<'p>,
    refs_now: Refs<'p>,
    comparison: Comparison<'p>,
    place: &'p Place,
}

impl<'p> Parts<'p> {
    fn new(
        (format, place): (Format, &'p Place),
        (before, files): (&'p dyn Files, &'p dyn Files),
        (refs, refs_now): (&'p Refs<'p>, Refs<'p>),
        (comparison, database): (Comparison<'p>, &'p Database<'p>),
    ) -> Self {
        Self { format, before, files, database, refs, refs_now, comparison, place }
    }

    fn part(&self, name: &str, part: &Part<'_>, change: &Change) -> Refusal {
        let closed = |why: &str| Ok(Some(why.to_owned()));
        match (&change.after, part) {
            (_, Part::Control) => Ok(None),
            (_, Part::Fixed(why)) => closed(why),
            (Some(Node::Folder { .. }), _) if may_hold(name) || is_folder(&change.before) => {
                Ok(None)
            }
            (Some(Node::File { .. }), _) if !is_new_file(change) => Ok(None),
            (Some(_), Part::Closed(why)) => closed(why),
            (Some(Node::File { .. }), Part::Unknown) => self.unknown(name),
            (None, Part::Reference(name)) => self.reference(name),
            (None, Part::PackedReferences) => self.packed(),
            (None, _) => Ok(None),
            (Some(Node::File { .. }), part) => self.file(name, part, change),
            _ => closed("git takes nothing but regular files for its own"),
        }
    }

    /// A regular file that is new, or another than before.
    fn file(&self, name: &str, part: &Part<'_>, change: &Change) -> Refusal {
        match part {
            Part::Reference(name) => self.reference(name),
            Part::PackedReferences => self.packed(),
            Part::Objects => self.named(name),
            Part::Start => self.start(name),
            Part::Log => self.log(name),
            Part::CommitGraph => {
                let bytes = self.read(name, limits::GIT_REFS_BYTES)?;
                commit_graph::verify(&bytes, self.database).map(|()| None)
            }
            Part::Loose(id) => self.loose(name, id),
            Part::Pack(pack) => self.pack(pack),
            Part::Large(name) => Ok(large(name, change)),
            _ => Ok(None),
        }
    }

    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Flaw> {
        let text = self.files.read(&join(&self.place.own, name), most)?;
        text.ok_or_else(|| Flaw::new("it is gone"))
    }

    fn loose(&self, name: &str, id: &ObjectId) -> Refusal {
        let file = self.files.open(&join(&self.place.own, name))?;
        let file = file.ok_or_else(|| Flaw::new("it is gone"))?;
        match loose::hash(&file, self.format, &self.database.budget)? == *id {
            true => Ok(None),
            false => Err(Flaw::new("an object has another content than its name says")),
        }
    }

    fn pack(&self, name: &str) -> Refusal {
        let folder = join(&self.place.own, "objects/pack");
        match pack(self.files, &folder, (name, self.format))? {
            // One that a command changed in the workspace itself: git says by a date that it still needs it.
            Some(pack) if pack.bytes()? > limits::FILE_BYTES => Ok(None),
            Some(pack) => pack.verify(&self.database.budget).map(|()| None),
            None => Err(Flaw::new("a pack is without its index")),
        }
    }

    /// A file that git does not have there. It may be a reference.
    fn unknown(&self, name: &str) -> Refusal {
        let is_own = split(&self.place.own).1 == GIT;
        let text = self.read(name, limits::GIT_REFS_BYTES);
        if is_own || text.is_ok_and(|text| value(self.format, &text).is_some()) {
            return Ok(Some("it is not known what git, or another program, takes it for".into()));
        }
        Ok(None)
    }

    /// A reference that was changed, made or removed.
    fn reference(&self, name: &str) -> Refusal {
        let now = self.refs_now.loose(name)?;
        if now.is_none() && self.files.stands(&join(&self.place.own, name)) {
            return Err(Flaw::new("it is no reference"));
        }
        let is_head = name == "HEAD";
        if let (true, Some(Value::Reference(to))) = (is_head, &now)
            && !to.starts_with("refs/heads/")
        {
            return Ok(Some("`HEAD` stands for something else than a branch".into()));
        }
        match self.moved(name, self.refs_now.resolve(name)?)? {
            None => self.branch(name),
            refused => Ok(refused),
        }
    }

    /// `HEAD` moves with its branch.
    fn branch(&self, name: &str) -> Refusal {
        match self.refs_now.loose("HEAD")? {
            Some(Value::Reference(to)) if to == name => {
                self.moved("HEAD", self.refs_now.resolve("HEAD")?)
            }
            _ => Ok(None),
        }
    }

    fn moved(&self, name: &str, after: Option<ObjectId>) -> Refusal {
        let (Some(after), before) = (after, self.refs.resolve(name)?) else { return Ok(None) };
        if before == Some(after) {
            return Ok(None);
        }
        let is_head = name == "HEAD";
        let is_strict =
            before.is_some() || !name.starts_with("refs/heads/") || self.shadows(name)?;
        let keeps = is_head || name.starts_with("refs/heads/");
        self.comparison.moved(Moved { before, after, is_strict, keeps })
    }

    /// Whether a new branch would be taken for another reference that is called the same.
    fn shadows(&self, name: &str) -> Result<bool, Flaw> {
        let short = name.strip_prefix("refs/heads/").unwrap_or(name);
        for other in ["refs/remotes/", "refs/"] {
            if self.refs.resolve(&format!("{other}{short}"))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn packed(&self) -> Refusal {
        let (before, now) = (self.refs.packed()?, self.refs_now.packed()?);
        for (name, id) in &now.refs {
            if before.refs.get(name) == Some(id) {
                continue;
            }
            if name.starts_with("refs/replace/") {
                return Ok(Some("it puts one object in another's place".into()));
            }
            if let Some(why) = self.moved(name, Some(*id))? {
                return Ok(Some(why));
            }
        }
        // What a file of its own hid before.
        for name in before.refs.keys().filter(|name| !now.refs.contains_key(*name)) {
            if let Some(why) = self.moved(name, self.refs_now.resolve(name)?)? {
                return Ok(Some(why));
            }
        }
        for id in now.peeled.difference(&before.peeled) {
            if let Some(why) = self.objects([*id].into())? {
                return Ok(Some(why));
            }
        }
        match self.refs_now.loose("HEAD")? {
            Some(Value::Reference(to)) => self.branch(&to),
            _ => Ok(None),
        }
    }

    /// Objects that git uses where it is told to.
    fn named(&self, name: &str) -> Refusal {
        let text = self.read(name, limits::GIT_REFS_BYTES)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut all = BTreeSet::new();
        for line in lines {
            match value(self.format, line) {
                Some(Value::Object(id)) => drop(all.insert(id)),
                _ => return Err(Flaw::new("it names no object")),
            }
        }
        self.objects(all)
    }

    fn objects(&self, all: BTreeSet<ObjectId>) -> Refusal {
        for after in all {
            if self.database.has(&after)? {
                let moved = Moved { before: None, after, is_strict: false, keeps: false };
                if let Some(why) = self.comparison.moved(moved)? {
                    return Ok(Some(why));
                }
            }
        }
        Ok(None)
    }

    /// Where a search goes back to: a branch that was there, or what `HEAD` may stand for.
    fn start(&self, name: &str) -> Refusal {
        let text = self.read(name, limits::GIT_REF_BYTES)?;
        if let Some(Value::Object(id)) = value(self.format, &text) {
            return self.moved("HEAD", Some(id));
        }
        let branch = String::from_utf8_lossy(text.trim_ascii()).into_owned();
        match self.refs.resolve(&format!("refs/heads/{branch}"))? {
            Some(_) => Ok(None),
            None => Err(Flaw::new("it names no branch that was there")),
        }
    }

    /// What a log says that it did not say before.
    fn log(&self, name: &str) -> Refusal {
        let path = join(&self.place.own, name);
        let read = |files: &dyn Files| {
            let text = files.read(&path, limits::GIT_REFS_BYTES)?.unwrap_or_default();
            logged(self.format, &text).ok_or_else(|| Flaw::new("it is no log of a reference"))
        };
        let (known, now) = (read(self.before).unwrap_or_default(), read(self.files)?);
        self.objects(now.difference(&known).filter(|id| !id.is_null()).copied().collect())
    }
}

fn is_folder(node: &Option<Node>) -> bool {
    matches!(node, Some(Node::Folder { .. }))
}

/// A large file is named for its content, too.
fn large(name: &str, change: &Change) -> Option<String> {
    let digest = match &change.after {
        Some(Node::File { sha256, .. }) => sha256.to_string(),
        _ => String::new(),
    };
    let is_named = name.rsplit('/').next() == Some(digest.as_str());
    (!is_named).then(|| "a large file has another content than its name says".into())
}
