//! The command line, as typed.

mod approvals;
mod audit;
mod changes;
mod chat;
mod exec_fast_path;
mod exit_codes;
mod hook;
mod mcp;
mod plan;
mod sandbox;
mod session;
mod stats;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use approvals::{
    AnswerArgs, ApprovalsCommand, ApprovalsListArgs, GrantsCommand, QuestionArg, ResumeArgs,
    ScopeArg,
};
pub(crate) use audit::{
    AuditAnchorArgs, AuditCommand, AuditEraseArgs, AuditExportArgs, ExportFormat, InitArgs,
    VerifyArgs,
};
pub(crate) use changes::{Apply, Changes, OneRun, Undo};
pub(crate) use chat::ChatArgs;
use exit_codes::EXIT_CODES;
pub(crate) use hook::{ConnectArgs, ConnectLevel, HookArgs};
pub(crate) use mcp::{McpCommand, McpServeArgs};
pub(crate) use plan::{PlanCheckArgs, PlanCommand, PlanPreflightArgs};
pub(crate) use sandbox::{SandboxArgs, SandboxBackendArg, SandboxNetworkArg};
pub(crate) use session::{SessionArg, SessionCommand, SessionId, SessionStartArgs};
pub(crate) use stats::{FeedbackArgs, StatsArgs, StatsCommand};

/// Carries out the tool calls of agents and plans under a strict policy.
///
/// Everything that a policy does not allow is denied. Commands run confined by the operating
/// system. Everything that happens is written down, can be verified, and can be replayed without
/// touching the world.
#[derive(Debug, Parser)]
#[command(
    name = "capsule",
    version,
    max_term_width = 100,
    propagate_version = false,
    after_help = EXIT_CODES
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, before or after its name.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
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
    Init(InitArgs),
    /// Run a plan under a policy
    Run(RunArgs),
    /// Make one tool call under a policy, recorded as a run
    Call(CallArgs),
    /// Run one command under a policy; streams its output and ends with its status
    Exec(ExecArgs),
    /// Talk to a model, or give it a task; it works through tools, under a policy
    Chat(ChatArgs),
    /// Run a whole agent confined to this directory: any program, else `capsule chat`
    Sandbox(SandboxArgs),
    /// Put the policy in front of another agent: write a hook into its settings
    Connect(ConnectArgs),
    /// Answer the hook of an agent: judge a call that it is about to make
    Hook(HookArgs),
    /// Serve the tools of a policy to an MCP client
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Serve a recorded run again; executes nothing
    Replay(ReplayArgs),
    /// Show what a run did
    Report(ReportArgs),
    /// List runs, the newest first
    ListRuns(ListRunsArgs),
    /// Show a run, or one of its calls
    ShowRun(ShowRunArgs),
    /// Show what a run changed, or what waits in the workspace: staged, or in no commit
    Changes(Changes),
    /// Make what a run changed in its staged workspace in the workspace itself
    Apply(Apply),
    /// Drop what a run changed in its staged workspace
    Discard(OneRun),
    /// Bring back what stood in the workspace before a run, or one of its calls, changed it
    Undo(Undo),
    /// Show questions that wait for an answer, and answer them
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Show what people allowed beyond a call, and take it back
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Start, list and end sessions, in which calls see what earlier ones left
    #[command(subcommand)]
    Session(SessionCommand),
    /// Go on with a run that was suspended for an answer
    Resume(ResumeArgs),
    /// Count refusals over the runs of the store: patterns, never contents
    #[command(subcommand)]
    Stats(StatsCommand),
    /// Say that a decision was wrong; changes nothing, and is counted
    Feedback(FeedbackArgs),
    /// Check that the record is what was written
    Verify(VerifyArgs),
    /// Sign the record, tell others of it, write it out
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check, explain, show and compare policies
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Check plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Mask what looks like a secret: standard input to standard output
    Redact,
    /// Check this machine: sandbox layers, kernel, store, key
    Doctor,
    /// Say what a code means, what causes it and what to do
    ExplainCode(ExplainCodeArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Which policy.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArg {
    /// The policy: a file, or builtin:NAME [default: capsule/policy.yaml in the configuration folder]
    #[arg(long, value_name = "POLICY", env = "CAPSULE_POLICY")]
    pub(crate) policy: Option<String>,
    /// The profile, in place of the policy's own
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
}

/// What a person says about the layers that a run meets.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LayerArg {
    /// Accept that the workspace's layer was removed or weakened, for this run
    #[arg(long)]
    pub(crate) accept_layer: bool,
}

/// Whether somebody is asked.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct UnattendedArg {
    /// Never prompt: calls that need an approval do not run
    #[arg(long)]
    pub(crate) unattended: bool,
}

/// `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plan
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
    #[command(flatten)]
    pub(crate) ask: UnattendedArg,
    /// Also write the sealed run into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// An input of the plan; may be given several times
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(crate) inputs: Vec<String>,
    /// Evaluate the policy only: runs nothing and records nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
    #[command(flatten)]
    pub(crate) ask: UnattendedArg,
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The arguments as JSON, for fs.edit also as `<edit path="..">`; `-` reads standard input
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
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
    #[command(flatten)]
    pub(crate) ask: UnattendedArg,
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// The folder to run in, relative to the workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// How long it may take
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Give the program what standard input holds; without it, its standard input is empty
    #[arg(long)]
    pub(crate) stdin: bool,
    /// The one word behind `--` is a command line, whatever it looks like
    #[arg(long)]
    pub(crate) command: bool,
    /// Ask no person; at the end apply what changed, unless a person has to say yes, and drop the rest
    #[arg(long)]
    pub(crate) agent: bool,
    /// The program and its arguments, or a command line as one word (`'ls | wc -l'`)
    #[arg(last = true, required = true, value_name = "ARGV")]
    pub(crate) words: Vec<String>,
}

