//! The arguments of sessions.

use clap::{Args, Subcommand};

use crate::args::PolicyArg;

/// Which session a call belongs to.
#[derive(Clone, Debug, Args)]
pub(crate) struct SessionArg {
    /// The session of the call: `auto`, `none`, an open one by its id, or a name with a colon
    /// [default: CAPSULE_SESSION, else `auto` at a terminal and `none` elsewhere]
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// `session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Open a session and print its id, for `--session` or CAPSULE_SESSION
    Start(SessionStartArgs),
    /// List the open sessions, the one that was used last first
    List,
    /// Show what a session did
    Show(SessionId),
    /// End a session: its record is sealed, and what it staged waits
    End(SessionId),
}

/// `session start`.
#[derive(Debug, Args)]
pub(crate) struct SessionStartArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// How long it stays open without a call
    #[arg(long, value_name = "DURATION", default_value = "4h")]
    pub(crate) idle: String,
}

/// An open session.
#[derive(Debug, Args)]
pub(crate) struct SessionId {
    /// The session: its id, or the beginning of one
    #[arg(value_name = "SESSION")]
    pub(crate) id: String,
}
