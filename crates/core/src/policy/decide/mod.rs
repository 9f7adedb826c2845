//! One function decides. It is pure and total, and every caller gets the same answer from it.
//!
//! Checks do not answer; they leave findings. The strictest finding is the decision, the first of
//! several that are equally strict, and where there is none the call is denied.

mod apply;
mod budget;
mod command_line;
mod command_list;
mod command_scope;
mod consequences;
mod data_flow;
mod effects;
mod exec;
mod fetch;
mod files;
mod flags;
mod git_and_tests;
mod hard_deny;
mod instructions;
mod layers;
mod questions;
mod quota;
mod risk;
mod sandbox;
mod trace;
mod workspace_wipe;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::action::{Action, Facts, ParsedUrl, UrlTarget};
use crate::capability::{Capabilities, Capability};
use crate::decision::{Decision, Verdict};
use crate::policy::commands::ExecRule;
use crate::policy::decide::command_line::LocatedCommand;
use crate::policy::decide::command_scope::CommandScopes;
use crate::policy::model::{Constraint, Policy, ToolRule};
use crate::policy::restrictions::{
    EgressScope, ListingScope, PathScope, Restrictions, applicable_path, restorable_path,
};
use crate::policy::source_location::SourceLocation;
use crate::policy::usage::Usage;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_command::specs::CommandLine;
use trace::strictest;

pub use instructions::written_by_words;
pub use trace::{DecisionTrace, PolicyCheck};

pub(crate) use fetch::{judge_address, judge_url};
pub(crate) use files::{child_placeholder, is_listable};

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'c> {
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
    pub args_digest: Option<Digest>,
}

impl PolicyInput<'_> {
    /// The powers that the call needs by what it means. Having masks put back into what a file holds
    /// tells what that is.
    pub(super) fn capabilities(&self) -> Capabilities {
        let capabilities = self.action.capabilities();
        match self.action {
            Action::Write { .. } if self.facts.masks > 0 => capabilities.with(Capability::FsRead),
            _ => capabilities,
        }
    }
}

/// A decision, and the bounds that come with it where it allows.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The bounds.
    pub restrictions: Restrictions,
    /// What was asked on the way.
    pub trace: DecisionTrace,
    /// What rules say that the call needs besides what it means; the decision counts it in.
    pub named_capabilities: Capabilities,
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
    pub(crate) fn with_verdict(verdict: Verdict, reason: impl Into<String>) -> Self {
        let code = match verdict {
            Verdict::Allow => Code::Allowed,
            Verdict::Ask | Verdict::AskEach => Code::Asked,
            Verdict::Deny => Code::RuleDenied,
        };
        Self { verdict, ..Self::deny(code, reason) }
    }

    /// The same under a rule and its place.
    pub(crate) fn under_rule(self, rule: impl Into<String>, source: &SourceLocation) -> Self {
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
            approvable: matches!(self.verdict, Verdict::Ask | Verdict::AskEach),
        }
    }

    /// The same with a way forward.
    pub(crate) fn with_suggestion(self, suggestion: Option<impl Into<String>>) -> Self {
        Self { suggestion: suggestion.map(Into::into), ..self }
    }
}

/// Decides a case, by the policy and by everything that tightens it.
#[must_use]
pub fn decide(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    layers::apply_layers(policy, input, decide_unlayered(policy, input))
}

/// Decides a case by a policy without its layers.
fn decide_unlayered(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    match input.action {
        Action::Command { steps, .. } => command_list::decide(policy, input, steps),
        _ => decide_single(policy, input),
    }
}

/// Decides a case that is about one thing.
fn decide_single(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    evaluate_call(policy, input, command_line::parse_command_line(input).as_ref())
}

/// Decides a case that is about one thing; if it is a command line, one that was read.
fn evaluate_call(
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
    let rule = policy.tool(input.tool);
    let CommandScopes { reads, writes, needs: named } =
        match (rule.zip(command.as_ref()), input.action) {
            (Some((rule, command)), _) => command_scope::command_scopes(policy, rule, command),
            (None, Action::Test { .. }) => CommandScopes {
                writes: git_and_tests::test_writes(policy),
                ..CommandScopes::default()
            },
            (None, _) => CommandScopes::default(),
        };
    let item = required_capabilities(policy, input).union(named);
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
    let too_risky = too_risky.into_iter().chain(risk::check_unknown(policy, line)).collect();
    found.extend([(PolicyCheck::Profile, ceiling), (PolicyCheck::Risk, too_risky)]);
    let (decision, trace) = strictest(found, capabilities, risk);
    let bounds = match rule {
        Some(rule) if decision.verdict != Verdict::Deny => {
            restrictions(policy, rule, input, (reads, writes))
        }
        _ => Restrictions::Nothing,
    };
    Judgement { decision, restrictions: bounds, trace, named_capabilities: named }
}

