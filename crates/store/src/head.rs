//! How many events a store had when it was last written to, noted beside it.
//!
//! Most of a small store lies in a log that SQLite reads as far as it fits, and without a word where it does
//! not. So each commit is noted in a file of its own: the size and the root of the tree (RFC 6962 calls the two
//! a tree head), and up to which size the disk has it for sure. The note is written behind the commit and does
//! not wait for the disk. It may be late by a commit, where its process was killed in between, and is never
//! early.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::merkle::Frontier;
use capsule_base::digest::Digest;
use capsule_core::journal::HEAD;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::error::StoreError;
use crate::store_file::{flags, sidecar_path};

/// How often a note is tried to be locked while another process writes it; then that one's holds.
const TRIES: usize = 50;
/// Characters of an identifier of a boot.
const BOOT: usize = 36;
/// The bytes of a note: two numbers of twenty digits, a digest, a boot, three spaces and a line feed.
const BYTES: usize = 20 + 1 + 64 + 1 + 20 + 1 + BOOT + 1;

/// The note of how many events a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Leaves of the tree.
    pub size: u64,
    /// Its root.
    pub root: Digest,
    /// How many leaves the disk has for sure.
    pub synced: u64,
    /// The start of the machine in which it was written; `None` where that cannot be told.
    boot: Option<String>,
}

/// What is found beside a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// No note.
    None,
    /// A note.
    Some(Head),
    /// Something that is no note.
    Unreadable,
}

impl Head {
    fn line(&self) -> String {
        let Self { size, root, synced, boot } = self;
        let boot = boot.as_deref().unwrap_or("");
        let mut line = format!("{size:020} {root} {synced:020} ");
        // As wide as any, so that what is written covers what was there.
        let _ = writeln!(line, "{boot:-<BOOT$}");
        line
    }

    fn parse(line: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() == 20);
        let mut words = line.strip_suffix('\n')?.split(' ');
        let (size, root) = (number(words.next()?)?, Digest::from_hex(words.next()?)?);
        let (synced, boot) = (number(words.next()?)?, words.next()?);
        let boot = Some(boot.to_owned()).filter(|boot| boot.bytes().any(|byte| byte != b'-'));
        let head = Self { size, root, synced, boot };
        (line.len() == BYTES && synced <= size && head.line() == line).then_some(head)
    }

    /// The fewest leaves that a store with this note has: all that were noted, or, where the machine was
    /// started anew since, those that the disk had for sure.
    pub(crate) fn least(&self) -> u64 {
        let is_this_boot = self.boot.is_some() && self.boot.as_deref() == this_boot();
        if is_this_boot { self.size } else { self.synced }
    }

    /// What is wrong with a store that has so many events, in words.
    pub(crate) fn missing(&self, found: u64) -> Option<String> {
        let least = self.least();
        (found < least).then(|| {
            format!(
                "had {} events when it was last written to, and has {found} now: the newest {} are missing",
                self.size,
                self.size - found
            )
        })
    }
}

/// What tells this start of the machine from others.
fn this_boot() -> Option<&'static str> {
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let text = text.trim();
        let is_id =
            text.len() == BOOT && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_id.then(|| text.to_owned())
    };
    BOOT_ID.get_or_init(read).as_deref()
}

/// Where the note of a store lies: beside the file that a link leads to, as SQLite has it.
pub(crate) fn place(store: &Path) -> PathBuf {
    sidecar_path(&store.canonicalize().unwrap_or_else(|_| store.to_owned()), HEAD)
}

/// Empties the note of a store that was removed, so that another one can begin in its place.
pub(crate) fn put_away_stale(store: &Path) {
    let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
    if store.symlink_metadata().is_err()
        && let Ok(file) = OpenOptions::new().write(true).custom_flags(flags).open(place(store))
        && let Some(_held) = Held::alone(&file)
    {
        // Where it cannot be emptied, the new store is refused as one that lost its events.
        let _ = file.set_len(0);
    }
}

/// Reads the note beside a store.
pub(crate) fn read(store: &Path) -> Noted {
    let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
    match OpenOptions::new().read(true).custom_flags(flags).open(place(store)) {
        Ok(file) => {
            // Whoever writes it holds it for an instant.
            let _held = Held::shared(&file);
            read_from(&file)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Noted::None,
        Err(_) => Noted::Unreadable,
    }
}

fn read_from(file: &File) -> Noted {
    let mut bytes = [0; BYTES + 1];
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let Some(length) = is_file.then(|| file.read_at(&mut bytes, 0).ok()).flatten() else {
        return Noted::Unreadable;
    };
    let text = std::str::from_utf8(bytes.get(..length).unwrap_or_default());
    match text {
        Ok("") => Noted::None,
        Ok(text) => Head::parse(text).map_or(Noted::Unreadable, Noted::Some),
        Err(_) => Noted::Unreadable,
    }
}

/// A lock on the note, as long as it is held.
struct Held<'f> {
    file: &'f File,
}

