//! A policy, read and bound to a workspace.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use regex::bytes::Regex;
use serde_json::Value;

use crate::capability::{Capabilities, Capability};
use crate::confinement::{Network, ProcessLimits, Tier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::digest::Digest;
use crate::net;
use crate::path::WorkspacePath;
use crate::policy::patterns::{ArgvPattern, PathPattern};
use crate::policy::profile::Profile;
use crate::tool::ToolName;
use crate::url::UrlPattern;

/// A policy that is bound to a workspace and can decide.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it calls itself; the file's name where it does not.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The folder it names for a workspace, relative to its own place.
    pub root: Option<String>,
    /// Its invariants: the user's first, then those that are built in.
    pub never: Vec<Never>,
    /// What the base policy denies besides; nothing lifts one of these yet.
    pub base_denials: Vec<Never>,
    /// The tools that may be called at all.
    pub tools: BTreeMap<ToolName, ToolRule>,
    /// What decides where a rule has no word of its own.
    pub profile: Profile,
    /// What commands are confined to.
    pub sandbox: SandboxRule,
    /// What is kept.
    pub audit: AuditRule,
    /// The digest of the text, together with that of the base policy.
    pub(crate) digest: Digest,
}

/// Where a rule stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// File, line and column as they are shown.
    pub at: String,
    /// The bytes of the text.
    pub span: Range<usize>,
}

/// An invariant.
#[derive(Clone, Debug)]
pub struct Never {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub source: Source,
    /// The capabilities that it forbids on its paths.
    pub capabilities: Capabilities,
    /// The paths that it protects.
    pub paths: Vec<PathPattern>,
    /// Carve-outs from its own paths.
    pub except: Vec<PathPattern>,
    /// The tool that it is about.
    pub tool: Option<ToolName>,
    /// The command lines that it forbids.
    pub argv: Vec<ArgvPattern>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead.
    pub suggest: Option<String>,
}

impl Never {
    /// The rule that protects the runtime's own files, wherever they lie.
    pub(crate) const OWN_FILES: &str = "no-own-files";

    /// Whether the rule protects a path.
    #[must_use]
    pub fn covers(&self, path: &WorkspacePath) -> bool {
        self.paths.iter().any(|pattern| pattern.covers(path))
            && !self.except.iter().any(|pattern| pattern.covers(path))
    }
}

/// What a policy says about one tool.
#[derive(Clone, Debug)]
pub struct ToolRule {
    /// Where it stands.
    pub source: Source,
    /// Its own word.
    pub decision: Option<Verdict>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
    /// How much one run may use it.
    pub quota: Quota,
    /// How long a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// Its constraints.
    pub constraint: Constraint,
    /// What its author says it decides.
    pub examples: Vec<Example>,
}

/// The constraints of a tool, by what it works on.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// Paths.
    Files(FileRule),
    /// URLs.
    Fetch(FetchRule),
    /// Programs.
    Exec(ExecRule),
    /// What a run changed in its staged workspace.
    Apply,
}

/// How much one run may use a tool. What is not named is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Calls.
    pub calls: Option<u64>,
    /// Bytes read, written or fetched.
    pub bytes: Option<u64>,
    /// Time, in milliseconds.
    pub wall_ms: Option<u64>,
    /// Calls to one host.
    pub per_host: Option<u64>,
}

/// Constraints on paths.
#[derive(Clone, Debug)]
pub struct FileRule {
    /// The paths that are open; a folder above one is open for looking.
    pub allow: Vec<PathPattern>,
    /// The paths that are not.
    pub deny: Vec<PathPattern>,
    /// Whether names that begin with a dot are open.
    pub hidden: bool,
    /// Whether a path may go through links that stay inside.
    pub links: bool,
    /// The most bytes of a call without a limit.
    pub bytes: u64,
    /// The most bytes of any call.
    pub bytes_max: u64,
    /// The most results of a call without a limit.
    pub results: u64,
    /// The most results of any call.
    pub results_max: u64,
    /// Rules for some of the paths, with a word of their own.
    pub rules: Vec<PathRule>,
}

/// A rule for some paths.
#[derive(Clone, Debug)]
pub struct PathRule {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub source: Source,
    /// Its paths.
    pub paths: Vec<PathPattern>,
    /// Its word.
    pub decision: Option<Verdict>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
}

/// Constraints on URLs.
#[derive(Clone, Debug)]
pub struct FetchRule {
    /// The addresses that are open.
    pub allow: Vec<UrlRule>,
    /// The addresses that are not.
    pub deny: Vec<UrlRule>,
    /// The private addresses that are open nevertheless.
    pub private: Vec<net::Range>,
    /// How many redirects are followed.
    pub redirects: u64,
    /// Whether a redirect may lead to another origin that the policy allows.
    pub cross_origin: Verdict,
    /// The most bytes over the wire.
    pub bytes_max: u64,
    /// The most bytes after decompression.
    pub inflated_max: u64,
}

/// A rule for some addresses.
#[derive(Clone, Debug)]
pub struct UrlRule {
    /// Its name; its place in the list where it has none.
    pub id: String,
    /// Where it stands.
    pub source: Source,
    /// Its addresses.
    pub pattern: UrlPattern,
    /// Its word.
    pub decision: Option<Verdict>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
}

/// Constraints on programs.
#[derive(Clone, Debug)]
pub struct ExecRule {
    /// The programs that may run.
    pub programs: Vec<ProgramRule>,
    /// Words that no command line may hold.
    pub denied_tokens: Vec<TokenPattern>,
    /// What programs find in their environment.
    pub env: Environment,
    /// The bounds of a command.
    pub limits: ProcessLimits,
    /// The longest time that a call may ask for, in milliseconds.
    pub timeout_max_ms: u64,
}

