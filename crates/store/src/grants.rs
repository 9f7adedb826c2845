//! What people took back of what they allowed.

use capsule_core::journal::{Entry, Event};

use crate::error::StoreError;
use crate::open::Store;
use crate::write::to_i64;

impl Store {
    /// The runs in which a call waits for an answer or did, in their order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs_with_approvals(&self) -> Result<Vec<String>, StoreError> {
        let query = "SELECT run FROM events WHERE kind = 'approval.waiting'
                     GROUP BY run ORDER BY min(leaf)";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let rows = query.query_map([], |row| row.get(0)).map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }

    /// The runs that are not sealed and in which somebody gave a grant.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn unsealed_runs_with_grants(&self) -> Result<Vec<String>, StoreError> {
        let query = "SELECT DISTINCT run FROM events AS given WHERE kind IN
                        ('approval.answered', 'plan.answered')
                     AND CAST(bytes AS TEXT) ->> '$.body.grant' IS NOT NULL
                     AND NOT EXISTS (SELECT 1 FROM events AS own WHERE own.run = given.run
                        AND own.kind = 'run.sealed')";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let rows = query.query_map([], |row| row.get(0)).map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }

    /// The grants that were taken back since a leaf, and the newest leaf now; a name that is missing
    /// stands for all grants. Without a leaf only the newest one is told.
    ///
    /// # Errors
    /// When the store cannot be read, or an event is not what was written.
    pub fn grants_revoked_since(
        &self,
        leaf: Option<u64>,
    ) -> Result<(u64, Vec<Option<String>>), StoreError> {
        let newest: Option<i64> = self
            .sql
            .query_row("SELECT max(leaf) FROM events", [], |row| row.get(0))
            .map_err(StoreError::read)?;
        let newest = u64::try_from(newest.unwrap_or(0)).unwrap_or(0);
        let Some(seen) = leaf.filter(|seen| *seen < newest) else {
            return Ok((newest, Vec::new()));
        };
        let mut query = self
            .sql
            .prepare_cached(
                "SELECT bytes FROM events
                 WHERE leaf > ?1 AND leaf <= ?2 AND kind = 'grant.revoked'",
            )
            .map_err(StoreError::read)?;
        let rows = query.query_map([seen, newest].map(to_i64), |row| row.get::<_, Vec<u8>>(0));
        let mut gone = Vec::new();
        for bytes in rows.map_err(StoreError::read)? {
            let entry = Entry::from_bytes(&bytes.map_err(StoreError::read)?);
            match entry.map(|entry| entry.event) {
                Ok(Event::GrantRevoked { grant }) => gone.push(grant),
                // What cannot be read may be any of them.
                _ => gone.push(None),
            }
        }
        Ok((newest, gone))
    }
}
