//! The command line, as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Carries out the tool calls of agents and plans under a strict policy.
///
/// Everything that a policy does not allow is denied. Commands run confined by the operating
/// system. Everything that happens is written down, can be verified, and can be replayed without
/// touching the world.
#[derive(Debug, Parser)]
#[command(name = "capsule", version, max_term_width = 100, propagate_version = false)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, before or after its name.
#[derive(Clone, Debug, Args)]
pub(crate) struct Globals {
    /// The folder that tools work in [default: the policy's, else the current folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// No boxes and no spinner, in the order in which a screen reader wants it
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// The store of events [default: capsule/store.db in the data folder]
    #[arg(long, global = true, value_name = "PATH", env = "CAPSULE_STORE")]
    pub(crate) store: Option<PathBuf>,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that has them
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a starter policy and editor schemas into .capsule/
    Init,
    /// Run a plan under a policy
    Run(Run),
    /// Make one tool call under a policy, recorded as a run
    Call(Call),
    /// Run one command under a policy; streams its output and ends with its status
    Exec(Exec),
    /// Serve a recorded run again; executes nothing
    Replay(Replay),
    /// Show what a run did
    Report(Report),
    /// List runs, the newest first
    ListRuns(ListRuns),
    /// Show a run, or one of its calls
    ShowRun(ShowRun),
    /// Show what a run changed in its staged workspace
    Changes(Changes),
    /// Make what a run changed in its staged workspace in the workspace itself
    Apply(OneRun),
    /// Drop what a run changed in its staged workspace
    Discard(OneRun),
    /// Check that the record is what was written
    Verify(Verify),
    /// Check and explain policies
    #[command(subcommand)]
    Policy(Policy),
    /// Check plans
    #[command(subcommand)]
    Plan(Plan),
    /// Check this machine: sandbox layers, kernel, store
    Doctor,
    /// Say what a code means, what causes it and what to do
    ExplainCode(ExplainCode),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page
    Man,
}

/// Which policy.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArg {
    /// The policy: a file, or builtin:NAME
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: String,
}

/// `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The plan
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// Also write the sealed run into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// An input of the plan; may be given several times
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(crate) inputs: Vec<String>,
    /// Only decide: nothing runs and nothing is recorded
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `call`.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// The arguments as JSON; `-` reads them from standard input
    #[arg(long, value_name = "JSON", conflicts_with = "words", allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// Also write the sealed run into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// A command line for shell.run, or NAME=VALUE for other tools
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) words: Vec<String>,
}

/// `exec`.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    /// The folder to run in, relative to the workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// How long it may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "ARGV")]
    pub(crate) words: Vec<String>,
}

/// `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    /// Write the replay's own record into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare with this plan in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Go on behind a difference, as long as the two runs can be laid side by side
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Console,
    /// For programs
    Json,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "console")]
    pub(crate) format: Format,
}

/// `list-runs`.
#[derive(Debug, Args)]
pub(crate) struct ListRuns {
    /// Only runs that began within this time, such as 1d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// Only runs with a denied call
    #[arg(long)]
    pub(crate) denied: bool,
    /// Only runs that called this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only runs with a call that names this path, or a command that changed it
    #[arg(long, value_name = "PATH")]
    pub(crate) touched: Option<String>,
}

/// `show-run`.
#[derive(Debug, Args)]
pub(crate) struct ShowRun {
    /// The run, or one of its calls: `latest`, `r-7Q3K`, `r-7Q3K:notes`, `r-7Q3K:5`
    #[arg(value_name = "RUN[:STEP]")]
    pub(crate) run: String,
}

/// `changes`.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    /// Show the lines that differ
    #[arg(long)]
    pub(crate) diff: bool,
}

/// `apply`, `discard`.
#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
}

/// `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A run; the whole store is checked in any case
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Check a policy: its syntax, its examples, and what it probably does not mean
    Check(PolicyArg),
    /// Say what a policy decides on a call, and why
    Explain(Explain),
}

/// `policy explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A logged call: RUN:STEP
    #[arg(value_name = "RUN:STEP", conflicts_with_all = ["tool", "batch"])]
    pub(crate) logged: Option<String>,
    /// The policy: a file, or builtin:NAME
    #[arg(long, value_name = "POLICY", required_unless_present = "logged")]
    pub(crate) policy: Option<String>,
    /// The tool
    #[arg(long, value_name = "TOOL", default_value = "shell.run")]
    pub(crate) tool: String,
    /// The arguments as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "words")]
    pub(crate) args: Option<String>,
    /// Calls to decide, one {"id", "tool", "args"} a line; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    pub(crate) batch: Option<PathBuf>,
    /// A command line for shell.run, or NAME=VALUE for other tools
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) words: Vec<String>,
}

/// `plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Check a plan
    Check(PlanCheck),
    /// Print the plan language as JSON Schema
    Schema,
}

/// `plan check`.
#[derive(Debug, Args)]
pub(crate) struct PlanCheck {
    /// The plan
    pub(crate) plan: PathBuf,
}

/// `explain-code`.
#[derive(Debug, Args)]
pub(crate) struct ExplainCode {
    /// The code, such as path.outside-workspace; all of them if left out
    pub(crate) slug: Option<String>,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
