//! Erasing what the record holds of a run besides its events: payloads, and what was kept for an undo.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use capsule_core::code::Code;
use capsule_core::id::RunId;
use capsule_core::journal::{RunKind, UNDO};
use capsule_core::outcome::Problem;
use capsule_store::{Claim, RunState, Store, StoreError, beside};

use crate::approval::{Pending, PendingState};
use crate::changes::place;
use crate::hands::now;

/// How many runs are erased at the end of one, so that nobody waits long for theirs.
const AT_ONCE: usize = 1_000;

/// Why nothing was erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run is still needed, or there is none.
    #[error("{}", .0.message)]
    Problem(Problem),
}

/// Erases the payloads of a run, and what was kept for undoing its calls; gives how many payloads. It can be
/// verified as before; nothing can be replayed, undone or read of it any more. Copies stay in unused parts
/// of the file until [`Store::compact`].
///
/// # Errors
/// When it goes on, waits for somebody, or the store cannot be written.
pub fn erase(store: &mut Store, run: &str) -> Result<u64, EraseError> {
    let unknown = || StoreError::RunUnknown(run.to_owned());
    let id = RunId::parse(run).ok_or_else(unknown)?;
    let path = store.path().to_owned();
    // Nobody answers or goes on with it meanwhile.
    let _claim =
        Claim::take(&path, id)?.ok_or_else(|| needed(&store.label(run), "somebody answers it"))?;
    if let Some(why) = need(store, &path, id)? {
        return Err(needed(&store.label(run), why));
    }
    // What is gone from the record is of no use there either; the record says so first.
    let erased = store.erase(id, now())?;
    match fs::remove_dir_all(beside(&path, UNDO).join(run)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let message = format!("what was kept for undoing `{run}` cannot be removed: {error}");
            Err(EraseError::Problem(Problem::new(Code::FileSystem, message)))
        }
        _ => Ok(erased),
    }
}

fn needed(run: &str, why: &str) -> EraseError {
    let message = format!("`{run}` is not erased: {why}");
    EraseError::Problem(Problem::new(Code::AuditNeeded, message))
}

/// Why a run is still needed, if it is.
fn need(store: &Store, path: &Path, id: RunId) -> Result<Option<&'static str>, StoreError> {
    let run = id.to_string();
    if store.state(&run)? == RunState::Running {
        return Ok(Some("it goes on"));
    }
    if place(path, id).symlink_metadata().is_ok() {
        return Ok(Some("it has staged changes: apply or discard them first"));
    }
    for later in store.about(&run, RunKind::Resume)? {
        let own = RunId::parse(&later).map(|later| place(path, later));
        if own.is_some_and(|own| own.symlink_metadata().is_ok()) {
            return Ok(Some("the run that went on with it has staged changes"));
        }
    }
    let pending = match store.erasable(&run)? {
        0 => None,
        _ => Pending::read(store, &run)?,
    };
    Ok(match pending.map(|own| own.standing(now())) {
        Some(PendingState::Waiting) => Some("it waits for an answer"),
        Some(PendingState::Answered) => Some("it was answered, and waits to be gone on with"),
        Some(PendingState::Expired | PendingState::Resumed) | None => None,
    })
}

/// Erases the runs whose policy has said that it is time, the oldest first, once one of them is overdue by a
/// tenth of its term or by a day: the whole file is written anew for it. Those that are still needed come
/// later. Gives how many were erased.
///
/// # Errors
/// When the store cannot be read or written.
pub(crate) fn erase_due(store: &mut Store) -> Result<usize, StoreError> {
    let (runs, is_long) = store.due(now(), AT_ONCE)?;
    let mut count = 0;
    for run in runs.iter().filter(|_| is_long) {
        match erase(store, run) {
            Ok(_) => count += 1,
            Err(EraseError::Problem(_)) => {}
            Err(EraseError::Store(error)) => return Err(error),
        }
    }
    if count > 0 {
        // Where somebody else uses the store, the next one does it.
        let _ = store.compact();
    }
    Ok(count)
}
