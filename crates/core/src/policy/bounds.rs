//! The bounds within which an allowed call may run.
//!
//! They come out of the decision and travel in the permit, so a tool needs no policy of its own:
//! what it may show, follow or dial on its way is asked here, by the same functions that judged.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::capability::{Capabilities, Capability};
use crate::change::{Change, Node};
use crate::code::Code;
use crate::confinement::Confinement;
use crate::decision::Verdict;
use crate::limits;
use crate::net;
use crate::outcome::Problem;
use crate::path::WorkspacePath;
use crate::policy::decide::{any_child, because, judge_address, judge_url, open_to, words};
use crate::policy::model::{Constraint, Environment, FetchRule, Policy};
use crate::policy::patterns::PathPattern;
use crate::tool::ToolName;
use crate::url::{Address, HostName};

/// The bounds of one call.
#[derive(Clone, Debug)]
pub enum Bounds {
    /// Nothing may run.
    Nothing,
    /// Looking at names, sizes and dates.
    Look {
        /// The most results.
        results: u64,
        /// Whether more were asked for.
        clamped: bool,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
        /// What may be shown.
        sight: Sight,
    },
    /// Reading a file.
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
    /// Fetching a URL.
    Fetch {
        /// What may be dialled and followed.
        reach: Reach,
        /// The most bytes over the wire.
        bytes_max: u64,
        /// The most bytes after decompression.
        inflated_max: u64,
        /// How many redirects are followed.
        redirects: u64,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Running a program.
    Run {
        /// What it is confined to.
        confinement: Confinement,
        /// Whether more time was asked for.
        clamped: bool,
        /// What it finds in its environment.
        environment: Environment,
        /// What it may see of the workspace, if not all that no invariant protects.
        reads: Option<Scope>,
        /// What it may change, if anything.
        writes: Option<Scope>,
    },
}

impl Bounds {
    /// What a command is confined to.
    #[must_use]
    pub const fn confinement(&self) -> Option<Confinement> {
        match self {
            Self::Run { confinement, .. } => Some(*confinement),
            _ => None,
        }
    }
}

/// What a call may see of the workspace.
#[derive(Clone, Debug)]
pub struct Sight {
    policy: Arc<Policy>,
    tool: ToolName,
}

impl Sight {
    pub(crate) const fn new(policy: Arc<Policy>, tool: ToolName) -> Self {
        Self { policy, tool }
    }

    /// Whether an entry may be shown, and a folder be entered: its name must be open to the tool,
    /// and no invariant may protect it. Asked from the root down: nothing beneath a folder that is
    /// not entered is asked about.
    #[must_use]
    pub fn shows(&self, path: &WorkspacePath) -> bool {
        !self.policy.conceals(path)
            && self.policy.files(&self.tool).is_some_and(|rule| open_to(rule, path))
    }
}

/// What the rules of a command name for one of its powers.
#[derive(Clone, Debug)]
pub struct Scope {
    policy: Arc<Policy>,
    /// For each reading of the command line; all of them must agree.
    readings: Vec<Vec<PathPattern>>,
}

impl Scope {
    pub(crate) const fn new(policy: Arc<Policy>, readings: Vec<Vec<PathPattern>>) -> Self {
        Self { policy, readings }
    }

    fn all(&self, names: impl Fn(&PathPattern) -> bool) -> bool {
        self.readings.iter().all(|patterns| patterns.iter().any(&names))
    }

    /// Whether a path is kept from being seen: an invariant protects it, or no rule names it or, for
    /// a folder, anything in it. Asked from the root down.
    #[must_use]
    pub fn conceals(&self, path: &WorkspacePath, folder: bool) -> bool {
        let names = |own: &PathPattern| own.matches(path) || folder && own.reaches_beneath(path);
        self.policy.conceals(path) || !self.all(names)
    }

    /// Whether an invariant keeps a path from being changed by any command.
    #[must_use]
    pub fn holds(&self, path: &WorkspacePath) -> bool {
        let change = Capabilities::of(Capability::FsWrite).with(Capability::FsDelete);
        self.policy.forbids(path, change).is_some()
    }

    /// Whether one keeps anything from being made in a folder.
    #[must_use]
    pub fn holds_beneath(&self, folder: &WorkspacePath) -> bool {
        self.holds(&any_child(folder))
    }

    /// The places that the rules name, each with whether all beneath it is meant; for each reading
    /// of the command line, which all have to agree. Where changes are direct, rules name nothing
    /// else.
    pub fn places(&self) -> impl Iterator<Item = Vec<(String, bool)>> {
        self.readings.iter().map(|own| own.iter().flat_map(PathPattern::places).collect())
    }

