//! Signing the tree of a store.
//!
//! What is signed is on the disk before anybody sees the signature: the checkpoint is a transaction of its
//! own that waits for the disk, and with it for everything that was written before.

use std::path::PathBuf;

use crate::merkle::Frontier;
use capsule_core::id::RunId;
use capsule_core::journal::Event;
use capsule_core::policy::{AuditRule, CheckpointRule};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::checkpoint::{Anchor, Checkpoint, SignedNote, Signer};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::stored_event;
use crate::write::{PendingEvent, insert_entry, load_frontier, store_frontier, to_i64};

/// When a run's writer signs the tree, with which key, and where it tells of it.
#[derive(Debug)]
pub struct SigningSchedule {
    signer: Signer,
    rule: CheckpointRule,
    anchors: Vec<Anchor>,
    /// Where the newest checkpoint stands that it knows of.
    newest_size: u64,
}

impl SigningSchedule {
    /// What a policy wants signed, with the key beside a store; none where there is no key. Where a policy
    /// names anchors, what they saw last must still be there. `lies_in_workspace` is said of the policy.
    ///
    /// # Errors
    /// When the key or an anchor cannot be used, or the store is not the one that an anchor saw.
    pub fn for_policy(
        store: &Store,
        rule: &AuditRule,
        lies_in_workspace: bool,
    ) -> Result<Option<Self>, StoreError> {
        let Some(signer) = Signer::load(&store.path)? else { return Ok(None) };
        let anchors = rule.anchors.iter().map(|anchor| PathBuf::from(&anchor.path));
        let anchors = anchors.map(|path| Anchor::named_by_policy(path, lies_in_workspace));
        let anchors: Vec<Anchor> = anchors.collect();
        anchors
            .iter()
            .try_for_each(|anchor| anchor.check_store(store, signer.verifier().name()))?;
        let rule = rule.checkpoints.clone();
        let signed = store.find_recent_checkpoint(rule.every)?;
        Ok(Some(Self { signer, rule, anchors, newest_size: signed }))
    }

    /// Signs the tree if it is time to: these events stand in it now, which has so many.
    pub(crate) fn sign_if_due<'e>(
        &mut self,
        store: &mut Store,
        events: impl IntoIterator<Item = &'e Event>,
        (size, at): (u64, u64),
    ) -> Result<Option<SignedNote>, StoreError> {
        if !self.rule.is_due(events, size.saturating_sub(self.newest_size)) {
            return Ok(None);
        }
        let note = store.checkpoint(&self.signer, at)?;
        self.newest_size = size + 1;
        self.anchors.iter().try_for_each(|anchor| anchor.add(&note))?;
        Ok(Some(note))
    }
}

