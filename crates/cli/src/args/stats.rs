//! The arguments of `stats` and `feedback`.

use clap::{Args, Subcommand};

/// `stats`.
#[derive(Debug, Subcommand)]
pub(crate) enum StatsCommand {
    /// Refused calls by code, rule, tool and program
    Denials(StatsArgs),
    /// Questions to people, their answers, and how long they looked
    Approvals(StatsArgs),
    /// Calls that were prevented, and decisions that people called wrong
    Safety(StatsArgs),
    /// The cost of refusals: how many and how long until a call was accepted
    Friction(StatsArgs),
}

/// Which runs are counted.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Only runs that started within this duration, such as 7d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
}

/// `feedback`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("fault").required(true))]
pub(crate) struct FeedbackArgs {
    /// The call: `latest:1`, `r-7Q3K:notes`
    #[arg(value_name = "RUN:STEP")]
    pub(crate) call: String,
    /// It should have been allowed
    #[arg(long, group = "fault")]
    pub(crate) wrong_denial: bool,
    /// It should have been denied
    #[arg(long, group = "fault")]
    pub(crate) wrong_allow: bool,
    /// Why
    #[arg(short = 'm', long = "message", value_name = "WHY")]
    pub(crate) message: Option<String>,
}
