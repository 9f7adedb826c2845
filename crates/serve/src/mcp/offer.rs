//! What a client is told of the policy: the tools, and what it lets a model do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capsule_core::outcome::CodedError;
use serde_json::{Value, json};

use crate::mcp::host::McpHost;
use crate::mcp::message::{INTERNAL_ERROR, RpcError};
use crate::mcp::tool_list::tool_list;

/// What the policy offers now.
pub(crate) struct Offer(Mutex<Result<OfferedTexts, CodedError>>);

#[derive(Clone, Debug, PartialEq)]
struct OfferedTexts {
    tools: Value,
    policy_text: String,
}

impl Offer {
    pub(crate) fn of(host: &dyn McpHost) -> Self {
        Self(Mutex::new(offered_texts(host)))
    }

    fn now(&self) -> MutexGuard<'_, Result<OfferedTexts, CodedError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a host offers from now on. Whether the tools are others.
    pub(crate) fn renew(&self, host: &dyn McpHost) -> bool {
        let new = offered_texts(host);
        let now = &mut *self.now();
        let tools = |offer: &Result<OfferedTexts, CodedError>| {
            offer.as_ref().ok().map(|texts| texts.tools.clone())
        };
        let is_changed = tools(now) != tools(&new);
        *now = new;
        is_changed
    }

    /// The tools, as a client is told of them.
    ///
    /// # Errors
    /// When the policy or the workspace cannot be used: why, for the client's user.
    pub(crate) fn tools(&self) -> Result<Value, RpcError> {
        self.now().as_ref().map(|texts| texts.tools.clone()).map_err(unusable)
    }

    /// What the policy lets a model do.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn policy_text(&self) -> Result<String, RpcError> {
        self.now().as_ref().map(|texts| texts.policy_text.clone()).map_err(unusable)
    }
}

fn offered_texts(host: &dyn McpHost) -> Result<OfferedTexts, CodedError> {
    let (tools, policy_text) = host.offer()?;
    Ok(OfferedTexts { tools: tool_list(&tools), policy_text })
}

fn unusable(problem: &CodedError) -> RpcError {
    let way = problem.suggestion.as_ref().map(|way| format!("; {way}")).unwrap_or_default();
    let error = RpcError::new(INTERNAL_ERROR, format!("{}{way}", problem.message));
    RpcError { data: Some(json!({ "code": problem.code })), ..error }
}
