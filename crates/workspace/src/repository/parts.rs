//! The parts of a repository that a run changed, each looked at for what git takes it for.

use std::collections::BTreeSet;

use capsule_base::limits;
use capsule_core::change::{Change, FileState};

use super::compare::{Comparison, Moved, Refusal};
use super::database::pack;
use super::files::Files;
use super::flaw::Flaw;
use super::id::{Format, ObjectId};
use super::index::read_index;
use super::inflate::Budget;
use super::layout::{Part, may_hold, object_part, part};
use super::refs::{Refs, Value, logged, value};
use super::{commit_graph, loose};
use crate::change_path::{join, split_parent};
use crate::control_files::GIT_NAME;

/// Why a file in a folder that lends objects may not be there, if it may not.
pub(super) fn lent(
    format: Format,
    name: &str,
    (change, files): (&Change, &dyn Files),
) -> Result<(), Flaw> {
    let is_new = match &change.after {
        Some(FileState::File { .. }) => is_new_file(change),
        Some(FileState::Directory { .. }) | None => false,
        Some(_) => return Err(Flaw::new("it is no regular file")),
    };
    match object_part(format, name) {
        part @ (Part::Loose(_) | Part::Pack(_)) if is_new => {
            let budget = Budget::new(limits::GIT_INFLATED_BYTES);
            object(format, &part, (&change.path, files), &budget)
        }
        Part::Text | Part::Order | Part::Leftover => Ok(()),
        _ if !is_new => Ok(()),
        _ => Err(Flaw::new("it is no object")),
    }
}

/// Whether an object, or a pack of them, holds what its name says.
fn object(
    format: Format,
    part: &Part<'_>,
    (path, files): (&str, &dyn Files),
    budget: &Budget,
) -> Result<(), Flaw> {
    match part {
        Part::Loose(id) => {
            let file = files.open(path)?.ok_or_else(|| Flaw::new("it is gone"))?;
            match loose::hash(&file, format, budget)? == *id {
                true => Ok(()),
                false => Err(Flaw::new("an object has another content than its name says")),
            }
        }
        Part::Pack(name) => match pack(files, split_parent(path).0, (name, format))? {
            // One that a command changed in the workspace itself: git says by a date that it still needs it.
            Some(pack) if pack.bytes()? > limits::FILE_BYTES => Ok(()),
            Some(pack) => pack.verify(budget),
            None => Err(Flaw::new("a pack is without its index")),
        },
        _ => Err(Flaw::new("it is no object")),
    }
}

/// Whether a change brings a regular file with other content.
fn is_new_file(change: &Change) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after @ FileState::File { .. })) => !before.same_except_mode(after),
        (None, Some(FileState::File { .. })) => true,
        _ => false,
    }
}

/// A repository, as it was and as it is, and what it is compared with.
pub(super) struct Parts<'p> {
    pub format: Format,
    /// Its folder.
    pub place: &'p str,
    pub files: (&'p dyn Files, &'p dyn Files),
    /// Why the index cannot be read that was there.
    pub index: Option<&'p Flaw>,
    pub refs: (&'p Refs<'p>, &'p Refs<'p>),
    pub comparison: &'p Comparison<'p>,
}

