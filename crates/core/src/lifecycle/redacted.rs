//! What a call was seen to be when it was judged: without its secrets for the record and for a person,
//! and with them for what an approval is bound to.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{Action, Facts, Fingerprint};
use crate::approval::ApprovalRequest;
use crate::call::ToolCall;
use crate::confinement::Confinement;
use crate::decision::Decision;
use crate::outcome::CodedError;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::json;
use capsule_redact::Redactor;

/// Why a call is denied whose meaning falls apart once its secrets are masked.
const UNRECORDABLE: &str = "what it means cannot be recorded: a secret stands in it where no mask can, \
                            such as in the name of a host";
const REMOVE_SECRET: &str = "leave the secret out of host names and paths";

/// What was judged, as it is recorded.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordedCall {
    action: Action,
    pub(super) facts: Facts,
}

impl RecordedCall {
    /// The same without its secrets, in the form in which it reads back: a mask inside of a URL is
    /// encoded like every other character there. Takes it as JSON, which is returned as it is where there
    /// is nothing to mask, and with what it reads as where there is; none where it would not read back
    /// at all.
    fn masked(record: Value, redactor: &Redactor) -> Option<(Value, Option<Self>)> {
        let mut masked = 0;
        let clean = redactor.value(record, &mut masked);
        if masked == 0 {
            return Some((clean, None));
        }
        let read: Self = serde_json::from_value(clean).ok()?;
        Some((serde_json::to_value(&read).ok()?, Some(read)))
    }
}

/// What a call was seen to be.
pub(super) struct RedactedCall {
    /// What it means and what was found, masked.
    pub(super) record: RecordedCall,
    /// The same as it is recorded: canonical JSON.
    pub(super) bytes: Vec<u8>,
    /// The fingerprint of that.
    pub(super) fingerprint: Fingerprint,
    /// The fingerprint of what is not masked: an approval is bound to what is there, not to what is
    /// recorded of it.
    pub(super) raw_fingerprint: Fingerprint,
    /// The policy that judged it.
    policy: Digest,
}

impl RedactedCall {
    /// Takes in what was judged.
    ///
    /// # Errors
    /// When it cannot be recorded without its secrets.
    pub(super) fn of(
        tool: &ToolName,
        (action, facts): (Action, Facts),
        policy: Digest,
        redactor: &Redactor,
    ) -> Result<Self, CodedError> {
        let unrecordable =
            || CodedError::new(Code::ArgsInvalid, UNRECORDABLE).with_suggestion(REMOVE_SECRET);
        let record = RecordedCall { action, facts };
        let value = serde_json::to_value(&record).map_err(|_| unrecordable())?;
        let fingerprint_of = |item: &Value| {
            let [action, facts] = ["action", "facts"].map(|name| item.get(name));
            Some(Fingerprint::of_values(tool, action?, facts?, policy))
        };
        let raw_fingerprint = fingerprint_of(&value).ok_or_else(unrecordable)?;
        let (value, masked) = RecordedCall::masked(value, redactor).ok_or_else(unrecordable)?;
        let fingerprint = match masked {
            Some(_) => fingerprint_of(&value).ok_or_else(unrecordable)?,
            None => raw_fingerprint,
        };
        let bytes = json::canonical_value(&value);
        Ok(Self { record: masked.unwrap_or(record), bytes, fingerprint, raw_fingerprint, policy })
    }

    /// What an approval is bound to: the call, and the lines that a person is shown of it.
    pub(super) fn binding(&self, shown: Option<&str>) -> Vec<u8> {
        match shown {
            Some(lines) => json::canonical(&(self.raw_fingerprint, Digest::of(lines.as_bytes()))),
            None => json::canonical(&self.raw_fingerprint),
        }
    }

    /// What it means, masked.
    pub(super) const fn action(&self) -> &Action {
        &self.record.action
    }

    /// What was found, masked.
    pub(super) const fn facts(&self) -> &Facts {
        &self.record.facts
    }

    /// What a person would be asked about the call, with its arguments as they may be shown.
    pub(super) fn approval_request<'q>(
        &'q self,
        (number, call): (u64, &'q ToolCall),
        (args, bound, diff): (&'q Value, Digest, Option<&'q str>),
        (decision, confinement): (&'q Decision, Option<Confinement>),
    ) -> ApprovalRequest<'q> {
        ApprovalRequest {
            call: number,
            step: call.step.as_deref(),
            tool: &call.tool,
            args,
            tainted: &call.tainted,
            diff,
            action: self.action(),
            facts: self.facts(),
            decision,
            fingerprint: self.fingerprint,
            confinement,
            policy: self.policy,
            binding: bound,
        }
    }
}

/// The action and the facts that were judged, from their recorded bytes.
#[must_use]
pub fn recorded_action(bytes: &[u8]) -> Option<(Action, Facts)> {
    let RecordedCall { action, facts } = serde_json::from_slice(bytes).ok()?;
    Some((action, facts))
}
