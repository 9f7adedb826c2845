//! Writes one run into a file of its own: a store with a tree of its own.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use capsule_base::digest::Digest;
use capsule_core::id::RunId;
use capsule_core::journal::{Durability, PayloadRef};

use crate::checkpoint::Signer;
use crate::error::StoreError;
use crate::export_target::{check_target, unused_path};
use crate::open::Store;
use crate::read::{StoredEvent, StoredPayload};
use crate::write::{PendingEvent, QueuedPayload, append_entries};

impl Store {
    /// Writes a run into a file of its own, private payloads withheld and signed if the store has a key;
    /// gives the file's digest. The file appears whole or not at all; see [`check_target`] for what is
    /// replaced.
    ///
    /// # Errors
    /// When the run cannot be read, or the file cannot be written or is something else.
    pub fn export(&self, run: &str, to: &Path) -> Result<Digest, StoreError> {
        check_target(&self.path, to)?;
        let temporary = unused_path(to).map_err(StoreError::write)?;
        let written = self.write_temporary(run, &temporary).and_then(|digest| {
            // Time has passed since it was looked at.
            check_target(&self.path, to)?;
            fs::rename(&temporary, to).map_err(StoreError::write)?;
            Ok(digest)
        });
        if written.is_err() {
            // What could not be finished is not left lying about; the error says what happened.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Writes the whole store into one file, which is complete by itself, where nothing is yet; it appears whole
    /// or not at all. What is private goes along; the key does not.
    ///
    /// # Errors
    /// When the store cannot be read, something is there, or the file cannot be written.
    pub fn copy_to(&self, to: &Path) -> Result<(), StoreError> {
        check_target(&self.path, to)?;
        if to.symlink_metadata().is_ok() {
            let why = "something is there already".into();
            return Err(StoreError::Target { path: to.to_owned(), why });
        }
        let unfinished = unused_path(to).map_err(StoreError::write)?;
        let written = self.copy_into(&unfinished).and_then(|()| {
            // A link, which takes the place of nothing.
            fs::hard_link(&unfinished, to).map_err(StoreError::write)
        });
        let removed = fs::remove_file(&unfinished).map_err(StoreError::write);
        written.and(removed)
    }

    fn copy_into(&self, path: &Path) -> Result<(), StoreError> {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(StoreError::write)?;
        let place = path.to_str().ok_or_else(|| StoreError::write("its name is not UTF-8"))?;
        self.sql.execute("VACUUM INTO ?1", [place]).map_err(StoreError::write)?;
        file.sync_all().map_err(StoreError::write)
    }

    fn write_temporary(&self, run: &str, path: &Path) -> Result<Digest, StoreError> {
        let mut store = Self::open_unnoted(path)?;
        // One file and nothing beside it, so that it can be copied and read from a medium that
        // cannot be written.
        store
            .sql
            .pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
            .map_err(StoreError::write)?;
        let mut last = 0;
        self.visit(run, |stored| {
            last = stored.entry.at;
            let payloads = self.payloads(stored.leaf, &stored.entry.event)?;
            let kept = payloads.into_iter().map(payload_for_export).collect();
            let StoredEvent { entry, bytes, .. } = stored;
            let event = PendingEvent { entry, bytes, payloads: kept };
            append_entries(&mut store, &[event], Durability::CrashSafe).map(drop)
        })?;
        if let (Some(signer), Some(run)) = (Signer::load(&self.path)?, RunId::parse(run)) {
            store.checkpoint_of_run(&signer, run, last)?;
        }
        store.sql.close().map_err(|(_, error)| StoreError::write(error))?;
        let file = fs::File::open(path).map_err(StoreError::write)?;
        file.sync_all().map_err(StoreError::write)?;
        digest(file)
    }
}

/// A payload on its way into another store: a private one goes without salt and bytes.
fn payload_for_export((reference, payload): (PayloadRef, StoredPayload)) -> QueuedPayload {
    let StoredPayload { class, salt, bytes } = payload;
    let leaves = !class.is_private();
    let bytes = bytes.filter(|_| leaves);
    QueuedPayload {
        commitment: reference.commit,
        class,
        salt: salt.filter(|_| leaves),
        sha256: bytes.as_deref().map(Digest::of),
        bytes,
    }
}

fn digest(mut file: fs::File) -> Result<Digest, StoreError> {
    use std::io::Read as _;
    Digest::of_reader(|buffer| file.read(buffer)).map_err(StoreError::read)
}
