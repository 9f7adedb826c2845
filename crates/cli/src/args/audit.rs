//! What commands about the record take: signing it, telling others of it, checking it.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

/// `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The use of the policy [default: a starter that reads, and writes documents]
    #[arg(long, value_name = "PRESET", value_parser = ["developer", "python", "node", "rust", "readonly"])]
    pub(crate) preset: Option<String>,
    /// What the record is called in what is signed, such as `acme/laptop-3` [default: by its key]
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: Option<String>,
}

/// `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A run, or the file of a run that was written out; the whole store is checked in any case
    #[arg(value_name = "RUN|FILE")]
    pub(crate) run: Option<String>,
    /// A file of public lines: everything signed must be by one of these keys, and something must be
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// A file with checkpoints from elsewhere, `-` for standard input; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Vec<PathBuf>,
}

/// `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Sign the record as it is now, and print the checkpoint
    Checkpoint,
    /// Sign the record as it is now, and add the checkpoint to files elsewhere
    Anchor(AuditAnchorArgs),
    /// Erase what runs read and wrote; their events and hashes stay
    Erase(AuditEraseArgs),
    /// Print every event of the record, one a line, or copy the whole store into one file
    Export(AuditExportArgs),
}

/// `audit anchor`.
#[derive(Debug, Args)]
pub(crate) struct AuditAnchorArgs {
    /// Files to add it to; they are made where they are not there
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// `audit erase`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["runs", "due"]).required(true))]
pub(crate) struct AuditEraseArgs {
    /// Runs; nothing of them can be replayed, undone or read again
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// All runs whose policy says that it is time (`audit.erase_payloads_after`)
    #[arg(long, conflicts_with = "runs")]
    pub(crate) due: bool,
    /// Only say what would be erased
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `audit export`.
#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    /// The form
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    pub(crate) format: ExportFormat,
    /// Write the whole store into one new file instead, which is complete by itself: the way to back it up
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) out: Option<PathBuf>,
}

/// How the record is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object a line: the leaf, its hash, the event, and its payloads
    Jsonl,
}
