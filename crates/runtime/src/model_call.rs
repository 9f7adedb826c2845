//! The words of a call as a model writes them, and the text that it is given for the result.

use capsule_base::json::{self, JsonError};
use capsule_base::limits;
use capsule_core::capability::Capabilities;
use capsule_core::tool::ToolName;
use capsule_tools::CATALOGUE;
use serde_json::Value;

use crate::call_result::CallResult;

/// The arguments of a call. A model that gives none may leave them out.
pub(crate) fn call_args(text: &str) -> Result<Value, JsonError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    json::parse(text.as_bytes())
}

/// The id of a tool that a call names.
pub(crate) fn tool_id(name: &str) -> ToolName {
    ToolName::unchecked(CATALOGUE.find(name).map_or(name, |known| known.id))
}

/// What a tool can do, by the name that a model gives it; nothing for one that there is not.
#[must_use]
pub fn tool_capabilities(name: &str) -> Capabilities {
    CATALOGUE
        .find(name)
        .map_or(Capabilities::NONE, |tool| tool.capabilities.iter().copied().collect())
}

/// A result as text for a model.
pub(crate) fn result_text(result: &CallResult) -> String {
    bounded_text(&result.to_json())
}

/// A value as text for a model. The middle of a long one is left out, and the text says so.
#[must_use]
pub fn bounded_text(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= limits::MODEL_RESULT_BYTES {
        return text;
    }
    let half = limits::MODEL_RESULT_BYTES / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let cut = text.len() - head.len() - tail.len();
    format!("{head}\n[{cut} of {} bytes are left out here; ask for less]\n{tail}", text.len())
}
