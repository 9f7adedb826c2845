//! Invariants first: nothing lifts one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, PathFact};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::path::WorkspacePath;
use crate::policy::decide::command::{Command, Word};
use crate::policy::decide::files::{any_child, real};
use crate::policy::decide::{Case, Finding, because};
use crate::policy::model::{Never, Policy};
use crate::programs::{CommandLine, Use};

pub(super) fn check(
    policy: &Policy,
    case: &Case<'_>,
    command: Option<&Command<'_>>,
) -> Vec<Finding> {
    let rules = policy.never.iter().map(|rule| (rule, Code::Never));
    let denials = policy.base_denials.iter().map(|rule| (rule, Code::BaseDenied));
    rules.chain(denials).filter_map(|(rule, code)| broken(rule, code, case, command)).collect()
}

fn broken(
    rule: &Never,
    code: Code,
    case: &Case<'_>,
    command: Option<&Command<'_>>,
) -> Option<Finding> {
    if rule.tool.as_ref().is_some_and(|tool| tool != case.tool) {
        return None;
    }
    let what = command.and_then(|command| {
        forbidden_line(rule, command.line).or_else(|| forbidden_word(rule, command))
    });
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
fn forbidden_word(rule: &Never, command: &Command<'_>) -> Option<String> {
    let covered = |Word { used, places }: &&Word<'_>| {
        let power = Capabilities::of(match used.usage {
            Use::Write => Capability::FsWrite,
            Use::Read | Use::ReadTree => Capability::FsRead,
        });
        let tree = used.usage == Use::ReadTree;
        rule.capabilities.intersects(power)
            && places.iter().flatten().any(|(path, fact)| {
                covers(rule, path, *fact) || tree && covers_beneath(rule, path, *fact)
            })
    };
    command.words().find(covered).map(|word| format!("`{}`", word.used.path))
}

/// Whether the rule protects whatever is in a folder: `**/.ssh/**` and the folder `.ssh`.
fn covers_beneath(rule: &Never, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    let real = fact.and_then(real).unwrap_or(path);
    [path, real].into_iter().any(|folder| rule.covers(&any_child(folder)))
}

fn forbidden_path(rule: &Never, case: &Case<'_>) -> Option<String> {
    let target = case.action.path()?;
    let power = match case.action {
        Action::Run { .. } => Capabilities::of(Capability::FsMeta),
        action => action.capabilities(),
    };
    let path = target.inside()?;
    let covered = rule.capabilities.intersects(power) && covers(rule, path, case.facts.at(path));
    covered.then(|| format!("`{}`", target.asked))
}

/// Whether the rule protects a path, by its text, by where it leads, or by what is there.
fn covers(rule: &Never, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    if rule.id == Never::OWN_FILES && fact.is_some_and(|fact| fact.ours) {
        return true;
    }
    let real = fact.and_then(real);
    let alias = fact.and_then(|fact| fact.alias.as_ref());
    [Some(path), real, alias].into_iter().flatten().any(|name| rule.covers(name))
}
