//! Anchors: files elsewhere that hold checkpoints. Whoever changes the store does not change them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_base::limits;
use rustix::fs::OFlags;

use crate::checkpoint::{Checkpoint, SignedNote, is_origin};
use crate::error::StoreError;
use crate::export_target::is_store_file;
use crate::open::{Store, create_private_directory};
use crate::store_file::flags;

/// How much of the end of an anchor is read when a run begins: some 300 checkpoints, of which the
/// largest counts, since processes that write at one time do so in any order.
const TAIL_BYTES: u64 = 1 << 16;

/// How much of its beginning says whether a file is an anchor: one checkpoint.
const HEAD_BYTES: u64 = 1 << 10;

/// Why a policy that lies in its workspace cannot use a file.
const NOT_AN_ANCHOR: &str = "there is no checkpoint in it, and a policy that lies in its workspace makes no files \
                      elsewhere: `capsule audit anchor FILE` does";

/// Checkpoints that somebody saw, of whichever logs: what one file or one standard input holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WitnessedCheckpoints {
    /// What the file is called where it is spoken of.
    pub(super) name: String,
    /// Every root that was seen: by the log, then by the size of its tree.
    roots: BTreeMap<String, BTreeMap<u64, Vec<Digest>>>,
}

/// The checkpoints in a text: wherever an origin, a size and a root are three words in this order, on one
/// line or on three, quoted or not. Lines of signatures are anybody's, and say nothing of a log; a log of no
/// events is every log.
fn checkpoints(text: &str) -> impl Iterator<Item = Checkpoint> {
    let mark = |word: &&str| *word == "—" || is_not_quote_mark(word);
    let is_signature =
        move |line: &&str| line.split_whitespace().find(mark).is_some_and(|word| word == "—");
    let lines = text.lines().filter(move |line| !is_signature(line));
    let (mut origin, mut size) = ("", "");
    let words = lines.flat_map(str::split_whitespace).filter(is_not_quote_mark);
    let found = words.filter_map(move |word| {
        let checkpoint = Checkpoint::of(origin, size, word);
        (origin, size) = (size, word);
        checkpoint
    });
    found.filter(|checkpoint| checkpoint.size > 0)
}

/// What mail and pull requests put in front of lines is no word.
fn is_not_quote_mark(word: &&str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a text begins as an anchor does: with a checkpoint of a log that has such a name as logs have,
/// on three lines or on the one that reports end with.
fn begins_with_checkpoint(text: &str) -> bool {
    let mut words = text.split_whitespace().skip_while(|word| *word == "checkpoint").take(3);
    let (Some(origin), Some(size), Some(root)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    is_origin(origin) && Checkpoint::of(origin, size, root).is_some()
}

impl WitnessedCheckpoints {
    /// What a text holds.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Self {
        let mut witnessed = Self { name: name.to_owned(), roots: BTreeMap::new() };
        for Checkpoint { origin, size, root } in checkpoints(text) {
            let roots = witnessed.roots.entry(origin).or_default().entry(size).or_default();
            // Two contradict each other; more of them say no more.
            if roots.len() < 2 && !roots.contains(&root) {
                roots.push(root);
            }
        }
        witnessed
    }

    /// Reads a file, or with `-` the standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is too large.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let failed = |why: String| StoreError::Anchor { path: path.to_owned(), why };
        let most = u64::try_from(limits::ANCHOR_FILE_BYTES).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = match path == Path::new("-") {
            true => std::io::stdin().take(most + 1).read_to_end(&mut bytes),
            false => File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
        };
        read.map_err(|error| failed(error.to_string()))?;
        if bytes.len() > limits::ANCHOR_FILE_BYTES {
            return Err(failed(format!("it is larger than {} bytes", limits::ANCHOR_FILE_BYTES)));
        }
        Ok(Self::parse(&path.to_string_lossy(), &String::from_utf8_lossy(&bytes)))
    }

    /// The same under the name that a person has for it.
    #[must_use]
    pub fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// What was seen of a log, by the size of its tree.
    pub(crate) fn roots_of(&self, origin: &str) -> impl Iterator<Item = (u64, &[Digest])> {
        let of_log = self.roots.get(origin).into_iter().flatten();
        of_log.map(|(size, roots)| (*size, roots.as_slice()))
    }

    /// Whether it saw this.
    #[must_use]
    pub fn has_seen(&self, checkpoint: &Checkpoint) -> bool {
        let Checkpoint { origin, size, root } = checkpoint;
        self.roots_of(origin).any(|(number, roots)| number == *size && roots.contains(root))
    }

    /// The logs that it knows.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &str> {
        self.roots.keys().map(String::as_str)
    }
}

