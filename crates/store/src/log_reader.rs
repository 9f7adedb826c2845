//! Reading the whole log, whichever runs its events belong to.

use crate::error::StoreError;
use crate::open::Store;
use crate::read::{StoredEvent, stored_event};

impl Store {
    /// Visits every event in the order of the tree; memory does not grow with the log.
    ///
    /// # Errors
    /// When the store cannot be read, an event is not what was written or missing, or the visitor fails.
    pub fn visit_all<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(StoredEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let query = "SELECT leaf, bytes, hash FROM events ORDER BY leaf";
        let mut query = self.sql.prepare_cached(query).map_err(StoreError::read)?;
        let mut rows = query.query([]).map_err(StoreError::read)?;
        let mut leaf = 0;
        while let Some(row) = rows.next().map_err(StoreError::read)? {
            let stored = stored_event(row)?;
            if stored.leaf != leaf {
                let place = format!("event {}", stored.leaf);
                let what = format!("an event is missing before it: its place should be {leaf}");
                return Err(StoreError::Integrity { place, what }.into());
            }
            leaf += 1;
            visit(stored)?;
        }
        Ok(())
    }
}
