//! The conversation in a session's record, for the process that goes on with the session.

use capsule_base::code::Code;
use capsule_core::journal::{Event, ModelAnswered, ModelRequested, PayloadRef};
use capsule_core::outcome::CodedError;
use capsule_core::policy::Policy;
use capsule_core::tool::ToolName;
use capsule_store::{Store, StoreError, StoredEvent};
use serde_json::Value;

use crate::session::{ConversationState, SessionError};

/// The tokens of a request and its answer, as the server counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Tokens of the request.
    pub input: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
}

/// A recorded part of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryEntry {
    /// A message of the user.
    UserMessage(String),
    /// The model was sent these messages.
    Requested(Value),
    /// The model answered, or there is no answer.
    Answered {
        /// The answer, or what went wrong.
        answer: Value,
        /// Whether it is an answer.
        is_complete: bool,
        /// The tokens of the request and the answer.
        tokens: TokenCount,
    },
}

/// Reads how far the conversation of a session came.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn read_state(
    store: &Store,
    run: &str,
    policy: &Policy,
) -> Result<ConversationState, StoreError> {
    let (mut state, mut tool) = (ConversationState::default(), ToolName::unchecked(""));
    store.visit::<StoreError>(run, |stored| {
        match stored.entry.event {
            Event::ModelRequested(requested) => state.turns = requested.turn,
            Event::CallProposed(proposed) => tool = proposed.tool,
            Event::CallFinished(_) => state.is_tainted |= policy.taints(&tool),
            _ => {}
        }
        Ok(())
    })?;
    Ok(state)
}

/// Whether calls were made since the last answer of a model, and since the last request to it.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn has_unsent_calls(store: &Store, run: &str) -> Result<bool, StoreError> {
    let mut is_unsent = false;
    store.visit::<StoreError>(run, |stored| {
        match stored.entry.event {
            Event::ModelRequested(_) | Event::ModelAnswered(_) => is_unsent = false,
            Event::CallProposed(_) => is_unsent = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_unsent)
}

/// Visits the conversation that is recorded in a run.
///
/// # Errors
/// When the record cannot be read, or a part of the conversation was erased.
pub(crate) fn visit_history(
    store: &Store,
    run: &str,
    mut visit: impl FnMut(HistoryEntry),
) -> Result<(), SessionError> {
    store.visit::<SessionError>(run, |stored| {
        let entry = match &stored.entry.event {
            Event::UserMessage { text } => {
                let text = kept_json(store, &stored, text)?;
                HistoryEntry::UserMessage(text.as_str().unwrap_or_default().to_owned())
            }
            Event::ModelRequested(ModelRequested { added, .. }) => {
                HistoryEntry::Requested(kept_json(store, &stored, added)?)
            }
            Event::ModelAnswered(answered) => {
                let ModelAnswered { code, answer, input_tokens, output_tokens, .. } = answered;
                HistoryEntry::Answered {
                    answer: kept_json(store, &stored, answer)?,
                    is_complete: code.is_none(),
                    tokens: TokenCount { input: *input_tokens, output: *output_tokens },
                }
            }
            _ => return Ok(()),
        };
        visit(entry);
        Ok(())
    })
}

/// A payload of an event, as JSON.
fn kept_json(
    store: &Store,
    stored: &StoredEvent,
    wanted: &PayloadRef,
) -> Result<Value, SessionError> {
    let kept = store.payloads(stored.leaf, &stored.entry.event)?;
    let kept = kept.into_iter().find(|(reference, _)| reference == wanted);
    let value = kept.and_then(|(_, payload)| serde_json::from_slice(&payload.bytes?).ok());
    value.ok_or_else(|| {
        let message = "a part of the conversation is not in the record any more";
        let problem = CodedError::new(Code::SessionChanged, message);
        problem.with_suggestion("leave `--session` out to begin anew").into()
    })
}
