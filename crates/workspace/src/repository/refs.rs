//! References: names for objects, each in a file of its own or in one list.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use capsule_base::limits;

use super::database::Database;
use super::files::Files;
use super::flaw::Flaw;
use super::history::History;
use super::id::{Format, ObjectId};
use crate::change_path::join;

/// The list of references that have no file of their own.
pub(super) const PACKED: &str = "packed-refs";

/// What a reference stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Object(ObjectId),
    /// Another reference.
    Reference(String),
}

/// Reads a reference as git does: a name of an object and whatever stands behind a space, or another
/// reference.
pub(super) fn value(format: Format, text: &[u8]) -> Option<Value> {
    if let Some(name) = text.strip_prefix(b"ref:") {
        let name = std::str::from_utf8(name).ok()?.trim_matches([' ', '\t', '\n', '\r']);
        return is_name(name).then(|| Value::Reference(name.to_owned()));
    }
    let (id, rest) = text.split_at_checked(format.bytes() * 2)?;
    let is_over = rest.first().is_none_or(u8::is_ascii_whitespace);
    ObjectId::from_hex(format, id).filter(|_| is_over).map(Value::Object)
}

/// Whether git takes a name for one of a reference: one that cannot lead out of its folder.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
            && !part.contains("@{")
            && !part.contains([' ', '~', '^', ':', '?', '*', '[', '\\', '\x7f'])
            && !part.contains(|char: char| char.is_ascii_control())
    };
    name.starts_with("refs/") && !name.ends_with('.') && name.split('/').all(is_part)
}

/// The references that have no file of their own.
#[derive(Default)]
pub(super) struct Packed {
    pub refs: BTreeMap<String, ObjectId>,
    /// The objects that tags in the list are said to stand for.
    pub peeled: BTreeSet<ObjectId>,
}

/// The references of a repository, read as they are needed.
pub(super) struct Refs<'f> {
    pub format: Format,
    files: &'f dyn Files,
    /// The folder of a working tree, and the one that all working trees share.
    folders: [&'f str; 2],
    packed: OnceCell<Packed>,
}

impl<'f> Refs<'f> {
    pub(super) const fn new(format: Format, files: &'f dyn Files, folders: [&'f str; 2]) -> Self {
        Self { format, files, folders, packed: OnceCell::new() }
    }

    /// What a reference stands for by its own file.
    pub(super) fn loose(&self, name: &str) -> Result<Option<Value>, Flaw> {
        let [local, shared] = self.folders;
        let folder = if is_of_tree(name) { local } else { shared };
        let path = join(folder, name);
        if !self.files.exists(&path) {
            return Ok(None);
        }
        let text = self.files.read(&path, limits::GIT_REF_BYTES)?;
        // One that is being written, or broken, stands for nothing.
        Ok(text.and_then(|text| value(self.format, &text)))
    }

    /// Those in the list.
    pub(super) fn packed(&self) -> Result<&Packed, Flaw> {
        if let Some(packed) = self.packed.get() {
            return Ok(packed);
        }
        let [_, shared] = self.folders;
        let text = self.files.read(&join(shared, PACKED), limits::GIT_REFS_BYTES)?;
        let packed = Packed::parse(self.format, &text.unwrap_or_default())?;
        Ok(self.packed.get_or_init(|| packed))
    }

    /// The object that a reference stands for, through others.
    pub(super) fn resolve(&self, name: &str) -> Result<Option<ObjectId>, Flaw> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            match self.loose(&name)? {
                Some(Value::Object(id)) => return Ok(Some(id)),
                Some(Value::Reference(other)) => name = other,
                None => return Ok(self.packed()?.refs.get(&name).copied()),
            }
        }
        Ok(None)
    }

    /// A commit that one of them or `HEAD` reaches, and of which the name begins so. Where another object is called the same,
    /// git takes neither.
    pub(super) fn commit_beginning(
        &self,
        begin: &str,
        database: &Database<'_>,
    ) -> Result<Option<ObjectId>, Flaw> {
        let history = History::new(database);
        for name in self.names()?.iter().map(String::as_str).chain(["HEAD"]) {
            if let Some(id) = self.resolve(name)? {
                history.begin(&id)?;
            }
        }
        history.commit_beginning(self.format, begin)
    }

    /// The names of all of them.
    pub(super) fn names(&self) -> Result<BTreeSet<String>, Flaw> {
        let [_, shared] = self.folders;
        let mut names: BTreeSet<String> = self.packed()?.refs.keys().cloned().collect();
        let mut waiting = vec!["refs".to_owned()];
        while let Some(name) = waiting.pop() {
            for (inner, is_folder) in self.files.list(&join(shared, &name))? {
                let inner = format!("{name}/{inner}");
                if is_folder {
                    waiting.push(inner);
                } else {
                    names.insert(inner);
                }
                if names.len() > limits::GIT_REFS {
                    return Err(too_many());
                }
            }
        }
        Ok(names)
    }
}

