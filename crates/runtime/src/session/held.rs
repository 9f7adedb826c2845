//! A session that this process works in: its lock, and what it remembers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_base::process_stat::fields_from_state;
use capsule_core::id::RunId;
use capsule_core::journal::Event;
use capsule_core::outcome::CodedError;
use capsule_store::{SessionLock, Store};
use capsule_workspace::{Cancel, Staging};

use crate::changes::staging_path;
use crate::session::error::SessionError;
use crate::session::recovery::recover_state;
use crate::session::state::SessionState;

/// How long a process that waits looks away: for a person who stops it, or for another process that ends.
const PAUSE: Duration = Duration::from_millis(10);

/// A session that this process works in.
#[derive(Debug)]
pub struct HeldSession {
    pub(super) store: PathBuf,
    lock: SessionLock,
    pub(crate) state: SessionState,
    /// The call that the process before did not end.
    pub(crate) unfinished: Option<u64>,
    /// Whether a process was killed that worked in it.
    pub(crate) recovered: bool,
    /// Whether what it remembered is lost with that process, so that no call can follow.
    is_lost: bool,
}

impl HeldSession {
    /// Takes up an open session.
    ///
    /// # Errors
    /// When it is not open, another process works in it for too long, or the store cannot be read.
    pub fn take(store: &Path, run: &str, cancel: &Cancel) -> Result<Self, SessionError> {
        let id = RunId::parse(run).ok_or_else(|| SessionError::unknown(run))?;
        let lock = wait_for_lock(store, run, cancel)?;
        Self::locked(store, id, lock)?.ok_or_else(|| SessionError::unknown(run))
    }

    /// The session under its lock; none where it ended meanwhile.
    pub(super) fn locked(
        store: &Path,
        run: RunId,
        lock: SessionLock,
    ) -> Result<Option<Self>, SessionError> {
        let Some(state) = SessionState::read(store, run) else { return Ok(None) };
        let last = Store::open(store)?.last_event(&run.to_string())?;
        let last = last.filter(|last| !matches!(last.entry.event, Event::RunSealed(_)));
        let Some(last) = last else {
            // A process was killed behind the seal, or the store is another one by now.
            SessionState::remove(store, run);
            return Ok(None);
        };
        let mut held = Self::new(store, lock, state);
        if held.state.head != Some(Digest::of(&last.bytes)) {
            wait_for_executor(&held.lock.note()?)?;
            held.recovered = true;
            match recover_state(store, held.state.clone()) {
                Ok((state, unfinished)) => {
                    let directory = staging_path(store, run);
                    Staging::restore_indexes(&directory, &state.change_set());
                    (held.state, held.unfinished) = (state, unfinished);
                }
                Err(SessionError::Store(error)) => return Err(error.into()),
                // The record does not hold what is needed to go on. It can be ended.
                Err(_) => held.is_lost = true,
            }
        }
        held.lock.set_note(&holder_note(None))?;
        Ok(Some(held))
    }

    fn new(store: &Path, lock: SessionLock, state: SessionState) -> Self {
        let store = store.to_owned();
        Self { store, lock, state, unfinished: None, recovered: false, is_lost: false }
    }

    /// Whether another call can follow in it.
    pub(super) const fn can_continue(&self) -> bool {
        !self.state.copied && !self.is_lost
    }

    /// A session that was just opened.
    pub(crate) fn opened(
        store: &Path,
        state: SessionState,
        cancel: &Cancel,
    ) -> Result<Self, SessionError> {
        let mut lock = wait_for_lock(store, &state.run.to_string(), cancel)?;
        lock.set_note(&holder_note(None))?;
        let held = Self::new(store, lock, state);
        held.save()?;
        Ok(held)
    }

    /// Notes the executor, which a process that comes after a crash has to wait for.
    pub(crate) fn note_executor(&mut self, executor: Option<i32>) -> Result<(), SessionError> {
        Ok(self.lock.set_note(&holder_note(executor))?)
    }

    /// Removes what the session remembers: its run is about to be sealed.
    pub(crate) fn forget(&self) {
        SessionState::remove(&self.store, self.state.run);
    }

    /// Writes what the session remembers.
    pub(crate) fn save(&self) -> Result<(), SessionError> {
        self.state.write(&self.store).map_err(|error| SessionError::file(&error))
    }
}

/// Takes the lock of a session as soon as no other process has it. Processes that wait take turns, so that none
/// waits for ever: a thread waits in the kernel's queue, and gives the lock back if nothing waits for it any more.
pub(super) fn wait_for_lock(
    store: &Path,
    session: &str,
    cancel: &Cancel,
) -> Result<SessionLock, SessionError> {
    if let Ok(lock) = SessionLock::try_take(store, session)? {
        return Ok(lock);
    }
    let deadline = Instant::now() + limits::SESSION_WAIT;
    let (sender, receiver) = mpsc::channel();
    let (path, name) = (store.to_owned(), session.to_owned());
    thread::spawn(move || sender.send(SessionLock::wait(&path, &name)));
    while Instant::now() < deadline && !cancel.is_set() {
        match receiver.recv_timeout(PAUSE) {
            Ok(taken) => return Ok(taken?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(receiver);
    SessionLock::try_take(store, session)?.map_err(|holder| {
        let holder = holder.split_whitespace().next().unwrap_or("unknown");
        let problem =
            CodedError::new(Code::SessionBusy, format!("process {holder} works in the session"));
        problem.with_suggestion(Code::SessionBusy.next_step()).into()
    })
}

/// The note of a process that works in a session: its number, and the number and start time of its executor.
fn holder_note(executor: Option<i32>) -> String {
    let executor = executor.and_then(|process| Some((process, start_time(process)?)));
    let executor = executor.map(|(process, started)| format!(" {process} {started}"));
    format!("{}{}", process::id(), executor.unwrap_or_default())
}

/// When a process started, in ticks since the machine did; none where there is no such process, or it ended and its
/// parent has not asked how (the first process of a container often never does).
fn start_time(process: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = fields_from_state(&stat)?;
    let has_ended = matches!(fields.next()?, "Z" | "X");
    if has_ended {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Waits until the executor of a process that was killed has ended, and with it what it mounted.
fn wait_for_executor(note: &str) -> Result<(), SessionError> {
    let mut words = note.split_whitespace().skip(1);
    let executor = words.next().and_then(|word| word.parse().ok());
    let started = words.next().and_then(|word| word.parse().ok());
    let (Some(executor), Some(started)) = (executor, started) else { return Ok(()) };
    let deadline = Instant::now() + limits::EXECUTOR_END;
    while start_time(executor) == Some(started) {
        if Instant::now() >= deadline {
            let message = format!("process {executor} of a killed call of the session goes on");
            return Err(CodedError::new(Code::SessionBusy, message).into());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
