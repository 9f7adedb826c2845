//! Anchors: files elsewhere that hold checkpoints. Whoever changes the store does not change them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use capsule_core::digest::Digest;
use capsule_core::limits;
use rustix::fs::OFlags;

use crate::checkpoint::{Checkpoint, Note};
use crate::error::StoreError;
use crate::open::Store;

/// How much of the end of an anchor is read when a run begins: some 300 checkpoints, of which the
/// largest counts, since processes that write at one time do so in any order.
const TAIL: u64 = 1 << 16;

/// Checkpoints that somebody saw, of whichever logs: what one file or one standard input holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    /// What the file is called where it is spoken of.
    pub(super) name: String,
    /// Every root that was seen: by the log, then by the size of its tree.
    seen: BTreeMap<String, BTreeMap<u64, Vec<Digest>>>,
}

impl Sightings {
    /// What a text holds: wherever an origin, a size and a root are three words in this order, on one line
    /// or on three, with signatures or without, quoted or not.
    #[must_use]
    pub fn of(name: &str, text: &str) -> Self {
        let mut own = Self { name: name.to_owned(), seen: BTreeMap::new() };
        // What mail and pull requests put in front of lines is no word.
        let is_word = |word: &&str| word.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let (mut origin, mut size) = ("", "");
        for word in text.split_whitespace().filter(is_word) {
            if let Some(Checkpoint { origin, size, root }) = Checkpoint::of(origin, size, word) {
                let roots = own.seen.entry(origin).or_default().entry(size).or_default();
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
            (origin, size) = (size, word);
        }
        own
    }

    /// Reads a file, or with `-` the standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is too large.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let failed = |why: String| StoreError::Anchor { path: path.to_owned(), why };
        let most = u64::try_from(limits::ANCHOR_BYTES).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = match path == Path::new("-") {
            true => std::io::stdin().take(most + 1).read_to_end(&mut bytes),
            false => File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
        };
        read.map_err(|error| failed(error.to_string()))?;
        if bytes.len() > limits::ANCHOR_BYTES {
            return Err(failed(format!("it is larger than {} bytes", limits::ANCHOR_BYTES)));
        }
        Ok(Self::of(&path.to_string_lossy(), &String::from_utf8_lossy(&bytes)))
    }

    /// The same under the name that a person has for it.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// What was seen of a log, by the size of its tree.
    pub(crate) fn of_log(&self, origin: &str) -> impl Iterator<Item = (u64, &[Digest])> {
        let of_log = self.seen.get(origin).into_iter().flatten();
        of_log.map(|(size, roots)| (*size, roots.as_slice()))
    }

    /// Whether it saw this.
    #[must_use]
    pub fn knows(&self, checkpoint: &Checkpoint) -> bool {
        let Checkpoint { origin, size, root } = checkpoint;
        self.of_log(origin).any(|(own, roots)| own == *size && roots.contains(root))
    }

    /// The logs that it knows.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &str> {
        self.seen.keys().map(String::as_str)
    }

    /// The largest size at which it saw a log, with a root.
    fn newest(&self, origin: &str) -> Option<Checkpoint> {
        let (size, roots) = self.seen.get(origin)?.last_key_value()?;
        Some(Checkpoint { origin: origin.to_owned(), size: *size, root: *roots.last()? })
    }
}

/// A file that checkpoints are added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    path: PathBuf,
    /// Whether it is made where it is not there.
    is_made: bool,
}

