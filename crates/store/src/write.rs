//! Writing events: one short transaction each, no lock in between. What leads to nothing yet is written
//! together with the event after it.

use crate::merkle::{Frontier, leaf_hash};
use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{
    self, Durability, Entry, EntryPosition, Event, Journal, PayloadClass, PayloadRef, commitment,
};
use capsule_core::policy::PayloadRetention;
use rusqlite::{Connection, params};

use crate::checkpoint::{SignedNote, SigningSchedule};
use crate::error::StoreError;
use crate::lock::RunLock;
use crate::open::Store;
use crate::schema::PAYLOADS_PER_EVENT;
use crate::transaction::ImmediateTransaction;

/// The bytes of a run's key.
pub const RUN_KEY_BYTES: usize = 32;

/// The bytes of a salt: as many as the digest that it keeps from being guessed.
pub(crate) const SALT_BYTES: usize = 32;

/// From how many events on a run counts as long.
const LONG_RUN_EVENTS: u64 = 50;

/// After how many transactions a long run has its log moved when there is time for it: sooner than the log is so
/// long that a commit does it, and whoever waits for that one waits for this.
const WAL_FLUSH_EVERY: u64 = 120;

/// Tells the time in microseconds since 1970.
pub type Clock = Box<dyn FnMut() -> u64>;

/// A payload that waits for the event that it belongs to.
pub(crate) struct QueuedPayload {
    pub(crate) commitment: Digest,
    pub(crate) class: PayloadClass,
    pub(crate) salt: Option<Vec<u8>>,
    pub(crate) sha256: Option<Digest>,
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Writes one run.
pub struct RunWriter {
    store: Store,
    run: RunId,
    clock: Clock,
    payloads: PayloadRetention,
    key: [u8; RUN_KEY_BYTES],
    seq: u64,
    prev: Option<Digest>,
    at: u64,
    /// How many transactions there were since the log was last moved.
    commits_since_wal_flush: u64,
    queued_payloads: Vec<QueuedPayload>,
    /// Events that are written together with the next one.
    pending: Vec<PendingEvent>,
    tree: Frontier,
    lock: Option<RunLock>,
    signing: Option<SigningSchedule>,
    /// The newest checkpoint that this run had signed.
    last_note: Option<SignedNote>,
    /// Why the end of the run was not signed, or not told, where it should have been.
    signing_error: Option<StoreError>,
}

/// What a run's writer leaves behind.
#[derive(Debug)]
pub struct WrittenRun {
    /// The store.
    pub store: Store,
    /// The tree as it was when the run's last event was its newest leaf.
    pub tree: Frontier,
    /// The checkpoint that was signed last, if any was.
    pub note: Option<SignedNote>,
    /// Why the run's end was not signed, or its checkpoint not told, where that was to be.
    pub signing_error: Option<StoreError>,
}

/// An event with its bytes and the payloads that wait for it.
pub(crate) struct PendingEvent {
    pub(crate) entry: Entry,
    pub(crate) bytes: Vec<u8>,
    pub(crate) payloads: Vec<QueuedPayload>,
}

impl Store {
    /// Begins to write a run under a new random id, and holds its lock.
    ///
    /// # Errors
    /// When there is no randomness, or the lock cannot be taken.
    pub fn begin(self, clock: Clock, payloads: PayloadRetention) -> Result<RunWriter, StoreError> {
        let mut bits = [0; 10];
        getrandom::fill(&mut bits).map_err(StoreError::write)?;
        let mut key = [0; RUN_KEY_BYTES];
        getrandom::fill(&mut key).map_err(StoreError::write)?;
        let run = RunId::from_bits(bits);
        let lock = RunLock::take(&self.path, run)?;
        Ok(RunWriter {
            store: self,
            run,
            clock,
            payloads,
            key,
            seq: 0,
            prev: None,
            at: 0,
            commits_since_wal_flush: 0,
            queued_payloads: Vec::new(),
            pending: Vec::new(),
            tree: Frontier::default(),
            lock: Some(lock),
            signing: None,
            last_note: None,
            signing_error: None,
        })
    }

