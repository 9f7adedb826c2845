//! Erasing what the record holds of a run besides its events: payloads, and what was kept for an undo.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_core::id::RunId;
use capsule_core::journal::{RunKind, UNDO_SUFFIX};
use capsule_core::outcome::CodedError;
use capsule_store::{RelatedRun, RunClaim, RunState, Signer, Store, StoreError, sidecar_path};

use crate::approval::{PendingQuestion, QuestionState};
use crate::changes::staging_path;
use crate::clock::now_micros;

/// How many runs are looked at at once.
const DUE_BATCH: usize = 10_000;
/// How long a run's end takes at most for erasing others, each of which is fast.
const END_OF_RUN_TIME: Duration = Duration::from_millis(500);
/// Up to which size the file is written anew at a run's end; others wait for that.
const END_OF_RUN_VACUUM_BYTES: u64 = 64_000_000;

/// Why nothing was erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run is still needed, or there is none.
    #[error("{}", .0.message)]
    StillNeeded(CodedError),
    /// It is erased, but for files that were kept for an undo.
    #[error("{}", .0.message)]
    LeftFiles(CodedError),
}

/// What was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// How many payloads.
    pub payloads: u64,
    /// The labels of later runs about it, which hold parts of it: results that they went on with, and what they
    /// brought back or answered.
    pub dependent_runs: Vec<String>,
}

/// Erases runs of one store.
#[derive(Debug)]
pub struct Eraser<'s> {
    store: &'s mut Store,
    related_runs: BTreeMap<String, Vec<RelatedRun>>,
}

impl<'s> Eraser<'s> {
    /// Looks at how the runs of a store hang together, and removes what an eraser that was killed has left.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(store: &'s mut Store) -> Result<Self, StoreError> {
        remove_leftovers(store)?;
        let kin = store.related_runs()?;
        Ok(Self { store, related_runs: kin })
    }

    /// Erases the payloads of a run, and what was kept for undoing its calls. It can be verified as before;
    /// nothing can be replayed, undone or read of it any more. Copies stay in unused parts of the file until
    /// [`Eraser::finish`].
    ///
    /// # Errors
    /// When it is needed, or the store cannot be written.
    pub fn erase(&mut self, run: &str) -> Result<Erased, EraseError> {
        let unknown = || StoreError::RunUnknown(run.to_owned());
        let id = RunId::parse(run).ok_or_else(unknown)?;
        let path = self.store.path().to_owned();
        // Nobody answers or goes on with it meanwhile.
        let claim = RunClaim::take(&path, id)?;
        let _claim = claim.ok_or_else(|| self.needed_error(run, "somebody answers it"))?;
        if let Some(why) = self.reason_needed(run, id)? {
            return Err(self.needed_error(run, why));
        }
        // The record says so first; a file that stays is removed by whoever erases next.
        let payloads = self.store.erase(id, now_micros())?;
        remove_backups(&path, run).map_err(EraseError::LeftFiles)?;
        let later = self.related_runs.get(run).into_iter().flatten();
        let later = later.map(|run| self.store.label(&run.run)).collect();
        Ok(Erased { payloads, dependent_runs: later })
    }

    fn needed_error(&self, run: &str, why: &str) -> EraseError {
        let message = format!("`{}` is not erased: {why}", self.store.label(run));
        EraseError::StillNeeded(CodedError::new(Code::AuditNeeded, message))
    }

    /// Why a run is still needed, if it is: by itself, or by one that goes on from it.
    fn reason_needed(&self, run: &str, id: RunId) -> Result<Option<&'static str>, StoreError> {
        let path = self.store.path();
        if self.store.state(run)? == RunState::Running {
            return Ok(Some("it goes on"));
        }
        if staging_path(path, id).symlink_metadata().is_ok() {
            return Ok(Some("it has staged changes: apply or discard them first"));
        }
        if let Some(why) = self.has_open_question(run)? {
            return Ok(Some(why));
        }
        if self.is_half_done(run, RunKind::Undo)? {
            return Ok(Some("an undo of it has not come to its end: undo it again"));
        }
        if self.is_half_done(run, RunKind::Apply)? {
            return Ok(Some("what it changed was not applied to the end: apply it again"));
        }
        for later in self.runs_about(run, RunKind::Resume) {
            // A chain of them goes back to this one.
            let needs = RunId::parse(later).map(|id| self.reason_needed(later, id)).transpose()?;
            if needs.flatten().is_some() {
                return Ok(Some("a run that went on with it is still needed"));
            }
        }
        Ok(None)
    }

    /// The runs of a kind that are about a run, the oldest first.
    fn runs_about(&self, run: &str, kind: RunKind) -> impl DoubleEndedIterator<Item = &str> {
        let item =
            self.related_runs.get(run).into_iter().flatten().filter(move |run| run.kind == kind);
        item.map(|run| run.run.as_str())
    }

    fn is_ended(&self, run: &str) -> Result<bool, StoreError> {
        Ok(matches!(self.store.state(run)?, RunState::Sealed(_)))
    }

    /// Whether the newest run of a kind about it was killed, or goes on, and nobody undid that.
    fn is_half_done(&self, run: &str, kind: RunKind) -> Result<bool, StoreError> {
        let Some(last) = self.runs_about(run, kind).next_back() else { return Ok(false) };
        if self.is_ended(last)? {
            return Ok(false);
        }
        match self.runs_about(last, RunKind::Undo).next_back() {
            Some(undo) => Ok(!self.is_ended(undo)?),
            None => Ok(true),
        }
    }

    /// Whether a question of it is open.
    fn has_open_question(&self, run: &str) -> Result<Option<&'static str>, StoreError> {
        if self.store.erasable_payloads(run)? == 0 {
            return Ok(None);
        }
        // The answer to a question is needed for as long as that.
        let asked = PendingQuestion::resolve_run(self.store, run.to_owned())?;
        let pending = PendingQuestion::of_run(self.store, &asked)?.pop();
        Ok(match pending.map(|question| question.state(now_micros())) {
            Some(QuestionState::Waiting) => Some("it waits for an answer"),
            Some(QuestionState::Answered) => Some("it was answered, and waits to be resumed"),
            Some(QuestionState::Expired | QuestionState::Resumed) | None => None,
        })
    }

    /// Signs what was erased, if there is a key, and writes the file anew.
    ///
    /// # Errors
    /// When it cannot be signed or written anew; what was erased stays so, with copies in unused parts of
    /// the file.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.sign()?;
        self.store.compact()
    }

    fn sign(&mut self) -> Result<(), StoreError> {
        let Some(signer) = Signer::load(self.store.path())? else { return Ok(()) };
        self.store.checkpoint(&signer, now_micros()).map(drop)
    }
}

