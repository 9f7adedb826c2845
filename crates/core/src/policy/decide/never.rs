//! Invariants first: nothing lifts one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, FileKind, PathFact, PathTarget};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::path::WorkspacePath;
use crate::policy::decide::command::{Command, Word};
use crate::policy::decide::files::{any_child, real};
use crate::policy::decide::{Case, Finding, because, questions};
use crate::policy::model::{Never, Policy};
use crate::programs::{CommandLine, Reading, Use};

pub(super) fn check(
    policy: &Policy,
    case: &Case<'_>,
    command: Option<&Command<'_>>,
) -> Vec<Finding> {
    let rules = policy.never.iter().map(|rule| (rule, Code::Never));
    let denials = policy.base_denials.iter().map(|rule| (rule, Code::BaseDenied));
    let broken = rules.chain(denials);
    let broken = broken.filter_map(|(rule, code)| broken_by(rule, code, case, command));
    broken.chain(questions::check(policy, case)).collect()
}

fn broken_by(
    rule: &Never,
    code: Code,
    case: &Case<'_>,
    command: Option<&Command<'_>>,
) -> Option<Finding> {
    if rule.tool.as_ref().is_some_and(|tool| tool != case.tool) {
        return None;
    }
    let what = command.and_then(|command| {
        let mut all = command.all().into_iter();
        all.find_map(|own| forbidden_line(rule, own.line).or_else(|| forbidden_word(rule, own)))
    });
    let what = what
        .or_else(|| forbidden_path(rule, case))
        .or_else(|| (rule.tool.is_some() && bare(rule)).then(|| format!("`{}`", case.tool)))?;
    let reason = format!(
        "{what}: {}",
        because(&rule.because, || format!("forbidden by the rule `{}`", rule.id))
    );
    let suggest = instead(rule, command).or_else(|| rule.suggest.clone());
    Some(Finding::deny(code, reason).by(rule.id.clone(), &rule.source).suggest(suggest))
}

/// Whether the rule is about a tool and nothing else.
fn bare(rule: &Never) -> bool {
    rule.paths.is_empty() && rule.argv.is_empty() && rule.effects.is_empty()
}

fn forbidden_line(rule: &Never, command: &CommandLine<'_>) -> Option<String> {
    if rule.argv.iter().any(|pattern| pattern.matches(command)) {
        return Some(format!("`{}`", command.shown()));
    }
    if !rule.into.is_empty() {
        return None;
    }
    let mut reasons = command.readings().flat_map(Reading::reasons).filter(|own| !own.guessed);
    let added = reasons.find(|added| added.effects.meets(rule.effects))?;
    Some(format!("`{}` {}", command.shown(), added.why))
}

/// What the table of programs knows to do instead.
fn instead(rule: &Never, command: Option<&Command<'_>>) -> Option<String> {
    let lines = command?.all();
    let mut reasons = lines.iter().flat_map(|own| own.line.readings()).flat_map(Reading::reasons);
    reasons.find(|added| added.effects.meets(rule.effects))?.instead.clone()
}

/// A path among the arguments of a program whose arguments are known. A word that only may be a
/// path is taken for one: what an invariant protects is not read by any other name either.
fn forbidden_word(rule: &Never, command: &Command<'_>) -> Option<String> {
    let covered = |Word { used, places }: &&Word<'_>| {
        let power = Capabilities::of(match used.usage {
            Use::Write => Capability::FsWrite,
            Use::Delete => Capability::FsDelete,
            Use::Change => Capability::FsWrite,
            Use::Read | Use::ReadTree => Capability::FsRead,
        });
        let tree = used.usage != Use::Read;
        places.iter().flatten().any(|(path, fact)| {
            rule.capabilities.intersects(over(power, *fact))
                && (covers(rule, path, *fact) || tree && covers_beneath(rule, path, *fact))
        })
    };
    command.words().find(covered).map(|word| format!("`{}`", word.used.path))
}

/// What whoever has this power over a file comes to have: a file that has another name, which is protected,
/// comes apart when it is changed, and then no such name leads to its text (ADR 42).
fn over(power: Capabilities, fact: Option<&PathFact>) -> Capabilities {
    let is_shared = fact.is_some_and(|fact| fact.alias.is_some());
    if is_shared && power.intersects(Capabilities::CHANGES) {
        power.with(Capability::FsRead)
    } else {
        power
    }
}

/// Whether the rule protects whatever is in a folder: `**/.ssh/**` and the folder `.ssh`.
fn covers_beneath(rule: &Never, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    let real = fact.and_then(real).unwrap_or(path);
    [path, real].into_iter().any(|folder| rule.covers(&any_child(folder)))
}

fn forbidden_path(rule: &Never, case: &Case<'_>) -> Option<String> {
    let power = match case.action {
        Action::Run { .. } => Capabilities::of(Capability::FsMeta),
        Action::Git { .. } => Capabilities::of(Capability::FsMeta).with(Capability::FsRead),
        _ => case.facts.paths.iter().fold(case.capabilities(), |own, fact| over(own, Some(fact))),
    };
    if !rule.capabilities.intersects(power) {
        return None;
    }
    // Whoever asks a repository about a folder asks about all that is in it.
    let tree = matches!(case.action, Action::Git { .. });
    let named = case.action.named();
    let covered = |target: &&&PathTarget| {
        let Some(path) = target.inside() else { return false };
        let fact = case.facts.at(path);
        covers(rule, path, fact) || tree && covers_beneath(rule, path, fact)
    };
    if let Some(target) = named.iter().find(covered) {
        let path = target.inside()?;
        let by = led(rule, path, case.facts.at(path));
        let by = by.map(|name| format!(", to which `{name}` leads")).unwrap_or_default();
        return Some(format!("`{}`{by}", target.asked));
    }
    // What is in a folder goes with it; which of it is protected is not told.
    let inner = |fact: &PathFact| {
        covers(rule, &fact.path, Some(fact))
            || fact.kind == FileKind::Link && covers_beneath(rule, &fact.path, Some(fact))
    };
    let Action::Delete { path: target, .. } = case.action else { return None };
    (target.inside().is_some() && case.facts.paths.iter().any(inner))
        .then(|| format!("`{}` is or holds something protected", target.asked))
}

/// Whether the rule protects a path, by its text, by where it leads, or by what is there.
fn covers(rule: &Never, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    if rule.id == Never::OWN_FILES && fact.is_some_and(|fact| fact.ours) {
        return true;
    }
    let real = fact.and_then(real);
    let alias = fact.and_then(|fact| fact.alias.as_ref());
    let others = fact.map_or(&[][..], |fact| &fact.names);
    let mut names = [Some(path), real, alias].into_iter().flatten().chain(others);
    names.any(|name| rule.covers(name) || rule.could_mean(name.as_str()))
}

/// The name by which the host comes to a path, if the rule protects it for that one alone.
fn led<'f>(
    rule: &Never,
    path: &WorkspacePath,
    fact: Option<&'f PathFact>,
) -> Option<&'f WorkspacePath> {
    let fact =
        fact.filter(|fact| !rule.covers(path) && !real(fact).is_some_and(|own| rule.covers(own)))?;
    fact.names.iter().find(|name| rule.covers(name))
}
