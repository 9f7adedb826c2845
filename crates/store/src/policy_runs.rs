//! Runs by the policy that judged them.

use rusqlite::{OptionalExtension as _, params};

use crate::error::StoreError;
use crate::open::Store;

impl Store {
    /// The label of the run since which a policy has had this digest; none where the newest run by it had
    /// another one, or there is none. It is known by its place (the path of its file, or its built-in name)
    /// and by its own name: policies of two folders may have the same name, and one file may get another.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn policy_unchanged_since(
        &self,
        (place, name): (&str, &str),
        sha256: &str,
    ) -> Result<Option<String>, StoreError> {
        let newest = self.sql.query_row(
            "SELECT iif(json ->> '$.body.policy.sha256' = ?2,
                        coalesce(json ->> '$.body.policy_since', json ->> '$.body.label'), NULL)
             FROM entries
             WHERE kind = 'run.opened' AND json ->> '$.body.policy.path' = ?1
               AND json ->> '$.body.policy_name' = ?3
               AND json ->> '$.body.origin' NOT IN ('feedback', 'answer')
             ORDER BY leaf DESC LIMIT 1",
            [place, sha256, name],
            |row| row.get(0),
        );
        newest.optional().map(Option::flatten).map_err(StoreError::read)
    }

    /// The newest runs that the policy of a place and a name judged, the newest first. What a person said or did
    /// about a run that is over is none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs_under_policy(
        &self,
        (place, name): (&str, &str),
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut query = self
            .sql
            .prepare_cached(
                "SELECT run FROM entries
                 WHERE kind = 'run.opened' AND json ->> '$.body.policy.path' = ?1
                   AND json ->> '$.body.policy_name' = ?3
                   AND json ->> '$.body.origin' NOT IN ('feedback', 'apply', 'answer')
                 ORDER BY leaf DESC LIMIT ?2",
            )
            .map_err(StoreError::read)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query.query_map(params![place, most, name], |row| row.get(0));
        rows.map_err(StoreError::read)?.collect::<rusqlite::Result<_>>().map_err(StoreError::read)
    }
}
