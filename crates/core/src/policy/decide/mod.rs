//! One function decides. It is pure and total, and every caller gets the same answer from it.
//!
//! Checks do not answer; they leave findings. The strictest finding is the decision, the first of
//! several that are equally strict, and where there is none the call is denied.

mod apply;
mod command;
mod exec;
mod fetch;
mod files;
mod never;
mod quota;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, Facts};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::decision::{Decision, Verdict};
use crate::policy::bounds::{Bounds, Reach, Scope, Sight};
use crate::policy::decide::command::Command;
use crate::policy::model::{Constraint, Policy, Source, ToolRule};
use crate::policy::usage::Usage;
use crate::programs::CommandLine;
use crate::risk::Risk;
use crate::tool::ToolName;

pub(crate) use fetch::{judge_address, judge_url};
pub(crate) use files::{any_child, open_to};

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Case<'c> {
    /// The tool's id.
    pub tool: &'c ToolName,
    /// What the call means.
    pub action: &'c Action,
    /// What was found out about it.
    pub facts: &'c Facts,
    /// What the run has used so far.
    pub usage: &'c Usage,
}

/// A decision, and the bounds that come with it where it allows.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The bounds.
    pub bounds: Bounds,
}

/// What one check found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) code: Code,
    pub(crate) rule: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) reason: String,
    pub(crate) suggestion: Option<String>,
}

impl Finding {
    /// A check that denies.
    pub(crate) fn deny(code: Code, reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Deny,
            code,
            rule: None,
            at: None,
            reason: reason.into(),
            suggestion: None,
        }
    }

    /// The word of a rule.
    pub(crate) fn word(verdict: Verdict, reason: impl Into<String>) -> Self {
        let code = match verdict {
            Verdict::Allow => Code::Allowed,
            Verdict::Ask | Verdict::AskEach => Code::Asked,
            Verdict::Deny => Code::RuleDenied,
        };
        Self { verdict, ..Self::deny(code, reason) }
    }

    /// The same under a rule and its place.
    pub(crate) fn by(self, rule: impl Into<String>, source: &Source) -> Self {
        Self { rule: Some(rule.into()), at: Some(source.at.clone()), ..self }
    }

    /// The same with a way forward.
    pub(crate) fn suggest(self, suggestion: Option<impl Into<String>>) -> Self {
        Self { suggestion: suggestion.map(Into::into), ..self }
    }
}

/// Decides a case.
#[must_use]
pub fn decide(policy: &Arc<Policy>, case: &Case<'_>) -> Judgement {
    let line = command::line(case);
    let command = line.as_ref().map(|line| Command::of(case, line));
    let mut findings = never::check(policy, case, command.as_ref());
    let rule = policy.tool(case.tool);
    let (reads, writes) = match rule.zip(command.as_ref()) {
        Some((rule, own)) => exec::reach(policy, rule, case, own),
        None => (None, None),
    };
    let own = case.action.capabilities();
    // What may be written may be removed, too.
    let capabilities = match writes {
        Some(_) => own.with(Capability::FsWrite).with(Capability::FsDelete),
        None => own,
    };
    match rule {
        Some(rule) => {
            let command = command.as_ref();
            constraints(policy, rule, case, (command, capabilities), &mut findings);
            findings.extend(quota::check(rule, case));
        }
        None => findings.push(no_rule(policy, case)),
    }
    let strictest = findings.iter().map(|finding| finding.verdict).max().unwrap_or_default();
    let decided = findings
        .into_iter()
        .find(|finding| finding.verdict == strictest)
        .unwrap_or_else(|| Finding::deny(Code::NoRule, "no rule of the policy matches"));
    let bounds = match rule {
        Some(rule) if decided.verdict != Verdict::Deny => {
            bounds(policy, rule, case, (reads, writes))
        }
        _ => Bounds::Nothing,
    };
    // Whoever is refused is told what to do, if nothing better the code's own next step.
    let next_step = || Some(decided.code.next_step().to_string());
    let suggestion = match decided.verdict {
        Verdict::Allow => decided.suggestion,
        _ => decided.suggestion.or_else(next_step),
    };
    let decision = Decision {
        verdict: decided.verdict,
        code: decided.code,
        rule: decided.rule,
        at: decided.at,
        risk: risk(line.as_ref(), capabilities),
        capabilities,
        reason: decided.reason,
        suggestion,
        // A person's word turns a question into a yes, and nothing else.
        liftable: matches!(decided.verdict, Verdict::Ask | Verdict::AskEach),
    };
    Judgement { decision, bounds }
}

fn no_rule(policy: &Policy, case: &Case<'_>) -> Finding {
    let named: Vec<&str> = policy.tools.keys().map(ToolName::as_str).collect();
    let suggestion = match named.as_slice() {
        [] => "the policy names no tool at all".to_string(),
        named => format!("the policy names `{}`", named.join("`, `")),
    };
    Finding::deny(Code::NoRule, format!("the policy does not name `{}`", case.tool))
        .suggest(Some(suggestion))
}