/// The powers that a call needs: also that of a secret, if one is sent with it.
fn required_capabilities(policy: &Policy, input: &PolicyInput<'_>) -> Capabilities {
    let capabilities = input.capabilities();
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
        (Constraint::Apply, Action::Apply { changes, .. }) => {
            findings.extend(apply::check_changes(policy, changes, applicable_path));
        }
        (Constraint::Apply, Action::Undo { changes, .. }) => {
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

/// The tool's own word, or the profile's.
fn default_verdict(
    policy: &Policy,
    rule: &ToolRule,
    tool: &ToolName,
    capabilities: Capabilities,
) -> Finding {
    let tool = tool.as_str();
    if let Some(verdict) = rule.decision {
        let reason = reason_or(&rule.because, || verdict_text(verdict, &format!("`{tool}`")));
        return Finding::with_verdict(verdict, reason)
            .under_rule(tool, &rule.source)
            .with_suggestion(rule.suggest.clone());
    }
    if let Some(finding) = risk::check_ceiling(policy, capabilities) {
        return finding;
    }
    let verdict = policy.profile.strictest_verdict(capabilities);
    let powers: Vec<String> =
        capabilities.iter().map(|capability| risk::capability_label(policy, capability)).collect();
    let name = &policy.profile.name;
    let subject = format!("{} under the profile `{name}`", powers.join(", "));
    let source = policy.profile.source.as_ref().unwrap_or(&rule.source);
    Finding::with_verdict(verdict, verdict_text(verdict, &subject))
        .under_rule(format!("profile/{name}"), source)
}

/// What a verdict says about something.
pub(crate) fn verdict_text(verdict: Verdict, subject: &str) -> String {
    match verdict {
        Verdict::Allow => format!("{subject} is allowed"),
        Verdict::Ask => format!("{subject} needs an approval"),
        Verdict::AskEach => format!("{subject} needs an approval every time"),
        Verdict::Deny => format!("{subject} is denied"),
    }
}

/// The author's reason without its full stop, or else ours.
pub(crate) fn reason_or(theirs: &Option<String>, ours: impl FnOnce() -> String) -> String {
    match theirs {
        Some(text) => text.trim().trim_end_matches('.').to_string(),
        None => ours(),
    }
}

fn restrictions(
    policy: &Arc<Policy>,
    rule: &ToolRule,
    input: &PolicyInput<'_>,
    (reads, writes): (Option<PathScope>, Option<PathScope>),
) -> Restrictions {
    let (timeout_ms, left) = (rule.timeout_ms, quota::bytes_left(rule, input));
    match (&rule.constraint, input.action) {
        (Constraint::Files(files), Action::Read { limit, .. }) => {
            let asked = limit.unwrap_or(files.bytes);
            let bytes = asked.min(files.bytes_max).min(left);
            Restrictions::Read { bytes, clamped: bytes < asked, timeout_ms }
        }
        (Constraint::Files(files), Action::Search { limit, .. } | Action::List { limit, .. }) => {
            let asked = limit.unwrap_or(files.results);
            let results = asked.min(files.results_max);
            let sight = ListingScope::new(Arc::clone(policy), input.tool.clone());
            let timeout_ms = match input.action {
                Action::Search { .. } => timeout_ms.min(SEARCH_MS),
                _ => timeout_ms,
            };
            Restrictions::Listing { results, clamped: results < asked, timeout_ms, scope: sight }
        }
        (Constraint::Files(_), Action::Write { .. }) | (Constraint::Apply, _) => {
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
            run_restrictions(policy, exec, input, (argv, *timeout_ms), (reads, writes))
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

fn run_restrictions(
    policy: &Policy,
    exec: &ExecRule,
    input: &PolicyInput<'_>,
    (argv, asked_ms): (&[String], Option<u64>),
    (reads, writes): (Option<PathScope>, Option<PathScope>),
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
    Restrictions::Run { confinement, reads, writes, clamped, environment }
}

/// The time of a search in milliseconds (NFR-10).
const SEARCH_MS: u64 = capsule_base::limits::SEARCH_TIME.as_millis() as u64;
