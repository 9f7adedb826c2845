//! How a command ends, as a number that a script can read.

use serde::{Deserialize, Serialize};

/// The exit codes of every command. Where several apply to one run, the first in this order wins.
///
/// The order of the variants is that order, so `min` over a run's exits gives the run's exit.
/// Source: the interface's table of exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// A person pressed Ctrl+C, or a signal asked us to end.
    Interrupted,
    /// The record is not what was written.
    IntegrityFailed,
    /// The sandbox is missing, or weaker than the policy requires.
    SandboxBelowFloor,
    /// The runtime or the machine under it failed.
    RuntimeError,
    /// A replay met something that is not in its recording.
    ReplayDiverged,
    /// The command line, the policy or the plan is wrong.
    BadUsage,
    /// The policy denied a call, or a person did.
    Denied,
    /// An approval was needed and nobody was there to give it, or it expired.
    ApprovalNeeded,
    /// A quota or budget is used up.
    BudgetUsedUp,
    /// A tool failed.
    ToolFailed,
    /// Everything went as asked.
    Ok,
}

impl Exit {
    /// The process's exit status.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ToolFailed => 1,
            Self::BadUsage => 2,
            Self::Denied => 3,
            Self::ApprovalNeeded => 4,
            Self::ReplayDiverged => 5,
            Self::IntegrityFailed => 6,
            Self::BudgetUsedUp => 7,
            Self::SandboxBelowFloor => 8,
            Self::RuntimeError => 10,
            Self::Interrupted => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_exit_comes_first() {
        let order: [u8; 11] = [130, 6, 8, 10, 5, 2, 3, 4, 7, 1, 0];
        let mut all = [
            Exit::Ok,
            Exit::ToolFailed,
            Exit::BadUsage,
            Exit::Denied,
            Exit::ApprovalNeeded,
            Exit::ReplayDiverged,
            Exit::IntegrityFailed,
            Exit::BudgetUsedUp,
            Exit::SandboxBelowFloor,
            Exit::RuntimeError,
            Exit::Interrupted,
        ];
        all.sort();
        assert_eq!(all.map(Exit::status), order);
    }
}
