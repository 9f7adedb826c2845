//! A policy, read and bound to a workspace.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Deref, Range};

use crate::action::WriteMode;
use crate::approval::GrantPolicy;
use crate::capability::{Capabilities, Capability};
use crate::confinement::{ChangeLimits, MountPoint, NetworkAccess, SandboxTier, WorkspaceAccess};
use crate::decision::Verdict;
use crate::policy::argv_pattern::ArgvPattern;
use crate::policy::audit::AuditRule;
use crate::policy::budget::Budgets;
use crate::policy::commands::ExecRule;
use crate::policy::expectation::{PolicyExample, PolicyTest};
use crate::policy::git_and_tests::{GitRule, TestRule};
use crate::policy::layer::LayerKind;
use crate::policy::path_pattern::{NameIndex, PathPattern};
use crate::policy::profile::Profile;
use crate::policy::risk_policy::RiskPolicy;
use crate::policy::secrets::{RedactionRule, SecretRule};
use crate::policy::source_location::SourceLocation;
use crate::tool::ToolName;
use capsule_base::digest::Digest;
use capsule_base::net;
use capsule_base::path::WorkspacePath;
use capsule_base::spelling::Spelling;
use capsule_base::url::{HttpUrl, UrlPattern};
use capsule_command::specs::Effects;

/// What a policy says: plain data, which decides nothing before it is bound.
#[derive(Clone, Debug)]
pub struct PolicyRules {
    /// What it calls itself; the file's name where it does not.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The folder it names for a workspace, relative to its own place.
    pub root: Option<String>,
    /// Its invariants: the user's first, then those that are built in.
    pub hard_denies: Vec<HardDenyRule>,
    /// What the base policy denies besides.
    pub base_denials: Vec<HardDenyRule>,
    /// The paths that the base policy has a person asked about before they are changed.
    pub base_questions: Vec<HardDenyRule>,
    /// The rules of the base policy that it drops.
    pub dropped_rules: Vec<DroppedRule>,
    /// The tools that may be called at all.
    pub tools: BTreeMap<ToolName, ToolRule>,
    /// What decides where a rule has no word of its own, and the ceiling over those that have.
    pub profile: Profile,
    /// The profiles that it defines.
    pub profiles: Vec<Profile>,
    /// How much a call may cost.
    pub risk_policy: RiskPolicy,
    /// How much one run may do in all.
    pub budgets: Budgets,
    /// What a prompt may offer beyond the call that it is about.
    pub grants: GrantPolicy,
    /// Whether a plan is asked about as a whole before it begins.
    pub approves_plans: bool,
    /// What its author says that it decides, under which profiles.
    pub tests: Vec<PolicyTest>,
    /// What commands are confined to.
    pub sandbox: SandboxRule,
    /// The hosts that commands reach, where they have a network.
    pub hosts: HostRules,
    /// The toolchains that commands see, by name or path, and where each is named.
    pub toolchains: Vec<(String, Range<usize>)>,
    /// What is masked, and what becomes of masks.
    pub redaction: RedactionRule,
    /// The values that are sent without being known.
    pub secrets: Vec<SecretRule>,
    /// What is kept.
    pub audit: AuditRule,
}

/// A policy that is bound to a workspace and can decide. Only binding makes one.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it says, with the rules of the base policy.
    pub(super) rules: PolicyRules,
    /// What tightens it.
    pub(super) layers: Vec<PolicyLayer>,
    /// The real paths of the toolchains that commands see on this machine, or saw in a recorded run.
    pub(super) program_directories: Vec<String>,
    /// The digest of all texts that decide.
    pub(super) digest: Digest,
    /// Whether it may drop rules of the base policy, as one that lies outside of the workspace may.
    pub(super) may_drop_base_rules: bool,
}

impl Deref for Policy {
    type Target = PolicyRules;

    fn deref(&self) -> &PolicyRules {
        &self.rules
    }
}

/// A layer that is bound to a workspace. Only binding makes one: its policy lacks the rules of the base policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PolicyLayer {
    /// Whose it is.
    pub kind: LayerKind,
    /// How its place is shown.
    pub location: String,
    /// What it judges by.
    pub policy: Arc<Policy>,
}

/// A rule of the base policy that a policy drops.
#[derive(Clone, Debug)]
pub struct DroppedRule {
    /// The rule's name.
    pub id: String,
    /// Where it is dropped.
    pub source: SourceLocation,
    /// Why.
    pub because: String,
    /// Whether it stands in the policy that is extended.
    pub inherited: bool,
}

