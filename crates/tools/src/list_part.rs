//! What the call for a whole list tells of its parts.

use capsule_command::shell_syntax::ListOperator;
use capsule_core::action::CommandStep;
use serde::{Deserialize, Serialize};

/// A pipeline of a list, as the call for the whole list tells of it. Each is a call of its own when it is
/// reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPart {
    /// Its place in the list, from 1.
    pub number: usize,
    /// When it runs.
    pub join: ListOperator,
    /// Whether a program runs.
    pub runs: bool,
    /// Whether it is a `cd`, which says for the parts behind it where they run, or about background parts. In old records
    /// they say so themselves, and a `cd` is no call.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changes_folder: bool,
}

impl ListPart {
    /// The parts of a list, each once in however many directories it may run.
    #[must_use]
    pub fn of(steps: &[CommandStep]) -> Vec<Self> {
        let part = |step: &CommandStep| Self {
            number: step.number,
            join: step.join,
            runs: !step.is_cd(),
            changes_folder: step.is_cd(),
        };
        let once = steps.chunk_by(|one, other| one.number == other.number);
        once.filter_map(<[CommandStep]>::first).map(part).collect()
    }
}
