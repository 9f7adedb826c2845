//! Whether a store has all the events that were written to it.
//!
//! The tree of a store that lost its newest events is as sound as that of one that never had them. What tells
//! the two apart lies beside the tree: the note of its newest head, and the frames of the write-ahead log that
//! cannot be read any more.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::merkle::Frontier;
use capsule_core::journal::{APPLICATION_ID, has_wal};

use crate::error::StoreError;
use crate::head::{self, Head, HeadFile, Noted};
use crate::open::Store;
use crate::store_file::{header, open_nonblocking, sidecar_path};
use crate::verify::fault::{Fault, fault};
use crate::wal::{self, WalFrames};
use crate::write::load_frontier;

/// How long a log that another process writes is looked at again before what cannot be read in it counts.
const SETTLES: Duration = Duration::from_millis(200);
/// How long a store is waited for that another process makes.
const MADE: Duration = Duration::from_secs(2);
/// How long each look is apart from the one before.
const AGAIN: Duration = Duration::from_millis(20);

/// What shows that a store has all its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// The note beside it; none for a file that is whole by itself, and where no note was made yet.
    pub noted: Option<Head>,
    /// Whether it is a file by itself, with no log beside it.
    pub is_alone: bool,
    /// The write-ahead log beside it, if anything is in it.
    pub log: Option<WalFrames>,
    /// Events that were noted, and that the disk did not have yet when the machine stopped.
    pub lost: u64,
}