/// Whether every working tree has a reference of its own.
fn is_of_tree(name: &str) -> bool {
    !name.starts_with("refs/")
        || ["refs/bisect/", "refs/worktree/", "refs/rewritten/"]
            .iter()
            .any(|text| name.starts_with(text))
}

impl Packed {
    fn parse(format: Format, text: &[u8]) -> Result<Self, Flaw> {
        let mut packed = Self::default();
        let broken = || Flaw::new(format!("`{PACKED}` is broken"));
        for line in text.split(|byte| *byte == b'\n') {
            let id = |hex: &[u8]| ObjectId::from_hex(format, hex).ok_or_else(broken);
            match line.split_first() {
                None | Some((b'#', _)) => {}
                Some((b'^', peeled)) => drop(packed.peeled.insert(id(peeled.trim_ascii_end())?)),
                Some(_) => {
                    let space = line.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
                    let (hex, name) = line.split_at_checked(space).ok_or_else(broken)?;
                    let name = name.get(1..).ok_or_else(broken)?;
                    let name = match std::str::from_utf8(name) {
                        Ok(name) if is_name(name) => name.to_owned(),
                        Ok(_) => return Err(broken()),
                        // No other name looks so: none has a backslash in it.
                        Err(_) => name.escape_ascii().to_string(),
                    };
                    if packed.refs.insert(name, id(hex)?).is_some() {
                        return Err(broken());
                    }
                }
            }
            if packed.refs.len() > limits::GIT_REFS {
                return Err(too_many());
            }
        }
        Ok(packed)
    }
}

fn too_many() -> Flaw {
    Flaw::new(format!("it has more than {} references", limits::GIT_REFS))
}

/// The objects that a log of a reference names, line by line, before and after.
pub(super) fn logged(format: Format, text: &[u8]) -> Option<BTreeSet<ObjectId>> {
    let mut all = BTreeSet::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        for _ in 0..2 {
            all.insert(ObjectId::from_hex(format, words.next()?)?);
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_git_reads_it() {
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let object = ObjectId::from_hex(Format::Sha1, id.as_bytes()).map(Value::Object);
        let other = |name: &str| Some(Value::Reference(name.to_owned()));
        for (text, expected) in [
            (format!("{id}\n"), object.clone()),
            (format!("{id} behind"), object),
            (format!("{id}x"), None),
            (id.replace("e69", "69"), None),
            ("ref: refs/heads/main\n".into(), other("refs/heads/main")),
            ("ref:refs/heads/main".into(), other("refs/heads/main")),
            ("ref: refs/../../x".into(), None),
            ("ref: /etc/passwd".into(), None),
            ("ref: HEAD".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(value(Format::Sha1, text.as_bytes()), expected, "{text}");
        }
        let log = format!("{} {id} A <a> 1 +0000\tcommit\n", "0".repeat(40));
        assert_eq!(logged(Format::Sha1, log.as_bytes()).unwrap().len(), 2);
        assert_eq!(logged(Format::Sha1, b"no log\n"), None);
    }
}
