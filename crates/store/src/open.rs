//! Opening a store: the file, its rights, its version.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capsule_core::journal::{APPLICATION_ID, has_wal, is_store};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::cause::Cause;
use crate::error::StoreError;
use crate::head::{self, HeadFile};
use crate::schema;
use crate::store_file::{header, open_nonblocking, sidecar_path};

/// How long a writer waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it lets the other one go first.
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// From how many pages on the log is moved into the file. Whoever opens a store reads its log from the
/// beginning, so runs of few events keep it short; in a long one, moving it would take more.
const SHORT_WAL_PAGES: i64 = 250;
/// The same for a long run.
const LONG_WAL_PAGES: i64 = 1_000;

/// A store that is open.
#[derive(Debug)]
pub struct Store {
    pub(crate) sql: Connection,
    pub(crate) path: PathBuf,
    /// The note of how many events it has, where it is written to.
    pub(crate) head: Option<HeadFile>,
    /// Whether commits are known not to wait for the disk.
    skips_fsync: bool,
}

impl Store {
    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the store for writing, and makes it if it is not there: the file with mode 0600 in a
    /// folder with mode 0700.
    ///
    /// # Errors
    /// When it cannot be opened, is not a store, is newer than this build, or has fewer events than were noted
    /// beside it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::open_unnoted(path)?;
        store.take_up_note()?;
        Ok(store)
    }

    /// The same for a file that is to be one by itself, without a note beside it.
    pub(crate) fn open_unnoted(path: &Path) -> Result<Self, StoreError> {
        let failed = |why: Cause| StoreError::Open { path: path.to_owned(), why };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            create_private_directory(folder).map_err(|error| failed(error.into()))?;
        }
        planted_journal(path).map_or(Ok(()), |why| Err(failed(why.into())))?;
        head::put_away_stale(path);
        create_private_file(path).map_err(failed)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sql = Connection::open_with_flags(path, flags).map_err(|error| failed(error.into()))?;
        let store = Self { sql, path: path.to_owned(), head: None, skips_fsync: false };
        store.harden().map_err(|error| failed(error.into()))?;
        let found = store.version()?;
        if let (APPLICATION_ID, 1..) = found {
            store.check_version(found)?;
            store.is_worked_with()?;
        }
        store.retry_busy(Self::prepare).map_err(|error| failed(error.into()))?;
        if found != (APPLICATION_ID, schema::VERSION) {
            store.holds_nothing_yet()?;
            store.migrate()?;
        }
        Ok(store)
    }

    /// Makes sure that it is not one run that was written out: that holds this run and nothing else.
    fn is_worked_with(&self) -> Result<(), StoreError> {
        if !self.is_alone() || !self.is_written_out().map_err(StoreError::read)? {
            return Ok(());
        }
        let why = "it holds one run that was written out, and nothing is added to it; name another store with \
                   `--store`";
        Err(StoreError::Target { path: self.path.clone(), why: why.into() })
    }

    /// Opens a store that is there, for reading only.
    ///
    /// # Errors
    /// When it cannot be opened, is not a store, or is newer than this build.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let failed = |why: Cause| StoreError::Open { path: path.to_owned(), why };
        if !path.exists() {
            return Err(failed("there is no such file".into()));
        }
        planted_journal(path).map_or(Ok(()), |why| Err(failed(why.into())))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sql = Connection::open_with_flags(path, flags).map_err(|error| failed(error.into()))?;
        let store = Self { sql, path: path.to_owned(), head: None, skips_fsync: false };
        store.harden().map_err(|error| failed(error.into()))?;
        let found = match store.version()? {
            // It is being made, or what it is made of lies in a log that is not there or cannot be read.
            (APPLICATION_ID, 0) => store.version_once_made()?,
            found => found,
        };
        store.check_version(found)?;
        Ok(store)
    }

    /// Tries again while somebody else prepares the same file: where two want to be the only one,
    /// SQLite waits for neither.
    fn retry_busy(&self, act: fn(&Self) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let began = Instant::now();
        loop {
            let done = act(self);
            let code = done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
            if code != Some(ErrorCode::DatabaseBusy) || began.elapsed() > BUSY_TIMEOUT {
                return done;
            }
            std::thread::sleep(RETRY_DELAY);
        }
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        let mode: String = self.sql.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != "wal" {
            // What is written before there is a log is the first page alone. No journal of it lies
            // beside a store at any time, so one that does is somebody else's.
            self.sql.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
            self.mark()?;
            self.sql.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        }
        // A short run does not pay for moving the log into the file when it ends; that happens
        // once it has become long, and readers see both.
        self.sql.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        self.sql.pragma_update(None, "wal_autocheckpoint", SHORT_WAL_PAGES)?;
        self.sql.pragma_update(None, "synchronous", "NORMAL")
    }

    /// Says whether the next commits wait for the disk; between transactions, since inside one it has
    /// no effect. That they do is said anew each time, and that they do not only where it is not known.
    pub(crate) fn set_fsync(&mut self, wait: bool) -> rusqlite::Result<()> {
        if !wait && self.skips_fsync {
            return Ok(());
        }
        self.skips_fsync = false;
        let level = if wait { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
        self.sql.prepare_cached(level)?.execute([])?;
        self.skips_fsync = !wait;
        Ok(())
    }

    /// Lets the log become long, for a run that writes much.
    pub(crate) fn allow_long_wal(&self) -> rusqlite::Result<()> {
        self.sql.pragma_update(None, "wal_autocheckpoint", LONG_WAL_PAGES)
    }

    /// Moves the log into the file, as far as nobody reads it.
    pub(crate) fn flush_wal(&self) -> rusqlite::Result<()> {
        self.sql.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))
    }

    /// Marks an empty file as ours before there is a log beside it, so that the mark stands in the
    /// file itself: tools know a store by it, wherever it lies.
    fn mark(&self) -> rusqlite::Result<()> {
        let pages: i64 = self.sql.pragma_query_value(None, "page_count", |row| row.get(0))?;
        if pages == 0 {
            self.sql.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        Ok(())
    }

    /// What a file from elsewhere must not make SQLite do.
    fn harden(&self) -> rusqlite::Result<()> {
        self.sql.busy_timeout(BUSY_TIMEOUT)?;
        self.sql.pragma_update(None, "trusted_schema", false)?;
        self.sql.pragma_update(None, "cell_size_check", true)?;
        self.sql.set_prepared_statement_cache_capacity(32);
        Ok(())
    }

    /// The mark of the application that the file belongs to, and the version of its tables.
    pub(crate) fn version(&self) -> Result<(i32, i64), StoreError> {
        let not_ours = |error: rusqlite::Error| {
            let (path, cause) = (self.path.clone(), Cause::from(error));
            match cause.is_damage() {
                true => {
                    StoreError::Open { path, why: format!("it is not a store: {cause}").into() }
                }
                false => StoreError::Open { path, why: cause },
            }
        };
        let id = self.sql.pragma_query_value(None, "application_id", |row| row.get(0));
        let version = self.sql.pragma_query_value(None, "user_version", |row| row.get(0));
        Ok((id.map_err(not_ours)?, version.map_err(not_ours)?))
    }

    fn check_version(&self, found: (i32, i64)) -> Result<(), StoreError> {
        match found {
            (APPLICATION_ID, version) if version > schema::VERSION => {
                Err(StoreError::UnsupportedVersion { found: version, known: schema::VERSION })
            }
            (APPLICATION_ID, 1..) => Ok(()),
            _ => Err(StoreError::Open {
                path: self.path.clone(),
                why: "it is not a store of Capsule".into(),
            }),
        }
    }

    /// Brings an empty file to the newest version; several processes may do so at once.
    fn migrate(&self) -> Result<(), StoreError> {
        let made = || -> rusqlite::Result<()> {
            self.sql.execute_batch("BEGIN IMMEDIATE")?;
            let id: i32 = self.sql.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let tables: i64 =
                self.sql.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if matches!(id, 0 | APPLICATION_ID) && tables == 0 {
                self.sql.execute_batch(schema::TABLES)?;
                self.sql.execute_batch(schema::VIEWS)?;
                self.sql.pragma_update(None, "application_id", APPLICATION_ID)?;
                self.sql.pragma_update(None, "user_version", schema::VERSION)?;
            }
            self.sql.execute_batch("COMMIT")
        };
        let failed = |error: rusqlite::Error| StoreError::Open {
            path: self.path.clone(),
            why: error.into(),
        };
        made().map_err(failed)?;
        self.check_version(self.version()?)
    }
}