/// A word that no command line may hold.
#[derive(Clone, Debug)]
pub struct TokenPattern {
    /// Where it stands.
    pub source: Source,
    /// The word, or what words it is.
    pub token: Token,
}

/// One word, or many.
#[derive(Clone, Debug)]
pub enum Token {
    /// This word.
    Word(String),
    /// The words that this expression matches as a whole.
    Regex(Regex),
}

impl Token {
    /// Whether it is this word.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        match self {
            Self::Word(own) => own == word,
            Self::Regex(regex) => regex.is_match(word.as_bytes()),
        }
    }
}

/// What programs find in their environment besides what every sandbox sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables that are passed on from the user's own.
    pub pass: Vec<String>,
    /// Variables with their values.
    pub set: Vec<(String, String)>,
}

impl ToolRule {
    /// Every pattern of what a command may change by this rule.
    #[must_use]
    pub fn writes(&self) -> Vec<&PathPattern> {
        let Constraint::Exec(exec) = &self.constraint else { return Vec::new() };
        exec.programs.iter().flat_map(|own| own.command.writes()).collect()
    }
}

impl CommandRule {
    fn writes(&self) -> Vec<&PathPattern> {
        let inner = self.subcommands.iter().flat_map(|(_, inner)| inner.writes());
        self.writes.iter().flatten().chain(inner).collect()
    }

    /// Every pattern of what it, or a subcommand of it, may see and change.
    pub(crate) fn paths_mut(&mut self) -> Vec<&mut PathPattern> {
        let inner = self.subcommands.iter_mut().flat_map(|(_, inner)| inner.paths_mut());
        self.reads.iter_mut().chain(&mut self.writes).flatten().chain(inner).collect()
    }
}

/// What a policy says about a program.
#[derive(Clone, Debug)]
pub struct ProgramRule {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub source: Source,
    /// Where the program must be.
    pub path: Option<String>,
    /// Its word, flags and subcommands.
    pub command: CommandRule,
    /// The options before a subcommand.
    pub global_flags: FlagRule,
    /// The bounds of the program, where they differ from the tool's.
    pub limits: Option<ProcessLimits>,
    /// The longest time that a call may ask for, in milliseconds, where it differs.
    pub timeout_max_ms: Option<u64>,
}

/// What a policy says about a command or subcommand.
#[derive(Clone, Debug, Default)]
pub struct CommandRule {
    /// Where it stands.
    pub source: Source,
    /// Its word.
    pub decision: Option<Verdict>,
    /// Its options.
    pub flags: FlagRule,
    /// Its subcommands by name; `*` is any other.
    pub subcommands: Vec<(String, CommandRule)>,
    /// What it may see of the workspace, where that differs from what stands above it.
    pub reads: Option<Vec<PathPattern>>,
    /// What it may change, where that differs from what stands above it.
    pub writes: Option<Vec<PathPattern>>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
}

/// Which options may be used.
#[derive(Clone, Debug, Default)]
pub struct FlagRule {
    /// Where it stands.
    pub source: Source,
    /// Only these, if any are named.
    pub allow: Option<Vec<String>>,
    /// None of these.
    pub deny: Vec<(String, Source)>,
}

/// What commands are confined to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxRule {
    /// The weakest sandbox that will do.
    pub floor: Tier,
    /// What commands may reach.
    pub network: Network,
    /// What commands may do to the workspace at most.
    pub workspace: WorkspaceAccess,
    /// Whether programs whose rules do not say what they may change may change everything that no
    /// invariant protects (`level: workspace-write`).
    pub writes: bool,
}

/// What is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditRule {
    /// Whether payloads are kept or only their digests.
    pub payloads: Payloads,
}

/// Whether payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payloads {
    /// They are; the run can be replayed.
    #[default]
    Full,
    /// Only their digests are; the run cannot be replayed.
    Digest,
}

/// What a policy's author says that a rule decides.
#[derive(Clone, Debug)]
pub struct Example {
    /// Where it stands.
    pub source: Source,
    /// What is decided.
    pub expect: Expected,
    /// The arguments of the call.
    pub args: Value,
    /// The rule that it is an example of.
    pub rule: String,
}

/// What an example says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The call is decided so.
    Verdict(Verdict),
    /// The rule is not the one that decides.
    NoMatch,
}

impl Policy {
    /// The digest of everything that decides: the policy's text and the base policy's.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What the policy says about a tool.
    #[must_use]
    pub fn tool(&self, tool: &ToolName) -> Option<&ToolRule> {
        self.tools.get(tool)
    }

    /// The constraints that the policy puts on paths for a tool.
    #[must_use]
    pub fn files(&self, tool: &ToolName) -> Option<&FileRule> {
        match self.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Files(rule)) => Some(rule),
            _ => None,
        }
    }

    /// Whether an invariant keeps a path from being seen, for walks from the root down.
    #[must_use]
    pub fn conceals(&self, path: &WorkspacePath) -> bool {
        let look = Capabilities::of(Capability::FsMeta).with(Capability::FsRead);
        let Some(name) = path.name() else { return false };
        self.never.iter().any(|never| {
            never.capabilities.intersects(look)
                && never.paths.iter().any(|pattern| pattern.meets(path, name))
                && !never.except.iter().any(|pattern| pattern.covers(path))
        })
    }

    /// The invariant that forbids a power on a path, if there is one.
    #[must_use]
    pub fn forbids(&self, path: &WorkspacePath, power: Capabilities) -> Option<&Never> {
        let mut rules = self.never.iter().chain(&self.base_denials);
        rules.find(|rule| rule.capabilities.intersects(power) && rule.covers(path))
    }
}
