//! What the record remembers of a workspace.

use rusqlite::OptionalExtension as _;

use crate::error::StoreError;
use crate::open::Store;
use crate::read::StoredEvent;

impl Store {
    /// The beginning of the newest run in a workspace that is not about another run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn last_run_in(&self, workspace: &str) -> Result<Option<StoredEvent>, StoreError> {
        let newest: Option<String> = self
            .sql
            .query_row(
                "SELECT run FROM entries
                 WHERE kind = 'run.opened' AND json ->> '$.body.workspace.path' = ?1
                   AND json ->> '$.body.subject' IS NULL
                 ORDER BY leaf DESC LIMIT 1",
                [workspace],
                |row| row.get(0),
            )
            .optional()
            .map_err(StoreError::read)?;
        newest.map_or(Ok(None), |run| self.event(&run, 1))
    }
}
