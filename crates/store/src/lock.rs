//! The sign that a run is alive: a lock on a file that goes with its process, however it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use capsule_core::id::RunId;
use rustix::fs::{FlockOperation, flock};

use crate::error::StoreError;
use crate::open::create_private_directory;
use crate::store_file::sidecar_path;

/// Held while a run is alive. A run that is neither sealed nor locked has crashed.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    _file: File,
}

fn lock_path(store: &Path, run: &str) -> PathBuf {
    sidecar_path(store, ".locks").join(run)
}

impl RunLock {
    /// Takes the lock of a run.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn take(store: &Path, run: RunId) -> Result<Self, StoreError> {
        let path = lock_path(store, &run.to_string());
        if let Some(folder) = path.parent() {
            create_private_directory(folder).map_err(StoreError::write)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::write)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(StoreError::write)?;
        Ok(Self { path, _file: file })
    }

    /// Takes the lock of a run that is in the store already and that the caller alone goes on with: it holds
    /// the lock of its session.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn retake(store: &Path, run: RunId) -> Result<Self, StoreError> {
        // What a process left that was killed.
        let _ = fs::remove_file(lock_path(store, &run.to_string()));
        Self::take(store, run)
    }

    /// Whether somebody holds the lock of a run that is in the store. The file of one that crashed goes: its
    /// run took it before anything of it was written, and nobody takes it again, since no other run has
    /// that name.
    #[must_use]
    pub fn is_held(store: &Path, run: &str) -> bool {
        let path = lock_path(store, run);
        let Ok(file) = File::open(&path) else { return false };
        let is_held = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        if !is_held {
            // Where it cannot be removed, it says nothing by itself.
            let _ = fs::remove_file(path);
        }
        is_held
    }
}

/// Held while somebody decides what becomes of a run that is over: one at a time.
#[derive(Debug)]
pub struct RunClaim {
    _file: File,
}

impl RunClaim {
    /// Takes the claim on a run; none while another process has it.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn take(store: &Path, run: RunId) -> Result<Option<Self>, StoreError> {
        let file = open_lasting(store, &format!("{run}.claim"))?;
        let held = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        Ok(held.then_some(Self { _file: file }))
    }
}

/// Opens a file of locks that stays: a process that comes while it is removed would lock another one.
fn open_lasting(store: &Path, name: &str) -> Result<File, StoreError> {
    let path = lock_path(store, name);
    if let Some(directory) = path.parent() {
        create_private_directory(directory).map_err(StoreError::write)?;
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StoreError::write)
}

/// Held by the process that works in a session: one at a time.
#[derive(Debug)]
pub struct SessionLock {
    file: File,
}

/// The longest note of a holder, in bytes.
const HOLDER_BYTES: u64 = 256;

impl SessionLock {
    /// The name of the lock under which sessions are looked for and opened.
    pub const DIRECTORY: &'static str = "sessions";

    /// Takes the lock of a session, or [`Self::DIRECTORY`]; gives the note of the holder where another
    /// process has it.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn try_take(store: &Path, session: &str) -> Result<Result<Self, String>, StoreError> {
        let mut file = open_lasting(store, &format!("{session}.session"))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(Ok(Self { file }));
        }
        let mut holder = String::new();
        let _ = (&mut file).take(HOLDER_BYTES).read_to_string(&mut holder);
        Ok(Err(holder))
    }

    /// Waits for the lock behind all that wait for it already.
    ///
    /// # Errors
    /// When its file cannot be made or locked.
    pub fn wait(store: &Path, session: &str) -> Result<Self, StoreError> {
        let file = open_lasting(store, &format!("{session}.session"))?;
        flock(&file, FlockOperation::LockExclusive).map_err(StoreError::write)?;
        Ok(Self { file })
    }

    /// The note that the last holder left.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn note(&mut self) -> Result<String, StoreError> {
        let mut note = String::new();
        self.file.rewind().map_err(StoreError::write)?;
        (&mut self.file).take(HOLDER_BYTES).read_to_string(&mut note).map_err(StoreError::write)?;
        Ok(note)
    }

    /// Leaves a note for the processes that wait, and for the one that comes next.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_note(&mut self, note: &str) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(StoreError::write)?;
        self.file.rewind().map_err(StoreError::write)?;
        self.file.write_all(note.as_bytes()).map_err(StoreError::write)
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The lock ends with the file; a name that stays behind says nothing by itself.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_crashed_run_goes_once_that_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let run = RunId::from_bits([7; 10]);
        let (name, path) = (run.to_string(), lock_path(&store, &run.to_string()));
        let lock = RunLock::take(&store, run).unwrap();
        assert!(RunLock::is_held(&store, &name) && path.exists());
        // As the kernel leaves it when the process is killed.
        let RunLock { _file: file, .. } = &lock;
        flock(file, FlockOperation::Unlock).unwrap();
        assert!(!RunLock::is_held(&store, &name));
        assert!(!path.exists() && !RunLock::is_held(&store, &name));
    }
}
