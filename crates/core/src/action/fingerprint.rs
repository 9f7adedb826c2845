//! By what an action is known again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Facts};
use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_base::json;

/// What an approval is bound to: the tool, what would happen, what was found, and the policy that
/// judged it. Equal fingerprints mean the same thing would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The fingerprint of an action with its facts, under a policy.
    #[must_use]
    pub fn of(tool: &ToolName, action: &Action, facts: &Facts, policy: Digest) -> Self {
        Self(Digest::of(&json::canonical(&(tool, action, facts, policy))))
    }

    /// The same of an action and facts that are JSON already.
    pub(crate) fn of_values(
        tool: &ToolName,
        action: &Value,
        facts: &Value,
        policy: Digest,
    ) -> Self {
        let items = [
            json::canonical(tool),
            json::canonical_value(action),
            json::canonical_value(facts),
            json::canonical(&policy),
        ];
        // The canonical form of a list is that of its items with commas between them.
        Self(Digest::of(&[b"[".as_slice(), &items.join(&b','), b"]"].concat()))
    }
}