impl Parts<'_> {
    /// Why a change may not be made of what has this name in the repository's folder, if it may not.
    pub(super) fn part(&self, name: &str, change: &Change) -> Refusal {
        let closed = |why: &str| Ok(Some(why.to_owned()));
        match (&change.after, part(self.format, name)) {
            (_, Part::Control) => Ok(None),
            (None, Part::Index) => self.index(),
            (_, Part::Fixed(why)) => closed(why),
            (Some(FileState::Directory { .. }), _)
                if may_hold(name) || is_folder(&change.before) =>
            {
                Ok(None)
            }
            (Some(FileState::File { .. }), _) if !is_new_file(change) => Ok(None),
            (Some(_), Part::Closed(why)) => closed(why),
            (Some(FileState::File { .. }), Part::Unknown) => self.unknown(name),
            (None, Part::Reference(name)) => self.reference(name),
            (None, Part::PackedReferences) => self.packed(),
            (None, _) => Ok(None),
            (Some(FileState::File { .. }), part) => self.file(name, &part, change),
            _ => closed("git takes nothing but regular files for its own"),
        }
    }

    /// A regular file that is new, or another than before.
    fn file(&self, name: &str, part: &Part<'_>, change: &Change) -> Refusal {
        match part {
            Part::Index => self.index(),
            Part::Names => self.names(name),
            Part::Reference(name) => self.reference(name),
            Part::PackedReferences => self.packed(),
            Part::Objects => self.named(name),
            Part::Start => self.start(name),
            Part::Log => self.log(name),
            Part::CommitGraph => {
                let bytes = self.read(name, limits::GIT_REFS_BYTES)?;
                commit_graph::verify(&bytes, self.comparison.database).map(|()| None)
            }
            Part::Loose(_) | Part::Pack(_) => {
                let budget = &self.comparison.database.budget;
                object(self.format, part, (&change.path, self.files.1), budget).map(|()| None)
            }
            Part::Large(name) => Ok(large(name, change)),
            _ => Ok(None),
        }
    }

    pub(super) fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Flaw> {
        let text = self.files.1.read(&join(self.place, name), most)?;
        text.ok_or_else(|| Flaw::new("it is gone"))
    }

    fn index(&self) -> Refusal {
        match self.index {
            Some(flaw) => Err(flaw.clone()),
            None => {
                let index = read_index(self.format, self.files.1, self.place)?;
                self.comparison.index(&index, self.refs.1.resolve("HEAD")?)
            }
        }
    }

    /// Paths that a search was told, each in quotes. Earlier versions gave the line to a shell.
    fn names(&self, name: &str) -> Refusal {
        let text = self.read(name, limits::GIT_REFS_BYTES)?;
        let mut parts = text.split(|byte| *byte == b'\'').step_by(2);
        let is_quoted = parts.all(|part| part.trim_ascii().is_empty());
        Ok((!is_quoted).then(|| "it holds more than names in quotes".into()))
    }

    /// A file that git does not have there. It may be a reference.
    fn unknown(&self, name: &str) -> Refusal {
        let is_own = split_parent(self.place).1 == GIT_NAME;
        let text = self.read(name, limits::GIT_REFS_BYTES);
        if is_own || text.is_ok_and(|text| value(self.format, &text).is_some()) {
            return Ok(Some("it is not known what git, or another program, takes it for".into()));
        }
        Ok(None)
    }

    /// A reference that was changed, made or removed.
    fn reference(&self, name: &str) -> Refusal {
        let now = self.refs.1.loose(name)?;
        if now.is_none() && self.files.1.exists(&join(self.place, name)) {
            return Err(Flaw::new("it is no reference"));
        }
        let is_head = name == "HEAD";
        if let (true, Some(Value::Reference(to))) = (is_head, &now)
            && !to.starts_with("refs/heads/")
        {
            return Ok(Some("`HEAD` stands for something else than a branch".into()));
        }
        match self.moved(name, self.refs.1.resolve(name)?)? {
            None => self.branch(name),
            refused => Ok(refused),
        }
    }

    /// `HEAD` moves with its branch.
    fn branch(&self, name: &str) -> Refusal {
        match self.refs.1.loose("HEAD")? {
            Some(Value::Reference(to)) if to == name => {
                self.moved("HEAD", self.refs.1.resolve("HEAD")?)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn moved(&self, name: &str, after: Option<ObjectId>) -> Refusal {
        let (Some(after), before) = (after, self.refs.0.resolve(name)?) else { return Ok(None) };
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
        for other in ["refs/remotes/", "refs/tags/", "refs/"] {
            if self.refs.0.resolve(&format!("{other}{short}"))?.is_some() {
                return Ok(true);
            }
        }
        // Git makes a branch of that name out of the remote's where somebody asks for it.
        let now = self.refs.1.resolve(name)?;
        for other in self.refs.0.names()? {
            let is_called = other
                .strip_prefix("refs/remotes/")
                .and_then(|text| text.split_once('/'))
                .is_some_and(|(_, text)| text == short);
            if is_called && self.refs.0.resolve(&other)? != now {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn packed(&self) -> Refusal {
        let (before, now) = (self.refs.0.packed()?, self.refs.1.packed()?);
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
            if let Some(why) = self.moved(name, self.refs.1.resolve(name)?)? {
                return Ok(Some(why));
            }
        }
        for id in now.peeled.difference(&before.peeled) {
            if let Some(why) = self.objects([*id].into())? {
                return Ok(Some(why));
            }
        }
        match self.refs.1.loose("HEAD")? {
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
            if self.comparison.database.has(&after)? {
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
        match self.refs.0.resolve(&format!("refs/heads/{branch}"))? {
            Some(_) => Ok(None),
            None => Err(Flaw::new("it names no branch that was there")),
        }
    }

    /// What a log says that it did not say before.
    fn log(&self, name: &str) -> Refusal {
        let path = join(self.place, name);
        let read = |files: &dyn Files| {
            let text = files.read(&path, limits::GIT_REFS_BYTES)?.unwrap_or_default();
            logged(self.format, &text).ok_or_else(|| Flaw::new("it is no log of a reference"))
        };
        let (known, now) = (read(self.files.0).unwrap_or_default(), read(self.files.1)?);
        self.objects(now.difference(&known).filter(|id| !id.is_null()).copied().collect())
    }
}

fn is_folder(node: &Option<FileState>) -> bool {
    matches!(node, Some(FileState::Directory { .. }))
}

/// A large file is named for its content, too.
fn large(name: &str, change: &Change) -> Option<String> {
    let digest = match &change.after {
        Some(FileState::File { sha256, .. }) => sha256.to_string(),
        _ => String::new(),
    };
    let is_named = name.rsplit('/').next() == Some(digest.as_str());
    (!is_named).then(|| "a large file has another content than its name says".into())
}
