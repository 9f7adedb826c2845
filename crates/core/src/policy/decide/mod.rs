//! One function decides. It is pure and total, and every caller gets the same answer from it.
//!
//! Checks do not answer; they leave findings. The strictest finding is the decision, the first of
//! several that are equally strict, and where there is none the call is denied.

mod apply;
mod budget;
mod command;
mod consequences;
mod effects;
mod everything;
mod exec;
mod fetch;
mod files;
mod flow;
mod instructions;
mod layers;
mod narrow;
mod never;
mod questions;
mod quota;
mod reach;
mod script;
mod stakes;
mod trace;
mod walls;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, Facts, Parsed, UrlTarget};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::decision::{Decision, Verdict};
use crate::digest::Digest;
use crate::policy::bounds::{Bounds, Reach, Scope, Sight, named, sound};
use crate::policy::commands::ExecRule;
use crate::policy::decide::command::Command;
use crate::policy::decide::reach::Scopes;
use crate::policy::model::{Constraint, Policy, Source, ToolRule};
use crate::policy::usage::Usage;
use crate::programs::CommandLine;
use crate::risk::Risk;
use crate::tool::ToolName;
use trace::weigh;

pub use instructions::written_by_words;
pub use trace::{Check, Trace};

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
    /// The arguments that derive from content that nobody vouches for.
    pub tainted: &'c [String],
    /// The digest of its arguments, by which an equal call is known.
    pub call: Option<Digest>,
}

impl Case<'_> {
    /// The powers that the call needs by what it means. Having masks put back into what a file holds
    /// tells what that is.
    pub(super) fn capabilities(&self) -> Capabilities {
        let own = self.action.capabilities();
        match self.action {
            Action::Write { .. } if self.facts.masks > 0 => own.with(Capability::FsRead),
            _ => own,
        }
    }
}

/// A decision, and the bounds that come with it where it allows.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The bounds.
    pub bounds: Bounds,
    /// What was asked on the way.
    pub trace: Trace,
    /// What rules say that the call needs besides what it means; the decision counts it in.
    pub named: Capabilities,
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

    /// The decision that it makes.
    fn decision(self, capabilities: Capabilities, risk: Risk) -> Decision {
        // Whoever is refused is told what to do, if nothing better the code's own next step.
        let next_step = || Some(self.code.next_step().to_string());
        let suggestion = match self.verdict {
            Verdict::Allow => self.suggestion,
            _ => self.suggestion.or_else(next_step),
        };
        Decision {
            verdict: self.verdict,
            code: self.code,
            rule: self.rule,
            at: self.at,
            risk,
            capabilities,
            reason: self.reason,
            suggestion,
            // A person's word turns a question into a yes, and nothing else.
            liftable: matches!(self.verdict, Verdict::Ask | Verdict::AskEach),
        }
    }

    /// The same with a way forward.
    pub(crate) fn suggest(self, suggestion: Option<impl Into<String>>) -> Self {
        Self { suggestion: suggestion.map(Into::into), ..self }
    }
}

/// Decides a case, by the policy and by everything that tightens it.
#[must_use]
pub fn decide(policy: &Arc<Policy>, case: &Case<'_>) -> Judgement {
    layers::tightened(policy, case, alone(policy, case))
}

/// Decides a case by a policy without its layers.
fn alone(policy: &Arc<Policy>, case: &Case<'_>) -> Judgement {
    match case.action {
        Action::Command { steps, .. } => script::decide(policy, case, steps),
        _ => simple(policy, case),
    }
}

/// Decides a case that is about one thing.
fn simple(policy: &Arc<Policy>, case: &Case<'_>) -> Judgement {
    about(policy, case, command::line(case).as_ref())
}