/// Why what lies beside a store would change what is in it. SQLite rolls back what it finds in a
/// journal, and reads a log in place of the file: either of them, put there by somebody else, makes
/// another history of it. A store that is in use has a log and never a journal; one that was written
/// out has neither.
fn planted_journal(path: &Path) -> Option<String> {
    // SQLite looks beside the file that a link leads to.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let exists = |suffix: &str| sidecar_path(&real, suffix).symlink_metadata().is_ok();
    let describe = |suffix: &str| {
        format!("a `{suffix}` lies beside it that is not its own and would change what it holds")
    };
    if exists("-journal") {
        return Some(describe("-journal"));
    }
    // The log first: where there is one of its own, the file says so already.
    if !exists("-wal") {
        return None;
    }
    let header = open_nonblocking(&real).and_then(header).unwrap_or_default();
    let is_own = !header.is_empty() && has_wal(&header);
    (!is_own).then(|| describe("-wal"))
}

/// Makes a folder for its user alone, with those above it; one that is there stays as it is.
pub(crate) fn create_private_directory(path: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes the file if it is not there, and takes everybody else's rights to a store that is. A file
/// that is not one is left as it is. SQLite gives the files beside a store the same mode.
fn create_private_file(path: &Path) -> Result<(), Cause> {
    let error_text = |error: std::io::Error| Cause::from(error);
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error_text(error)),
    }
    let file = open_nonblocking(path).map_err(error_text)?;
    let found = file.metadata().map_err(error_text)?;
    if !found.is_file() {
        return Err("it is not a file".into());
    }
    let mode = found.permissions().mode();
    if found.len() > 0 && !is_store(&header(file).map_err(error_text)?) {
        return Err("it is not a store of Capsule".into());
    }
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)).map_err(error_text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use capsule_core::journal::{Durability, Event, Journal as _};
    use capsule_core::policy::PayloadRetention;

    use super::*;

    fn run(path: &Path, events: u64) {
        let mut writer =
            Store::open(path).unwrap().begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        for call in 0..events {
            writer.append(Event::ApprovalCovered { call, by: 0 }, Durability::CrashSafe).unwrap();
        }
    }

    fn pages_of_the_log(path: &Path) -> u64 {
        fs::metadata(sidecar_path(path, "-wal")).unwrap().len() / 4_096
    }

    /// What `.cargo/config.toml` says of how SQLite is built holds.
    #[test]
    fn sqlite_has_what_a_store_uses_and_no_more() {
        let sql = Connection::open_in_memory().unwrap();
        let mut query = sql.prepare("PRAGMA compile_options").unwrap();
        let options: Vec<String> =
            query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        let left_out = ["ENABLE_FTS", "ENABLE_RTREE", "ENABLE_DBSTAT", "ENABLE_STAT4"];
        for option in left_out {
            assert!(!options.iter().any(|own| own.starts_with(option)), "{option}: {options:?}");
        }
        for option in ["OMIT_LOAD_EXTENSION", "DEFAULT_MEMSTATUS=0"] {
            assert!(options.iter().any(|own| own == option), "{option}: {options:?}");
        }
    }

    /// I-3: each write is as sure as it was asked to be, whatever came before it.
    #[test]
    fn a_durable_write_waits_for_the_disk_behind_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        let mut writer = store.begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        let (process, power) = (Durability::CrashSafe, Durability::PowerSafe);
        for (call, durability) in
            [process, power, power, process, process, power, process].into_iter().enumerate()
        {
            let event = Event::ApprovalCovered { call: call as u64, by: 0 };
            writer.append(event, durability).unwrap();
            let level: i64 = writer
                .store()
                .sql
                .pragma_query_value(None, "synchronous", |row| row.get(0))
                .unwrap();
            assert_eq!(level, if durability == power { 2 } else { 1 }, "write {call}");
        }
    }

    /// Where there is time for it, the log of a long run is moved before a commit has to.
    #[test]
    fn the_log_is_moved_while_there_is_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut writer =
            Store::open(&path).unwrap().begin(Box::new(|| 1), PayloadRetention::Full).unwrap();
        for call in 0..1_500 {
            writer.append(Event::ApprovalCovered { call, by: 0 }, Durability::CrashSafe).unwrap();
            writer.run_idle_work();
        }
        let pages = pages_of_the_log(&path);
        assert!(pages < u64::try_from(LONG_WAL_PAGES).unwrap(), "{pages}");
    }

    #[test]
    fn short_runs_keep_the_log_short_and_long_ones_move_it_seldom() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        for _ in 0..100 {
            run(&path, 5);
        }
        let pages = pages_of_the_log(&path);
        assert!(pages < u64::try_from(SHORT_WAL_PAGES).unwrap() + 50, "{pages}");
        run(&path, 600);
        let pages = pages_of_the_log(&path);
        assert!(pages >= u64::try_from(LONG_WAL_PAGES).unwrap(), "{pages}");
    }
}
