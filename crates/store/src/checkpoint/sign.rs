//! Signing the tree of a store.
//!
//! What is signed is on the disk before anybody sees the signature: the checkpoint is a transaction of its
//! own that waits for the disk, and with it for everything that was written before.

use std::ops::Range;
use std::path::PathBuf;

use capsule_core::id::RunId;
use capsule_core::journal::{self, Entry, Event};
use capsule_core::policy::{AuditRule, CheckpointRule};
use rusqlite::{Connection, TransactionBehavior};

use crate::checkpoint::{Anchor, Checkpoint, Note, Seal, Signer};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::stored;
use crate::write::{Unwritten, frontier, insert, number, set_frontier};

/// When a run's writer signs the tree, with which key, and where it tells of it.
#[derive(Debug)]
pub struct Signing {
    signer: Signer,
    rule: CheckpointRule,
    anchors: Vec<Anchor>,
}

impl Signing {
    /// What a policy wants signed, with the key beside a store; none where there is no key. Where a policy
    /// names anchors, what they saw last must still be there. `is_made` says whether anchors are made that
    /// are not there.
    ///
    /// # Errors
    /// When the key or an anchor cannot be used, or the store is not the one that an anchor saw.
    pub fn of(store: &Store, rule: &AuditRule, is_made: bool) -> Result<Option<Self>, StoreError> {
        let Some(signer) = Signer::beside(&store.path)? else { return Ok(None) };
        let anchor = if is_made { Anchor::at } else { Anchor::that_is_there };
        let anchors = rule.anchors.iter().map(|own| anchor(PathBuf::from(&own.path)));
        let anchors: Vec<Anchor> = anchors.collect();
        anchors.iter().try_for_each(|own| own.holds(store, signer.verifier().name()))?;
        Ok(Some(Self { signer, rule: rule.checkpoints.clone(), anchors }))
    }

    /// Signs the tree if it is time to: these events stand in it now, which made it longer by `grown`.
    pub(crate) fn see<'e>(
        &self,
        store: &mut Store,
        events: impl IntoIterator<Item = &'e Event>,
        (grown, at): (&Range<u64>, u64),
    ) -> Result<Option<Note>, StoreError> {
        if !self.rule.is_due(events, grown) {
            return Ok(None);
        }
        let note = store.checkpoint(&self.signer, at)?;
        self.anchors.iter().try_for_each(|own| own.add(&note))?;
        Ok(Some(note))
    }
}

impl Store {
    /// Signs the tree as it is, and makes the note its newest leaf, on the disk. Where the newest leaf is such
    /// a note already, that one is given. `at` is the time in microseconds since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn checkpoint(&mut self, signer: &Signer, at: u64) -> Result<Note, StoreError> {
        self.sign(signer, signer.verifier().name().to_owned(), at)
    }

    /// The same for a store that was written out, whose tree is another log: that of one run.
    pub(crate) fn checkpoint_of_run(
        &mut self,
        signer: &Signer,
        run: RunId,
        at: u64,
    ) -> Result<Note, StoreError> {
        self.sign(signer, origin_of_run(signer.verifier().name(), run), at)
    }

    fn sign(&mut self, signer: &Signer, origin: String, at: u64) -> Result<Note, StoreError> {
        self.wait_for_disk(true).map_err(StoreError::write)?;
        let begun = self.sql.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(StoreError::write)?;
        let mut tree = frontier(&transaction).map_err(StoreError::write)?;
        let last = tree.size().checked_sub(1).map_or(Ok(None), |leaf| noted(&transaction, leaf))?;
        let is_own = |note: &Note| {
            let seen = note.checkpoint();
            note.seal(signer.verifier()) == Seal::Good
                && seen.is_some_and(|own| own.origin == origin && own.size + 1 == tree.size())
        };
        if let Some(note) = last.filter(is_own) {
            return Ok(note);
        }
        let note = signer.sign(&Checkpoint { origin, size: tree.size(), root: tree.root() });
        let event = Event::Checkpoint { note: note.to_string() };
        let entry = Entry { v: journal::VERSION, run: None, seq: 0, prev: None, at, event };
        let bytes = entry.to_bytes();
        let leaf = Unwritten { entry, bytes, kept: Vec::new() };
        insert(&transaction, &leaf, &mut tree).map_err(StoreError::write)?;
        set_frontier(&transaction, &tree).map_err(StoreError::write)?;
        transaction.commit().map_err(StoreError::write)?;
        Ok(note)
    }

    /// The newest checkpoint.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest_checkpoint(&self) -> Result<Option<Note>, StoreError> {
        first(
            &self.sql,
            "SELECT leaf, bytes, hash FROM events WHERE kind = 'checkpoint' AND leaf >= ?1
             ORDER BY leaf DESC LIMIT 1",
            0,
        )
    }

    /// The checkpoint that was signed when the tree had so many leaves, behind which it stands.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn checkpoint_at(&self, size: u64) -> Result<Option<Note>, StoreError> {
        noted(&self.sql, size)
    }
}

/// The note that is a leaf.
fn noted(sql: &Connection, leaf: u64) -> Result<Option<Note>, StoreError> {
    first(sql, "SELECT leaf, bytes, hash FROM events WHERE leaf = ?1", leaf)
}

/// The note in the first event that a query finds.
fn first(sql: &Connection, query: &str, leaf: u64) -> Result<Option<Note>, StoreError> {
    let mut query = sql.prepare_cached(query).map_err(StoreError::read)?;
    let mut rows = query.query([number(leaf)]).map_err(StoreError::read)?;
    let Some(row) = rows.next().map_err(StoreError::read)? else { return Ok(None) };
    Ok(match stored(row)?.entry.event {
        Event::Checkpoint { note } => Note::parse(&note),
        _ => None,
    })
}

/// What the tree of a run that was written out is called, by the name of the log that it comes from.
pub(crate) fn origin_of_run(name: &str, run: RunId) -> String {
    format!("{name}/run/{run}")
}
