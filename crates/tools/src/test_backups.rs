//! A backup store for tests, next to a store that is never opened.

use std::rc::Rc;

use capsule_core::id::RunId;
use capsule_workspace::{BackupLog, BackupStore};
use tempfile::TempDir;

/// A log of dropped backups that keeps nothing.
struct NullLog;

impl BackupLog for NullLog {
    fn record_dropped_backups(&self, _: RunId, _: u64) -> Result<(), String> {
        Ok(())
    }
}

/// A backup store, and the directory that its own is in.
pub(crate) fn backups() -> (TempDir, Rc<BackupStore>) {
    let directory = tempfile::tempdir().unwrap();
    let run = Some(RunId::from_bits([7; 10]));
    let place = directory.path().join("store.db.undo");
    (directory, Rc::new(BackupStore::new(place, run, Rc::new(NullLog))))
}
