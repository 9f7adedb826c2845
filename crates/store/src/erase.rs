//! Erasing what a run's payloads hold. Events and hashes stay, so the record is as whole as before; what
//! they commit to can be told by nobody any more, since the salt goes with it.

use std::collections::BTreeMap;

use capsule_core::id::RunId;
use capsule_core::journal::{Entry, Event, RunKind};
use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::open::Store;
use crate::schema::PAYLOADS_PER_EVENT;
use crate::write::{PendingEvent, insert_entry, load_frontier, payload_id, store_frontier, to_i64};

/// A run that is about another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedRun {
    /// Its full id.
    pub run: String,
    /// What it is.
    pub kind: RunKind,
}

impl Store {
    /// How many payloads of a run are there to be erased.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn erasable_payloads(&self, run: &str) -> Result<u64, StoreError> {
        let leaves = leaves_of_run(&self.sql, run).map_err(StoreError::read)?;
        let query = "SELECT count(*) FROM payloads WHERE id >= ?1 AND id < ?2 AND salt IS NOT NULL";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        leaves.iter().try_fold(0, |sum, leaf| {
            let own: i64 = query
                .query_row([payload_id(*leaf, 0), payload_id(leaf + 1, 0)], |row| row.get(0))
                .map_err(StoreError::read)?;
            Ok(sum + u64::try_from(own).unwrap_or(0))
        })
    }

    /// Erases the payloads of a run, and writes down that they were, as one, on the disk; gives how many they
    /// were. Where there is nothing to erase, nothing is written. `at` is the time in microseconds since
    /// 1970. Copies stay in unused parts of the file until [`Store::compact`].
    ///
    /// # Errors
    /// When it cannot be written. Whether the run may be erased is for others to say.
    pub fn erase(&mut self, run: RunId, at: u64) -> Result<u64, StoreError> {
        self.erase_in_transaction(run, at).map_err(StoreError::write)
    }

    /// Writes the whole file anew, so that nothing stands in it but what the record holds: a database leaves
    /// copies of rows where it moved them from.
    ///
    /// # Errors
    /// When somebody else uses the store, or there is no room for a copy of it.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        self.sql.execute_batch("VACUUM").map_err(StoreError::write)?;
        // What the log holds is moved into the file, and the log cut off.
        let log = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy = self.sql.query_row(log, [], |row| row.get::<_, i64>(0));
        match busy.map_err(StoreError::write)? {
            0 => Ok(()),
            _ => Err(StoreError::write("another process reads the store")),
        }
    }

    /// The runs that are about others, by what they are about, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn related_runs(&self) -> Result<BTreeMap<String, Vec<RelatedRun>>, StoreError> {
        let query = "SELECT json ->> '$.body.subject' AS subject, run, json ->> '$.body.origin'
                     FROM (SELECT leaf, run, CAST(bytes AS TEXT) AS json FROM events
                           WHERE kind = 'run.opened')
                     WHERE subject IS NOT NULL ORDER BY leaf";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let mut rows = query.query([]).map_err(StoreError::read)?;
        let mut related: BTreeMap<String, Vec<RelatedRun>> = BTreeMap::new();
        while let Some(row) = rows.next().map_err(StoreError::read)? {
            let read = || -> rusqlite::Result<(String, String, String)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            };
            let (subject, run, kind) = read().map_err(StoreError::read)?;
            let kind = serde_json::from_value(kind.into()).map_err(StoreError::read)?;
            related.entry(subject).or_default().push(RelatedRun { run, kind });
        }
        Ok(related)
    }

    fn erase_in_transaction(&mut self, subject: RunId, at: u64) -> rusqlite::Result<u64> {
        // What is erased is written over where it stands.
        self.sql.pragma_update(None, "secure_delete", true)?;
        self.set_fsync(true)?;
        let transaction = self.sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (mut payloads, mut written) = (0, None);
        for leaf in leaves_of_run(&transaction, &subject.to_string())? {
            let parts = [payload_id(leaf, 0), payload_id(leaf + 1, 0)];
            let gone = transaction
                .prepare_cached(
                    "UPDATE payloads SET bytes = NULL, salt = NULL, sha256 = NULL
                     WHERE id >= ?1 AND id < ?2 AND salt IS NOT NULL",
                )?
                .execute(parts)?;
            payloads += u64::try_from(gone).unwrap_or(PAYLOADS_PER_EVENT);
        }
        if payloads > 0 {
            let mut tree = load_frontier(&transaction)?;
            let erased = PendingEvent::unattached(Event::PayloadErased { subject, payloads }, at);
            insert_entry(&transaction, &erased, &mut tree)?;
            store_frontier(&transaction, &tree)?;
            written = Some(tree);
        }
        transaction.commit()?;
        if let Some(tree) = written {
            self.note_head(&tree, true);
        }
        Ok(payloads)
    }

    /// The events that say that the payloads of a run were erased, with the run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn erased_runs(&self) -> Result<Vec<(u64, RunId)>, StoreError> {
        let query = "SELECT leaf, bytes FROM events WHERE kind = 'payload.erased' ORDER BY leaf";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .map_err(StoreError::read)?;
        let mut runs = Vec::new();
        for row in rows {
            let (leaf, bytes) = row.map_err(StoreError::read)?;
            // One that cannot be read is found where every event is.
            if let Ok(Entry { event: Event::PayloadErased { subject, .. }, .. }) =
                Entry::from_bytes(&bytes)
            {
                runs.push((u64::try_from(leaf).unwrap_or(0), subject));
            }
        }
        Ok(runs)
    }

    /// The runs whose policy has their payloads erased at some time after their end that is over by now (in
    /// microseconds since 1970), and whose payloads are there, the oldest first, up to so many; each with
    /// whether it has been for a tenth of its term, or for a day.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn due_for_erasure(
        &self,
        now: u64,
        most: usize,
    ) -> Result<Vec<(String, bool)>, StoreError> {
        // The first payload of a run's first event is its plan or its policy. A run that crashed ended with
        // its last event.
        let query = "
            SELECT run, over >= min(term / 10, 86400000000) FROM (
                SELECT leaf, run, term, ?1 - term - (
                    SELECT CAST(bytes AS TEXT) ->> '$.at' FROM events AS own
                    WHERE own.run = opened.run ORDER BY seq DESC LIMIT 1) AS over
                FROM (SELECT leaf, run,
                             1000000 * (CAST(bytes AS TEXT) ->> '$.body.erase_after') AS term
                      FROM events WHERE kind = 'run.opened'
                        AND EXISTS (SELECT 1 FROM payloads
                                    WHERE id = events.leaf * 16 AND salt IS NOT NULL)) AS opened
                WHERE term IS NOT NULL)
            WHERE over >= 0 ORDER BY leaf LIMIT ?2";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query
            .query_map([to_i64(now), most], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }
}

/// Where the events of a run stand.
fn leaves_of_run(sql: &Connection, run: &str) -> rusqlite::Result<Vec<u64>> {
    let mut query = sql.prepare_cached("SELECT leaf FROM events WHERE run = ?1 ORDER BY seq")?;
    let rows = query.query_map([run], |row| row.get::<_, i64>(0))?;
    rows.map(|leaf| leaf.map(|leaf| u64::try_from(leaf).unwrap_or(0))).collect()
}