/// Decides a case that is about one thing; if it is a command line, one that was read.
fn about(policy: &Arc<Policy>, case: &Case<'_>, line: Option<&CommandLine<'_>>) -> Judgement {
    let command = line.map(|line| Command::of(case, line));
    // A run that has used itself up says so, whatever it asks for.
    let mut found = alloc::vec![
        (Check::Budgets, budget::check(policy, case)),
        (Check::Never, never::check(policy, case, command.as_ref())),
    ];
    let rule = policy.tool(case.tool);
    let Scopes { reads, writes, needs: named } = match (rule.zip(command.as_ref()), case.action) {
        (Some((rule, own)), _) => reach::reach(policy, rule, own),
        (None, Action::Test { .. }) => {
            Scopes { writes: narrow::test_writes(policy), ..Scopes::default() }
        }
        (None, _) => Scopes::default(),
    };
    let own = needed(policy, case).union(named);
    // What may be written may be removed, too.
    let capabilities = match writes {
        Some(_) => own.with(Capability::FsWrite).with(Capability::FsDelete),
        None => own,
    };
    match rule {
        Some(rule) => {
            let command = command.as_ref();
            let said = constraints(policy, rule, case, (command, capabilities));
            found.extend([(Check::Rule, said), (Check::Quota, quota::check(rule, case))]);
        }
        None => found.push((Check::Rule, alloc::vec![no_rule(policy, case)])),
    }
    let ceiling = stakes::ceiling(policy, capabilities).into_iter();
    let ceiling = ceiling.chain(walls::unconfined(policy, capabilities)).collect();
    let (risk, hazards) = stakes::of(policy, rule, case, line, capabilities);
    let too_risky = stakes::check(policy, case, risk, &hazards);
    let too_risky = too_risky.into_iter().chain(stakes::unknown(policy, line)).collect();
    found.extend([(Check::Profile, ceiling), (Check::Risk, too_risky)]);
    let (decision, trace) = weigh(found, capabilities, risk);
    let bounds = match rule {
        Some(rule) if decision.verdict != Verdict::Deny => {
            bounds(policy, rule, case, (reads, writes))
        }
        _ => Bounds::Nothing,
    };
    Judgement { decision, bounds, trace, named }
}

