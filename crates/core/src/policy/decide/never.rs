//! Invariants first: nothing lifts one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, Facts};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::path::WorkspacePath;
use crate::policy::decide::files::{any_child, real};
use crate::policy::decide::{Case, Finding, because};
use crate::policy::model::{Never, Policy};
use crate::programs::{CommandLine, Use};

pub(super) fn check(policy: &Policy, case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let command = match case.action {
        Action::Run { argv, .. } => Some(CommandLine::of(argv, case.facts.program.as_ref(), false)),
        _ => None,
    };
    for (rules, code) in [(&policy.never, Code::Never), (&policy.base_denials, Code::BaseDenied)] {
        found.extend(rules.iter().filter_map(|rule| broken(rule, code, case, command.as_ref())));
    }
    found
}

fn broken(
    rule: &Never,
    code: Code,
    case: &Case<'_>,
    command: Option<&CommandLine<'_>>,
) -> Option<Finding> {
    if rule.tool.as_ref().is_some_and(|tool| tool != case.tool) {
        return None;
    }
    let what = match command {
        Some(command) => {
            forbidden_line(rule, command).or_else(|| forbidden_word(rule, case, command))
        }
        None => None,
    };
    let what = what.or_else(|| forbidden_path(rule, case)).or_else(|| {
        (rule.tool.is_some() && rule.paths.is_empty() && rule.argv.is_empty())
            .then(|| format!("`{}`", case.tool))
    })?;
    let reason = format!(
        "{what}: {}",
        because(&rule.because, || format!("forbidden by the rule `{}`", rule.id))
    );
    Some(
        Finding::deny(code, reason).by(rule.id.clone(), &rule.source).suggest(rule.suggest.clone()),
    )
}

fn forbidden_line(rule: &Never, command: &CommandLine<'_>) -> Option<String> {
    let matches = rule.argv.iter().any(|pattern| pattern.matches(command));
    matches.then(|| format!("`{}`", command.shown()))
}

/// A path among the arguments of a program whose arguments are known. A word that only may be a
/// path is taken for one: what an invariant protects is not read by any other name either.
fn forbidden_word(rule: &Never, case: &Case<'_>, command: &CommandLine<'_>) -> Option<String> {
    let mut words = command.readings().flat_map(|reading| &reading.paths);
    words.find_map(|used| {
        let power = Capabilities::of(match used.usage {
            Use::Write => Capability::FsWrite,
            Use::Read | Use::ReadTree => Capability::FsRead,
        });
        let paths = case.action.argument(used, case.facts).ok()?;
        let covered = paths.iter().any(|path| {
            covers(rule, case.facts, path, power)
                || (used.usage == Use::ReadTree && covers_beneath(rule, case.facts, path, power))
        });
        covered.then(|| format!("`{}`", used.path))
    })
}

/// Whether the rule protects whatever is in a folder: `**/.ssh/**` and the folder `.ssh`.
fn covers_beneath(rule: &Never, facts: &Facts, path: &WorkspacePath, power: Capabilities) -> bool {
    let real = facts.at(path).and_then(real).unwrap_or(path);
    [path, real].into_iter().any(|folder| covers(rule, facts, &any_child(folder), power))
}

fn forbidden_path(rule: &Never, case: &Case<'_>) -> Option<String> {
    let target = case.action.path()?;
    let power = match case.action {
        Action::Run { .. } => Capabilities::of(Capability::FsMeta),
        action => action.capabilities(),
    };
    covers(rule, case.facts, target.inside()?, power).then(|| format!("`{}`", target.asked))
}

/// Whether the rule protects a path, by its text, by where it leads, or by what is there.
fn covers(rule: &Never, facts: &Facts, path: &WorkspacePath, power: Capabilities) -> bool {
    if !rule.capabilities.intersects(power) {
        return false;
    }
    let fact = facts.at(path);
    if rule.id == Never::OWN_FILES && fact.is_some_and(|fact| fact.ours) {
        return true;
    }
    let real = fact.and_then(real);
    let alias = fact.and_then(|fact| fact.alias.as_ref());
    [Some(path), real, alias].into_iter().flatten().any(|name| rule.covers(name))
}
