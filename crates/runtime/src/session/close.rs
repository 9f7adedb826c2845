//! The end of a session, and the end of its staged changes.

use std::path::Path;

use capsule_base::exit::Exit;
use capsule_core::id::RunId;
use capsule_core::journal::{
    Durability, Entry, Event, Journal as _, PayloadRef, RunKind, RunSealed, SessionJoined,
};
use capsule_core::policy::AuditRule;
use capsule_store::{RunWriter, SigningSchedule, Store, StoredEvent};
use capsule_workspace::Cancel;

use crate::bound_policy::{BoundPolicy, PolicyTexts};
use crate::changes::{WaitingChanges, remove_directory, staging_path};
use crate::clock::now_micros;
use crate::session::error::SessionError;
use crate::session::held::HeldSession;
use crate::session::state::SessionState;

/// A session that came to its end.
#[derive(Clone, Debug)]
pub struct EndedSession {
    /// The full id of its run.
    pub run: String,
    /// The label of its run.
    pub label: String,
    /// How many calls were made in it.
    pub calls: u64,
    /// What it changed and waits to be applied or discarded.
    pub staged: Option<WaitingChanges>,
}

/// Ends an open session: its run is sealed, and what it staged waits.
///
/// # Errors
/// When it is not open, another process works in it for too long, or the store cannot be written.
pub fn end_session(store: &Path, run: &str, cancel: &Cancel) -> Result<EndedSession, SessionError> {
    end(&mut HeldSession::take(store, run, cancel)?)
}

/// Ends a session that this process works in, and says what it leaves.
pub(super) fn end(held: &mut HeldSession) -> Result<EndedSession, SessionError> {
    seal(held)?;
    let SessionState { run, label, calls, .. } = &held.state;
    let staged = WaitingChanges::of(&held.state.change_set());
    Ok(EndedSession { run: run.to_string(), label: label.clone(), calls: *calls, staged })
}

/// Seals the run of a session.
pub(super) fn seal(held: &mut HeldSession) -> Result<(), SessionError> {
    let mut writer = held.reopen()?;
    let sealed = RunSealed {
        exit: Exit::Ok,
        events: writer.event_count() + 1,
        calls: held.state.calls,
        outputs: None,
        suspended: None,
    };
    writer.append(Event::RunSealed(sealed), Durability::CrashSafe)?;
    let signed = writer.finish().signing_error;
    SessionState::remove(&held.store, held.state.run);
    if held.state.changes.is_empty() {
        // A directory that cannot be removed now holds nothing that waits.
        let _ = remove_directory(&staging_path(&held.store, held.state.run));
    }
    signed.map_or(Ok(()), |error| Err(error.into()))
}

impl HeldSession {
    /// Goes on writing the run of the session, as its policy wants it signed.
    pub(super) fn reopen(&mut self) -> Result<RunWriter, SessionError> {
        let store = Store::open(&self.store)?;
        let run = self.state.run;
        let first = store.event(&run.to_string(), 1)?;
        let Some(StoredEvent {
            leaf,
            entry: Entry { event: event @ Event::RunOpened(opened), .. },
            ..
        }) = &first
        else {
            return Err(SessionError::unknown(&run.to_string()));
        };
        let payloads = store.payloads(*leaf, event)?;
        let texts = PolicyTexts::from_record(opened, |wanted| {
            let (_, payload) = payloads.iter().find(|(item, _)| item == wanted)?;
            payload.bytes.clone()
        });
        let bound = texts.and_then(|texts| BoundPolicy::bind_recorded(&texts, opened).ok());
        let audit = bound.map_or_else(AuditRule::default, |policy| policy.audit.clone());
        let signing = SigningSchedule::for_policy(&store, &audit, true)?;
        let mut writer = store.reopen(run, Box::new(now_micros), opened.payloads)?;
        writer.sign_with(signing);
        if self.recovered {
            let joined = self.joined_event(RunKind::Session, None);
            writer.append(joined, Durability::CrashSafe)?;
            self.recovered = false;
        }
        Ok(writer)
    }

    /// What is written when a process takes the session up.
    pub(crate) fn joined_event(&self, command: RunKind, changes: Option<PayloadRef>) -> Event {
        let process = u64::from(std::process::id());
        let unfinished = self.unfinished;
        Event::SessionJoined(SessionJoined { process, command, unfinished, changes })
    }

    /// Writes down that the staged changes of the session were applied by a run, or discarded, and removes
    /// them: it begins with none again.
    ///
    /// # Errors
    /// When it cannot be written, or they cannot be removed.
    pub fn release_changes(&mut self, by: Option<RunId>) -> Result<(), SessionError> {
        let mut writer = self.reopen()?;
        writer.append(Event::ChangesApplied { by }, Durability::CrashSafe)?;
        self.state.head = writer.head();
        self.state.changes.clear();
        self.state.used_at = now_micros();
        let signed = writer.finish().signing_error;
        remove_directory(&staging_path(&self.store, self.state.run))?;
        self.save()?;
        signed.map_or(Ok(()), |error| Err(error.into()))
    }
}
