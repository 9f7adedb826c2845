//! What Capsule is measured against: programs of others, and a bare database. A program that is
//! missing is named, with the package that has it; the measure then counts as not taken.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Answer;

/// A program of someone else's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The names that it goes by.
    names: &'static [&'static str],
    /// The package that has it, and whose it is.
    package: &'static str,
}

/// What builds the least walls ([`crate::least`]).
pub(crate) const CC: Peer = Peer { names: &["cc", "gcc", "clang"], package: "gcc (Debian)" };
/// Unprivileged sandboxes by namespaces.
pub(crate) const BWRAP: Peer = Peer { names: &["bwrap"], package: "bubblewrap (Debian)" };
/// What comes with the agent of that name.
pub(crate) const CODEX: Peer = Peer { names: &["codex"], package: "@openai/codex (npm)" };
/// Bubblewrap or Seatbelt behind a proxy of its own.
pub(crate) const SRT: Peer =
    Peer { names: &["srt"], package: "@anthropic-ai/sandbox-runtime (npm)" };
/// Namespaces by a setuid program.
pub(crate) const FIREJAIL: Peer = Peer { names: &["firejail"], package: "firejail (Debian)" };
/// Landlock and seccomp alone, as our lower tier.
pub(crate) const SANDLOCK: Peer =
    Peer { names: &["sandlock"], package: "sandlock-cli (the Rust registry)" };
/// A search in many threads.
pub(crate) const FD: Peer = Peer { names: &["fdfind", "fd"], package: "fd-find (Debian)" };
/// A search in what files hold.
pub(crate) const RIPGREP: Peer = Peer { names: &["rg"], package: "ripgrep (Debian)" };
/// The search that is always there.
pub(crate) const FIND: Peer = Peer { names: &["find"], package: "findutils (Debian)" };

impl Peer {
    /// Where it is.
    pub(crate) fn find(self) -> Answer<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path)
            .flat_map(|folder| self.names.iter().map(move |name| folder.join(name)));
        places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
            let name = self.names.join("` or `");
            format!("`{name}` is missing; install `{}`", self.package)
        })
    }
}

/// A database with one table, `calls`, that commits to a journal like ours: with `FULL` each commit
/// is durable, with `NORMAL` it may be lost with the machine.
pub(crate) fn database(place: &Path, synchronous: &str, columns: &str) -> Answer<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let sql = Connection::open(place)?;
        sql.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        sql.pragma_update(None, "synchronous", synchronous)?;
        sql.execute_batch(&format!(
            "CREATE TABLE calls (id INTEGER PRIMARY KEY, {columns}) STRICT"
        ))?;
        Ok(sql)
    };
    open().map_err(|error| format!("{}: {error}", place.display()))
}

/// A database for durable commits of about what a call records.
pub(crate) fn commits(place: &Path) -> Answer<Connection> {
    database(place, "FULL", "bytes BLOB NOT NULL")
}

/// One of them.
pub(crate) fn commit(sql: &Connection) -> Answer<()> {
    let written = sql.execute("INSERT INTO calls (bytes) VALUES (?1)", [[7_u8; 400]]);
    written.map(|_| ()).map_err(|error| format!("the reference cannot commit: {error}"))
}
