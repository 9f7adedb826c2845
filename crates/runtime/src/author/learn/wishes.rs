//! What a refused call wished for, in the words of a policy, or why it stays refused.

use std::sync::Arc;

use capsule_core::action::{Action, Facts, ParsedUrl, PathLocation, sub_actions};
use capsule_core::code::Code;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::path::WorkspacePath;
use capsule_core::policy::{Constraint, DecisionTrace, FileRule, Policy, PolicyCheck, PolicyInput};
use capsule_core::tool::ToolName;
use capsule_core::url::HttpUrl;

use super::programs::{program, why_not};
use crate::author::Past;
use crate::check::trace_case;

/// What a rule would have to open, and with which word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wish {
    pub(super) what: What,
    /// What was asked becomes allowed; what was denied becomes a question, unless it only looks.
    pub(super) word: Verdict,
}

/// What a rule would have to open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A path, for a tool.
    Path(ToolName, WorkspacePath),
    /// A page: its origin, and its path.
    Page(String, String),
    /// A program, with its subcommands.
    Program(Vec<String>),
    /// A tool as a whole, of those that only look.
    Tool(ToolName),
}

/// What a call wished for; a command may wish for several things.
///
/// # Errors
/// Says in words why no rule is proposed.
pub(super) fn wishes(
    past: &Past,
    policy: &Arc<Policy>,
    base: &Arc<Policy>,
) -> Result<Vec<Wish>, String> {
    let Past { tool, action, facts, usage, tainted, call, .. } = past;
    let case = PolicyInput { tool, action, facts, usage, tainted, args_digest: Some(*call) };
    for own in [policy, base] {
        forbidden(&trace_case(own, &case).1)?;
    }
    let (_, trace) = trace_case(policy, &case);
    beyond_rules(&trace)?;
    let mut wishes = Vec::new();
    for (tool, action, facts) in acts(past) {
        let own = PolicyInput { tool: &tool, action: &action, facts: &facts, ..case };
        let (decision, trace) = trace_case(policy, &own);
        if decision.verdict == Verdict::Allow
            || policy.tool(&tool).is_none() && tool != *past.tool()
        {
            continue;
        }
        beyond_rules(&trace)?;
        for said in said_by_rules(&trace) {
            let wish = wish(policy, &own, said)?;
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

impl Past {
    const fn tool(&self) -> &ToolName {
        &self.tool
    }
}

/// What a call does, one thing at a time: a command does several.
fn acts(past: &Past) -> Vec<(ToolName, Action, Facts)> {
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
fn forbidden(trace: &DecisionTrace) -> Result<(), String> {
    let found = each(trace).find(|(_, own)| matches!(own.code, Code::Never | Code::BaseDenied));
    match found {
        Some((_, own)) => {
            let rule = own.rule.as_deref().unwrap_or("an invariant");
            Err(format!("`{rule}` forbids it, and no proposal touches that: {}", own.reason))
        }
        None => Ok(()),
    }
}

/// What no rule for paths, addresses or programs can change: budgets, quotas, profiles, risk, and
/// what is said about a command as a whole.
fn beyond_rules(trace: &DecisionTrace) -> Result<(), String> {
    let refuses = |(check, own): &(PolicyCheck, &Decision)| {
        own.verdict != Verdict::Allow && *check != PolicyCheck::Rule
    };
    match each(trace).find(refuses) {
        Some((_, own)) => Err(format!("no rule of a tool can change it: {}", own.reason)),
        None => Ok(()),
    }
}

fn said_by_rules(trace: &DecisionTrace) -> impl Iterator<Item = &Decision> {
    let refuses = |(check, own): &(PolicyCheck, &Decision)| {
        *check == PolicyCheck::Rule && own.verdict != Verdict::Allow
    };
    each(trace).filter(refuses).map(|(_, own)| own)
}

fn each(trace: &DecisionTrace) -> Box<dyn Iterator<Item = (PolicyCheck, &Decision)> + '_> {
    let own = trace.checks.iter().flat_map(|(check, said)| said.iter().map(|own| (*check, own)));
    Box::new(own.chain(trace.parts.iter().flat_map(each)))
}

/// What would have to be open so that a rule no longer says this.
fn wish(policy: &Policy, case: &PolicyInput<'_>, said: &Decision) -> Result<Wish, String> {
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
            file(policy, case, place, said)
        }
        Action::Fetch { url, .. } => match &url.parsed {
            ParsedUrl::Url(address) => page(case, address, said),
            ParsedUrl::Refused(_) => Err(said.reason.clone()),
        },
        Action::Run { argv, .. } => {
            why_not(argv, case.facts, said)?;
            program(policy, case, argv, said)
        }
        Action::Git { .. } if matches!(said.code, Code::NoRule | Code::Asked) => {
            own_word(case.tool, said)?;
            Ok(Wish { what: What::Tool(case.tool.clone()), word: Verdict::Allow })
        }
        Action::Test { .. } if said.code == Code::NoRule => {
            Err("only its author can name the command of the tests".into())
        }
        Action::Test { .. } => {
            Err("the tests run the project's code, which stays a question".into())
        }
        Action::Git { .. }
        | Action::Command { .. }
        | Action::Apply { .. }
        | Action::Undo { .. } => Err(said.reason.clone()),
    }
}

/// That it is the tool's own word or the profile's that asks: a narrower rule's word is meant.
fn own_word(tool: &ToolName, said: &Decision) -> Result<(), String> {
    match said.code == Code::Asked && !is_own_word(tool, said) {
        true => {
            let by = said.rule.as_deref().unwrap_or_default();
            Err(format!("the rule `{by}` asks, and only changing it would help"))
        }
        false => Ok(()),
    }
}

/// Whether it is the tool's own word or the profile's that decides.
pub(crate) fn is_own_word(tool: &ToolName, said: &Decision) -> bool {
    let by = said.rule.as_deref().unwrap_or_default();
    by == tool.as_str() || by.starts_with("profile/")
}

fn file(
    policy: &Policy,
    case: &PolicyInput<'_>,
    path: &WorkspacePath,
    said: &Decision,
) -> Result<Wish, String> {
    own_word(case.tool, said)?;
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
        Code::PathNotAllowed => unopened(policy.file_rule(case.tool), case.action, path, real)?,
        Code::RuleDenied => return Err(named(said)),
        _ => return Err(said.reason.clone()),
    }
    let looks =
        matches!(case.action, Action::Read { .. } | Action::List { .. } | Action::Search { .. });
    let word = if looks || said.code == Code::Asked { Verdict::Allow } else { Verdict::Ask };
    Ok(Wish { what: What::Path(case.tool.clone(), real.clone()), word })
}

