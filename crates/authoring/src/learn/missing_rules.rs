//! What a refused call wished for, in the words of a policy, or why it stays refused.

use std::sync::Arc;

use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_base::url::HttpUrl;
use capsule_core::action::{Action, Facts, ParsedUrl, PathLocation, sub_actions};
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{
    DecisionTrace, FileRule, Judgement, Policy, PolicyCheck, PolicyInput, decide,
};
use capsule_core::tool::ToolName;

use super::missing_rule::{MissingRule, RuleSubject, named_denial};
use super::programs::{check_learnable, missing_program_rule};
use crate::recorded_calls::PastCall;

/// What a call wished for; a command may wish for several things.
///
/// # Errors
/// Says in words why no rule is proposed.
pub(super) fn missing_rules(
    past: &PastCall,
    policy: &Arc<Policy>,
    base: &Arc<Policy>,
) -> Result<Vec<MissingRule>, String> {
    let PastCall { tool, action, facts, usage, tainted, args_digest: call, .. } = past;
    let case = PolicyInput { tool, action, facts, usage, tainted, args_digest: Some(*call) };
    for item in [policy, base] {
        check_not_forbidden(&decide(item, &case).trace)?;
    }
    let trace = decide(policy, &case).trace;
    check_rule_dependent(&trace)?;
    let mut wishes = Vec::new();
    for (tool, action, facts) in actions_of(past) {
        let input = PolicyInput { tool: &tool, action: &action, facts: &facts, ..case };
        let Judgement { decision, trace, .. } = decide(policy, &input);
        if decision.verdict == Verdict::Allow
            || policy.tool(&tool).is_none() && tool != *past.tool()
        {
            continue;
        }
        check_rule_dependent(&trace)?;
        for said in rule_decisions(&trace) {
            let wish = missing_rule(policy, &input, said)?;
            if !wishes.contains(&wish) {
                wishes.push(wish);
            }
        }
    }
    match wishes.is_empty() {
        true => Err("no rule of its own decides about it".into()),
        false => Ok(wishes),
    }
}

impl PastCall {
    const fn tool(&self) -> &ToolName {
        &self.tool
    }
}

/// What a call does, one thing at a time: a command does several.
fn actions_of(past: &PastCall) -> Vec<(ToolName, Action, Facts)> {
    let Action::Command { steps, timeout_ms, .. } = &past.action else {
        return vec![(past.tool.clone(), past.action.clone(), past.facts.clone())];
    };
    let all = steps.iter().flat_map(|step| sub_actions(step, *timeout_ms, &past.facts));
    let act = |action: Action| {
        let tool = match action {
            Action::Write { .. } => ToolName::unchecked("fs.write"),
            Action::Read { .. } => ToolName::unchecked("fs.read"),
            _ => past.tool.clone(),
        };
        let name = match &action {
            Action::Run { argv, .. } => argv.first(),
            _ => None,
        };
        let program = name.and_then(|name| past.facts.program_named(name)).cloned();
        (tool, action, Facts { program, ..past.facts.clone() })
    };
    all.map(|part| act(part.action)).collect()
}

/// Invariants and the base policy: nothing is proposed where one of them speaks, lifted or not.
fn check_not_forbidden(trace: &DecisionTrace) -> Result<(), String> {
    let found = all_checks(trace)
        .find(|(_, decision)| matches!(decision.code, Code::Never | Code::BaseDenied));
    match found {
        Some((_, decision)) => {
            let rule = decision.rule.as_deref().unwrap_or("an invariant");
            Err(format!("`{rule}` forbids it, and no proposal touches that: {}", decision.reason))
        }
        None => Ok(()),
    }
}

/// What no rule for paths, addresses or programs can change: budgets, quotas, profiles, risk, and
/// what is said about a command as a whole.
fn check_rule_dependent(trace: &DecisionTrace) -> Result<(), String> {
    let refuses = |(check, decision): &(PolicyCheck, &Decision)| {
        decision.verdict != Verdict::Allow && *check != PolicyCheck::Rule
    };
    match all_checks(trace).find(refuses) {
        Some((_, decision)) => Err(format!("no rule of a tool can change it: {}", decision.reason)),
        None => Ok(()),
    }
}

fn rule_decisions(trace: &DecisionTrace) -> impl Iterator<Item = &Decision> {
    let refuses = |(check, decision): &(PolicyCheck, &Decision)| {
        *check == PolicyCheck::Rule && decision.verdict != Verdict::Allow
    };
    all_checks(trace).filter(refuses).map(|(_, decision)| decision)
}

fn all_checks(trace: &DecisionTrace) -> Box<dyn Iterator<Item = (PolicyCheck, &Decision)> + '_> {
    let item = trace
        .checks
        .iter()
        .flat_map(|(check, said)| said.iter().map(|decision| (*check, decision)));
    Box::new(item.chain(trace.parts.iter().flat_map(all_checks)))
}