impl Anchor {
    /// The anchor at a path, which is made where it is not there. Nothing is looked at yet.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path, is_made: true }
    }

    /// The anchor at a path where somebody made one.
    #[must_use]
    pub const fn that_is_there(path: PathBuf) -> Self {
        Self { path, is_made: false }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, why: impl ToString) -> StoreError {
        StoreError::Anchor { path: self.path.clone(), why: why.to_string() }
    }

    /// Opens it, and makes it where it is not there. Only a file that holds checkpoints is added to.
    fn open(&self) -> Result<File, StoreError> {
        if let Some(folder) = self.path.parent().filter(|_| self.is_made) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| self.failed(error))?;
        }
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(self.is_made).mode(0o600).custom_flags(flags);
        let file = options.open(&self.path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.failed(
                "it is not there, and a policy that lies in its workspace makes no files elsewhere: \
                 `capsule audit anchor FILE` does",
            ),
            _ => self.failed(error),
        })?;
        let found = file.metadata().map_err(|error| self.failed(error))?;
        if !found.is_file() {
            return Err(self.failed("it is not a file"));
        }
        if found.len() > u64::try_from(limits::ANCHOR_BYTES).unwrap_or(u64::MAX) {
            let why = format!("it is larger than {} bytes; put it away", limits::ANCHOR_BYTES);
            return Err(self.failed(why));
        }
        Ok(file)
    }

    /// What it saw last.
    fn tail(&self, mut file: File) -> Result<Sightings, StoreError> {
        let mut bytes = Vec::new();
        let length = file.seek(SeekFrom::End(0)).map_err(|error| self.failed(error))?;
        let begin = length.saturating_sub(TAIL);
        let read = file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(|error| self.failed(error))?;
        let seen = Sightings::of(&self.path.to_string_lossy(), &String::from_utf8_lossy(&bytes));
        match !bytes.is_empty() && seen.origins().next().is_none() {
            true => Err(self.failed("there is something else in it")),
            false => Ok(seen),
        }
    }

    /// Whether a store still has what the anchor saw of it last. What a store had at one time it has for
    /// ever, unless somebody took an older copy of it, or another one.
    ///
    /// # Errors
    /// When the anchor cannot be written or read, or the store has it no longer.
    pub fn holds(&self, store: &Store, origin: &str) -> Result<(), StoreError> {
        let Some(seen) = self.tail(self.open()?)?.newest(origin) else { return Ok(()) };
        let own = store.checkpoint_at(seen.size)?;
        if own.is_some_and(|note| note.checkpoint().as_ref() == Some(&seen)) {
            return Ok(());
        }
        let place = format!("the anchor `{}`", self.path.display());
        let what = format!(
            "it saw this log with {} events, and the store at `{}` is not what that was; if you put an \
             older copy there yourself, put the anchor away",
            seen.size,
            store.path.display()
        );
        Err(StoreError::Integrity { place, what })
    }

    /// Adds a note, and waits for the disk.
    ///
    /// # Errors
    /// When it cannot be written, or holds something else.
    pub fn add(&self, note: &Note) -> Result<(), StoreError> {
        let mut file = self.open()?;
        let again = file.try_clone().map_err(|error| self.failed(error))?;
        self.tail(again)?;
        // One write, so that notes of two processes do not mix.
        let written =
            file.write_all(format!("{note}\n").as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    fn seen(text: &str, origin: &str) -> Vec<(u64, Vec<Digest>)> {
        Sightings::of("x", text).of_log(origin).map(|(size, own)| (size, own.to_vec())).collect()
    }

    /// People paste them anywhere.
    #[test]
    fn checkpoints_are_found_in_any_text() {
        let one = Checkpoint { origin: "acme/log".into(), size: 12, root: root("a") };
        let two = Checkpoint { size: 20, root: root("b"), ..one.clone() };
        let other = Checkpoint { origin: "acme/other".into(), ..two.clone() };
        let quoted: String = two.text().lines().map(|line| format!("> {line}\n")).collect();
        let text = format!(
            "Merged on Friday.\n{}\n— acme/log AAAA\n\n{quoted}\nsee {} above\n{}",
            one.text(),
            one.line(),
            other.line()
        );
        let both = [(12, vec![root("a")]), (20, vec![root("b")])];
        assert_eq!(seen(&text, "acme/log"), both);
        assert_eq!(seen(&text, "acme/other"), [(20, vec![root("b")])]);
        assert_eq!(seen(&text, "Friday."), []);
        // What contradicts itself is kept as it is.
        let twice = format!("{}{}", one.text(), Checkpoint { root: root("c"), ..one }.text());
        assert_eq!(seen(&twice, "acme/log"), [(12, vec![root("a"), root("c")])]);
    }

    #[test]
    fn only_what_holds_checkpoints_is_added_to() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::parse(&format!(
            "{}\n— a AAECAwQF\n",
            Checkpoint { origin: "a".into(), size: 1, root: root("a") }.text()
        ))
        .unwrap();
        let path = folder.path().join("new/anchors");
        let anchor = Anchor::at(path.clone());
        anchor.add(&note).unwrap();
        anchor.add(&note).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{note}\n{note}\n"));
        let rc = folder.path().join("rc");
        fs::write(&rc, "alias ls=true\n").unwrap();
        assert!(Anchor::at(rc.clone()).add(&note).is_err());
        assert_eq!(fs::read_to_string(&rc).unwrap(), "alias ls=true\n");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Anchor::at(link).add(&note).is_err());
        assert!(Anchor::at(folder.path().to_owned()).add(&note).is_err());
    }
}
