//! How much is at stake in a workspace: what earlier runs staged and nobody has taken over.
//!
//! When a run ends with staged changes, how many there are is noted beside them, so that a later run can
//! say so without reading any record. It is a note for people; what is applied comes from the record.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use capsule_core::id::RunId;
use capsule_core::journal::{Event, PendingChanges, STAGED_SUFFIX, WorkspaceIdentity};
use capsule_store::{RunState, Store, sidecar_path};
use serde::{Deserialize, Serialize};

use crate::changes::WaitingChanges;

/// The note beside the staged changes of a run.
const NOTE_NAME: &str = "waiting";
/// The largest note that is read; they have a few dozen bytes.
const NOTE_BYTES: u64 = 1_000;

#[derive(Serialize, Deserialize)]
struct PendingNote {
    device: String,
    inode: String,
    paths: u64,
    refused: bool,
}

/// Notes what waits when a run has ended. Without the note nobody is told of it until they ask.
pub(crate) fn write_note(folder: &Path, workspace: &WorkspaceIdentity, waiting: WaitingChanges) {
    let note = PendingNote {
        device: workspace.device.clone(),
        inode: workspace.inode.clone(),
        paths: u64::try_from(waiting.paths).unwrap_or(u64::MAX),
        refused: waiting.refused,
    };
    let _ = serde_json::to_vec(&note).map(|note| fs::write(folder.join(NOTE_NAME), note));
}

/// A run whose staged changes nobody has applied or discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnappliedRun {
    /// Its full id.
    pub run: String,
    /// How many paths it changed; none if it did not come to its end.
    pub paths: Option<u64>,
    /// Whether something was refused, so that they can only be dropped.
    pub refused: bool,
}

/// The runs of a store with staged changes of a workspace, the oldest first.
#[must_use]
pub fn unapplied_runs(store: &Store, path: &Path, workspace: (u64, u64)) -> Vec<UnappliedRun> {
    let item = (workspace.0.to_string(), workspace.1.to_string());
    let all = fs::read_dir(sidecar_path(path, STAGED_SUFFIX)).into_iter().flatten().flatten();
    let mut found: Vec<UnappliedRun> = all
        .filter_map(|entry| {
            let run = entry.file_name().into_string().ok()?;
            RunId::parse(&run)?;
            match read_note(&entry.path()) {
                Some(note) => {
                    ((&note.device, &note.inode) == (&item.0, &item.1)).then_some(UnappliedRun {
                        run,
                        paths: Some(note.paths),
                        refused: note.refused,
                    })
                }
                None if matches!(store.state(&run).ok()?, RunState::Running | RunState::Idle) => {
                    None
                }
                // It did not come to its end.
                None => match store.event(&run, 1).ok()??.entry.event {
                    Event::RunOpened(opened)
                        if (&opened.workspace.device, &opened.workspace.inode)
                            == (&item.0, &item.1) =>
                    {
                        Some(UnappliedRun { run, paths: None, refused: false })
                    }
                    _ => None,
                },
            }
        })
        .collect();
    // By the place of its first event in the record: ids are random.
    found.sort_by_cached_key(|run| {
        store.event(&run.run, 1).ok().flatten().map_or(u64::MAX, |event| event.leaf)
    });
    found
}

/// Removes the note, where nothing waits any more.
pub(crate) fn remove_note(directory: &Path) {
    let _ = fs::remove_file(directory.join(NOTE_NAME));
}

fn read_note(folder: &Path) -> Option<PendingNote> {
    let mut text = Vec::new();
    File::open(folder.join(NOTE_NAME)).ok()?.take(NOTE_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The same in numbers, without those of the run itself; none where nothing waits.
pub(crate) fn pending_changes(
    store: &Store,
    path: &Path,
    workspace: (u64, u64),
    this: Option<RunId>,
) -> Option<PendingChanges> {
    let mut all = unapplied_runs(store, path, workspace);
    let this = this.map(|run| run.to_string());
    all.retain(|run| Some(&run.run) != this.as_ref());
    let paths = all.iter().filter_map(|run| run.paths).fold(0, u64::saturating_add);
    let runs = u64::try_from(all.len()).unwrap_or(u64::MAX);
    (runs > 0).then_some(PendingChanges { runs, paths })
}
