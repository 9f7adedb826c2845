//! What a call was seen to be when it was judged: without its secrets for the record and for a person,
//! and with them for what an approval is bound to.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{Action, Facts, Fingerprint};
use crate::approval::Question;
use crate::call::ToolCall;
use crate::code::Code;
use crate::confinement::Confinement;
use crate::decision::Decision;
use crate::digest::Digest;
use crate::json;
use crate::outcome::Problem;
use crate::tool::ToolName;
use capsule_redact::Redactor;

/// Why a call is denied whose meaning falls apart once its secrets are masked.
const UNRECORDABLE: &str = "what it means cannot be recorded: a secret stands in it where no mask can, \
                            such as in the name of a host";
const WITHOUT_SECRET: &str = "leave the secret out of host names and paths";

/// What was judged, as it is recorded.
#[derive(Serialize, Deserialize)]
pub(super) struct Considered {
    action: Action,
    pub(super) facts: Facts,
}

impl Considered {
    /// The same without its secrets, in the form in which it reads back: a mask inside of a URL is
    /// encoded like every other character there. Takes it as JSON, which is returned as it is where there
    /// is nothing to mask, and with what it reads as where there is; none where it would not read back
    /// at all.
    fn masked(there: Value, redactor: &Redactor) -> Option<(Value, Option<Self>)> {
        let mut masked = 0;
        let clean = redactor.value(there, &mut masked);
        if masked == 0 {
            return Some((clean, None));
        }
        let read: Self = serde_json::from_value(clean).ok()?;
        Some((serde_json::to_value(&read).ok()?, Some(read)))
    }
}

/// What a call was seen to be.
pub(super) struct Seen {
    /// What it means and what was found, masked.
    pub(super) clean: Considered,
    /// The same as it is recorded: canonical JSON.
    pub(super) bytes: Vec<u8>,
    /// The fingerprint of that.
    pub(super) fingerprint: Fingerprint,
    /// The fingerprint of what is not masked: an approval is bound to what is there, not to what is
    /// recorded of it.
    pub(super) bound: Fingerprint,
    /// The policy that judged it.
    policy: Digest,
}

impl Seen {
    /// Takes in what was judged.
    ///
    /// # Errors
    /// When it cannot be recorded without its secrets.
    pub(super) fn of(
        tool: &ToolName,
        (action, facts): (Action, Facts),
        policy: Digest,
        redactor: &Redactor,
    ) -> Result<Self, Problem> {
        let unrecordable = || Problem::new(Code::ArgsInvalid, UNRECORDABLE).suggest(WITHOUT_SECRET);
        let there = Considered { action, facts };
        let value = serde_json::to_value(&there).map_err(|_| unrecordable())?;
        let fingerprint_of = |own: &Value| {
            let [action, facts] = ["action", "facts"].map(|name| own.get(name));
            Some(Fingerprint::of_values(tool, action?, facts?, policy))
        };
        let bound = fingerprint_of(&value).ok_or_else(unrecordable)?;
        let (value, masked) = Considered::masked(value, redactor).ok_or_else(unrecordable)?;
        let fingerprint = match masked {
            Some(_) => fingerprint_of(&value).ok_or_else(unrecordable)?,
            None => bound,
        };
        let bytes = json::canonical_value(&value);
        Ok(Self { clean: masked.unwrap_or(there), bytes, fingerprint, bound, policy })
    }

    /// What it means, masked.
    pub(super) const fn action(&self) -> &Action {
        &self.clean.action
    }

    /// What was found, masked.
    pub(super) const fn facts(&self) -> &Facts {
        &self.clean.facts
    }

    /// What a person would be asked about the call, with its arguments as they may be shown.
    pub(super) fn question<'q>(
        &'q self,
        (number, call): (u64, &'q ToolCall),
        (args, bound, diff): (&'q Value, Digest, Option<&'q str>),
        (decision, confinement): (&'q Decision, Option<Confinement>),
    ) -> Question<'q> {
        Question {
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
            bound,
        }
    }
}

/// The action and the facts that were judged, from their recorded bytes.
#[must_use]
pub fn recorded_action(bytes: &[u8]) -> Option<(Action, Facts)> {
    let Considered { action, facts } = serde_json::from_slice(bytes).ok()?;
    Some((action, facts))
}