/// An invariant.
#[derive(Clone, Debug)]
pub struct HardDenyRule {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub source: SourceLocation,
    /// The capabilities that it forbids on its paths.
    pub capabilities: Capabilities,
    /// The paths that it protects.
    pub paths: Vec<PathPattern>,
    /// Which of them could protect a path, by the names in it.
    pub(super) index: NameIndex,
    /// Carve-outs from its own paths.
    pub except: Vec<PathPattern>,
    /// Whether it is about paths that are not there yet, and no others.
    pub new: bool,
    /// The tool that it is about.
    pub tool: Option<ToolName>,
    /// The command lines that it forbids.
    pub argv: Vec<ArgvPattern>,
    /// What no command may do; with `into`, what no program may be fed with that does this.
    pub effects: Effects,
    /// What a program does that may not be fed so.
    pub into: Effects,
    /// Why.
    pub because: Option<String>,
    /// What to do instead.
    pub suggest: Option<String>,
}

impl HardDenyRule {
    /// The rule that protects the runtime's own files, wherever they lie.
    pub(crate) const RUNTIME_FILES: &str = "no-own-files";

    /// A rule of that name that forbids nothing yet. Its paths count once it is bound.
    #[must_use]
    pub fn named(id: String, source: SourceLocation) -> Self {
        Self {
            id,
            source,
            capabilities: Capabilities::default(),
            paths: Vec::new(),
            index: NameIndex::default(),
            except: Vec::new(),
            new: false,
            tool: None,
            argv: Vec::new(),
            effects: Effects::NONE,
            into: Effects::NONE,
            because: None,
            suggest: None,
        }
    }

    /// Whether the rule protects a path.
    #[must_use]
    pub fn covers(&self, path: &WorkspacePath) -> bool {
        self.index.any(path, |at| self.paths.get(at).is_some_and(|pattern| pattern.covers(path)))
            && !self.except.iter().any(|pattern| pattern.surely_covers(path))
    }

    /// The topmost of a path and the folders above it that the rule protects.
    #[must_use]
    pub fn topmost(&self, path: &WorkspacePath) -> Option<WorkspacePath> {
        // Most paths are none of its own.
        self.covers(path)
            .then(|| path.ancestors().filter(|ancestor| self.covers(ancestor)).last())?
    }

    /// Whether a pattern for names, or a name in another spelling of its letters, could mean one that
    /// the rule protects.
    #[must_use]
    pub fn could_match(&self, word: &str) -> bool {
        let lower = word.to_ascii_lowercase();
        let spelled = WorkspacePath::from_fs_name(&lower).filter(|_| lower != word);
        spelled.is_some_and(|path| self.covers(&path))
            || self.paths.iter().any(|pattern| pattern.could_be_named_by(&lower))
    }
}

/// What a policy says about one tool.
#[derive(Clone, Debug)]
pub struct ToolRule {
    /// Where it stands.
    pub source: SourceLocation,
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
    /// Whether nobody vouches for what comes of a call, so that arguments made of it are tainted.
    pub untrusted: bool,
    /// Its constraints.
    pub constraint: Constraint,
    /// What its author says it decides.
    pub examples: Vec<PolicyExample>,
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
    /// A repository.
    Git(GitRule),
    /// The project's tests.
    Test(TestRule),
    /// Nothing: a person is behind it, with a command, a file or an answer.
    Person,
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
    /// How the file system of the workspace compares names: another spelling is no link.
    pub spelling: Spelling,
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
    /// Words for the ways of writing, where no rule has one for the path.
    pub modes: Vec<(WriteMode, Verdict, SourceLocation)>,
}

/// A rule for some paths.
#[derive(Clone, Debug)]
pub struct PathRule {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub source: SourceLocation,
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
    pub private: Vec<net::IpRange>,
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
    pub source: SourceLocation,
    /// Its addresses.
    pub pattern: UrlPattern,
    /// Its word.
    pub decision: Option<Verdict>,
    /// Why.
    pub because: Option<String>,
    /// What to do instead, where it denies.
    pub suggest: Option<String>,
}

/// The hosts that commands reach through the proxy.
#[derive(Clone, Debug, Default)]
pub struct HostRules {
    /// The rules of hosts; the strictest word counts.
    pub rules: Vec<UrlRule>,
    /// The word for hosts that no rule names, and its place; they are denied where there is none.
    pub others: Option<(Verdict, SourceLocation)>,
    /// The private addresses that may be dialled nevertheless.
    pub private: Vec<net::IpRange>,
    /// The ports of the host's own loopback that are reached at the same ports inside.
    pub loopback: Vec<u16>,
}

