//! The end of a live run: its seal, what it leaves behind, and what is written out.

use std::path::{Path, PathBuf};

use capsule_base::digest::Digest;
use capsule_base::exit::Exit;
use capsule_core::journal::{Event, RunExported};
use capsule_store::{SignedNote, StoreError, WrittenRun};
use serde_json::Value;

use crate::changes::{self, WaitingChanges};
use crate::clock::now_micros;
use crate::erase::erase_due;
use crate::live_run::LiveRun;
use crate::pending_changes;
use crate::realpath::real_path;
use crate::run::{Run, seal_run};

/// What a run came to in the store.
#[derive(Debug)]
pub struct FinishedRun {
    /// Leaves of the tree when the run was sealed.
    pub size: u64,
    /// The tree's root then.
    pub root: Digest,
    /// The checkpoint that was signed last while it went on, if any was.
    pub note: Option<SignedNote>,
    /// The file that the run was written to, and its digest.
    pub exported: Option<(PathBuf, Digest)>,
    /// What it changed and waits to be applied or discarded.
    pub staged: Option<WaitingChanges>,
    /// Whether that differs from what waited when this process began.
    pub has_new_changes: bool,
    /// What went wrong behind its seal: its end could not be signed or told, or earlier runs not be erased
    /// whose time was over.
    pub late_error: Option<StoreError>,
}

impl FinishedRun {
    /// A session that the process left and that goes on.
    pub(super) fn left(
        written: WrittenRun,
        staged: Option<WaitingChanges>,
        has_new_changes: bool,
    ) -> Self {
        let WrittenRun { tree, note, signing_error: late_error, .. } = written;
        let (size, root) = (tree.size(), tree.root());
        Self { size, root, note, exported: None, staged, has_new_changes, late_error }
    }
}

impl LiveRun<'_> {
    /// Seals the run and, if asked, writes it to a file of its own. The executor of a run that stages
    /// nothing goes when the last [`CommandRunner`](capsule_tools::CommandRunner) do.
    ///
    /// # Errors
    /// When the seal or the file cannot be written.
    pub fn finish(
        mut self,
        exit: Exit,
        outputs: Option<&Value>,
        out: Option<&Path>,
    ) -> Result<FinishedRun, StoreError> {
        seal_run(&mut self.run, exit, outputs)?;
        let erases = self.run.policy.audit.erase_after.is_some();
        let Run { journal, backend, .. } = self.run;
        let staged = backend.staged_changes();
        if let (Some(waiting), Some(folder)) = (staged, &self.staged) {
            backend.drop_unneeded();
            pending_changes::write_note(folder, &self.workspace, waiting);
        }
        if self.staged.is_some() {
            backend.end_commands();
        }
        drop(backend);
        if let Some(folder) = self.staged.filter(|_| staged.is_none() && !self.keeps_staged) {
            // Nothing is in it; what cannot be removed now is in nobody's way.
            let _ = changes::remove_directory(&folder);
        }
        let WrittenRun { mut store, tree, note, signing_error: unsigned } =
            journal.into_inner().finish();
        let exported = match out {
            Some(path) => {
                let sha256 = store.export(&self.id.to_string(), path)?;
                let place = real_path(path);
                let event = RunExported {
                    subject: self.id,
                    sha256,
                    path: place.to_string_lossy().into_owned(),
                };
                store.write_unattached(Event::RunExported(event), now_micros())?;
                Some((place, sha256))
            }
            None => None,
        };
        let erased = if erases { erase_due(&mut store).err() } else { None };
        let trouble = unsigned.or(erased);
        Ok(FinishedRun {
            size: tree.size(),
            root: tree.root(),
            note,
            exported,
            staged,
            has_new_changes: staged.is_some(),
            late_error: trouble,
        })
    }
}