    /// Goes on writing a run that is not sealed, under its key, and holds its lock. The caller holds the lock of
    /// the session that the run is.
    ///
    /// # Errors
    /// When the run is not there, its last event is not what was written, or the lock cannot be taken.
    pub fn reopen(
        self,
        run: RunId,
        clock: Clock,
        payloads: PayloadRetention,
    ) -> Result<RunWriter, StoreError> {
        let text = run.to_string();
        let missing = || StoreError::RunUnknown(text.clone());
        let first = self.event(&text, 1)?.ok_or_else(missing)?;
        let last = self.last_event(&text)?.ok_or_else(missing)?;
        let Event::RunOpened(opened) = &first.entry.event else { return Err(missing()) };
        let kept = self.payloads(first.leaf, &first.entry.event)?;
        let key = kept.into_iter().find(|(item, _)| *item == opened.key);
        let key = key.and_then(|(_, payload)| payload.bytes?.try_into().ok());
        let lock = RunLock::retake(&self.path, run)?;
        Ok(RunWriter {
            store: self,
            run,
            clock,
            payloads,
            key: key.ok_or_else(missing)?,
            seq: last.entry.seq,
            prev: Some(Digest::of(&last.bytes)),
            at: last.entry.at,
            commits_since_wal_flush: 0,
            queued_payloads: Vec::new(),
            pending: Vec::new(),
            tree: Frontier::default(),
            lock: Some(lock),
            signing: None,
            last_note: None,
            signing_error: None,
        })
    }

    /// Writes an event that belongs to no run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_unattached(&mut self, event: Event, at: u64) -> Result<(), StoreError> {
        append_entries(self, &[PendingEvent::unattached(event, at)], Durability::CrashSafe)
            .map(drop)
    }
}

impl PendingEvent {
    /// An event that belongs to no run, and holds on to no payloads.
    pub(crate) fn unattached(event: Event, at: u64) -> Self {
        let entry = Entry { v: journal::VERSION, run: None, seq: 0, prev: None, at, event };
        Self { bytes: entry.to_bytes(), entry, payloads: Vec::new() }
    }
}

impl RunWriter {
    /// The run's id.
    #[must_use]
    pub const fn run(&self) -> RunId {
        self.run
    }

    /// The run's key for the digests of raw arguments, as a payload of its own.
    ///
    /// # Errors
    /// When no salt can be had.
    pub fn keep_key(&mut self) -> Result<PayloadRef, StoreError> {
        let key = self.key;
        self.put_payload(PayloadClass::Key, &key)
    }

    /// Writes on under the key of an earlier run, so that the same arguments are known again. Before
    /// anything is written.
    pub const fn use_key(&mut self, key: [u8; RUN_KEY_BYTES]) {
        self.key = key;
    }

    /// The digest of the last event that was written.
    #[must_use]
    pub const fn head(&self) -> Option<Digest> {
        self.prev
    }

    /// The store, for reading what was written so far.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Has the tree signed while the run goes on. Before anything is written.
    pub fn sign_with(&mut self, signing: Option<SigningSchedule>) {
        self.signing = signing;
    }

    /// Ends the writing: the lock goes, the store stays.
    #[must_use]
    pub fn finish(self) -> WrittenRun {
        let Self { store, tree, last_note: note, signing_error: unsigned, .. } = self;
        WrittenRun { store, tree, note, signing_error: unsigned }
    }

    /// Writes all that waits, as one.
    fn write_pending(&mut self, durability: Durability) -> Result<(), StoreError> {
        self.tree = append_entries(&mut self.store, &self.pending, durability)?;
        self.commits_since_wal_flush += 1;
        Ok(())
    }

    /// Signs the tree if it is time to, now that what waited stands in it.
    fn sign_if_due(&mut self) -> Result<(), StoreError> {
        let written = std::mem::take(&mut self.pending);
        let Some(signing) = &mut self.signing else { return Ok(()) };
        let events = written.iter().map(|event| &event.entry.event);
        let signed = signing.sign_if_due(&mut self.store, events, (self.tree.size(), self.at))?;
        self.last_note = signed.or(self.last_note.take());
        Ok(())
    }
}

impl Journal for RunWriter {
    type Error = StoreError;