/// What would have to be open so that a rule no longer says this.
fn missing_rule(
    policy: &Policy,
    case: &PolicyInput<'_>,
    said: &Decision,
) -> Result<MissingRule, String> {
    if said.verdict == Verdict::AskEach {
        return Err(format!("it is asked every time, which is meant: {}", said.reason));
    }
    match case.action {
        Action::Read { path, .. }
        | Action::Write { path, .. }
        | Action::Edit { path, .. }
        | Action::Delete { path, .. }
        | Action::List { path, .. }
        | Action::Search { path, .. } => {
            let place = path.inside().ok_or_else(|| said.reason.clone())?;
            path_rule(policy, case, place, said)
        }
        Action::Fetch { url, .. } => match &url.parsed {
            ParsedUrl::Url(address) => page_rule(case, address, said),
            ParsedUrl::Refused(_) => Err(said.reason.clone()),
        },
        Action::Run { argv, .. } => {
            check_learnable(argv, case.facts, said)?;
            missing_program_rule(policy, case, argv, said)
        }
        Action::Git { .. } if matches!(said.code, Code::NoRule | Code::Asked) => {
            check_tool_default(case.tool, said)?;
            Ok(MissingRule {
                subject: RuleSubject::Tool(case.tool.clone()),
                verdict: Verdict::Allow,
            })
        }
        Action::Test { .. } if said.code == Code::NoRule => {
            Err("only its author can name the command of the tests".into())
        }
        Action::Test { .. } => {
            Err("the tests run the project's code, which stays a question".into())
        }
        Action::Git { .. }
        | Action::Command { .. }
        | Action::AskUser { .. }
        | Action::Attach { .. }
        | Action::Agent { .. }
        | Action::Apply { .. }
        | Action::Undo { .. } => Err(said.reason.clone()),
    }
}

/// That it is the tool's own word or the profile's that asks: a narrower rule's word is meant.
fn check_tool_default(tool: &ToolName, said: &Decision) -> Result<(), String> {
    match said.code == Code::Asked && !said.is_tool_default(tool) {
        true => {
            let by = said.rule.as_deref().unwrap_or_default();
            Err(format!("the rule `{by}` asks, and only changing it would help"))
        }
        false => Ok(()),
    }
}

fn path_rule(
    policy: &Policy,
    case: &PolicyInput<'_>,
    path: &WorkspacePath,
    said: &Decision,
) -> Result<MissingRule, String> {
    check_tool_default(case.tool, said)?;
    let real = match case.facts.path_fact(path).map(|fact| &fact.real) {
        Some(PathLocation::Inside(real)) => real,
        Some(PathLocation::Outside(_)) => return Err(said.reason.clone()),
        None => path,
    };
    if real.is_root() {
        return Err("it is about the whole workspace, which is yours to open".into());
    }
    if matches!(case.action, Action::Delete { recursive: true, .. }) {
        return Err("a whole folder goes, which stays a question".into());
    }
    match said.code {
        Code::NoRule | Code::Asked => {}
        Code::PathNotAllowed => {
            check_unopened(policy.file_rule(case.tool), case.action, path, real)?
        }
        Code::RuleDenied => return Err(named_denial(said)),
        _ => return Err(said.reason.clone()),
    }
    let looks =
        matches!(case.action, Action::Read { .. } | Action::List { .. } | Action::Search { .. });
    let word = if looks || said.code == Code::Asked { Verdict::Allow } else { Verdict::Ask };
    Ok(MissingRule { subject: RuleSubject::Path(case.tool.clone(), real.clone()), verdict: word })
}

/// That a path is closed because nobody opened it, and not because somebody closed it.
fn check_unopened(
    files: Option<&FileRule>,
    action: &Action,
    path: &WorkspacePath,
    real: &WorkspacePath,
) -> Result<(), String> {
    let Some(files) = files else { return Ok(()) };
    if let Some(pattern) =
        files.deny.iter().find(|pattern| pattern.covers(path) || pattern.covers(real))
    {
        return Err(format!("the policy's `paths.deny: {}` closes it by name", pattern.text));
    }
    match action {
        Action::Write { bytes, .. } | Action::Edit { bytes, .. } if *bytes > files.bytes_max => {
            Err(format!("it is larger than `limits.bytes_max`, {} bytes", files.bytes_max))
        }
        _ => Ok(()),
    }
}

fn page_rule(
    case: &PolicyInput<'_>,
    address: &HttpUrl,
    said: &Decision,
) -> Result<MissingRule, String> {
    check_tool_default(case.tool, said)?;
    let word = match said.code {
        Code::Asked => Verdict::Allow,
        Code::NoRule | Code::NetNotAllowed => Verdict::Ask,
        Code::RuleDenied => return Err(named_denial(said)),
        _ => return Err(said.reason.clone()),
    };
    // Neither what is asked for nor where in the page stands in a policy.
    let shown = address.as_str();
    let bare = shown.split(['?', '#']).next().unwrap_or(shown);
    let (scheme, rest) = bare.split_once("://").ok_or_else(|| said.reason.clone())?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    Ok(MissingRule {
        subject: RuleSubject::Page(format!("{scheme}://{host}"), path.into()),
        verdict: word,
    })
}
