//! The bounds within which an allowed call may run.
//!
//! They come out of the decision and travel in the permit, so a tool needs no policy of its own:
//! what it may show, follow or dial on its way is asked here, by the same functions that judged.

mod intersection;
mod invariants;
mod network;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, Facts, PathFact, PathTarget, SearchFilter};
use crate::capability::{Capabilities, Capability};
use crate::change::{Change, FileState};
use crate::confinement::{Confinement, ProcessLimits};
use crate::decision::{Decision, Verdict};
use crate::policy::commands::EnvironmentRule;
use crate::policy::decide::check::{PolicyInput, reason_or};
use crate::policy::decide::decide;
use crate::policy::decide::files::{child_placeholder, is_listable};
use crate::policy::model::{HardDenyRule, Policy};
use crate::policy::path_pattern::PathPattern;
use crate::policy::usage::Usage;
use crate::tool::ToolName;
use capsule_base::limits;
use capsule_base::path::WorkspacePath;

pub use invariants::Invariants;
pub(crate) use network::NamedHosts;
pub use network::{EgressScope, HostJudgement, HostQuestion, HostScope};

/// The bounds of one call.
#[derive(Clone, Debug)]
pub enum Restrictions {
    /// Nothing may run.
    Nothing,
    /// Looking at names, sizes and dates.
    Listing {
        /// The most results.
        results: u64,
        /// Whether more were asked for.
        clamped: bool,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
        /// What may be shown.
        scope: ListingScope,
    },
    /// Reading a file, or what the user says.
    Read {
        /// The most bytes.
        bytes: u64,
        /// Whether more were asked for.
        clamped: bool,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Writing a file.
    Write {
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Changing some places of a file.
    Edit {
        /// The most bytes of the file, before and after.
        bytes: u64,
        /// Whether an edit that is not made may quote the file: the policy opens it to `fs.read`.
        quotes: bool,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Deleting.
    Delete {
        /// What may go: this, and what is beneath it.
        path: WorkspacePath,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Fetching a URL.
    Fetch {
        /// What may be dialled and followed.
        egress: EgressScope,
        /// The most bytes over the wire.
        bytes_max: u64,
        /// The most bytes after decompression.
        inflated_max: u64,
        /// How many redirects are followed.
        redirects: u64,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Looking at a repository.
    Git {
        /// What git is confined to.
        confinement: Confinement,
        /// The most results.
        results: u64,
        /// Whether more were asked for.
        clamped: bool,
        /// The most bytes of text.
        bytes: u64,
        /// What may be shown.
        contents: ContentScope,
    },
    /// Running a program.
    Run {
        /// What it is confined to.
        confinement: Confinement,
        /// Whether more time was asked for.
        clamped: bool,
        /// What it finds in its environment.
        environment: Box<EnvironmentRule>,
        /// What it may see of the workspace, if not all that no invariant protects.
        reads: Option<PathScope>,
        /// What it may change, if anything.
        writes: Option<PathScope>,
        /// The hosts that it may reach, if any.
        hosts: Option<Box<HostScope>>,
    },
    /// Running a program with nothing around it.
    Unconfined {
        /// The limits that can be kept without walls.
        limits: ProcessLimits,
        /// Whether more time was asked for.
        clamped: bool,
        /// What it finds in its environment.
        environment: Box<EnvironmentRule>,
    },
}

impl Restrictions {
    /// Notes that a person said yes to the command, and with that to the hosts that its words name.
    pub(crate) fn approve_hosts(&mut self) {
        if let Self::Run { hosts: Some(hosts), .. } = self {
            hosts.approve_named();
        }
    }

    /// What a command is confined to.
    #[must_use]
    pub const fn confinement(&self) -> Option<Confinement> {
        match self {
            Self::Run { confinement, .. } | Self::Git { confinement, .. } => Some(*confinement),
            _ => None,
        }
    }
}

/// What a call may see of the workspace.
#[derive(Clone, Debug)]
pub struct ListingScope {
    policy: Arc<Policy>,
    tool: ToolName,
}

impl ListingScope {
    pub(crate) const fn new(policy: Arc<Policy>, tool: ToolName) -> Self {
        Self { policy, tool }
    }

    /// Whether an entry may be shown, and a folder be entered: its name must be open to the tool,
    /// and no invariant may protect it. Asked from the root down: nothing beneath a folder that is
    /// not entered is asked about.
    #[must_use]
    pub fn shows(&self, path: &WorkspacePath) -> bool {
        let is_open = |policy: &Policy| {
            policy.file_rule(&self.tool).is_some_and(|rule| is_listable(rule, path))
        };
        !self.policy.conceals(path) && self.policy.self_and_layers().all(is_open)
    }

    /// What `fs.read` and the tool say about a search of a path, as it was found on disk.
    pub fn judge_search(&self, fact: &PathFact) -> impl Iterator<Item = Decision> {
        let path = PathTarget::parse(fact.path.as_str());
        let filter = SearchFilter { content: Some(String::new()), ..SearchFilter::default() };
        let action = Action::Search { path, filter, limit: None };
        let facts = Facts { paths: alloc::vec![fact.clone()], ..Facts::default() };
        [ToolName::unchecked("fs.read"), self.tool.clone()].into_iter().map(move |tool| {
            let (tool, action, facts, usage) = (&tool, &action, &facts, &Usage::default());
            let input = PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
            decide(&self.policy, &input).decision
        })
    }

    /// Whether the lines of a file may be searched: the tool and `fs.read` allow it for the file, or ask what
    /// they asked for the path that was judged.
    #[must_use]
    pub fn searches(&self, judged: &[Decision], file: &PathFact) -> bool {
        self.judge_search(file).zip(judged).all(|(decision, judged)| {
            let is_same = (decision.verdict, &decision.rule) == (judged.verdict, &judged.rule);
            decision.verdict == Verdict::Allow || decision.verdict != Verdict::Deny && is_same
        })
    }
}

/// The files whose contents may be shown, by whatever tool: those that are open to `fs.read` and that
/// no invariant protects.
#[derive(Clone, Debug)]
pub struct ContentScope {
    policy: Arc<Policy>,
}

impl ContentScope {
    pub(crate) const fn new(policy: Arc<Policy>) -> Self {
        Self { policy }
    }

    /// Whether a path may be shown. Nothing has to be there any more: a repository knows what was.
    #[must_use]
    pub fn shows(&self, path: &WorkspacePath) -> bool {
        let look = Capabilities::of(Capability::FsMeta).with(Capability::FsRead);
        // Whole, and folder by folder from the root down, as a walk would ask.
        let mut folder = WorkspacePath::root();
        let closed = path.components().any(|name| {
            folder = folder.join(name);
            self.policy.conceals(&folder)
        });
        let reader = ToolName::unchecked("fs.read");
        let meant = |item: &HardDenyRule| {
            item.capabilities.intersects(look) && item.could_match(path.as_str())
        };
        !closed
            && self.policy.forbids(path, look).is_none()
            && self.policy.self_and_layers().all(|layer| {
                !layer.hard_denies.iter().any(meant)
                    && layer.file_rule(&reader).is_none_or(|rule| is_listable(rule, path))
            })
    }
}

/// What the rules of a command name for one of its powers.
#[derive(Clone, Debug)]
pub struct PathScope {
    policy: Arc<Policy>,
    /// For each reading of the command line; all of them must agree.
    alternatives: Vec<Vec<PathPattern>>,
    /// Files that were judged by themselves: those that streams of the command lead to.
    extra_paths: Vec<WorkspacePath>,
    /// What the policy closes to whoever reads a file by its name, and hides from whoever finds it in a
    /// folder.
    denied: Vec<PathPattern>,
    /// Whether the command may come upon it.
    can_discover: bool,
}

impl PathScope {
    pub(crate) const fn new(policy: Arc<Policy>, readings: Vec<Vec<PathPattern>>) -> Self {
        Self {
            policy,
            alternatives: readings,
            extra_paths: Vec::new(),
            denied: Vec::new(),
            can_discover: false,
        }
    }

    /// The same without what is closed; `finds` says whether the command may come upon it.
    pub(crate) fn with_denied(self, closed: Vec<PathPattern>, finds: bool) -> Self {
        Self { denied: closed, can_discover: finds, ..self }
    }

    /// Whether the command does what its words say and nothing else, so that what is closed can be hidden
    /// from it.
    pub(crate) const fn has_denied(&self) -> bool {
        !self.denied.is_empty()
    }

    /// Whether anything is hidden by it that no invariant hides.
    #[must_use]
    pub const fn hides_paths(&self) -> bool {
        self.can_discover || !self.alternatives.is_empty()
    }

    /// What both allow; one that is not there bounds nothing.
    pub fn intersect_optional(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.alternatives.extend(other.alternatives);
                one.denied.extend(other.denied);
                one.can_discover |= other.can_discover;
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// What both may change together, where they run beside each other and a change cannot be told to be of one of them: the files
    /// that streams of either lead to, and what each of them may whose programs change anything by themselves.
    #[must_use]
    pub fn join_parallel(mut self, mut other: Self) -> Self {
        self.extra_paths.append(&mut other.extra_paths);
        let changes_nothing = |scope: &Self| scope.alternatives.iter().any(Vec::is_empty);
        match changes_nothing(&self) {
            true => self.alternatives = other.alternatives,
            false if changes_nothing(&other) => {}
            false => self.alternatives.append(&mut other.alternatives),
        }
        self
    }

    /// The same with files that were judged by themselves.
    pub(crate) fn with_extra_paths(self, also: Vec<WorkspacePath>) -> Self {
        Self { extra_paths: also, ..self }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether the rule has the path itself in its text, in every reading of the command line. A rule that opens
    /// everything spells nothing.
    pub(crate) fn spells(&self, path: &WorkspacePath) -> bool {
        !self.alternatives.is_empty()
            && self.matches_every_alternative(|pattern| pattern.spells(path))
    }

    fn matches_every_alternative(&self, names: impl Fn(&PathPattern) -> bool) -> bool {
        self.alternatives.iter().all(|patterns| patterns.iter().any(&names))
    }

    /// Whether a path is kept from being seen: an invariant protects it, it is closed, or no rule names it
    /// or, for a folder, anything in it. Asked from the root down.
    #[must_use]
    pub fn conceals(&self, path: &WorkspacePath, folder: bool) -> bool {
        let names = |pattern: &PathPattern| {
            pattern.matches(path) || folder && pattern.can_match_beneath(path)
        };
        let closed = || self.denied.iter().any(|pattern| pattern.matches_in_walk(path));
        self.policy.conceals(path) || closed() || !self.matches_every_alternative(names)
    }

    /// Whether an invariant keeps a path from being changed by any command.
    #[must_use]
    pub fn is_protected(&self, path: &WorkspacePath) -> bool {
        self.policy.forbids(path, Capabilities::CHANGES).is_some()
    }

    /// Whether one keeps anything from being made in a folder.
    #[must_use]
    pub fn protects_children(&self, folder: &WorkspacePath) -> bool {
        self.is_protected(&child_placeholder(folder))
    }

    /// The places that the rules name, each with whether all beneath it is meant; for each reading
    /// of the command line, which all have to agree. Where changes are direct, rules name nothing
    /// else.
    pub fn literal_paths(&self) -> impl Iterator<Item = Vec<(String, bool)>> {
        let extra = || self.extra_paths.iter().map(|path| (path.as_str().into(), false));
        self.alternatives.iter().map(move |alternative| {
            alternative.iter().flat_map(PathPattern::literal_paths).chain(extra()).collect()
        })
    }

    /// Judges one path that a command changed, when it has ended.
    ///
    /// # Errors
    /// Says why it cannot be applied: an invariant protects it, the command's rule does not name it,
    /// or nobody may ever make what stands there now.
    pub fn judge_change(&self, change: &Change) -> Result<(), String> {
        let path = applicable_path(&self.policy, change)?;
        check_unprotected(&self.policy, change, &path)?;
        // A folder that has to be there for a file that may be written.
        let is_way = |pattern: &PathPattern| {
            matches!((&change.before, &change.after), (None, Some(FileState::Directory { .. })))
                && pattern.can_match_beneath(&path)
        };
        let is_named = self.extra_paths.contains(&path)
            || self.matches_every_alternative(|pattern| pattern.matches(&path) || is_way(pattern));
        is_named.then_some(()).ok_or_else(|| NOT_NAMED.into())
    }
}

const NOT_NAMED: &str = "the command's rule does not name it under `writes`";

/// The path of a change that anybody may ever apply.
pub(crate) fn applicable_path(policy: &Policy, change: &Change) -> Result<WorkspacePath, String> {
    let path = restorable_path(change)?;
    change.rejection_reason(&policy.program_directories).map_or(Ok(path), |flaw| Err(flaw.into()))
}

/// The path of a change that brings back what stood there, whatever that was.
pub(crate) fn restorable_path(change: &Change) -> Result<WorkspacePath, String> {
    // Asked before any pattern is: what a pattern costs grows with the depth.
    if change.path.split('/').count() > limits::STAGED_DEPTH {
        return Err(format!("it is nested deeper than {} folders", limits::STAGED_DEPTH));
    }
    WorkspacePath::from_fs_name(change.judged_as.as_ref().unwrap_or(&change.path))
        .ok_or_else(|| "it has a name that no call can name".to_string())
}

/// Whether no invariant protects what was changed, or what a new link leads to.
pub(crate) fn check_unprotected(
    policy: &Policy,
    change: &Change,
    path: &WorkspacePath,
) -> Result<(), String> {
    let power = Capabilities::of(change.kind().capability());
    let target = change.link_target();
    let mut named = [Some(path), target.as_ref()].into_iter().flatten();
    match named.find_map(|path| policy.forbids(path, power)) {
        Some(rule) => {
            Err(reason_or(&rule.because, || format!("forbidden by the rule `{}`", rule.id)))
        }
        None => Ok(()),
    }
}
