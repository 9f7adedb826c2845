//! The arguments of what is done about questions that wait, and about grants.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::UnattendedArg;

/// `approvals`.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the questions that wait, the oldest first
    List(ApprovalsListArgs),
    /// Show all that a question says
    Show(QuestionArg),
    /// Answer a question; `capsule resume` resumes its run
    Answer(AnswerArgs),
}

/// `approvals list`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsListArgs {
    /// Also those that were answered, have expired, or whose runs went on
    #[arg(long)]
    pub(crate) all: bool,
}

/// Which question.
#[derive(Debug, Args)]
pub(crate) struct QuestionArg {
    /// The question: `r-7Q3K:3`, or its run
    #[arg(value_name = "RUN[:CALL]")]
    pub(crate) id: String,
}

/// `approvals answer`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("answer").required(true))]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) question: QuestionArg,
    /// Allow it: this call, or calls like it for as long
    #[arg(long, group = "answer", value_name = "SCOPE")]
    pub(crate) allow: Option<ScopeArg>,
    /// Deny it
    #[arg(long, group = "answer")]
    pub(crate) deny: bool,
    /// Deny it, and end the run
    #[arg(long, group = "answer")]
    pub(crate) stop: bool,
    /// Why, for whoever asked, word by word
    #[arg(short = 'm', long = "message", value_name = "WHY", conflicts_with = "allow")]
    pub(crate) message: Option<String>,
}

/// How far an approval goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// This call
    Once,
    /// Calls like it, until the run ends
    Task,
    /// Calls like it, until the session ends
    Session,
}

/// `grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List the active grants
    List,
    /// Take one back; it stops the next call
    Revoke(GrantArg),
    /// Take all back
    Clear,
}

/// Which grant.
#[derive(Debug, Args)]
pub(crate) struct GrantArg {
    /// Its name, as `grants list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The suspended run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) ask: UnattendedArg,
    /// Also write the sealed run into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
