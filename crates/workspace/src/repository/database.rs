//! The objects of a repository. Each is believed for its content: one that has another name than its
//! content says is damaged, wherever it lies, so it does not matter in which of several places it is found.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capsule_base::limits;

use super::files::{Files, Outside};
use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::inflate::Budget;
use super::loose;
use super::object::{Commit, Content, Entry, EntryKind, Kind, Object, tagged, tree};
use super::pack::{Index, Pack, hashed};

/// How often repositories borrow objects from one another in turn, as git has it.
const BORROWED: usize = 5;
/// How many trees are kept that were read.
const TREES: usize = 4096;
/// Which other folders of objects are looked in as well.
const ALTERNATES: &str = "info/alternates";

/// Folders of objects.
pub(super) struct Database<'f> {
    pub format: Format,
    stores: Vec<Store<'f>>,
    pub budget: Budget,
    trees: RefCell<BTreeMap<ObjectId, Rc<Vec<Entry>>>>,
}

/// Where a folder of objects is read from.
enum Source<'f> {
    Workspace(&'f dyn Files),
    Elsewhere(Outside),
}

impl Source<'_> {
    fn files(&self) -> &dyn Files {
        match self {
            Self::Workspace(files) => *files,
            Self::Elsewhere(files) => files,
        }
    }
}

/// One folder of objects.
struct Store<'f> {
    files: Source<'f>,
    at: String,
    packs: OnceCell<Result<Vec<Pack>, Flaw>>,
}

impl<'f> Store<'f> {
    const fn new(files: Source<'f>, at: String) -> Self {
        Self { files, at, packs: OnceCell::new() }
    }

    fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}/{name}", self.at) }
    }

    fn loose(&self, id: &ObjectId) -> Result<Option<File>, Flaw> {
        self.files.files().open(&self.path(&loose::path(id)))
    }

    fn packs(&self, format: Format) -> Result<&[Pack], Flaw> {
        let packs = self.packs.get_or_init(|| {
            let mut packs = Vec::new();
            for (name, _) in self.files.files().list(&self.path("pack"))? {
                if let Some(name) = name.strip_suffix(".idx") {
                    packs.extend(pack(self.files.files(), &self.path("pack"), (name, format))?);
                }
                if packs.len() > limits::GIT_PACKS {
                    return Err(Flaw::new("it has too many packs to be compared"));
                }
            }
            Ok(packs)
        });
        packs.as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }
}

/// A pack with its index; none where there is only one of them.
pub(super) fn pack(
    files: &dyn Files,
    folder: &str,
    (name, format): (&str, Format),
) -> Result<Option<Pack>, Flaw> {
    let open = |end: &str| files.open(&format!("{folder}/{name}.{end}"));
    match (open("idx")?, open("pack")?) {
        (Some(index), Some(data)) => Ok(Some(Pack::new(Index::open(index, format)?, data))),
        _ => Ok(None),
    }
}