fn constraints(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    case: &Case<'_>,
    (command, capabilities): (Option<&Command<'_>>, Capabilities),
    findings: &mut Vec<Finding>,
) {
    let before = findings.len();
    match (&rule.constraint, case.action) {
        (
            Constraint::Files(files),
            Action::Read { path, .. }
            | Action::Write { path, .. }
            | Action::List { path, .. }
            | Action::Search { path, .. },
        ) => findings.extend(files::check(files, rule, case, path)),
        (Constraint::Fetch(fetch), Action::Fetch { url, headers }) => {
            findings.extend(fetch::check(fetch, rule, case, url, headers));
        }
        (Constraint::Exec(exec), Action::Run { argv, cwd, .. }) if let Some(command) = command => {
            findings.extend(exec::check(policy, exec, rule, case, (argv, cwd), command));
        }
        (Constraint::Apply, Action::Apply { changes, .. }) => {
            findings.extend(apply::check(policy, changes));
        }
        _ => {
            let reason = format!("`{}` cannot do that", case.tool);
            findings.push(Finding::deny(Code::EngineFault, reason));
        }
    }
    // Nothing in the rule had a word of its own: its own word counts, or else the profile's.
    let silent = findings.get(before..).is_none_or(<[Finding]>::is_empty);
    if silent {
        findings.push(own_word(policy, rule, case.tool, capabilities));
    }
}

/// The tool's own word, or the profile's.
fn own_word(
    policy: &Policy,
    rule: &ToolRule,
    tool: &ToolName,
    capabilities: Capabilities,
) -> Finding {
    let tool = tool.as_str();
    if let Some(verdict) = rule.decision {
        let reason = because(&rule.because, || words(verdict, &format!("`{tool}`")));
        return Finding::word(verdict, reason).by(tool, &rule.source).suggest(rule.suggest.clone());
    }
    let verdict = policy.profile.word(capabilities);
    let powers: Vec<&str> = capabilities.iter().map(Capability::name).collect();
    let name = policy.profile.name;
    let subject = format!("`{}` under the profile `{name}`", powers.join("`, `"));
    Finding::word(verdict, words(verdict, &subject)).by(format!("profile/{name}"), &rule.source)
}

/// What a verdict says about something.
pub(crate) fn words(verdict: Verdict, subject: &str) -> String {
    match verdict {
        Verdict::Allow => format!("{subject} is allowed"),
        Verdict::Ask => format!("{subject} needs an approval"),
        Verdict::AskEach => format!("{subject} needs an approval every time"),
        Verdict::Deny => format!("{subject} is denied"),
    }
}

/// The author's reason without its full stop, or else ours.
pub(crate) fn because(theirs: &Option<String>, ours: impl FnOnce() -> String) -> String {
    match theirs {
        Some(text) => text.trim().trim_end_matches('.').to_string(),
        None => ours(),
    }
}

/// How much the call could cost, whatever is decided about it.
fn risk(line: Option<&CommandLine<'_>>, capabilities: Capabilities) -> Risk {
    match line {
        Some(line) => exec::risk(line),
        None if capabilities.have_effect() => Risk::Medium,
        None => Risk::Low,
    }
}

fn bounds(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    case: &Case<'_>,
    (reads, writes): (Option<Scope>, Option<Scope>),
) -> Bounds {
    let timeout_ms = rule.timeout_ms;
    let left = quota::bytes_left(rule, case);
    match (&rule.constraint, case.action) {
        (Constraint::Files(files), Action::Read { limit, .. }) => {
            let asked = limit.unwrap_or(files.bytes);
            let bytes = asked.min(files.bytes_max).min(left);
            Bounds::Read { bytes, clamped: bytes < asked, timeout_ms }
        }
        (Constraint::Files(files), Action::Search { limit, .. } | Action::List { limit, .. }) => {
            let asked = limit.unwrap_or(files.results);
            let results = asked.min(files.results_max);
            let sight = Sight::new(Arc::clone(policy), case.tool.clone());
            let timeout_ms = match case.action {
                Action::Search { .. } => timeout_ms.min(SEARCH_MS),
                _ => timeout_ms,
            };
            Bounds::Look { results, clamped: results < asked, timeout_ms, sight }
        }
        (Constraint::Files(_), Action::Write { .. })
        | (Constraint::Apply, Action::Apply { .. }) => Bounds::Write { timeout_ms },
        (Constraint::Fetch(fetch), Action::Fetch { .. }) => Bounds::Fetch {
            reach: Reach::new(Arc::clone(policy), case.tool.clone()),
            bytes_max: fetch.bytes_max.min(left),
            inflated_max: fetch.inflated_max,
            redirects: fetch.redirects,
            timeout_ms,
        },
        (Constraint::Exec(exec), Action::Run { argv, timeout_ms, .. }) => {
            let mut confinement = exec::confinement(policy, exec, argv, *timeout_ms);
            if writes.is_some() {
                confinement.workspace = policy.sandbox.workspace;
            }
            Bounds::Run {
                confinement,
                reads,
                writes,
                clamped: timeout_ms.is_some_and(|asked| asked > confinement.limits.timeout_ms),
                environment: exec.env.clone(),
            }
        }
        _ => Bounds::Nothing,
    }
}

/// The time of a search in milliseconds (NFR-10).
const SEARCH_MS: u64 = crate::limits::SEARCH_TIME.as_millis() as u64;
