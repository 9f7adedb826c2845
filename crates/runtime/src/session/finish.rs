//! The end of a live run: its seal, what it leaves behind, and what is written out.

use std::path::{Path, PathBuf};

use capsule_core::digest::Digest;
use capsule_core::exit::Exit;
use capsule_core::journal::{Event, RunExported};
use capsule_store::{Note, StoreError, Written};
use serde_json::Value;

use crate::changes::{self, Waiting};
use crate::erase::erase_due;
use crate::hands::now;
use crate::places::real;
use crate::run::{Run, seal};
use crate::session::Session;
use crate::stake;

/// What a run came to in the store.
#[derive(Debug)]
pub struct Finished {
    /// Leaves of the tree when the run was sealed.
    pub size: u64,
    /// The tree's root then.
    pub root: Digest,
    /// The checkpoint that was signed last while it went on, if any was.
    pub note: Option<Note>,
    /// The file that the run was written to, and its digest.
    pub exported: Option<(PathBuf, Digest)>,
    /// What it changed and waits to be applied or discarded.
    pub staged: Option<Waiting>,
    /// What went wrong behind its seal: its end could not be signed or told, or earlier runs not be erased
    /// whose time was over.
    pub trouble: Option<StoreError>,
}

impl Session<'_> {
    /// Seals the run and, if asked, writes it to a file of its own. The executor of a run that stages
    /// nothing goes when the last [`Commands`](capsule_tools::Commands) do.
    ///
    /// # Errors
    /// When the seal or the file cannot be written.
    pub fn finish(
        mut self,
        exit: Exit,
        outputs: Option<&Value>,
        out: Option<&Path>,
    ) -> Result<Finished, StoreError> {
        seal(&mut self.run, exit, outputs)?;
        let erases = self.run.policy.audit.erase_after.is_some();
        let Run { journal, hands, .. } = self.run;
        let staged = hands.staged_changes();
        if let (Some(waiting), Some(folder)) = (staged, &self.staged) {
            hands.settle();
            stake::note(folder, &self.workspace, waiting);
        }
        if self.staged.is_some() {
            hands.end_commands();
        }
        drop(hands);
        if let Some(folder) = self.staged.filter(|_| staged.is_none() && !self.keeps) {
            // Nothing is in it; what cannot be removed now is in nobody's way.
            let _ = changes::remove(&folder);
        }
        let Written { mut store, tree, note, unsigned } = journal.into_inner().finish();
        let exported = match out {
            Some(path) => {
                let sha256 = store.export(&self.id.to_string(), path)?;
                let place = real(path);
                let event = RunExported {
                    subject: self.id,
                    sha256,
                    path: place.to_string_lossy().into_owned(),
                };
                store.note(Event::RunExported(event), now())?;
                Some((place, sha256))
            }
            None => None,
        };
        let erased = if erases { erase_due(&mut store).err() } else { None };
        let trouble = unsigned.or(erased);
        Ok(Finished { size: tree.size(), root: tree.root(), note, exported, staged, trouble })
    }
}
