//! The decision about a call that is about one thing.

use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, FileKind, ParsedUrl, UrlTarget};
use crate::capability::{Capabilities, Capability};
use crate::confinement::{NetworkAccess, SandboxTier};
use crate::decision::Verdict;
use crate::outcome::CodedError;
use crate::policy::apply::is_user_action;
use crate::policy::decide::call_restrictions::restrictions;
use crate::policy::decide::check::{Finding, PolicyInput};
use crate::policy::decide::command_line::{self, LocatedCommand};
use crate::policy::decide::command_scope::{self, CommandScopes};
use crate::policy::decide::default_verdict::default_verdict;
use crate::policy::decide::judgement::{Judgement, PolicyCheck, strictest};
use crate::policy::decide::{
    apply, budget, exec, fetch, files, git_and_tests, hard_deny, quota, risk, sandbox,
};
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::restrictions::{Restrictions, applicable_path, restorable_path};
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_command::specs::{CommandLine, Effect, ParsedArgv, PathAccess};

/// Decides a case that is about one thing.
pub(super) fn decide_single(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    evaluate_call(policy, input, command_line::parse_command_line(policy, input).as_ref())
}

/// Decides a case that is about one thing; if it is a command line, one that was read.
pub(super) fn evaluate_call(
    policy: &Arc<Policy>,
    input: &PolicyInput<'_>,
    line: Option<&CommandLine<'_>>,
) -> Judgement {
    let command = line.map(|line| LocatedCommand::of(input, line));
    // A run that has used itself up says so, whatever it asks for.
    let mut found = alloc::vec![
        (PolicyCheck::Budgets, budget::check(policy, input)),
        (PolicyCheck::HardDeny, hard_deny::check(policy, input, command.as_ref())),
    ];
    let implied = ToolRule::of_user_action(policy, input.action);
    let rule = policy.tool(input.tool).or(implied.as_ref());
    let CommandScopes { reads, writes, needs: named, hosts } =
        match (rule.zip(command.as_ref()), input.action) {
            (Some((rule, command)), _) => command_scope::command_scopes(policy, rule, command),
            (None, Action::Test { .. }) => CommandScopes {
                writes: git_and_tests::test_writes(policy),
                ..CommandScopes::default()
            },
            (None, _) => CommandScopes::default(),
        };
    let item = required_capabilities(policy, input, line).union(named);
    // What may be written may be removed, too.
    let capabilities = match writes {
        Some(_) => item.with(Capability::FsWrite).with(Capability::FsDelete),
        None => item,
    };
    match rule {
        Some(rule) => {
            let command = command.as_ref();
            let rule_findings = check_constraints(policy, rule, input, (command, capabilities));
            found.extend([
                (PolicyCheck::Rule, rule_findings),
                (PolicyCheck::Quota, quota::check(rule, input)),
            ]);
        }
        None => found.push((PolicyCheck::Rule, alloc::vec![no_rule(policy, input)])),
    }
    let ceiling = risk::check_ceiling(policy, capabilities).into_iter();
    let ceiling = ceiling.chain(sandbox::check_unconfined(policy, capabilities)).collect();
    let (risk, hazards) = risk::assess(policy, rule, input, line, capabilities);
    let too_risky = risk::check(policy, input, risk, &hazards);
    let too_risky = too_risky.into_iter().chain(risk::check_unknown(policy, line));
    let too_risky = too_risky.chain(risk::check_exfiltration(input, line)).collect();
    found.extend([(PolicyCheck::Profile, ceiling), (PolicyCheck::Risk, too_risky)]);
    found.extend(impossible(policy, input, line, &found));
    let (decision, trace) = strictest(found, capabilities, risk);
    let bounds = match rule {
        Some(rule) if decision.verdict != Verdict::Deny => {
            restrictions(policy, rule, input, (reads, writes, hosts))
        }
        _ => Restrictions::Nothing,
    };
    Judgement { decision, restrictions: bounds, trace, named_capabilities: named }
}

/// No person is asked about a call that cannot succeed.
fn impossible(
    policy: &Policy,
    input: &PolicyInput<'_>,
    line: Option<&CommandLine<'_>>,
    found: &[(PolicyCheck, Vec<Finding>)],
) -> Option<(PolicyCheck, Vec<Finding>)> {
    let found = found.iter().flat_map(|(_, findings)| findings);
    let is_asked = |found: &&Finding| matches!(found.verdict, Verdict::Ask | Verdict::AskEach);
    let strictest = found.max_by_key(|finding| finding.verdict).filter(is_asked)?;
    let finding = match &input.facts.impossible {
        Some(CodedError { code, message, suggestion }) => {
            Finding::deny(*code, message.clone()).with_suggestion(suggestion.clone())
        }
        None => without_network(policy, input, line?)?,
    };
    let (rule, at) = (strictest.rule.clone(), strictest.at.clone());
    Some((PolicyCheck::Rule, alloc::vec![Finding { rule, at, ..finding }]))
}