impl<'f> Held<'f> {
    fn take(file: &'f File, operation: FlockOperation) -> Option<Self> {
        (0..TRIES).find_map(|_| match flock(file, operation) {
            Ok(()) => Some(Self { file }),
            Err(_) => {
                std::thread::yield_now();
                None
            }
        })
    }

    fn shared(file: &'f File) -> Option<Self> {
        Self::take(file, FlockOperation::NonBlockingLockShared)
    }

    fn alone(file: &'f File) -> Option<Self> {
        Self::take(file, FlockOperation::NonBlockingLockExclusive)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = flock(self.file, FlockOperation::Unlock);
    }
}

/// The note beside a store that is written to.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
}

impl HeadFile {
    /// Opens the note of a store, and makes an empty one where there is none.
    ///
    /// # Errors
    /// When it cannot be opened or made.
    pub(crate) fn open(store: &Path) -> Result<Self, StoreError> {
        let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        options.open(place(store)).map(|file| Self { file }).map_err(StoreError::write)
    }

    /// What it says.
    pub(crate) fn read(&self) -> Noted {
        let _held = Held::shared(&self.file);
        read_from(&self.file)
    }

    /// Notes what a commit made of the tree, and whether the disk has it. Where that cannot be written, the note
    /// stays as it was, and says less than it could.
    pub(crate) fn note(&self, tree: &Frontier, is_synced: bool) {
        let Some(_held) = Held::alone(&self.file) else { return };
        let size = tree.size();
        let boot = this_boot().map(str::to_owned);
        let synced = if is_synced { size } else { 0 };
        let head = match read_from(&self.file) {
            Noted::None => Head { size, root: tree.root(), synced, boot },
            // Another process has noted what came behind this. What was noted before the machine was started
            // anew is what the store had then.
            Noted::Some(newer) if newer.size > size && newer.boot == boot => {
                Head { synced: newer.synced.max(synced), ..newer }
            }
            Noted::Some(older) => {
                Head { size, root: tree.root(), synced: older.synced.min(size).max(synced), boot }
            }
            // It was sound when the store was opened. Whoever verifies shall find it.
            Noted::Unreadable => return,
        };
        let _ = self.file.write_all_at(head.line().as_bytes(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(boot: Option<&str>) -> Head {
        Head { size: 12, root: Digest::of(b"x"), synced: 9, boot: boot.map(str::to_owned) }
    }

    #[test]
    fn a_note_reads_back_and_nothing_else_is_one() {
        for boot in [None, this_boot()] {
            let head = head(boot);
            let line = head.line();
            assert_eq!(line.len(), BYTES);
            assert_eq!(Head::parse(&line), Some(head));
            for other in [
                line.trim_end().to_owned(),
                format!("{line}\n"),
                line.replacen('0', "+", 1),
                line.replacen(' ', "  ", 1),
                line.replace("00009 ", "00013 "),
                line.to_uppercase(),
            ] {
                assert_eq!(Head::parse(&other), None, "{other}");
            }
        }
    }

    /// A machine that stopped loses what no commit had waited for, and nothing else.
    #[test]
    fn what_the_disk_had_is_wanted_after_a_new_start() {
        assert!(this_boot().is_some());
        assert_eq!(head(this_boot()).least(), 12);
        assert_eq!(head(Some("00000000-0000-0000-0000-000000000000")).least(), 9);
        assert_eq!(head(None).least(), 9);
        let missing = head(this_boot()).missing(10).unwrap();
        assert!(missing.contains("newest 2 are missing"), "{missing}");
        assert_eq!(head(None).missing(9), None);
    }

    #[test]
    fn a_note_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let note = HeadFile::open(&store).unwrap();
        assert_eq!(note.read(), Noted::None);
        let mut trees = vec![Frontier::default()];
        for size in 0..4_u8 {
            let mut next = trees.last().unwrap().clone();
            next.push(Digest::of(&[size]));
            trees.push(next);
        }
        let size = || match read(&store) {
            Noted::Some(head) => (head.size, head.synced),
            other => panic!("{other:?}"),
        };
        for (at, is_synced, expected) in
            [(2, false, (2, 0)), (1, true, (2, 1)), (4, true, (4, 4)), (3, false, (4, 4))]
        {
            note.note(trees.get(at).unwrap(), is_synced);
            assert_eq!(size(), expected);
        }
        std::fs::write(place(&store), "x").unwrap();
        note.note(trees.last().unwrap(), true);
        assert_eq!(read(&store), Noted::Unreadable);
    }
}