impl ToolRule {
    /// Every pattern of what a command may change by this rule.
    #[must_use]
    pub fn writes(&self) -> Vec<&PathPattern> {
        let Constraint::Exec(exec) = &self.constraint else { return Vec::new() };
        exec.programs.iter().flat_map(|program| program.command.write_patterns()).collect()
    }
}

/// What commands are confined to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxRule {
    /// The weakest sandbox that will do.
    pub floor: SandboxTier,
    /// What commands may reach.
    pub network: NetworkAccess,
    /// What commands may do to the workspace at most.
    pub workspace: WorkspaceAccess,
    /// Where commands see the workspace.
    pub mount: MountPoint,
    /// How much a run may change in a staged workspace.
    pub changes: ChangeLimits,
    /// Whether programs whose rules do not say what they may change may change everything that no
    /// invariant protects (`level: workspace-write`).
    pub writes_by_default: bool,
    /// Whether it is written that the workspace is read-only, which binds commands alone.
    pub read_only: bool,
    /// Whether commands whose rules name `proc.unconfined` may run where the machine has no sandbox
    /// (`require: false`).
    pub optional: bool,
}

impl Policy {
    /// The same under another of its profiles, or one that is built in; none if there is no such
    /// profile.
    #[must_use]
    pub fn under(mut self, profile: &str) -> Option<Self> {
        let item = self.profiles.iter().find(|item| item.name == profile).cloned();
        // What the policy's own profile wants beyond its words, one that is built in keeps.
        let builtin = || Some(Profile::builtin(profile)?.with_requirements_of(&self.profile));
        self.rules.profile = item.or_else(builtin)?;
        Some(self)
    }

    /// The names of the profiles that can be chosen.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        let builtin = Profile::BUILTIN.into_iter();
        let others =
            builtin.filter(|name| !self.profiles.iter().any(|profile| profile.name == *name));
        self.profiles.iter().map(|profile| profile.name.as_str()).chain(others)
    }

    /// What tightens it.
    #[must_use]
    pub fn layers(&self) -> &[PolicyLayer] {
        &self.layers
    }

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

    /// Whether arguments that are made of a tool's results are tainted: what comes from elsewhere always is,
    /// and what the policy or a layer calls untrusted.
    #[must_use]
    pub fn taints(&self, tool: &ToolName) -> bool {
        let tainting =
            |rule: &ToolRule| rule.untrusted || matches!(rule.constraint, Constraint::Fetch(_));
        self.self_and_layers().any(|layer| layer.tool(tool).is_some_and(tainting))
    }

    /// The secrets that a tool sends to an address.
    pub fn secrets_sent_to<'p>(
        &'p self,
        tool: &'p ToolName,
        address: &'p HttpUrl,
    ) -> impl Iterator<Item = &'p SecretRule> {
        let fetch = self.fetch_rule(tool);
        let named = move |(name, id): &(ToolName, String)| {
            let rules = fetch.filter(|_| name == tool).into_iter().flat_map(|fetch| &fetch.allow);
            rules.into_iter().any(|rule| rule.id == *id && rule.pattern.matches(address))
        };
        self.secrets.iter().filter(move |secret| secret.only_for.iter().any(named))
    }

    /// The constraints that the policy puts on paths for a tool.
    #[must_use]
    pub fn file_rule(&self, tool: &ToolName) -> Option<&FileRule> {
        match self.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Files(rule)) => Some(rule),
            _ => None,
        }
    }

    /// What rules close to some tool.
    pub fn denied_patterns(&self) -> impl Iterator<Item = &PathPattern> {
        let rules = self.self_and_layers().flat_map(|layer| layer.tools.values());
        rules.flat_map(|rule| match &rule.constraint {
            Constraint::Files(files) => files.deny.as_slice(),
            _ => &[],
        })
    }

    /// Whether an invariant keeps a path from being seen, for walks from the root down.
    #[must_use]
    pub fn conceals(&self, path: &WorkspacePath) -> bool {
        let look = Capabilities::of(Capability::FsMeta).with(Capability::FsRead);
        self.self_and_layers().flat_map(|layer| &layer.hard_denies).any(|never| {
            never.capabilities.intersects(look)
                && never.paths.iter().any(|pattern| pattern.matches_in_walk(path))
                && !never.except.iter().any(|pattern| pattern.surely_covers(path))
        })
    }

    /// The invariant that forbids a power on a path, if there is one.
    #[must_use]
    pub fn forbids(
        &self,
        path: &WorkspacePath,
        capabilities: Capabilities,
    ) -> Option<&HardDenyRule> {
        let mut rules = self
            .self_and_layers()
            .flat_map(|layer| layer.hard_denies.iter().chain(&layer.base_denials));
        rules.find(|rule| rule.capabilities.intersects(capabilities) && rule.covers(path))
    }
}