impl<'f> Database<'f> {
    /// The objects in a folder, of several places that it may lie in, and in those that it borrows from.
    pub(super) fn open(
        format: Format,
        (files, at): (&[&'f dyn Files], &str),
        root: &Path,
    ) -> Result<Self, Flaw> {
        let mut waiting: Vec<(PathBuf, usize)> = files.iter().map(|_| (root.join(at), 0)).collect();
        let stores = files.iter().map(|file| Store::new(Source::Workspace(*file), at.to_owned()));
        let mut stores: Vec<Store<'f>> = stores.collect();
        let mut next = 0;
        while let (Some(store), Some((place, depth))) = (stores.get(next), waiting.get(next)) {
            let named = store.files.files().read(&store.path(ALTERNATES), limits::CONFIG_BYTES)?;
            let (place, depth) = (place.clone(), *depth);
            for line in borrowed(&named.unwrap_or_default()) {
                if depth >= BORROWED || stores.len() > limits::CONFIG_FILES {
                    return Err(Flaw::new("it borrows objects from too many others"));
                }
                let folder = place.join(line);
                stores.push(Store::new(Source::Elsewhere(Outside(folder.clone())), String::new()));
                waiting.push((folder, depth + 1));
            }
            next += 1;
        }
        let budget = Budget::new(limits::GIT_INFLATED_BYTES);
        Ok(Self { format, stores, budget, trees: RefCell::default() })
    }

    /// Whether an object is there.
    pub(super) fn has(&self, id: &ObjectId) -> Result<bool, Flaw> {
        for store in &self.stores {
            if store.loose(id)?.is_some() {
                return Ok(true);
            }
            for pack in store.packs(self.format)? {
                if pack.index.find(id)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads an object.
    pub(super) fn read(&self, id: &ObjectId) -> Result<Option<Object>, Flaw> {
        for store in &self.stores {
            if let Some(object) = self.read_in(store, id)? {
                return match hashed(self.format, &object) == *id {
                    true => Ok(Some(object)),
                    false => Err(Flaw::new(format!("the object `{id}` is damaged"))),
                };
            }
        }
        Ok(None)
    }

    fn read_in(&self, store: &Store<'_>, id: &ObjectId) -> Result<Option<Object>, Flaw> {
        if let Some(file) = store.loose(id)? {
            return loose::read(&file, &self.budget).map(Some);
        }
        for pack in store.packs(self.format)? {
            if let Some(offset) = pack.index.find(id)? {
                return pack.read(offset, &self.budget).map(Some);
            }
        }
        Ok(None)
    }

    fn read_as(&self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, Flaw> {
        match self.read(id)? {
            Some(object) if object.kind == kind => Ok(object.bytes),
            Some(_) => Err(Flaw::new(format!("the object `{id}` is no {}", kind.name()))),
            None => Err(Flaw::new(format!("the object `{id}` is not there"))),
        }
    }

    pub(super) fn commit(&self, id: &ObjectId) -> Result<Commit, Flaw> {
        Commit::parse(self.format, &self.read_as(id, Kind::Commit)?)
    }

    /// The entries of a tree, which are kept for a while.
    pub(super) fn tree(&self, id: &ObjectId) -> Result<Rc<Vec<Entry>>, Flaw> {
        if let Some(entries) = self.trees.borrow().get(id) {
            return Ok(Rc::clone(entries));
        }
        let entries = Rc::new(tree(self.format, &self.read_as(id, Kind::Tree)?)?);
        let mut trees = self.trees.borrow_mut();
        if trees.len() >= TREES {
            trees.clear();
        }
        trees.insert(*id, Rc::clone(&entries));
        Ok(entries)
    }

    /// What a tree has at a path.
    pub(super) fn at(&self, tree: &ObjectId, path: &[u8]) -> Result<Option<Content>, Flaw> {
        let mut content = Content { kind: EntryKind::Tree, id: *tree };
        for name in path.split(|byte| *byte == b'/') {
            if content.kind != EntryKind::Tree {
                return Ok(None);
            }
            match self.tree(&content.id)?.iter().find(|entry| entry.name == name) {
                Some(entry) => content = entry.content,
                None => return Ok(None),
            }
        }
        Ok(Some(content))
    }

    /// What a small file holds: where a link leads.
    pub(super) fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Flaw> {
        self.read_as(id, Kind::Blob)
    }

    /// The object that a name stands for, through tags, and its kind; none where one is not there.
    pub(super) fn peeled(&self, id: &ObjectId) -> Result<Option<(ObjectId, Kind)>, Flaw> {
        let mut id = *id;
        for _ in 0..limits::SYMLINK_HOPS {
            match self.read(&id)? {
                Some(object) if object.kind == Kind::Tag => {
                    id = tagged(self.format, &object.bytes)?
                }
                other => return Ok(other.map(|object| (id, object.kind))),
            }
        }
        Err(Flaw::new("a tag names too many others"))
    }
}

/// The folders that a list of alternates names.
fn borrowed(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    lines.map(|line| PathBuf::from(String::from_utf8_lossy(line).into_owned())).collect()
}
