//! Taking up a session: it is looked for, locked, and compared with what the caller brings.

use std::path::Path;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_store::SessionLock;
use capsule_workspace::Cancel;

use crate::bound_policy::BoundPolicy;
use crate::clock::now_micros;
use crate::session::close::{EndedSession, end, seal};
use crate::session::error::SessionError;
use crate::session::held::{HeldSession, wait_for_lock};
use crate::session::identity::session_identity;
use crate::session::state::SessionState;

/// Which session a call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The session of this name, in this workspace and under the policy of this place; opened where there is none.
    Named(String),
    /// The open session whose run has this full id.
    Run(String),
}

/// What a session is looked for, or opened, with.
#[derive(Clone, Copy, Debug)]
pub struct SessionRequest<'r> {
    /// Which one.
    pub choice: &'r SessionChoice,
    /// The policy and its workspace.
    pub policy: &'r BoundPolicy,
    /// How long one that is opened may be idle.
    pub idle: Duration,
}

/// An open session, for a list.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// The full id of its run.
    pub run: String,
    /// The label of its run.
    pub label: String,
    /// What it is found by.
    pub name: String,
    /// The workspace's path.
    pub workspace: String,
    /// The policy, as it is named.
    pub policy: String,
    /// The profile.
    pub profile: String,
    /// When it was last used, in microseconds since 1970.
    pub used_at: u64,
    /// When it ends if no process takes it up, in microseconds since 1970.
    pub ends_at: u64,
    /// How many calls were made in it.
    pub calls: u64,
    /// How many paths are staged.
    pub staged: usize,
}

impl From<SessionState> for OpenSession {
    fn from(state: SessionState) -> Self {
        Self {
            ends_at: state.ends_at(),
            run: state.run.to_string(),
            label: state.label,
            name: state.name,
            workspace: state.workspace.path,
            policy: state.policy,
            profile: state.profile,
            used_at: state.used_at,
            calls: state.calls,
            staged: state.changes.len(),
        }
    }
}

/// The open sessions of a store, the one that was used last first. Those that were idle too long end.
///
/// # Errors
/// When the store cannot be read or written.
pub fn open_sessions(store: &Path) -> Result<Vec<OpenSession>, SessionError> {
    Ok(open_states(store)?.into_iter().map(OpenSession::from).collect())
}

/// The sessions that are open, the one that was used last first, once those that were idle too long have ended.
fn open_states(store: &Path) -> Result<Vec<SessionState>, SessionError> {
    let now = now_micros();
    let (open, expired): (Vec<_>, Vec<_>) =
        SessionState::read_all(store).into_iter().partition(|state| now < state.ends_at());
    for state in expired {
        // One that a process works in is not idle.
        if let Ok(lock) = SessionLock::try_take(store, &state.run.to_string())?
            && let Some(mut held) = HeldSession::locked(store, state.run, lock)?
            && held.state.ends_at() <= now
        {
            seal(&mut held)?;
        }
    }
    Ok(open)
}

/// What a search for a session came to.
pub(crate) enum SessionEntry {
    /// It is open, and held now.
    Joined(Box<HeldSession>),
    /// There is none: the caller opens one, and no other process does meanwhile.
    New(NewSession),
}

/// A session that is about to be opened.
pub(crate) struct NewSession {
    _directory: SessionLock,
    pub(crate) name: String,
    pub(crate) idle: Duration,
    /// The one whose place it takes.
    pub(crate) ended: Option<EndedSession>,
}

/// Looks for a session, and locks it; where there is none, the caller is the one that opens it.
pub(crate) fn enter_session(
    store: &Path,
    request: SessionRequest<'_>,
    cancel: &Cancel,
) -> Result<SessionEntry, SessionError> {
    let identity = session_identity(request.policy);
    let name = match request.choice {
        SessionChoice::Run(run) => {
            let held = HeldSession::take(store, run, cancel)?;
            if held.state.identity != identity || !held.can_continue() {
                return Err(SessionError::changed(&held.state.label));
            }
            return Ok(SessionEntry::Joined(Box::new(held)));
        }
        SessionChoice::Named(name) => name,
    };
    let place = request.policy.place();
    let mut ended = None;
    loop {
        let directory = wait_for_lock(store, SessionLock::DIRECTORY, cancel)?;
        let open = open_states(store)?;
        let workspace = &request.policy.roots.workspace;
        // Calls under two policies go on side by side, each in a session of its own.
        let is_named = |state: &SessionState| {
            state.name == *name && state.workspace.path == *workspace && state.policy == place
        };
        let Some(found) = open.into_iter().find(is_named) else {
            let (name, idle) = (name.clone(), request.idle);
            return Ok(SessionEntry::New(NewSession { _directory: directory, name, idle, ended }));
        };
        // The search is over: the next process may look while this one waits for its turn.
        drop(directory);
        let mut held = match HeldSession::take(store, &found.run.to_string(), cancel) {
            Ok(held) => held,
            // It ended while this process waited for it.
            Err(SessionError::Problem(problem)) if problem.code == Code::SessionUnknown => continue,
            Err(error) => return Err(error),
        };
        if held.state.identity == identity && held.can_continue() {
            return Ok(SessionEntry::Joined(Box::new(held)));
        }
        // Its policy, its workspace or its tools are others by now: it ends, and what it staged waits.
        ended = Some(end(&mut held)?);
    }
}