/// A file that checkpoints are added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    path: PathBuf,
    /// Whether it is made where it is not there.
    creates: bool,
    /// Whether this log may be added to what others tell there.
    joins_other_logs: bool,
}

impl Anchor {
    /// The anchor that a person names: it is made where it is not there, and may be one of other logs.
    #[must_use]
    pub const fn named_by_person(path: PathBuf) -> Self {
        Self { path, creates: true, joins_other_logs: true }
    }

    /// The anchor that a policy names. One that lies in its workspace makes no file elsewhere: somebody has
    /// to have told this log there before.
    #[must_use]
    pub const fn named_by_policy(path: PathBuf, lies_in_workspace: bool) -> Self {
        Self { path, creates: !lies_in_workspace, joins_other_logs: false }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, why: impl ToString) -> StoreError {
        StoreError::Anchor { path: self.path.clone(), why: why.to_string() }
    }

    /// Opens it, and makes it where it is not there; says whether it was. Only what begins as an anchor
    /// does is added to.
    fn open(&self) -> Result<(File, bool), StoreError> {
        // Opening a device, or to write, may do something by itself, so it is looked at first.
        let found = self.path.symlink_metadata();
        match &found {
            Ok(found) if !found.is_file() => return Err(self.error("it is no regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound && !self.creates => {
                return Err(self.error(NOT_AN_ANCHOR));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.error(error)),
            _ => {}
        }
        if let Some(folder) = self.path.parent().filter(|_| found.is_err()) {
            create_private_directory(folder).map_err(|error| self.error(error))?;
        }
        let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(self.creates).mode(0o600).custom_flags(flags);
        let file = options.open(&self.path).map_err(|error| self.error(error))?;
        let now = file.metadata().map_err(|error| self.error(error))?;
        if !now.is_file() {
            return Err(self.error("it is no regular file"));
        }
        if now.len() > u64::try_from(limits::ANCHOR_FILE_BYTES).unwrap_or(u64::MAX) {
            let why = format!("it is larger than {} bytes; put it away", limits::ANCHOR_FILE_BYTES);
            return Err(self.error(why));
        }
        let head = self.read(&file, 0, HEAD_BYTES)?;
        match head.is_empty() {
            true if !self.creates => Err(self.error(NOT_AN_ANCHOR)),
            true => Ok((file, found.is_err())),
            false if begins_with_checkpoint(&head) => Ok((file, false)),
            false => Err(self.error("there is something else in it")),
        }
    }

    /// So many bytes from a place on.
    fn read(&self, mut file: &File, begin: u64, most: u64) -> Result<String, StoreError> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin))
            .and_then(|_| file.take(most).read_to_end(&mut bytes))
            .map_err(|error| self.error(error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The largest size at which it saw a log. Where the end says nothing of it, all of it is read.
    fn newest_of(&self, file: &File, origin: &str) -> Result<Option<Checkpoint>, StoreError> {
        let length = file.metadata().map_err(|error| self.error(error))?.len();
        let largest = |text: &str| {
            let item = checkpoints(text).filter(|checkpoint| checkpoint.origin == origin);
            item.max_by_key(|checkpoint| checkpoint.size)
        };
        let tail = self.read(file, length.saturating_sub(TAIL_BYTES), TAIL_BYTES)?;
        match largest(&tail) {
            None if length > TAIL_BYTES => Ok(largest(&self.read(file, 0, length)?)),
            newest => Ok(newest),
        }
    }

    /// Whether a store still has what the anchor saw of it last. What a store had at one time it has for
    /// ever, unless somebody took an older copy of it, or another one. It is a look at one row, which
    /// somebody who forges rows can fool; [`Store::verify_by`] looks at everything.
    ///
    /// # Errors
    /// When the anchor cannot be written or read, or the store has it no longer.
    pub fn check_store(&self, store: &Store, origin: &str) -> Result<(), StoreError> {
        self.check_apart(store)?;
        let (file, _) = self.open()?;
        let is_empty = file.metadata().map_err(|error| self.error(error))?.len() == 0;
        let Some(seen) = self.newest_of(&file, origin)? else {
            return match is_empty || self.joins_other_logs {
                true => Ok(()),
                false => Err(self.error(format!(
                    "it knows other logs, and not `{origin}`; if that is right, tell it with `capsule \
                     audit anchor FILE`"
                ))),
            };
        };
        let item = store.checkpoint_at(seen.size)?;
        if item.is_some_and(|note| note.checkpoint().as_ref() == Some(&seen)) {
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

    /// It is neither a store nor beside it: who opens and closes a database by another way loses its locks.
    fn check_apart(&self, store: &Store) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if is_store_file(&store.path, &metadata) => {
                Err(self.error("it belongs to the store"))
            }
            _ => Ok(()),
        }
    }

    /// Adds a note, and waits for the disk.
    ///
    /// # Errors
    /// When it cannot be written, or holds something else.
    pub fn add(&self, note: &SignedNote) -> Result<(), StoreError> {
        let (mut file, is_new) = self.open()?;
        let length = file.metadata().map_err(|error| self.error(error))?.len();
        let last = self.read(&file, length.saturating_sub(1), 1)?;
        // A line that somebody did not end stays a line of its own.
        let gap = if last.is_empty() || last == "\n" { "" } else { "\n" };
        // One write, so that notes of two processes do not mix.
        let written = file.write_all(format!("{gap}{note}\n").as_bytes());
        let written = written.and_then(|()| file.sync_data()).and_then(|()| {
            let folder = self.path.parent().filter(|_| is_new);
            folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        });
        written.map_err(|error| self.error(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    fn seen(text: &str, origin: &str) -> Vec<(u64, Vec<Digest>)> {
        WitnessedCheckpoints::parse("x", text)
            .roots_of(origin)
            .map(|(size, item)| (size, item.to_vec()))
            .collect()
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
        // What stands in signatures is anybody's.
        let forged = format!("{}\n> — x acme/log\n— 99 {}=\n", one.text(), "A".repeat(43));
        assert_eq!(seen(&forged, "acme/log"), [(12, vec![root("a")])]);
        assert_eq!(seen(&format!("acme/log 0 {}=", "A".repeat(43)), "acme/log"), []);
        // What contradicts itself is kept as it is.
        let twice = format!("{}{}", one.text(), Checkpoint { root: root("c"), ..one }.text());
        assert_eq!(seen(&twice, "acme/log"), [(12, vec![root("a"), root("c")])]);
    }

    #[test]
    fn only_what_holds_checkpoints_is_added_to() {
        let folder = tempfile::tempdir().unwrap();
        let note = SignedNote::parse(&format!(
            "{}\n— a AAECAwQF\n",
            Checkpoint { origin: "a".into(), size: 1, root: root("a") }.text()
        ))
        .unwrap();
        let path = folder.path().join("new/anchors");
        let anchor = Anchor::named_by_policy(path.clone(), false);
        anchor.add(&note).unwrap();
        anchor.add(&note).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{note}\n{note}\n"));
        let rc = folder.path().join("rc");
        fs::write(&rc, "alias ls=true\n").unwrap();
        assert!(Anchor::named_by_person(rc.clone()).add(&note).is_err());
        assert_eq!(fs::read_to_string(&rc).unwrap(), "alias ls=true\n");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Anchor::named_by_person(link).add(&note).is_err());
        assert!(Anchor::named_by_person(folder.path().to_owned()).add(&note).is_err());
        // A line that is not ended, as somebody pastes it.
        let checkpoint = Checkpoint { origin: "a".into(), size: 1, root: root("a") };
        let pasted = folder.path().join("pasted");
        fs::write(&pasted, checkpoint.text().trim_end()).unwrap();
        Anchor::named_by_person(pasted.clone()).add(&note).unwrap();
        assert_eq!(fs::read_to_string(&pasted).unwrap(), format!("{}{note}\n", checkpoint.text()));
        // What a policy in its workspace could have changed.
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        let named = |path: &Path| Anchor::named_by_policy(path.to_owned(), true).add(&note);
        assert!(named(&empty).is_err() && named(&folder.path().join("none")).is_err());
        let text = folder.path().join("readme");
        fs::write(&text, format!("see {} above\n", checkpoint.line())).unwrap();
        assert!(named(&text).is_err());
        assert!(named(&path).is_ok(), "somebody told it there");
    }
}
