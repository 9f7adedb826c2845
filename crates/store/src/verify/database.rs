//! The file itself: its pages, and the tables, views and triggers in it.

use super::fault::{Fault, fault};
use super::{Stop, unreadable};
use crate::error::StoreError;
use crate::open::Store;
use crate::schema;
use crate::store_file::{header, open_nonblocking};

impl Store {
    /// The pages fit together, each index lists the rows that are there, and what the file is made of is what
    /// this format says.
    pub(super) fn check_database(&self) -> Result<(), Stop> {
        // A damaged page can hide rows from one index and not from another.
        let check = "PRAGMA integrity_check(1)";
        let sound: String =
            self.sql.query_row(check, [], |row| row.get(0)).map_err(unreadable("database"))?;
        if sound != "ok" {
            return Err(damage(&sound).into());
        }
        match self.foreign_schema()? {
            Some((name, what)) => Err(fault(format!("schema {name}"), what).into()),
            None => Ok(()),
        }
    }

    /// The first table, view, index or trigger that is not that of this format: its name, and what
    /// is wrong with it. Views are what other programs read, so another view is another record.
    pub(crate) fn foreign_schema(&self) -> Result<Option<(String, String)>, StoreError> {
        let found = schema::schema_objects(&self.sql).map_err(StoreError::read)?;
        let expected = schema::expected_objects().map_err(StoreError::read)?;
        let other = expected.iter().find_map(|(name, text)| match found.get(name) {
            None => Some((name, "it is not there")),
            Some(own) if own != text => Some((name, "it is not what this format says")),
            Some(_) => None,
        });
        let extra = || found.keys().find(|name| !expected.contains_key(*name));
        let other = other.or_else(|| Some((extra()?, "this format has none of that name")));
        Ok(other.map(|(name, what)| (name.clone(), what.to_owned())))
    }

    /// Whether the store is a file by itself, with no log beside it: one run that was written out, or a copy of
    /// a whole store.
    pub(crate) fn is_alone(&self) -> bool {
        let begins = open_nonblocking(&self.path).and_then(header).unwrap_or_default();
        !begins.is_empty() && !capsule_core::journal::has_wal(&begins)
    }
}

/// Where SQLite found the database damaged: the page or the index that it names.
fn damage(said: &str) -> Fault {
    let words: Vec<&str> =
        said.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let behind = |name: &str| {
        let at = words.iter().position(|word| word.eq_ignore_ascii_case(name))?;
        words.get(at + 1).filter(|word| !word.is_empty())
    };
    if let Some(index) = behind("index") {
        return fault(
            "database",
            format!("its index `{index}` does not list the rows that are there"),
        );
    }
    match behind("page") {
        Some(page) => fault("database", format!("its page {page} is damaged")),
        None => fault("database", "its pages do not fit together"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_by_its_place() {
        for (said, what) in [
            ("row 5 missing from index events_of_run", "its index `events_of_run`"),
            ("wrong # of entries in index runs_opened", "its index `runs_opened`"),
            ("Tree 4 page 7 cell 2: Rowid 9 out of order", "its page 7 is damaged"),
            ("Page 12: never used", "its page 12 is damaged"),
            ("NULL value in events.seq", "its pages do not fit"),
        ] {
            let Fault { what: told, .. } = damage(said);
            assert!(told.contains(what), "{said}: {told}");
        }
    }
}
