//! The narrow tools: looking at a repository, and running the project's tests.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{PathTarget, Place, Question, show_argv};
use crate::capability::Capabilities;
use crate::code::Code;
use crate::confinement::{Confinement, ProcessLimits, Tier, WorkspaceAccess};
use crate::limits;
use crate::policy::bounds::{Contents, Scope};
use crate::policy::decide::{Bounds, Case, Finding, because, files, own_word, walls, words};
use crate::policy::model::{Policy, ToolRule};
use crate::policy::narrow::{GitRule, TestRule};
use crate::tool::ToolName;

/// The tool whose constraints say which files can be read, by whatever tool.
const READER: &str = "fs.read";

/// Checks a question about a repository. Nothing found means that the tool's own word decides.
pub(super) fn git(policy: &Policy, case: &Case<'_>, ask: &Question) -> Vec<Finding> {
    let reader = ToolName::asked(READER);
    let mut found = Vec::new();
    for target in ask.paths() {
        let path = match &target.place {
            Place::Inside(path) => path,
            Place::Outside(problem) => {
                found.push(files::outside(&target.asked, *problem));
                continue;
            }
        };
        let fact = case.facts.at(path);
        match (policy.files(&reader), policy.tool(&reader), fact.map(|fact| &fact.real)) {
            (Some(files), Some(rule), _) => {
                let closed = files::closed(files, path, fact, true);
                found.extend(closed.map(|finding| finding.by(READER, &rule.source)));
            }
            (_, _, Some(Place::Outside(problem))) => {
                found.push(files::outside(&target.asked, *problem));
            }
            _ => {}
        }
    }
    found.extend(walls::check(policy, case));
    found
}

/// What an answer about a repository is bounded by.
pub(super) fn git_bounds(
    policy: &Arc<Policy>,
    (rule, git): (&ToolRule, &GitRule),
    ask: &Question,
    left: u64,
) -> Bounds {
    let asked = match ask {
        Question::Log { limit, .. } => limit.unwrap_or(git.results),
        Question::Status | Question::Diff { .. } => git.results,
    };
    let results = asked.min(git.results_max);
    let limits = ProcessLimits {
        timeout_ms: rule.timeout_ms,
        // Git answers by itself. Whatever it would start is something that the repository names.
        processes: 1,
        stdout_bytes: limits::GIT_OUTPUT_BYTES,
        ..ProcessLimits::default()
    };
    Bounds::Git {
        confinement: confinement(policy, WorkspaceAccess::ReadOnly, limits),
        results,
        clamped: results < asked,
        bytes: git.bytes.min(left),
        contents: Contents::new(Arc::clone(policy)),
    }
}

/// Checks a run of the project's tests.
pub(super) fn test(
    policy: &Policy,
    (rule, test): (&ToolRule, &TestRule),
    case: &Case<'_>,
    (filter, capabilities): (Option<&str>, Capabilities),
) -> Vec<Finding> {
    let tool = case.tool.as_str();
    let mut found: Vec<Finding> =
        files::inside(&PathTarget::parse(&test.cwd), case).err().into_iter().collect();
    if filter.is_some() && test.filter.is_none() {
        let finding = Finding::deny(Code::TestFilter, "the policy lets no call pick tests");
        let hint = "run all of them: leave `filter` out";
        found.push(finding.by(tool, &rule.source).suggest(Some(hint)));
    }
    found.extend(walls::check(policy, case));
    let own = own_word(policy, rule, case.tool, capabilities);
    found.push(match rule.decision {
        // The words of the command are the policy's, and no call says them: so the decision does.
        Some(verdict) => {
            let shown = show_argv(&test.argv(filter));
            let ours = || words(verdict, &format!("`{shown}`"));
            Finding { reason: because(&rule.because, ours), ..own }
        }
        None => own,
    });
    found
}

/// What the tests may change: all that no invariant protects, where the policy lets programs write.
pub(super) fn test_writes(policy: &Arc<Policy>) -> Option<Scope> {
    let may = policy.sandbox.writes && policy.sandbox.workspace != WorkspaceAccess::ReadOnly;
    may.then(|| Scope::new(Arc::clone(policy), Vec::new()))
}

/// What the tests are bounded by.
pub(super) fn test_bounds(policy: &Policy, test: &TestRule, writes: Option<Scope>) -> Bounds {
    let workspace = match &writes {
        Some(_) => policy.sandbox.workspace,
        None => WorkspaceAccess::ReadOnly,
    };
    Bounds::Run {
        confinement: confinement(policy, workspace, test.limits),
        clamped: false,
        environment: alloc::boxed::Box::new(test.env.clone()),
        reads: None,
        writes,
    }
}

fn confinement(policy: &Policy, workspace: WorkspaceAccess, limits: ProcessLimits) -> Confinement {
    let floor = policy.sandbox.floor.max(Tier::Landlock);
    Confinement { floor, network: policy.sandbox.network, workspace, limits }
}
