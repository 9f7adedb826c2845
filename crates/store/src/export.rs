//! Writes one run into a file of its own: a store with a tree of its own.

use std::fs;
use std::path::{Path, PathBuf};

use capsule_core::digest::{Digest, Digester};
use capsule_core::journal::{Durability, Entry};

use crate::error::StoreError;
use crate::open::Store;
use crate::target::check_target;
use crate::write::{Kept, append};

/// An event and its payloads, on their way into another store.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The event's bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub entry: Entry,
    /// Its payloads, in the order in which the event names them. Private ones go without salt and
    /// bytes.
    pub payloads: Vec<crate::read::Payload>,
}

impl Store {
    /// The events of a run with their payloads, private ones withheld.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sheets<E: From<StoreError>>(
        &self,
        run: &str,
        mut visit: impl FnMut(Sheet) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(run, |stored| {
            let mut payloads = Vec::new();
            for (_, payload) in self.payloads(stored.leaf, &stored.entry.event)? {
                let private = payload.class.is_private();
                payloads.push(match private {
                    true => crate::read::Payload { salt: None, bytes: None, ..payload },
                    false => payload,
                });
            }
            visit(Sheet { bytes: stored.bytes, entry: stored.entry, payloads })
        })
    }

    /// Writes a run into a file of its own; gives the file's digest.
    ///
    /// # Errors
    /// When the run cannot be read, or the file cannot be written or is something else.
    pub fn export(&self, run: &str, to: &Path) -> Result<Digest, StoreError> {
        write_single(&self.path, to, |put| self.sheets(run, put))
    }
}

/// Writes events of a store into a new store at `to`. The file appears whole or not at all; see
/// [`check_target`] for what is replaced.
///
/// # Errors
/// When the file cannot be written, or is not one that may be replaced.
pub fn write_single(
    source: &Path,
    to: &Path,
    fill: impl FnOnce(&mut dyn FnMut(Sheet) -> Result<(), StoreError>) -> Result<(), StoreError>,
) -> Result<Digest, StoreError> {
    check_target(source, to)?;
    let beside = beside(to)?;
    let written = write_beside(&beside, fill).and_then(|digest| {
        // Time has passed since it was looked at.
        check_target(source, to)?;
        fs::rename(&beside, to).map_err(StoreError::write)?;
        Ok(digest)
    });
    if written.is_err() {
        // What could not be finished is not left lying about; the error says what happened.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name that nobody else uses, in the folder where the file will be.
fn beside(to: &Path) -> Result<PathBuf, StoreError> {
    let name = to
        .file_name()
        .ok_or_else(|| StoreError::Write(format!("`{}` names no file", to.display())))?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(StoreError::write)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(to.with_file_name(hidden))
}

fn write_beside(
    path: &Path,
    fill: impl FnOnce(&mut dyn FnMut(Sheet) -> Result<(), StoreError>) -> Result<(), StoreError>,
) -> Result<Digest, StoreError> {
    let mut store = Store::open(path)?;
    // One file and nothing beside it, so that it can be copied and read from a medium that cannot
    // be written.
    store
        .sql
        .pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
        .map_err(StoreError::write)?;
    fill(&mut |sheet| put(&mut store, sheet))?;
    store.sql.close().map_err(|(_, error)| StoreError::write(error))?;
    let file = fs::File::open(path).map_err(StoreError::write)?;
    file.sync_all().map_err(StoreError::write)?;
    digest(file)
}

fn put(store: &mut Store, sheet: Sheet) -> Result<(), StoreError> {
    let references = sheet.entry.event.payloads();
    let mut waiting: Vec<Kept> = references
        .iter()
        .zip(sheet.payloads)
        .map(|((reference, _), payload)| Kept {
            commitment: reference.commit,
            class: payload.class,
            sha256: payload
                .bytes
                .as_deref()
                .filter(|_| !payload.class.is_private())
                .map(Digest::of),
            salt: payload.salt,
            bytes: payload.bytes,
        })
        .collect();
    append(&mut store.sql, &sheet.entry, &sheet.bytes, &mut waiting, Durability::Process)?;
    Ok(())
}

fn digest(mut file: fs::File) -> Result<Digest, StoreError> {
    use std::io::Read as _;
    let mut digester = Digester::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer).map_err(StoreError::read)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(digester.finish());
        };
        digester.update(bytes);
    }
}