    fn put_payload(
        &mut self,
        class: PayloadClass,
        payload: &[u8],
    ) -> Result<PayloadRef, StoreError> {
        let mut salt = vec![0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(StoreError::write)?;
        let commit = commitment(&salt, payload);
        // What an undo needs is kept even where payloads are not: without it there is no undo.
        let full = self.payloads == PayloadRetention::Full || class.is_private();
        self.queued_payloads.push(QueuedPayload {
            commitment: commit,
            class,
            salt: Some(salt),
            // The plain digest of a private payload would say something about it.
            sha256: (!class.is_private()).then(|| Digest::of(payload)),
            bytes: full.then(|| payload.to_vec()),
        });
        let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        Ok(PayloadRef { commit, bytes })
    }

    fn seal_arguments(&mut self, raw: &[u8]) -> Result<Digest, StoreError> {
        Ok(Digest::hmac(&self.key, raw))
    }

    fn event_count(&self) -> u64 {
        self.seq
    }

    fn append(
        &mut self,
        event: Event,
        durability: Durability,
    ) -> Result<EntryPosition, StoreError> {
        // A clock that was set back does not make a run go backwards.
        self.at = (self.clock)().max(self.at);
        let entry = Entry {
            v: journal::VERSION,
            run: Some(self.run),
            seq: self.seq + 1,
            prev: self.prev,
            at: self.at,
            event,
        };
        let bytes = entry.to_bytes();
        let recorded = EntryPosition { seq: entry.seq, at: entry.at };
        let prev = Digest::of(&bytes);
        let is_seal = matches!(entry.event, Event::RunSealed(_));
        let kept = std::mem::take(&mut self.queued_payloads);
        self.pending.push(PendingEvent { entry, bytes, payloads: kept });
        let is_written = durability != Durability::Deferred;
        if is_written {
            self.write_pending(durability).inspect_err(|_| {
                // Nothing of it happened. What waited before goes on waiting.
                let unwritten = self.pending.pop();
                self.queued_payloads = unwritten.map(|event| event.payloads).unwrap_or_default();
            })?;
        }
        self.seq = recorded.seq;
        self.prev = Some(prev);
        if self.seq == LONG_RUN_EVENTS {
            // Should it be refused, the log is moved more often than need be.
            let _ = self.store.allow_long_wal();
        }
        if is_seal {
            self.lock = None;
        }
        match if is_written { self.sign_if_due() } else { Ok(()) } {
            // The run is over. Whoever ends it does what is left to do, and hears of it then.
            Err(error) if is_seal => self.signing_error = Some(error),
            signed => signed?,
        }
        Ok(recorded)
    }

    fn run_idle_work(&mut self) {
        if self.seq >= LONG_RUN_EVENTS && self.commits_since_wal_flush >= WAL_FLUSH_EVERY {
            self.commits_since_wal_flush = 0;
            // Should it be refused, a commit does it later.
            let _ = self.store.flush_wal();
        }
    }

    fn flush_deferred(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.write_pending(Durability::CrashSafe)?;
        self.sign_if_due()
    }
}

/// Writes entries and the payloads that wait for them, as one; gives the tree whose newest leaf the
/// last one is.
pub(crate) fn append_entries(
    store: &mut Store,
    entries: &[PendingEvent],
    durability: Durability,
) -> Result<Frontier, StoreError> {
    let tree = append_to(store, entries, durability).map_err(StoreError::write)?;
    store.note_head(&tree, durability == Durability::PowerSafe);
    Ok(tree)
}

fn append_to(
    store: &mut Store,
    entries: &[PendingEvent],
    durability: Durability,
) -> rusqlite::Result<Frontier> {
    store.set_fsync(durability == Durability::PowerSafe)?;
    let transaction = ImmediateTransaction::begin(&mut store.sql)?;
    let sql = transaction.sql();
    let mut tree = load_frontier(sql)?;
    for entry in entries {
        insert_entry(sql, entry, &mut tree)?;
    }
    store_frontier(sql, &tree)?;
    transaction.commit()?;
    Ok(tree)
}

/// Keeps the right edge of the tree in its cache.
pub(crate) fn store_frontier(sql: &Connection, tree: &Frontier) -> rusqlite::Result<()> {
    // By its key: of one row SQLite knows beforehand that it is one, and keeps no copy of the page.
    sql.prepare_cached("UPDATE tree SET size = ?1, peaks = ?2 WHERE one = 1")?
        .execute(params![to_i64(tree.size()), tree.to_bytes()])
        .map(drop)
}

/// Makes an entry the newest leaf of the tree.
pub(crate) fn insert_entry(
    transaction: &Connection,
    PendingEvent { entry, bytes, payloads: kept }: &PendingEvent,
    tree: &mut Frontier,
) -> rusqlite::Result<()> {
    let leaf = tree.size();
    let hash = leaf_hash(bytes);
    tree.push(hash);
    transaction
        .prepare_cached(
            "INSERT INTO events (leaf, run, seq, kind, hash, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            to_i64(leaf),
            entry.run.map(|run| run.to_string()),
            to_i64(entry.seq),
            entry.event.kind(),
            hash.0,
            bytes,
        ])?;
    for (part, (reference, _)) in entry.event.payloads().iter().enumerate() {
        // A payload that nobody kept is not written; verification finds it missing.
        let Some(kept) = kept.iter().find(|kept| kept.commitment == reference.commit) else {
            continue;
        };
        transaction
            .prepare_cached(
                "INSERT INTO payloads (id, commitment, class, salt, sha256, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                payload_id(leaf, part),
                kept.commitment.to_string(),
                kept.class.name(),
                kept.salt,
                kept.sha256.map(|digest| digest.to_string()),
                kept.bytes,
            ])?;
    }
    Ok(())
}

