//! What a session remembers, read from its record: for where a process was killed before it wrote that down.

use std::path::Path;

use capsule_base::digest::Digest;
use capsule_core::decision::Verdict;
use capsule_core::journal::{CallFinished, Event, PayloadRef};
use capsule_store::{Store, StoreError};
use serde_json::Value;

use crate::changes::RecordedChanges;
use crate::replay::replay_session;
use crate::session::approvals::SavedApprovals;
use crate::session::error::SessionError;
use crate::session::state::SessionState;

/// The calls since a process took the session up.
#[derive(Default)]
struct CallsOfProcess {
    /// The call that was made last by the caller; those behind it are its parts.
    last: Option<u64>,
    /// Whether the last call, or a part of it, lacks its end.
    is_open: bool,
    /// Whether it has parts, of which some may be missing.
    has_parts: bool,
}

impl CallsOfProcess {
    fn add_event(&mut self, event: &Event, payload: impl Fn(&PayloadRef) -> Option<Value>) {
        match event {
            Event::SessionJoined(_) => *self = Self::default(),
            Event::CallProposed(proposed) => {
                let is_part = payload(&proposed.args).is_none_or(|args| args.get("part").is_some());
                if self.last.is_none() || !is_part {
                    *self = Self { last: Some(proposed.call), is_open: true, has_parts: false };
                }
                self.is_open = true;
            }
            Event::CallDecided(decided) => self.is_open = decided.decision == Verdict::Allow,
            Event::ApprovalShown(_) | Event::CallStarted(_) => self.is_open = true,
            Event::CallFinished(CallFinished { output, .. }) => {
                self.is_open = false;
                self.has_parts |=
                    payload(output).is_some_and(|output| output.get("parts").is_some());
            }
            _ => {}
        }
    }

    /// The last call, where its end, or the end of its parts, is not in the record.
    fn unfinished(&self) -> Option<u64> {
        self.last.filter(|_| self.is_open || self.has_parts)
    }
}

/// What a session remembers, with the call that was not ended when its process was killed.
///
/// # Errors
/// When the record cannot be read, or does not hold what is needed.
pub(super) fn recover_state(
    path: &Path,
    state: SessionState,
) -> Result<(SessionState, Option<u64>), SessionError> {
    let store = Store::open_read_only(path)?;
    let run = state.run.to_string();
    let mut calls = CallsOfProcess::default();
    let mut head = None;
    store.visit::<StoreError>(&run, |stored| {
        let payloads = match &stored.entry.event {
            event @ (Event::CallProposed(_) | Event::CallFinished(_)) => {
                store.payloads(stored.leaf, event)?
            }
            _ => Vec::new(),
        };
        calls.add_event(&stored.entry.event, |wanted| {
            let (_, payload) = payloads.iter().find(|(item, _)| item == wanted)?;
            serde_json::from_slice(payload.bytes.as_ref()?).ok()
        });
        head = Some(Digest::of(&stored.bytes));
        Ok(())
    })?;
    let unfinished = calls.unfinished();
    let approvals = SavedApprovals::from_record(&store, &run)?;
    let changes = RecordedChanges::read(&store, &run)?.changes.0.into_values().collect();
    let (usage, calls) = replay_session(store, &run, unfinished)?;
    let (has_questions, conversation) = (true, None);
    let state = SessionState {
        head,
        calls,
        usage,
        approvals,
        changes,
        has_questions,
        conversation,
        ..state
    };
    Ok((state, unfinished))
}