/// That a path is closed because nobody opened it, and not because somebody closed it.
fn unopened(
    files: Option<&FileRule>,
    action: &Action,
    path: &WorkspacePath,
    real: &WorkspacePath,
) -> Result<(), String> {
    let Some(files) = files else { return Ok(()) };
    if let Some(own) = files.deny.iter().find(|own| own.covers(path) || own.covers(real)) {
        return Err(format!("the policy's `paths.deny: {}` closes it by name", own.text));
    }
    match action {
        Action::Write { bytes, .. } | Action::Edit { bytes, .. } if *bytes > files.bytes_max => {
            Err(format!("it is larger than `limits.bytes_max`, {} bytes", files.bytes_max))
        }
        _ => Ok(()),
    }
}

/// A rule that denies by name is meant.
pub(super) fn named(said: &Decision) -> String {
    let rule = said.rule.as_deref().unwrap_or("a rule");
    format!("the rule `{rule}` denies it by name, which is meant: {}", said.reason)
}

fn page(case: &PolicyInput<'_>, address: &HttpUrl, said: &Decision) -> Result<Wish, String> {
    own_word(case.tool, said)?;
    let word = match said.code {
        Code::Asked => Verdict::Allow,
        Code::NoRule | Code::NetNotAllowed => Verdict::Ask,
        Code::RuleDenied => return Err(named(said)),
        _ => return Err(said.reason.clone()),
    };
    // Neither what is asked for nor where in the page stands in a policy.
    let shown = address.as_str();
    let bare = shown.split(['?', '#']).next().unwrap_or(shown);
    let (scheme, rest) = bare.split_once("://").ok_or_else(|| said.reason.clone())?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    Ok(Wish { what: What::Page(format!("{scheme}://{host}"), path.into()), word })
}

/// The constraints on programs that a policy puts on a tool.
pub(super) fn exec_of<'p>(
    policy: &'p Policy,
    tool: &ToolName,
) -> Option<&'p capsule_core::policy::ExecRule> {
    match policy.tool(tool).map(|rule| &rule.constraint) {
        Some(Constraint::Exec(exec)) => Some(exec),
        _ => None,
    }
}
