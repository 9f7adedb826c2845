//! What a run changed: looking at it, applying it, dropping it, undoing it.

use clap::{ArgGroup, Args};

/// `changes`.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// The run: its id, the beginning of one, or `latest`; what waits in the workspace if left out
    pub(crate) run: Option<String>,
    /// Show the lines that differ
    #[arg(long, requires = "run")]
    pub(crate) diff: bool,
}

/// `apply`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("runs").args(["run", "all"]).required(true))]
pub(crate) struct Apply {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: Option<String>,
    /// Apply what waits of every run and session of this workspace, the oldest first
    #[arg(long, conflicts_with_all = ["run", "with", "without"])]
    pub(crate) all: bool,
    /// Apply this path too, and what is beneath it, though programs of this machine may take orders from it
    #[arg(long, value_name = "PATH")]
    pub(crate) with: Vec<String>,
    /// Leave this path out, with what is beneath it, and drop it
    #[arg(long, value_name = "PATH")]
    pub(crate) without: Vec<String>,
}

/// `discard`.
#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
}

/// `undo`.
#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The run, or one of its calls: `latest`, `r-7Q3K`, `r-7Q3K:notes`, `r-7Q3K:5`
    #[arg(value_name = "RUN[:STEP]")]
    pub(crate) run: String,
    /// Only show what would be brought back
    #[arg(long)]
    pub(crate) dry_run: bool,
}