/// A denial of a command that contacts another computer where commands have no network. A path such as `./lib`, or
/// something of the workspace that it reads, may be what it takes in place of one. Where commands are only judged, the
/// answer is what the policy says of them.
fn without_network(
    policy: &Policy,
    input: &PolicyInput<'_>,
    line: &CommandLine<'_>,
) -> Option<Finding> {
    let is_confined = matches!(input.facts.sandbox, Some(Ok(_)));
    let there = input.facts.paths.iter().filter(|fact| fact.kind != FileKind::Missing);
    let is_there = |path: &str| there.clone().any(|fact| fact.path.as_str().ends_with(path));
    let may_be_local = |argv: &ParsedArgv| {
        let mut read = argv.paths.iter().filter(|found| found.access != PathAccess::Write);
        let names_path = read.any(|found| found.path.starts_with('.') || is_there(&found.path));
        names_path && !argv.argument_effects.iter().any(|all| all.effects.contains(Effect::Network))
    };
    // A weaker sandbox has no network to itself that could lead to a proxy alone.
    let is_weak =
        matches!(&input.facts.sandbox, Some(Ok(status)) if status.tier < SandboxTier::Full);
    let has_none = is_confined && (is_weak || policy.sandbox.network == NetworkAccess::None);
    let needs_one = line.effects().contains(Effect::Network);
    let is_certain = has_none && needs_one && !line.parsed_argvs().any(may_be_local);
    let why =
        |name| format!("`{name}` would contact another computer, and commands have no network");
    is_certain.then(|| Finding::deny(Code::ExecNoNetwork, why(line.display_name())))
}

/// The powers that a call needs: also that of a secret, if one is sent with it, and that to reach another computer,
/// if it is a command that can.
fn required_capabilities(
    policy: &Policy,
    input: &PolicyInput<'_>,
    line: Option<&CommandLine<'_>>,
) -> Capabilities {
    let has_network = policy.sandbox.network == NetworkAccess::Proxy;
    let needs_network =
        has_network && line.is_some_and(|line| line.effects().contains(Effect::Network));
    let capabilities = match needs_network {
        true => input.capabilities().with(Capability::NetEgress),
        false => input.capabilities(),
    };
    let Action::Fetch { url: UrlTarget { parsed: ParsedUrl::Url(address), .. }, .. } = input.action
    else {
        return capabilities;
    };
    match policy.secrets_sent_to(input.tool, address).next() {
        Some(_) => capabilities.with(Capability::SecretsAccess),
        None => capabilities,
    }
}

fn no_rule(policy: &Policy, input: &PolicyInput<'_>) -> Finding {
    let named: Vec<&str> = policy.tools.keys().map(ToolName::as_str).collect();
    let suggestion = match named.as_slice() {
        [] => "the policy names no tool at all".to_string(),
        named => format!("the policy names `{}`", named.join("`, `")),
    };
    Finding::deny(Code::NoRule, format!("the policy does not name `{}`", input.tool))
        .with_suggestion(Some(suggestion))
}

fn check_constraints(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    (command, capabilities): (Option<&LocatedCommand<'_>>, Capabilities),
) -> Vec<Finding> {
    let mut findings = Vec::new();
    match (&rule.constraint, input.action) {
        (
            Constraint::Files(files),
            Action::Read { path, .. }
            | Action::Write { path, .. }
            | Action::Edit { path, .. }
            | Action::List { path, .. }
            | Action::Search { path, .. },
        ) => findings.extend(files::check(files, rule, input, path)),
        (Constraint::Files(files), Action::Delete { path, .. }) => {
            let item = || default_verdict(policy, rule, input.tool, capabilities);
            findings.extend(files::check_tree(files, rule, input, path, item));
        }
        (Constraint::Fetch(fetch), Action::Fetch { url, headers }) => {
            findings.extend(fetch::check(fetch, rule, input, url, headers));
        }
        (Constraint::Exec(exec), Action::Run { argv, cwd, .. }) if let Some(command) = command => {
            findings.extend(exec::check(policy, exec, rule, input, (argv, cwd), command));
        }
        (Constraint::Git(_), Action::Git { query: ask }) => {
            findings.extend(git_and_tests::check_git(policy, input, ask))
        }
        (Constraint::Test(test), Action::Test { filter }) => {
            let asked = (filter.as_deref(), capabilities);
            findings.extend(git_and_tests::check_test(policy, (rule, test), input, asked));
        }
        (Constraint::Person, action) if is_user_action(action) => {}
        (Constraint::Person, Action::Apply { changes, .. }) => {
            let path = |change: &_| applicable_path(policy, change);
            findings.extend(apply::check_changes(policy, changes, path));
        }
        (Constraint::Person, Action::Undo { changes, .. }) => {
            findings.extend(apply::check_changes(policy, changes, restorable_path));
        }
        _ => {
            let reason = format!("`{}` cannot do that", input.tool);
            findings.push(Finding::deny(Code::EngineFault, reason));
        }
    }
    if let (Constraint::Files(files), Action::Write { mode, .. }, true) =
        (&rule.constraint, input.action, findings.is_empty())
    {
        findings.extend(files::mode_verdict(files, rule, input.tool.as_str(), *mode));
    }
    // Nothing in the rule had a word of its own: its own word counts, or else the profile's.
    if findings.is_empty() {
        findings.push(default_verdict(policy, rule, input.tool, capabilities));
    }
    findings.extend(files::check_content(policy, input));
    findings
}