/// The powers that a call needs: also that of a secret, if one is sent with it.
fn needed(policy: &Policy, case: &Case<'_>) -> Capabilities {
    let own = case.capabilities();
    let Action::Fetch { url: UrlTarget { parsed: Parsed::Url(address), .. }, .. } = case.action
    else {
        return own;
    };
    match policy.sent_to(case.tool, address).next() {
        Some(_) => own.with(Capability::SecretsAccess),
        None => own,
    }
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
) -> Vec<Finding> {
    let mut findings = Vec::new();
    match (&rule.constraint, case.action) {
        (
            Constraint::Files(files),
            Action::Read { path, .. }
            | Action::Write { path, .. }
            | Action::Edit { path, .. }
            | Action::List { path, .. }
            | Action::Search { path, .. },
        ) => findings.extend(files::check(files, rule, case, path)),
        (Constraint::Files(files), Action::Delete { path, .. }) => {
            let own = || own_word(policy, rule, case.tool, capabilities);
            findings.extend(files::check_tree(files, rule, case, path, own));
        }
        (Constraint::Fetch(fetch), Action::Fetch { url, headers }) => {
            findings.extend(fetch::check(fetch, rule, case, url, headers));
        }
        (Constraint::Exec(exec), Action::Run { argv, cwd, .. }) if let Some(command) = command => {
            findings.extend(exec::check(policy, exec, rule, case, (argv, cwd), command));
        }
        (Constraint::Git(_), Action::Git { ask }) => {
            findings.extend(narrow::git(policy, case, ask))
        }
        (Constraint::Test(test), Action::Test { filter }) => {
            let asked = (filter.as_deref(), capabilities);
            findings.extend(narrow::test(policy, (rule, test), case, asked));
        }
        (Constraint::Apply, Action::Apply { changes, .. }) => {
            findings.extend(apply::check(policy, changes, sound));
        }
        (Constraint::Apply, Action::Undo { changes, .. }) => {
            findings.extend(apply::check(policy, changes, named));
        }
        _ => {
            let reason = format!("`{}` cannot do that", case.tool);
            findings.push(Finding::deny(Code::EngineFault, reason));
        }
    }
    if let (Constraint::Files(files), Action::Write { mode, .. }, true) =
        (&rule.constraint, case.action, findings.is_empty())
    {
        findings.extend(files::mode_word(files, rule, case.tool.as_str(), *mode));
    }
    // Nothing in the rule had a word of its own: its own word counts, or else the profile's.
    if findings.is_empty() {
        findings.push(own_word(policy, rule, case.tool, capabilities));
    }
    findings.extend(files::check_content(policy, case));
    findings
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
    if let Some(finding) = stakes::ceiling(policy, capabilities) {
        return finding;
    }
    let verdict = policy.profile.word(capabilities);
    let powers: Vec<String> = capabilities.iter().map(|own| stakes::label(policy, own)).collect();
    let name = &policy.profile.name;
    let subject = format!("{} under the profile `{name}`", powers.join(", "));
    let source = policy.profile.source.as_ref().unwrap_or(&rule.source);
    Finding::word(verdict, words(verdict, &subject)).by(format!("profile/{name}"), source)
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

fn bounds(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    case: &Case<'_>,
    (reads, writes): (Option<Scope>, Option<Scope>),
) -> Bounds {
    let (timeout_ms, left) = (rule.timeout_ms, quota::bytes_left(rule, case));
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
        (Constraint::Files(_), Action::Write { .. }) | (Constraint::Apply, _) => {
            Bounds::Write { timeout_ms }
        }
        (Constraint::Files(files), Action::Edit { .. }) => Bounds::Edit {
            bytes: files.bytes_max,
            quotes: files::names_reading(policy),
            timeout_ms,
        },
        (Constraint::Files(_), Action::Delete { path, .. }) => match path.inside() {
            Some(path) => Bounds::Delete { path: files::seen(case, path).clone(), timeout_ms },
            None => Bounds::Nothing,
        },
        (Constraint::Fetch(fetch), Action::Fetch { .. }) => Bounds::Fetch {
            reach: Reach::new(Arc::clone(policy), case.tool.clone()),
            bytes_max: fetch.bytes_max.min(left).min(budget::fetch_left(policy, case)),
            inflated_max: fetch.inflated_max,
            redirects: fetch.redirects,
            timeout_ms,
        },
        (Constraint::Exec(exec), Action::Run { argv, timeout_ms, .. }) => {
            run_bounds(policy, exec, case, (argv, *timeout_ms), (reads, writes))
        }
        (Constraint::Git(git), Action::Git { ask }) => {
            narrow::git_bounds(policy, (rule, git), ask, left)
        }
        (Constraint::Test(test), Action::Test { .. }) => narrow::test_bounds(policy, test, writes),
        _ => Bounds::Nothing,
    }
}

fn run_bounds(
    policy: &Policy,
    exec: &ExecRule,
    case: &Case<'_>,
    (argv, asked_ms): (&[String], Option<u64>),
    (reads, writes): (Option<Scope>, Option<Scope>),
) -> Bounds {
    let mut confinement = exec::confinement(policy, exec, argv, asked_ms);
    let limits = confinement.limits;
    let clamped = asked_ms.is_some_and(|asked| asked > limits.timeout_ms);
    let environment = Box::new(exec.env.clone());
    if case.action.is_unconfined() {
        return Bounds::Unconfined { limits, clamped, environment };
    }
    if writes.is_some() {
        confinement.workspace = policy.sandbox.workspace;
    }
    Bounds::Run { confinement, reads, writes, clamped, environment }
}

/// The time of a search in milliseconds (NFR-10).
const SEARCH_MS: u64 = crate::limits::SEARCH_TIME.as_millis() as u64;
