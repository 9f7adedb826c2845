//! Erasing what a run's payloads hold. Events and hashes stay, so the record is as whole as before; what
//! they commit to can be told by nobody any more, since the salt goes with it.

use std::collections::BTreeSet;

use capsule_core::id::RunId;
use capsule_core::journal::{self, Entry, Event};
use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::open::Store;
use crate::schema::PARTS;
use crate::write::{Unwritten, frontier, insert, number, payload_id, set_frontier};

impl Store {
    /// How many payloads of a run are there to be erased.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn erasable(&self, run: &str) -> Result<u64, StoreError> {
        let leaves = leaves(&self.sql, run).map_err(StoreError::read)?;
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
        self.erase_in(run, at).map_err(StoreError::write)
    }

    /// Writes the whole file anew, so that nothing stands in it but what the record holds: a database leaves
    /// copies of rows where it moved them from. Gives whether it could: somebody else may use the store.
    pub fn compact(&mut self) -> bool {
        // What the log holds is moved into the file, and the log cut off.
        let log = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.sql.execute_batch("VACUUM").is_ok()
            && self.sql.query_row(log, [], |row| row.get::<_, i64>(0)) == Ok(0)
    }

    fn erase_in(&mut self, subject: RunId, at: u64) -> rusqlite::Result<u64> {
        self.wait_for_disk(true)?;
        let transaction = self.sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut payloads = 0;
        for leaf in leaves(&transaction, &subject.to_string())? {
            let parts = [payload_id(leaf, 0), payload_id(leaf + 1, 0)];
            let gone = transaction
                .prepare_cached(
                    "UPDATE payloads SET bytes = NULL, salt = NULL, sha256 = NULL
                     WHERE id >= ?1 AND id < ?2 AND salt IS NOT NULL",
                )?
                .execute(parts)?;
            payloads += u64::try_from(gone).unwrap_or(PARTS);
        }
        if payloads > 0 {
            let mut tree = frontier(&transaction)?;
            let event = Event::PayloadErased { subject, payloads };
            let entry = Entry { v: journal::VERSION, run: None, seq: 0, prev: None, at, event };
            let bytes = entry.to_bytes();
            insert(&transaction, &Unwritten { entry, bytes, kept: Vec::new() }, &mut tree)?;
            set_frontier(&transaction, &tree)?;
        }
        transaction.commit()?;
        Ok(payloads)
    }

    /// The runs whose payloads were erased.
    pub(crate) fn erased(&self) -> Result<BTreeSet<RunId>, StoreError> {
        let query = "SELECT bytes FROM events WHERE kind = 'payload.erased'";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let rows = query.query_map([], |row| row.get::<_, Vec<u8>>(0)).map_err(StoreError::read)?;
        let mut runs = BTreeSet::new();
        for bytes in rows {
            // One that cannot be read is found where every event is.
            if let Ok(Entry { event: Event::PayloadErased { subject, .. }, .. }) =
                Entry::from_bytes(&bytes.map_err(StoreError::read)?)
            {
                runs.insert(subject);
            }
        }
        Ok(runs)
    }

    /// The runs whose policy has their payloads erased at some time that is over by now (in microseconds
    /// since 1970), and whose payloads are there, the oldest first, up to so many; and whether one of them
    /// has been for a tenth of its term, or for a day.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn due(&self, now: u64, most: usize) -> Result<(Vec<String>, bool), StoreError> {
        // The first payload of a run's first event is its plan or its policy.
        let query = "
            SELECT run, over >= min(term / 10, 86400000000) FROM (
                SELECT leaf, run, term, ?1 - (json ->> '$.at') - term AS over FROM (
                    SELECT leaf, run, CAST(bytes AS TEXT) AS json,
                           1000000 * (CAST(bytes AS TEXT) ->> '$.body.erase_after') AS term
                    FROM events WHERE kind = 'run.opened'
                      AND EXISTS (SELECT 1 FROM payloads
                                  WHERE id = events.leaf * 16 AND salt IS NOT NULL)))
            WHERE over >= 0 ORDER BY leaf LIMIT ?2";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query
            .query_map([number(now), most], |row| Ok((row.get(0)?, row.get::<_, bool>(1)?)))
            .map_err(StoreError::read)?;
        let rows: Vec<(String, bool)> =
            rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)?;
        let is_long = rows.iter().any(|(_, is_long)| *is_long);
        Ok((rows.into_iter().map(|(run, _)| run).collect(), is_long))
    }
}

/// Where the events of a run stand.
fn leaves(sql: &Connection, run: &str) -> rusqlite::Result<Vec<u64>> {
    let mut query = sql.prepare_cached("SELECT leaf FROM events WHERE run = ?1 ORDER BY seq")?;
    let rows = query.query_map([run], |row| row.get::<_, i64>(0))?;
    rows.map(|leaf| leaf.map(|leaf| u64::try_from(leaf).unwrap_or(0))).collect()
}
