//! A cache of the digests of programs: what is large and seldom changes is not read for each call.

use rusqlite::OptionalExtension as _;

use crate::open::Store;

impl Store {
    /// The digest of a program, if what identifies its bytes has not changed since.
    #[must_use]
    pub fn program_digest(&self, path: &str, identity: &str) -> Option<String> {
        self.sql
            .prepare_cached("SELECT sha256 FROM programs WHERE path = ?1 AND identity = ?2")
            .and_then(|mut query| query.query_row([path, identity], |row| row.get(0)).optional())
            .ok()
            .flatten()
    }

    /// Remembers the digest of a program. It is a cache: failing to write it changes nothing.
    pub fn remember_program(&self, path: &str, identity: &str, sha256: &str) {
        let _ = self.sql.execute(
            "INSERT OR REPLACE INTO programs (path, identity, sha256) VALUES (?1, ?2, ?3)",
            [path, identity, sha256],
        );
    }
}