/// The right edge of the tree, from its cache.
pub(crate) fn load_frontier(sql: &Connection) -> rusqlite::Result<Frontier> {
    sql.prepare_cached("SELECT size, peaks FROM tree")?.query_row([], |row| {
        let (size, peaks): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        u64::try_from(size)
            .ok()
            .and_then(|size| Frontier::from_bytes(size, &peaks))
            .ok_or(rusqlite::Error::IntegralValueOutOfRange(0, size))
    })
}

/// Where the payload at this place of an event stands.
pub(crate) fn payload_id(leaf: u64, part: usize) -> i64 {
    to_i64(leaf.saturating_mul(PAYLOADS_PER_EVENT))
        .saturating_add(i64::try_from(part).unwrap_or(i64::MAX))
}

/// A number as SQLite has them. Ours count events, so they fit.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(call: u64) -> Event {
        Event::ApprovalCovered { call, by: 0 }
    }

    /// What somebody else finds in the store.
    fn found(path: &std::path::Path) -> Vec<i64> {
        let sql = Connection::open(path).unwrap();
        let mut query = sql.prepare("SELECT seq FROM events ORDER BY leaf").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// What may wait is written with the next event, or when somebody says that none comes soon.
    #[test]
    fn what_waits_is_written_with_the_next_event_or_when_it_is_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = Store::open(&path).unwrap();
        let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        writer.flush_deferred().unwrap();
        writer.append(event(1), Durability::CrashSafe).unwrap();
        writer.append(event(2), Durability::Deferred).unwrap();
        writer.append(event(3), Durability::Deferred).unwrap();
        assert_eq!(found(&path), [1]);
        writer.append(event(4), Durability::CrashSafe).unwrap();
        assert_eq!(found(&path), [1, 2, 3, 4]);
        writer.append(event(5), Durability::Deferred).unwrap();
        let text = writer.put_payload(PayloadClass::Text, b"of what comes next").unwrap();
        writer.flush_deferred().unwrap();
        assert_eq!(found(&path), [1, 2, 3, 4, 5]);
        writer.flush_deferred().unwrap();
        assert_eq!(found(&path).len(), 5);
        assert_eq!(
            writer.queued_payloads.iter().map(|own| own.commitment).collect::<Vec<_>>(),
            [text.commit]
        );
        assert_eq!(writer.append(event(6), Durability::CrashSafe).unwrap().seq, 6);
        assert_eq!(found(&path), [1, 2, 3, 4, 5, 6]);
    }

    /// What cannot be written is not lost: it waits on.
    #[test]
    fn what_cannot_be_flushed_waits_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = Store::open(&path).unwrap();
        let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        writer.append(event(1), Durability::Deferred).unwrap();
        writer.store.sql.execute_batch("PRAGMA query_only = on").unwrap();
        assert!(writer.flush_deferred().is_err());
        assert!(writer.append(event(2), Durability::CrashSafe).is_err());
        writer.store.sql.execute_batch("PRAGMA query_only = off").unwrap();
        assert_eq!(found(&path), Vec::<i64>::new());
        assert_eq!(writer.append(event(2), Durability::CrashSafe).unwrap().seq, 2);
        assert_eq!(found(&path), [1, 2]);
    }
}