/// `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    /// Write the replay's own record into a store of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare with this plan in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Continue after a difference, as long as the two runs can be aligned
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Console,
    /// For programs
    Json,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run: its id, the beginning of one, or `latest`
    pub(crate) run: String,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "console")]
    pub(crate) format: ReportFormat,
}

/// `list-runs`.
#[derive(Debug, Args)]
pub(crate) struct ListRunsArgs {
    /// Only runs that started within this duration, such as 1d
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
    /// Only so many, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = LISTED)]
    pub(crate) limit: u64,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// How many runs are listed where nobody says how many: as many as somebody reads.
const LISTED: u64 = 100;

/// `show-run`.
#[derive(Debug, Args)]
pub(crate) struct ShowRunArgs {
    /// The run, or one of its calls: `latest`, `r-7Q3K`, `r-7Q3K:notes`, `r-7Q3K:5`
    #[arg(value_name = "RUN[:STEP]")]
    pub(crate) run: String,
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a policy: its syntax, its examples, and what it probably does not mean
    Check(PolicyCheckArgs),
    /// Decide a policy's examples and tests, and compare
    Test(PolicyTestArgs),
    /// Say what a policy decides on a call, and why
    Explain(ExplainArgs),
    /// Show a policy: its text, or every rule that holds
    Show(PolicyShowArgs),
    /// Compare two policies: their rules, and what they decide on calls
    Diff(PolicyDiffArgs),
    /// Propose rules for what recorded runs were refused or asked about, as a patch to be read
    Learn(PolicyLearnArgs),
    /// Print the policy language as JSON Schema
    Schema,
    /// Lay a policy out: indentation and empty lines, nothing else
    Fmt(PolicyFmtArgs),
}

/// `policy check`.
#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// The policy, in place of `--policy`
    #[arg(value_name = "POLICY")]
    pub(crate) file: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
}

impl PolicyCheckArgs {
    /// Which policy is meant.
    pub(crate) fn named(&self) -> PolicyArg {
        let PolicyArg { policy, profile } = self.policy.clone();
        PolicyArg { policy: self.file.clone().or(policy), profile }
    }
}

/// `policy test`.
#[derive(Debug, Args)]
pub(crate) struct PolicyTestArgs {
    #[command(flatten)]
    pub(crate) named: PolicyCheckArgs,
    /// Also say which rules decide an example or a test
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Also change every rule, one at a time, and demand that an example or test notices
    #[arg(long)]
    pub(crate) mutate: bool,
}

/// `policy fmt`.
#[derive(Debug, Args)]
pub(crate) struct PolicyFmtArgs {
    /// Only say whether it is laid out; the exit status is 1 if it is not
    #[arg(long)]
    pub(crate) check: bool,
    /// The policy; `-` lays out standard input
    pub(crate) file: PathBuf,
}

/// `policy diff`.
#[derive(Debug, Args)]
pub(crate) struct PolicyDiffArgs {
    /// The one policy: a file, or builtin:NAME
    #[arg(value_name = "A")]
    pub(crate) before: String,
    /// The other one
    #[arg(value_name = "B")]
    pub(crate) after: String,
    /// Calls to decide, one {"id", "tool", "args"} a line; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) batch: Option<PathBuf>,
    /// Decide the calls of these recorded runs
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub(crate) runs: Vec<String>,
    /// The profile, in place of the policies' own
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
}

/// `policy learn`.
#[derive(Debug, Args)]
pub(crate) struct PolicyLearnArgs {
    /// The runs, or single calls of them: `latest`, `r-7Q3K`, `r-7Q3K:5`
    #[arg(value_name = "RUN[:CALL]", required = true)]
    pub(crate) runs: Vec<String>,
    /// The policy to patch [default: the one that judged the runs]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// The profile, in place of the policy's own
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Write the patch into a file that is not there yet, in place of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also make the change in the policy file itself, unless a run goes on under it
    #[arg(long, conflicts_with = "output")]
    pub(crate) write: bool,
}

/// `policy show`.
#[derive(Debug, Args)]
pub(crate) struct PolicyShowArgs {
    /// The policy, in place of `--policy`
    #[arg(value_name = "POLICY")]
    pub(crate) file: Option<String>,
    /// The policy: a file, or builtin:NAME [default: capsule/policy.yaml in the configuration folder]
    #[arg(long, value_name = "POLICY", env = "CAPSULE_POLICY")]
    pub(crate) policy: Option<String>,
    /// Show every rule that holds, those of the base policy among them, each with its place
    #[arg(long)]
    pub(crate) resolved: bool,
    /// The profile, in place of the policy's own
    #[arg(long, value_name = "PROFILE", requires = "resolved")]
    pub(crate) profile: Option<String>,
}

/// `policy explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A logged call: RUN:STEP
    #[arg(value_name = "RUN:STEP", conflicts_with_all = ["tool", "batch"])]
    pub(crate) logged: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
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

/// `explain-code`.
#[derive(Debug, Args)]
pub(crate) struct ExplainCodeArgs {
    /// The code, such as path.outside-workspace; all of them if left out
    pub(crate) slug: Option<String>,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
