//! A transaction of whoever writes events: the words that begin and end one are read by SQLite once, not with
//! each.

use rusqlite::Connection;

/// One that nobody else writes beside. It is taken back when it is dropped.
pub(crate) struct ImmediateTransaction<'s> {
    sql: &'s Connection,
    is_open: bool,
}

impl<'s> ImmediateTransaction<'s> {
    /// Begins it.
    ///
    /// # Errors
    /// Somebody else writes for too long, or the file cannot be locked.
    pub(crate) fn begin(sql: &'s mut Connection) -> rusqlite::Result<Self> {
        sql.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { sql, is_open: true })
    }

    /// The store within it.
    pub(crate) const fn sql(&self) -> &Connection {
        self.sql
    }

    /// Ends it.
    ///
    /// # Errors
    /// Nothing of it is written then.
    pub(crate) fn commit(mut self) -> rusqlite::Result<()> {
        self.sql.prepare_cached("COMMIT")?.execute([])?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for ImmediateTransaction<'_> {
    fn drop(&mut self) {
        // SQLite may have taken it back by itself, because of what went wrong.
        if self.is_open && !self.sql.is_autocommit() {
            let _ = self.sql.execute_batch("ROLLBACK");
        }
    }
}