/// The runs whose policies have said that it is time, the oldest first.
///
/// # Errors
/// When the store cannot be read.
pub fn due_runs(store: &Store) -> Result<Vec<String>, StoreError> {
    Ok(store.due_for_erasure(now_micros(), DUE_BATCH)?.into_iter().map(|(run, _)| run).collect())
}

/// Erases the runs whose policies have said that it is time, once one of them that nobody needs is overdue by a
/// tenth of its term or by a day: the whole file is written anew for it, if it is small.
///
/// # Errors
/// When the store cannot be read or written.
pub(crate) fn erase_due(store: &mut Store) -> Result<(), StoreError> {
    let due = store.due_for_erasure(now_micros(), DUE_BATCH)?;
    if !due.iter().any(|(_, is_long)| *is_long) {
        return Ok(());
    }
    let began = Instant::now();
    let mut eraser = Eraser::new(store)?;
    let (mut free, mut is_time) = (Vec::new(), false);
    for (run, is_long) in &due {
        if let Some(id) = RunId::parse(run)
            && eraser.reason_needed(run, id)?.is_none()
        {
            free.push(run);
            is_time |= is_long;
        }
        if began.elapsed() > END_OF_RUN_TIME {
            break;
        }
    }
    let mut count = 0;
    for run in free.into_iter().filter(|_| is_time) {
        match eraser.erase(run) {
            Ok(_) | Err(EraseError::LeftFiles(_)) => count += 1,
            Err(EraseError::StillNeeded(_)) => {}
            Err(EraseError::Store(error)) => return Err(error),
        }
        if began.elapsed() > END_OF_RUN_TIME * 2 {
            break;
        }
    }
    if count > 0 {
        eraser.sign()?;
        let size = fs::metadata(store.path()).map_or(u64::MAX, |metadata| metadata.len());
        if size <= END_OF_RUN_VACUUM_BYTES {
            // Where somebody else uses the store, or there is no room, the next one does it.
            let _ = store.compact();
        }
    }
    Ok(())
}

/// Removes what was kept for undoing the calls of a run.
fn remove_backups(store: &Path, run: &str) -> Result<(), CodedError> {
    match fs::remove_dir_all(sidecar_path(store, UNDO_SUFFIX).join(run)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let message = format!("what was kept for undoing `{run}` cannot be removed: {error}");
            Err(CodedError::new(Code::FileSystem, message))
        }
        _ => Ok(()),
    }
}

/// Removes what an eraser that was killed, or could not, has left of runs that were erased.
fn remove_leftovers(store: &Store) -> Result<(), StoreError> {
    let Ok(kept) = fs::read_dir(sidecar_path(store.path(), UNDO_SUFFIX)) else { return Ok(()) };
    let kept = kept.flatten().filter_map(|entry| RunId::parse(entry.file_name().to_str()?));
    let kept: Vec<RunId> = kept.collect();
    if kept.is_empty() {
        return Ok(());
    }
    let erased = store.erased_runs()?;
    for run in kept.iter().filter(|run| erased.iter().any(|(_, erased)| erased == *run)) {
        // What cannot be removed is told where its run is erased.
        let _ = remove_backups(store.path(), &run.to_string());
    }
    Ok(())
}
