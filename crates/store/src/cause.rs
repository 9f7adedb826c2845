//! Why a store could not be read or written, in our own words: those of SQLite speak of its functions, and not
//! of the store or of what to do.

use std::fmt;
use std::io;

use rusqlite::ErrorCode;

/// Why a store could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    kind: Kind,
    words: String,
}

/// Causes that differ in what to do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Another process holds it for too long.
    Locked,
    /// The file or its directory cannot be written to.
    ReadOnly,
    /// The file system has no room.
    Full,
    /// The file is not what was written.
    Damaged,
    Other,
}

impl Cause {
    fn of(kind: Kind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }

    /// Whether the file itself is wrong.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind == Kind::Damaged
    }

    /// What to do, where that is more than the code of the error says.
    pub(crate) const fn suggestion(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Locked => Some(
                "wait until that process is through, or end it, and run it again; `capsule list-runs` shows \
                 which runs go on",
            ),
            Kind::ReadOnly => Some(
                "make the store's file and its directory writable for this user, or name another store with \
                 `--store`",
            ),
            Kind::Full => Some(
                "make room (`capsule doctor` names what is staged; `capsule discard` drops it), and run it again",
            ),
            Kind::Damaged | Kind::Other => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl From<&str> for Cause {
    fn from(words: &str) -> Self {
        Self::of(Kind::Other, words)
    }
}

impl From<String> for Cause {
    fn from(words: String) -> Self {
        Self::of(Kind::Other, words)
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Kind::ReadOnly,
            _ => Kind::Other,
        };
        Self::of(kind, error.to_string())
    }
}

impl From<rustix::io::Errno> for Cause {
    fn from(errno: rustix::io::Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<getrandom::Error> for Cause {
    fn from(error: getrandom::Error) -> Self {
        Self::of(Kind::Other, format!("no random numbers can be had: {error}"))
    }
}

impl From<serde_json::Error> for Cause {
    fn from(_: serde_json::Error) -> Self {
        Self::of(Kind::Damaged, "a word in it is none of this format")
    }
}

impl From<rusqlite::Error> for Cause {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        match &error {
            Sql::SqliteFailure(failure, detail) => {
                Self::of_sqlite(*failure, detail.as_deref().unwrap_or_default())
            }
            Sql::QueryReturnedNoRows => {
                Self::of(Kind::Damaged, "a row that belongs there is missing")
            }
            Sql::InvalidColumnType(_, name, _) => {
                let words = format!("its column `{name}` holds another type than this format has");
                Self::of(Kind::Damaged, words)
            }
            Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::Utf8Error(..) => {
                Self::of(Kind::Damaged, "a value in it is not one of this format")
            }
            _ => Self::of(Kind::Other, "the database cannot be asked"),
        }
    }
}

impl Cause {
    fn of_sqlite(failure: rusqlite::ffi::Error, detail: &str) -> Self {
        let (kind, words) = match failure.code {
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => {
                (Kind::Locked, "another process has it locked, and did not let go in time")
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
                (Kind::ReadOnly, "the file or its directory is read-only for this user")
            }
            ErrorCode::DiskFull => (Kind::Full, "there is no room left on the file system"),
            ErrorCode::DatabaseCorrupt => (Kind::Damaged, "the file of the database is damaged"),
            ErrorCode::NotADatabase => (Kind::Damaged, "it is not a database"),
            ErrorCode::CannotOpen => (
                Kind::ReadOnly,
                "the database, or a file that it needs beside it (`-wal`, `-shm`), cannot be opened or made",
            ),
            ErrorCode::ConstraintViolation => {
                (Kind::Damaged, "what is written does not fit what is there")
            }
            ErrorCode::SystemIoFailure => {
                (Kind::Other, "the file system failed to read or write it")
            }
            // The one message of SQLite that is about a value: what an expression over an event met.
            ErrorCode::Unknown if detail.contains("malformed JSON") => {
                (Kind::Damaged, "the bytes of an event are not JSON")
            }
            _ => {
                let words =
                    format!("the database failed with SQLite's code {}", failure.extended_code);
                return Self::of(Kind::Other, words);
            }
        };
        Self::of(kind, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_sqlite(code: std::ffi::c_int) -> Cause {
        let failure = rusqlite::ffi::Error::new(code);
        Cause::from(rusqlite::Error::SqliteFailure(failure, Some("words of SQLite".into())))
    }

    /// G1: each cause says what is the matter and what to do, and none repeats the library.
    #[test]
    fn causes_are_told_in_our_words() {
        use rusqlite::ffi;
        for (code, words, suggestion) in [
            (ffi::SQLITE_BUSY, "another process", Some("end it")),
            (ffi::SQLITE_LOCKED, "another process", Some("end it")),
            (ffi::SQLITE_READONLY, "read-only", Some("writable")),
            (ffi::SQLITE_PERM, "read-only", Some("writable")),
            (ffi::SQLITE_FULL, "no room", Some("make room")),
            (ffi::SQLITE_CORRUPT, "damaged", None),
            (ffi::SQLITE_NOTADB, "not a database", None),
            (ffi::SQLITE_CANTOPEN, "beside it", Some("writable")),
            (ffi::SQLITE_IOERR, "file system failed", None),
            (ffi::SQLITE_TOOBIG, "code 18", None),
        ] {
            let cause = of_sqlite(code);
            assert!(cause.to_string().contains(words), "{code}: {cause}");
            assert!(!cause.to_string().contains("words of SQLite"), "{code}: {cause}");
            let told = cause.suggestion();
            assert_eq!(told.is_some(), suggestion.is_some(), "{code}: {told:?}");
            assert!(told.unwrap_or_default().contains(suggestion.unwrap_or_default()), "{code}");
        }
        let missing = Cause::from(rusqlite::Error::QueryReturnedNoRows);
        assert_eq!(missing.to_string(), "a row that belongs there is missing");
        assert!(missing.is_damage());
    }
}
