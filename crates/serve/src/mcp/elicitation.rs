//! Questions of a policy that the user of a client answers, by the client's own form.
//!
//! The form has one field, yes or no, for this one call. What the client does with it is the client's; a model behind it
//! is given the form by no client that keeps to the protocol.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Instant;

use capsule_base::{limits, units};
use capsule_core::approval::{AnswerSurface, Card, Person};
use capsule_runtime::{Prompt, PromptAnswer, PromptReply};
use serde_json::{Value, json};

use crate::mcp::connection::{Connection, Reply};
use crate::mcp::host::PolicyWatch;

/// Asks the user of a client.
pub(crate) struct ClientPrompt {
    pub(crate) connection: Arc<Connection>,
    /// The whole of a card as text that cannot act; none where a part of it cannot be shown.
    pub(crate) card_text: fn(&Card) -> Option<String>,
    /// Whether the policy was changed since the call was judged.
    pub(crate) is_policy_changed: PolicyWatch,
}

impl Prompt for ClientPrompt {
    fn is_attended(&mut self) -> bool {
        self.connection.can_ask()
    }

    /// The form offers nothing beyond the call.
    fn is_once(&self) -> bool {
        true
    }

    fn show(&mut self, card: &Card) -> PromptReply {
        let began = Instant::now();
        let text = (self.card_text)(card).filter(|text| text.len() <= limits::MCP_QUESTION_BYTES);
        let answer = match text {
            Some(text) => {
                let question = ("elicitation/create", &form(&text));
                let time = limits::MCP_ANSWER_TIME;
                answer(&self.connection.ask(question, random_number(), time))
            }
            // A terminal shows all of it.
            None => PromptAnswer::Postpone,
        };
        // The question was about what another policy says: the next call is judged by that.
        let is_yes = matches!(answer, PromptAnswer::Allow(..));
        let answer = match answer {
            _ if is_yes && (self.is_policy_changed)() => PromptAnswer::Withdrawn,
            answer => answer,
        };
        let latency_ms = units::millis(began.elapsed());
        PromptReply { answer, latency_ms, surface: AnswerSurface::Mcp }
    }
}

/// The form of a question.
fn form(text: &str) -> Value {
    json!({
        "message": text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                FIELD: {
                    "type": "boolean",
                    "title": "Allow this once",
                    "description": "yes: it is done this once · no: it is not done",
                },
            },
            "required": [FIELD],
        },
    })
}

const FIELD: &str = "allow";

/// The answer of the user. Anything but a plain yes allows nothing.
fn answer(reply: &Reply) -> PromptAnswer {
    let Reply::Given(Some(result)) = reply else {
        return match reply {
            Reply::Withdrawn => PromptAnswer::Withdrawn,
            Reply::Given(_) | Reply::Abandoned => PromptAnswer::Postpone,
        };
    };
    let is_yes =
        result.get("content").and_then(|content| content.get(FIELD)).and_then(Value::as_bool);
    match (result.get("action").and_then(Value::as_str), is_yes) {
        (Some("accept"), Some(true)) => PromptAnswer::Allow(Person::present(), None),
        (Some("accept"), Some(false)) | (Some("decline"), _) => {
            PromptAnswer::Deny(Person::present(), None)
        }
        _ => PromptAnswer::Postpone,
    }
}

/// A number that no client knows before: the standard library's own source of chance, which it takes from the system.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_a_plain_yes_allows_nothing() {
        let given = |value: Value| answer(&Reply::Given(Some(value)));
        let is_allowed = |answer: &PromptAnswer| matches!(answer, PromptAnswer::Allow(..));
        assert!(is_allowed(&given(json!({ "action": "accept", "content": { "allow": true } }))));
        for other in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "allow": "true" } }),
            json!({ "action": "accept", "content": { "allow": 1 } }),
            json!({ "action": "accept", "content": { "allow": false } }),
            json!({ "action": "accept", "content": [true] }),
            json!({ "action": "decline", "content": { "allow": true } }),
            json!({ "action": "cancel", "content": { "allow": true } }),
            json!({ "content": { "allow": true } }),
            json!([]),
            json!(null),
        ] {
            assert!(!is_allowed(&given(other.clone())), "{other}");
        }
        assert_eq!(answer(&Reply::Given(None)), PromptAnswer::Postpone);
        assert_eq!(answer(&Reply::Abandoned), PromptAnswer::Postpone);
        assert_eq!(answer(&Reply::Withdrawn), PromptAnswer::Withdrawn);
    }
}
