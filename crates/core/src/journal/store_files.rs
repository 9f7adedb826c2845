//! What tells the file of a store, wherever it lies and whoever meets it.

/// What SQLite, the locks of runs, staged workspaces, undo records, the key, the note of the newest tree head and
/// open sessions put beside a store: the ends of their names.
pub const SIDECAR_SUFFIXES: [&str; 9] = [
    "-wal",
    "-shm",
    "-journal",
    ".locks",
    STAGED_SUFFIX,
    UNDO_SUFFIX,
    KEY_SUFFIX,
    HEAD,
    SESSIONS_SUFFIX,
];

/// What is put behind a store's name for the folder of what open sessions remember between processes.
pub const SESSIONS_SUFFIX: &str = ".sessions";

/// What is put behind a store's name for the note of how many events it has.
pub const HEAD: &str = ".head";

/// What is put behind a store's name for the file of the key that signs its tree.
pub const KEY_SUFFIX: &str = ".key";

/// What is put behind a store's name for the folder of its staged workspaces.
pub const STAGED_SUFFIX: &str = ".staged";

/// What is put behind a store's name for the folder of what its calls replaced and deleted.
pub const UNDO_SUFFIX: &str = ".undo";

/// Marks a database as a store (`PRAGMA application_id`): "CPSL".
pub const APPLICATION_ID: i32 = i32::from_be_bytes(*b"CPSL");

/// How many of a file's first bytes say whether it is a store.
pub const HEADER_BYTES: usize = 72;

/// Whether a file that begins so is a store. SQLite need not be asked, which would make files
/// beside one that it opens. Source: the SQLite file format, section 1.3.
#[must_use]
pub fn is_store(header: &[u8]) -> bool {
    header.starts_with(b"SQLite format 3\0")
        && header.get(68..HEADER_BYTES) == Some(&APPLICATION_ID.to_be_bytes())
}

/// Whether the log of a store that begins so is kept beside it, as where somebody works with it.
#[must_use]
pub fn has_wal(header: &[u8]) -> bool {
    header.get(18..20) != Some(&[1, 1])
}
