//! The narrow tools: looking at a repository, and running the project's tests.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{PathLocation, PathTarget, RepositoryQuery};
use crate::capability::Capabilities;
use crate::confinement::{Confinement, NetworkAccess, ProcessLimits, SandboxTier, WorkspaceAccess};
use crate::policy::decide::check::{Finding, PolicyInput, reason_or, verdict_text};
use crate::policy::decide::default_verdict::default_verdict;
use crate::policy::decide::{files, sandbox};
use crate::policy::git_and_tests::{GitRule, TestRule};
use crate::policy::model::{Policy, ToolRule};
use crate::policy::restrictions::{ContentScope, PathScope, Restrictions};
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::argv::show_argv;

/// The tool whose constraints say which files can be read, by whatever tool.
const READ_TOOL: &str = "fs.read";

/// Checks a question about a repository. Nothing found means that the tool's own word decides.
pub(super) fn check_git(
    policy: &Policy,
    input: &PolicyInput<'_>,
    ask: &RepositoryQuery,
) -> Vec<Finding> {
    let reader = ToolName::unchecked(READ_TOOL);
    let mut found = Vec::new();
    for target in ask.paths() {
        let path = match &target.location {
            PathLocation::Inside(path) => path,
            PathLocation::Outside(problem) => {
                found.push(files::outside_finding(&target.asked, *problem));
                continue;
            }
        };
        let fact = input.facts.path_fact(path);
        match (policy.file_rule(&reader), policy.tool(&reader), fact.map(|fact| &fact.real)) {
            (Some(files), Some(rule), _) => {
                let closed = files::check_path(files, path, fact, true);
                found.extend(closed.map(|finding| finding.under_rule(READ_TOOL, &rule.source)));
            }
            (_, _, Some(PathLocation::Outside(problem))) => {
                found.push(files::outside_finding(&target.asked, *problem));
            }
            _ => {}
        }
    }
    found.extend(sandbox::check(policy, input));
    found
}

/// What an answer about a repository is bounded by.
pub(super) fn git_restrictions(
    policy: &Arc<Policy>,
    (rule, git): (&ToolRule, &GitRule),
    ask: &RepositoryQuery,
    left: u64,
) -> Restrictions {
    let asked = match ask {
        RepositoryQuery::Log { limit, .. } => limit.unwrap_or(git.results),
        RepositoryQuery::Status | RepositoryQuery::Diff { .. } => git.results,
    };
    let results = asked.min(git.results_max);
    let limits = ProcessLimits {
        timeout_ms: rule.timeout_ms,
        // Git answers by itself. Whatever it would start is something that the repository names.
        processes: 1,
        stdout_bytes: limits::GIT_OUTPUT_BYTES,
        ..ProcessLimits::default()
    };
    Restrictions::Git {
        confinement: confinement(policy, WorkspaceAccess::ReadOnly, limits),
        results,
        clamped: results < asked,
        bytes: git.bytes.min(left),
        contents: ContentScope::new(Arc::clone(policy)),
    }
}

/// Checks a run of the project's tests.
pub(super) fn check_test(
    policy: &Policy,
    (rule, test): (&ToolRule, &TestRule),
    input: &PolicyInput<'_>,
    (filter, capabilities): (Option<&str>, Capabilities),
) -> Vec<Finding> {
    let tool = input.tool.as_str();
    let mut found: Vec<Finding> =
        files::check_inside(&PathTarget::parse(&test.cwd), input).err().into_iter().collect();
    if filter.is_some() && test.filter.is_none() {
        let finding = Finding::deny(Code::TestFilter, "the policy lets no call pick tests");
        let hint = "run all of them: leave `filter` out";
        found.push(finding.under_rule(tool, &rule.source).with_suggestion(Some(hint)));
    }
    found.extend(sandbox::check(policy, input));
    let finding = default_verdict(policy, rule, input.tool, capabilities);
    found.push(match rule.decision {
        // The words of the command are the policy's, and no call says them: so the decision does.
        Some(verdict) => {
            let shown = show_argv(&test.argv(filter));
            let ours = || verdict_text(verdict, &format!("`{shown}`"));
            Finding { reason: reason_or(&rule.because, ours), ..finding }
        }
        None => finding,
    });
    found
}

/// What the tests may change: all that no invariant protects, where the policy lets programs write.
pub(super) fn test_writes(policy: &Arc<Policy>) -> Option<PathScope> {
    let may =
        policy.sandbox.writes_by_default && policy.sandbox.workspace != WorkspaceAccess::ReadOnly;
    may.then(|| PathScope::new(Arc::clone(policy), Vec::new()))
}

/// What the tests are bounded by.
pub(super) fn test_restrictions(
    policy: &Policy,
    test: &TestRule,
    writes: Option<PathScope>,
) -> Restrictions {
    let workspace = match &writes {
        Some(_) => policy.sandbox.workspace,
        None => WorkspaceAccess::ReadOnly,
    };
    Restrictions::Run {
        confinement: confinement(policy, workspace, test.limits),
        clamped: false,
        environment: alloc::boxed::Box::new(test.env.clone()),
        reads: None,
        writes,
        hosts: None,
    }
}

fn confinement(policy: &Policy, workspace: WorkspaceAccess, limits: ProcessLimits) -> Confinement {
    let floor = policy.sandbox.floor.max(SandboxTier::Basic);
    Confinement { floor, network: NetworkAccess::None, workspace, limits }
}