impl Store {
    /// What is wrong with the number of its events, in words; none if as many are there as were noted. A look at
    /// two numbers; [`Store::verify`] looks at everything.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn missing(&self) -> Result<Option<String>, StoreError> {
        // The note first: what is noted was committed before, so that it is there afterwards.
        let noted = head::read(&self.path);
        let size = self.size()?;
        Ok(match noted {
            Noted::None => None,
            Noted::Some(head) => head.missing(size),
            Noted::Unreadable => Some(UNREADABLE.to_owned()),
        })
    }

    /// How many events it has, as its cache of the tree says.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn size(&self) -> Result<u64, StoreError> {
        Ok(load_frontier(&self.sql).map_err(StoreError::read)?.size())
    }

    /// Opens the note beside a store that will be written to, and makes sure that the store has what it says.
    ///
    /// # Errors
    /// When it cannot be opened, or the store has less.
    pub(crate) fn take_up_note(&mut self) -> Result<(), StoreError> {
        let file = HeadFile::open(&self.path)?;
        let noted = file.read();
        let tree = load_frontier(&self.sql).map_err(StoreError::read)?;
        match noted {
            // One that an earlier version wrote.
            Noted::None if tree.size() > 0 => file.note(&tree, false),
            Noted::None => {}
            Noted::Some(head) => {
                head.missing(tree.size()).map_or(Ok(()), |what| Err(self.incomplete(what)))?;
            }
            Noted::Unreadable => return Err(self.incomplete(UNREADABLE.to_owned())),
        }
        self.head = Some(file);
        Ok(())
    }

    /// Notes what a commit made of the tree, and whether the disk has it.
    pub(crate) fn note_head(&self, tree: &Frontier, is_synced: bool) {
        if let Some(head) = &self.head {
            head.note(tree, is_synced);
        }
    }

    fn incomplete(&self, what: String) -> StoreError {
        StoreError::Incomplete { path: self.path.clone(), note: head::place(&self.path), what }
    }

    /// The log beside it, also where a link leads to it.
    fn log(&self) -> PathBuf {
        sidecar_path(&self.path.canonicalize().unwrap_or_else(|_| self.path.clone()), "-wal")
    }

    /// The frames of the log, where any are in it.
    fn frames(&self) -> Option<WalFrames> {
        wal::read(&self.log()).ok().flatten()
    }

    /// The same where nothing else tells what should be there: what another process is just writing is looked at
    /// again.
    fn settled_frames(&self) -> Option<WalFrames> {
        let began = Instant::now();
        loop {
            let found = self.frames()?;
            if !found.has_lost() || began.elapsed() > SETTLES {
                return Some(found);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// The version of a store that is marked as ours and has no tables: once another process has made them.
    ///
    /// # Errors
    /// When nobody does.
    pub(crate) fn version_once_made(&self) -> Result<(i32, i64), StoreError> {
        let began = Instant::now();
        loop {
            let found = self.version()?;
            if found.1 > 0 {
                return Ok(found);
            }
            if self.holds_nothing_yet().is_err()
                || self.frames().is_none()
                || began.elapsed() > MADE
            {
                return Err(self.incomplete(self.without_tables()));
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Makes sure that a file without tables never had any.
    ///
    /// # Errors
    /// When what they held lies in a log that is gone or cannot be read.
    pub(crate) fn holds_nothing_yet(&self) -> Result<(), StoreError> {
        let noted = head::read(&self.path);
        let had_events = match &noted {
            Noted::None => self.settled_frames().is_some_and(|frame| frame.has_lost()),
            Noted::Some(head) => head.least() > 0,
            Noted::Unreadable => true,
        };
        // Another process may have made them meanwhile.
        match had_events && self.version()? == (APPLICATION_ID, 0) {
            true => Err(self.incomplete(self.without_tables())),
            false => Ok(()),
        }
    }

    fn without_tables(&self) -> String {
        let noted = match head::read(&self.path) {
            Noted::Some(head) => {
                format!("had {} events when it was last written to, and ", head.size)
            }
            Noted::None | Noted::Unreadable => String::new(),
        };
        let place = place(self.frames().as_ref());
        format!(
            "{noted}holds no tables, which are in a log that is missing or cannot be read{place}"
        )
    }

    /// What shows that all events are here, now that so many were found; `noted` was read before they were.
    pub(crate) fn completeness(&self, noted: Noted, leaves: u64) -> Result<Completeness, Fault> {
        let begins = open_nonblocking(&self.path).and_then(header).unwrap_or_default();
        let is_alone = !begins.is_empty() && !has_wal(&begins);
        let (noted, log) = match noted {
            Noted::Unreadable => return Err(fault("note", UNREADABLE)),
            Noted::Some(head) => (Some(head), self.frames()),
            Noted::None if is_alone => (None, None),
            Noted::None => (None, self.settled_frames()),
        };
        match &noted {
            Some(head) => {
                if let Some(what) = head.missing(leaves) {
                    return Err(fault("record", format!("it {what}{}", place(log.as_ref()))));
                }
            }
            None if is_alone => {}
            None => match log {
                Some(log) if log.has_lost() => {
                    let what = format!("events of it are missing{}", place(Some(&log)));
                    return Err(fault("record", what));
                }
                None | Some(WalFrames { frames: 0, .. }) => {
                    return Err(fault("record", alone(leaves)));
                }
                Some(_) => {}
            },
        }
        let lost = noted.as_ref().map_or(0, |head| head.size.saturating_sub(leaves));
        Ok(Completeness { noted, is_alone, log, lost })
    }
}

/// What a note is that cannot be read.
const UNREADABLE: &str =
    "has a file `.head` beside it that is not the note of how many events it has";

/// What a copy of the main file alone is.
fn alone(leaves: u64) -> String {
    format!(
        "it is the main file of a store without its log (`-wal`) and without the note of how many events there \
         are (`.head`): the {leaves} events in it fit together, and newer ones may be missing; `capsule audit \
         export --out FILE` writes a copy that is whole"
    )
}

/// Where the log stops, in words behind others; nothing where all of it can be read.
fn place(log: Option<&WalFrames>) -> String {
    match log {
        None => String::from("; there is nothing in its log (`-wal`)"),
        Some(log) if log.damaged_header => String::from(
            "; the header of its log (`-wal`) is damaged, so nothing in that can be read",
        ),
        Some(WalFrames { unread_from: Some((frame, byte)), unread, .. }) => format!(
            "; its log (`-wal`) is damaged at frame {frame} (byte {byte}), so {unread} frames from there on cannot \
             be read"
        ),
        Some(log) => format!("; its log (`-wal`) ends behind {} frames", log.frames),
    }
}
