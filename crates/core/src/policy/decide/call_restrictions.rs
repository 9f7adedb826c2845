//! The bounds of a call that is about one thing.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use crate::action::Action;
use crate::confinement::{Confinement, ProcessLimits, SandboxTier};
use crate::policy::commands::ExecRule;
use crate::policy::decide::check::PolicyInput;
use crate::policy::decide::{budget, exec, files, git_and_tests, quota};
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::restrictions::{
    EgressScope, HostScope, ListingScope, NamedHosts, PathScope, Restrictions,
};
use capsule_base::limits;

/// What a call that is not denied is bounded by.
pub(super) fn restrictions(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    (reads, writes, named): (Option<PathScope>, Option<PathScope>, NamedHosts),
) -> Restrictions {
    let (timeout_ms, left) = (rule.timeout_ms, quota::bytes_left(rule, input));
    match (&rule.constraint, input.action) {
        (Constraint::Files(files), Action::Read { limit, .. }) => {
            let asked = limit.unwrap_or(files.bytes);
            let bytes = asked.min(files.bytes_max).min(left);
            Restrictions::Read { bytes, clamped: bytes < asked, timeout_ms }
        }
        (Constraint::Person, Action::AskUser { .. } | Action::Attach { .. }) => {
            let bytes = limits::ATTACHED_BYTES.min(left);
            Restrictions::Read { bytes, clamped: false, timeout_ms }
        }
        (Constraint::Person, Action::Agent { .. }) => agent_restrictions(policy, input),
        (Constraint::Files(files), Action::Search { limit, .. } | Action::List { limit, .. }) => {
            let asked = limit.unwrap_or(files.results);
            let results = asked.min(files.results_max);
            let sight = ListingScope::new(Arc::clone(policy), input.tool.clone());
            Restrictions::Listing { results, clamped: results < asked, timeout_ms, scope: sight }
        }
        (Constraint::Files(_), Action::Write { .. }) | (Constraint::Person, _) => {
            Restrictions::Write { timeout_ms }
        }
        (Constraint::Files(files), Action::Edit { .. }) => Restrictions::Edit {
            bytes: files.bytes_max,
            quotes: files::names_reading(policy),
            timeout_ms,
        },
        (Constraint::Files(_), Action::Delete { path, .. }) => match path.inside() {
            Some(path) => {
                Restrictions::Delete { path: files::resolved_path(input, path).clone(), timeout_ms }
            }
            None => Restrictions::Nothing,
        },
        (Constraint::Fetch(fetch), Action::Fetch { .. }) => Restrictions::Fetch {
            egress: EgressScope::new(Arc::clone(policy), input.tool.clone()),
            bytes_max: fetch.bytes_max.min(left).min(budget::fetch_left(policy, input)),
            inflated_max: fetch.inflated_max,
            redirects: fetch.redirects,
            timeout_ms,
        },
        (Constraint::Exec(exec), Action::Run { argv, timeout_ms, .. }) => {
            run_restrictions(policy, exec, input, (argv, *timeout_ms), (reads, writes, named))
        }
        (Constraint::Git(git), Action::Git { query: ask }) => {
            git_and_tests::git_restrictions(policy, (rule, git), ask, left)
        }
        (Constraint::Test(test), Action::Test { .. }) => {
            git_and_tests::test_restrictions(policy, test, writes)
        }
        _ => Restrictions::Nothing,
    }
}

/// The bounds of a whole agent: every path that no invariant closes, and the hosts of the policy.
fn agent_restrictions(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Restrictions {
    let confinement = Confinement {
        floor: SandboxTier::Full,
        network: policy.sandbox.network,
        workspace: policy.sandbox.workspace,
        limits: ProcessLimits::default(),
    };
    Restrictions::Run {
        confinement,
        clamped: false,
        environment: Box::default(),
        reads: None,
        writes: Some(PathScope::new(Arc::clone(policy), Default::default())),
        hosts: HostScope::of(policy, input, Default::default()),
    }
}

fn run_restrictions(
    policy: &Arc<Policy>,
    exec: &ExecRule,
    input: &PolicyInput<'_>,
    (argv, asked_ms): (&[String], Option<u64>),
    (reads, writes, named): (Option<PathScope>, Option<PathScope>, NamedHosts),
) -> Restrictions {
    let mut confinement = exec::confinement(policy, exec, argv, asked_ms);
    let limits = confinement.limits;
    let clamped = asked_ms.is_some_and(|asked| asked > limits.timeout_ms);
    let environment = Box::new(exec.env.clone());
    if input.action.is_unconfined() {
        return Restrictions::Unconfined { limits, clamped, environment };
    }
    if writes.is_some() {
        confinement.workspace = policy.sandbox.workspace;
    }
    let hosts = HostScope::of(policy, input, named);
    Restrictions::Run { confinement, reads, writes, hosts, clamped, environment }
}