    /// Judges one path that a command changed, when it has ended.
    ///
    /// # Errors
    /// Says why it cannot be applied: an invariant protects it, the command's rule does not name it,
    /// or nobody may ever make what stands there now.
    pub fn judge(&self, change: &Change) -> Result<(), String> {
        let path = sound(change)?;
        unprotected(&self.policy, change, &path)?;
        // A folder that has to be there for a file that may be written.
        let is_way = |own: &PathPattern| {
            matches!((&change.before, &change.after), (None, Some(Node::Folder { .. })))
                && own.reaches_beneath(&path)
        };
        match self.all(|own| own.matches(&path) || is_way(own)) {
            true => Ok(()),
            false => Err("the command's rule does not name it under `writes`".into()),
        }
    }
}

/// The path of a change that anybody may ever apply.
pub(crate) fn sound(change: &Change) -> Result<WorkspacePath, String> {
    // Asked before any pattern is: what a pattern costs grows with the depth.
    if change.path.split('/').count() > limits::STAGED_DEPTH {
        return Err(format!("it is nested deeper than {} folders", limits::STAGED_DEPTH));
    }
    match (WorkspacePath::beneath(&change.path), change.flaw()) {
        (Some(path), None) => Ok(path),
        (None, _) => Err("it has a name that no call can name".into()),
        (_, Some(flaw)) => Err(flaw.into()),
    }
}

/// Whether no invariant protects what was changed, or what a new link leads to.
pub(crate) fn unprotected(
    policy: &Policy,
    change: &Change,
    path: &WorkspacePath,
) -> Result<(), String> {
    let power = Capabilities::of(change.kind().capability());
    let target = change.leads_to();
    let mut named = [Some(path), target.as_ref()].into_iter().flatten();
    match named.find_map(|own| policy.forbids(own, power)) {
        Some(rule) => {
            Err(because(&rule.because, || format!("forbidden by the rule `{}`", rule.id)))
        }
        None => Ok(()),
    }
}

/// What a fetch may dial and follow.
#[derive(Clone, Debug)]
pub struct Reach {
    policy: Arc<Policy>,
    tool: ToolName,
}

impl Reach {
    pub(crate) const fn new(policy: Arc<Policy>, tool: ToolName) -> Self {
        Self { policy, tool }
    }

    fn rule(&self) -> Option<&FetchRule> {
        match self.policy.tool(&self.tool).map(|rule| &rule.constraint) {
            Some(Constraint::Fetch(rule)) => Some(rule),
            _ => None,
        }
    }

    fn own_word(&self) -> Verdict {
        let own = self.policy.tool(&self.tool).and_then(|rule| rule.decision);
        own.unwrap_or_else(|| self.policy.profile.word(Capabilities::of(Capability::NetEgress)))
    }

    /// Judges an address that a name resolved to, before it is dialled.
    ///
    /// # Errors
    /// [`Code::NetPrivate`] where it is not public and the policy does not name it.
    pub fn dial(&self, address: IpAddr) -> Result<(), Problem> {
        let private: &[net::Range] = self.rule().map_or(&[], |rule| &rule.private);
        judge_address(private, address)
    }

    /// Judges where a redirect leads, before the name is looked up.
    ///
    /// # Errors
    /// [`Code::NetPrivate`] where it names an address that is not public, [`Code::ApprovalNeeded`]
    /// where somebody would have to be asked, which nobody can be in the middle of a call, and
    /// [`Code::NetRedirect`] where the policy would not have allowed a call to it.
    pub fn follow(&self, from: &Address, to: &Address) -> Result<(), Problem> {
        let refused = |verdict: Verdict, why: &str| {
            let (code, word) = match verdict {
                Verdict::Ask | Verdict::AskEach => (Code::ApprovalNeeded, "needs an approval"),
                _ => (Code::NetRedirect, "is refused"),
            };
            let message = alloc::format!("the redirect to `{}` {word}: {why}", to.shown());
            Problem::new(code, message)
                .suggest("ask for that address itself, if the policy names it")
        };
        let Some(rule) = self.rule() else {
            return Err(refused(Verdict::Deny, "the policy has no rule for it"));
        };
        if let HostName::Ip(address) = to.host() {
            self.dial(address).map_err(|problem| Problem {
                message: alloc::format!(
                    "the redirect to `{}` is refused: {}",
                    to.shown(),
                    problem.message
                ),
                ..problem
            })?;
        }
        if !from.same_origin(to) && rule.cross_origin != Verdict::Allow {
            return Err(refused(rule.cross_origin, "it leads to another origin"));
        }
        let found = judge_url(rule, to);
        if let Some(finding) = found.iter().max_by_key(|finding| finding.verdict) {
            return match finding.verdict {
                Verdict::Allow => Ok(()),
                verdict => Err(refused(verdict, &finding.reason)),
            };
        }
        if !rule.allow.iter().any(|rule| rule.pattern.matches(to)) {
            return Err(refused(Verdict::Deny, "the policy does not name it"));
        }
        // Scope without a word of its own: what the tool's word would be for a call to it.
        match self.own_word() {
            Verdict::Allow => Ok(()),
            verdict => Err(refused(verdict, &words(verdict, "a call to it"))),
        }
    }
}
