//! The arguments of `plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::PolicyArg;

/// `plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Check a plan
    Check(PlanCheckArgs),
    /// Tell what a plan will need, and what the policy says to it; nothing runs
    Preflight(PlanPreflightArgs),
    /// Print the plan language as JSON Schema
    Schema,
}

/// `plan check`.
#[derive(Debug, Args)]
pub(crate) struct PlanCheckArgs {
    /// The plan
    pub(crate) plan: PathBuf,
}

/// `plan preflight`.
#[derive(Debug, Args)]
pub(crate) struct PlanPreflightArgs {
    /// The plan
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// An input of the plan; may be given several times
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(crate) inputs: Vec<String>,
}
