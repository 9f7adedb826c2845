//! Reading across runs: which are about another one, and what others did since.

use capsule_core::journal::{Event, RunKind};
use rusqlite::{OptionalExtension, params};

use crate::error::StoreError;
use crate::open::Store;
use crate::read::{StoredEvent, stored_event};
use crate::write::to_i64;

impl Store {
    /// The runs of one kind that are about a run, in the order in which they began.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs_about(&self, run: &str, kind: RunKind) -> Result<Vec<String>, StoreError> {
        // Behind its own beginning, and by its text before that is taken apart: the store may hold many runs.
        let query = "SELECT run FROM events WHERE kind = 'run.opened'
                     AND leaf > (SELECT leaf FROM events WHERE run = ?1 AND seq = 1)
                     AND instr(bytes, CAST(?1 AS BLOB)) > 0
                     AND CAST(bytes AS TEXT) ->> '$.body.origin' = ?2
                     AND CAST(bytes AS TEXT) ->> '$.body.subject' = ?1 ORDER BY leaf";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let rows =
            query.query_map([run, kind.name()], |row| row.get(0)).map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }

    /// Whether a run began behind the last event of another one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn began_after(&self, run: &str, other: &str) -> Result<bool, StoreError> {
        let query = "SELECT (SELECT min(leaf) FROM events WHERE run = ?1)
                          > (SELECT max(leaf) FROM events WHERE run = ?2)";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let behind: Option<bool> =
            query.query_row([run, other], |row| row.get(0)).map_err(StoreError::read)?;
        Ok(behind.unwrap_or(false))
    }

    /// When the staged changes of a run were dropped, in microseconds since 1970; none if nobody has.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn discarded_at(&self, run: &str) -> Result<Option<u64>, StoreError> {
        let query = "SELECT CAST(bytes AS TEXT) ->> '$.at' FROM events
                     WHERE kind = 'changes.discarded'
                     AND leaf > (SELECT leaf FROM events WHERE run = ?1 AND seq = 1)
                     AND CAST(bytes AS TEXT) ->> '$.body.subject' = ?1 ORDER BY leaf DESC LIMIT 1";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let at: Option<i64> =
            query.query_row([run], |row| row.get(0)).optional().map_err(StoreError::read)?;
        Ok(at.and_then(|at| u64::try_from(at).ok()))
    }

    /// The starts of calls that were written after a leaf, the newest first, up to so many.
    ///
    /// # Errors
    /// When the store cannot be read, or an event is not what was written.
    pub fn calls_started_since(
        &self,
        leaf: u64,
        most: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let query = "SELECT leaf, bytes, hash FROM events
                     WHERE kind = 'call.started' AND leaf > ?1 ORDER BY leaf DESC LIMIT ?2";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut rows = query.query(params![to_i64(leaf), most]).map_err(StoreError::read)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(StoreError::read)? {
            let stored = stored_event(row)?;
            if matches!(stored.entry.event, Event::CallStarted(_)) {
                found.push(stored);
            }
        }
        Ok(found)
    }
}
