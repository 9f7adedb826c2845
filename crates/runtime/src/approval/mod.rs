//! Where a question goes: grants that are alive answer it, or a card is laid before a person.

mod active_grants;
mod broker;
mod card;
mod history;
mod pending;
mod plan_card;
mod resolve;

pub use active_grants::{ActiveGrant, active_grants, clear_grants, revoke_grant};
pub(crate) use broker::{ApprovalBroker, ApprovalMemory, StoredReply};
pub use broker::{NoPrompt, Prompt, PromptAnswer, PromptReply};
pub(crate) use history::files_read;
pub(crate) use pending::lock_run;
pub use pending::{PendingQuestion, QuestionAnswer, QuestionState, StoredAnswer, not_waiting};
pub(crate) use resolve::{ApprovalOutcome, resolve_approval};
