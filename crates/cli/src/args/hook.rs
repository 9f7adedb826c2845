//! The arguments of hooks, and of what connects them to agents.

use clap::{Args, ValueEnum};

use crate::args::PolicyArg;
use crate::hook::DialectName;

/// `hook`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent whose JSON is read from standard input, and in whose form the answer is
    #[arg(value_name = "AGENT")]
    pub(crate) dialect: DialectName,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
}

/// How an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConnectLevel {
    /// By its hook, which judges its calls and rewrites its commands
    Hook,
    /// By `capsule mcp serve` in place of its built-in tools, which are denied; Claude Code alone
    Replace,
}

/// `connect`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The agent whose settings are changed
    #[arg(value_name = "AGENT")]
    pub(crate) agent: DialectName,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// How it is connected
    #[arg(long, value_name = "LEVEL", default_value = "hook")]
    pub(crate) level: ConnectLevel,
    /// Take out of the settings what was written for either level
    #[arg(long)]
    pub(crate) undo: bool,
    /// Only show what would change
    #[arg(long)]
    pub(crate) print: bool,
}

impl ConnectArgs {
    /// The policy of the hook, with the profile that was named.
    pub(crate) fn policy_for(&self, policy: &str) -> PolicyArg {
        PolicyArg { policy: Some(policy.to_owned()), profile: self.policy.profile.clone() }
    }
}