impl Store {
    /// Signs the tree as it is, and makes the note its newest leaf, on the disk. Where the newest leaf is such
    /// a note already, that one is given. `at` is the time in microseconds since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn checkpoint(&mut self, signer: &Signer, at: u64) -> Result<SignedNote, StoreError> {
        self.append_checkpoint(signer, signer.verifier().name().to_owned(), at)
    }

    /// The same for a store that was written out, whose tree is another log: that of one run.
    pub(crate) fn checkpoint_of_run(
        &mut self,
        signer: &Signer,
        run: RunId,
        at: u64,
    ) -> Result<SignedNote, StoreError> {
        self.append_checkpoint(signer, origin_of_run(signer.verifier().name(), run), at)
    }

    fn append_checkpoint(
        &mut self,
        signer: &Signer,
        origin: String,
        at: u64,
    ) -> Result<SignedNote, StoreError> {
        self.set_fsync(true).map_err(StoreError::write)?;
        let begun = self.sql.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(StoreError::write)?;
        let mut tree = load_frontier(&transaction).map_err(StoreError::write)?;
        let newest = tree.size().saturating_sub(1);
        let last = note_at(&transaction, newest)?;
        // Signing is always the same, so a note that anybody changed is told from one that was signed.
        let is_own = |note: &SignedNote| {
            let checkpoint = note
                .checkpoint()
                .filter(|checkpoint| (&checkpoint.origin, checkpoint.size) == (&origin, newest));
            checkpoint
                .is_some_and(|checkpoint| checkpoint.size > 0 && signer.sign(&checkpoint) == *note)
        };
        if let Some(note) = last.filter(is_own) {
            return Ok(note);
        }
        // That a log holds nothing says nothing of it: its first note is signed by a second one.
        let is_empty = tree.size() == 0;
        let mut note = add(&transaction, (signer, &origin), &mut tree, at)?;
        if is_empty {
            note = add(&transaction, (signer, &origin), &mut tree, at)?;
        }
        store_frontier(&transaction, &tree).map_err(StoreError::write)?;
        transaction.commit().map_err(StoreError::write)?;
        self.note_head(&tree, true);
        Ok(note)
    }

    /// Where the newest checkpoint stands among the last so many events, or how many events there are
    /// before those.
    fn find_recent_checkpoint(&self, every: u64) -> Result<u64, StoreError> {
        let size = load_frontier(&self.sql).map_err(StoreError::read)?.size();
        let before = size.saturating_sub(every);
        let query = "SELECT leaf + 1 FROM events WHERE leaf >= ?1 AND kind = 'checkpoint'
                     ORDER BY leaf DESC LIMIT 1";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let found: Option<i64> = query
            .query_row([to_i64(before)], |row| row.get(0))
            .optional()
            .map_err(StoreError::read)?;
        Ok(found.map_or(before, |leaf| u64::try_from(leaf).unwrap_or(0)))
    }

    /// The newest checkpoint.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest_checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        first_note(
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
    pub fn checkpoint_at(&self, size: u64) -> Result<Option<SignedNote>, StoreError> {
        note_at(&self.sql, size)
    }
}

/// Signs a tree, and makes the note its newest leaf.
fn add(
    sql: &Connection,
    (signer, origin): (&Signer, &str),
    tree: &mut Frontier,
    at: u64,
) -> Result<SignedNote, StoreError> {
    let checkpoint = Checkpoint { origin: origin.to_owned(), size: tree.size(), root: tree.root() };
    let note = signer.sign(&checkpoint);
    let leaf = PendingEvent::unattached(Event::Checkpoint { note: note.to_string() }, at);
    insert_entry(sql, &leaf, tree).map_err(StoreError::write)?;
    Ok(note)
}

/// The note that is a leaf.
fn note_at(sql: &Connection, leaf: u64) -> Result<Option<SignedNote>, StoreError> {
    first_note(sql, "SELECT leaf, bytes, hash FROM events WHERE leaf = ?1", leaf)
}

/// The note in the first event that a query finds.
fn first_note(sql: &Connection, query: &str, leaf: u64) -> Result<Option<SignedNote>, StoreError> {
    let mut query = sql.prepare_cached(query).map_err(StoreError::read)?;
    let mut rows = query.query([to_i64(leaf)]).map_err(StoreError::read)?;
    let Some(row) = rows.next().map_err(StoreError::read)? else { return Ok(None) };
    Ok(match stored_event(row)?.entry.event {
        Event::Checkpoint { note } => SignedNote::parse(&note),
        _ => None,
    })
}

/// What stands between the name of a log and the run of it that was written out.
const OF_RUN: &str = "/run/";

/// What the tree of a run that was written out is called, by the name of the log that it comes from.
pub(crate) fn origin_of_run(name: &str, run: RunId) -> String {
    format!("{name}{OF_RUN}{run}")
}

/// The run whose tree is called so, if it is the tree of one.
pub(crate) fn run_of_origin(origin: &str) -> Option<RunId> {
    RunId::parse(origin.rsplit_once(OF_RUN)?.1)
}
