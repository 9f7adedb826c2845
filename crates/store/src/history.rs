//! What was done before in the same place.

use rusqlite::params;

use crate::error::StoreError;
use crate::open::Store;
use crate::write::to_i64;

/// How many of the newest runs are looked through for those of one place.
const SCANNED_RUNS: u64 = 1_000;

impl Store {
    /// The newest runs in a workspace under the policy of a place and a name, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs_in_workspace(
        &self,
        workspace: &str,
        (place, name): (&str, &str),
        most: u64,
    ) -> Result<Vec<String>, StoreError> {
        let mut query = self
            .sql
            .prepare_cached(
                "SELECT run FROM (SELECT run, leaf, CAST(bytes AS TEXT) AS json FROM events
                                  WHERE kind = 'run.opened' ORDER BY leaf DESC LIMIT ?1)
                 WHERE json ->> '$.body.workspace.path' = ?2
                   AND json ->> '$.body.policy.path' = ?3
                   AND json ->> '$.body.policy_name' = ?5
                   AND json ->> '$.body.origin' NOT IN ('apply', 'feedback')
                 ORDER BY leaf DESC LIMIT ?4",
            )
            .map_err(StoreError::read)?;
        let given = params![to_i64(SCANNED_RUNS), workspace, place, to_i64(most), name];
        let rows = query.query_map(given, |row| row.get(0)).map_err(StoreError::read)?;
        rows.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }
}
