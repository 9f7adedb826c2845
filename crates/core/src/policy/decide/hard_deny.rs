//! Invariants first: nothing lifts one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, FileKind, PathFact, PathTarget};
use crate::capability::{Capabilities, Capability};
use crate::policy::binding::BASE_NAME;
use crate::policy::decide::check::{Finding, PolicyInput, reason_or};
use crate::policy::decide::command_line::{LocatedCommand, PathArgument};
use crate::policy::decide::files::{child_placeholder, real_path};
use crate::policy::decide::questions;
use crate::policy::model::{HardDenyRule, Policy};
use capsule_base::code::Code;
use capsule_base::path::WorkspacePath;
use capsule_command::specs::{CommandLine, ParsedArgv, PathAccess};

pub(super) fn check(
    policy: &Policy,
    input: &PolicyInput<'_>,
    command: Option<&LocatedCommand<'_>>,
) -> Vec<Finding> {
    let rules = policy.hard_denies.iter().map(|rule| (rule, Code::Never));
    let denials = policy.base_denials.iter().map(|rule| (rule, Code::BaseDenied));
    let broken = rules.chain(denials);
    let broken = broken.filter_map(|(rule, code)| broken_by(rule, code, input, command));
    broken.chain(questions::check(policy, input)).collect()
}

fn broken_by(
    rule: &HardDenyRule,
    code: Code,
    case: &PolicyInput<'_>,
    command: Option<&LocatedCommand<'_>>,
) -> Option<Finding> {
    if rule.tool.as_ref().is_some_and(|tool| tool != case.tool) {
        return None;
    }
    let what = command.and_then(|command| {
        let mut all = command.with_nested().into_iter();
        all.find_map(|command| {
            forbidden_line(rule, command.line).or_else(|| forbidden_word(rule, command))
        })
    });
    let what = what.or_else(|| forbidden_path(rule, case)).or_else(|| {
        (rule.tool.is_some() && is_tool_only(rule)).then(|| format!("`{}`", case.tool))
    })?;
    let reason = format!(
        "{what}: {}",
        reason_or(&rule.because, || format!("forbidden by the rule `{}`", rule.id))
    );
    let suggest = alternative(rule, command).or_else(|| rule.suggest.clone());
    Some(
        Finding::deny(code, reason)
            .under_rule(rule.id.clone(), &rule.source)
            .with_suggestion(suggest),
    )
}

/// Whether the rule is about a tool and nothing else.
fn is_tool_only(rule: &HardDenyRule) -> bool {
    rule.paths.is_empty() && rule.argv.is_empty() && rule.effects.is_empty()
}

fn forbidden_line(rule: &HardDenyRule, command: &CommandLine<'_>) -> Option<String> {
    // What a program is may be asked of any, but for those that the user's own rules name.
    let is_asked = rule.source.at.starts_with(BASE_NAME) && command.asks_for_help();
    if !is_asked && rule.argv.iter().any(|pattern| pattern.matches(command)) {
        return Some(format!("`{}`", command.display_name()));
    }
    if !rule.into.is_empty() {
        return None;
    }
    let mut reasons = command
        .parsed_argvs()
        .flat_map(ParsedArgv::matched_effects)
        .filter(|effect| !effect.guessed);
    let added = reasons.find(|added| added.effects.intersects(rule.effects))?;
    Some(format!("`{}` {}", command.display_name(), added.why))
}

/// What the table of programs knows to do instead.
fn alternative(rule: &HardDenyRule, command: Option<&LocatedCommand<'_>>) -> Option<String> {
    let lines = command?.with_nested();
    let mut reasons = lines
        .iter()
        .flat_map(|line| line.line.parsed_argvs())
        .flat_map(ParsedArgv::matched_effects);
    reasons.find(|added| added.effects.intersects(rule.effects))?.alternative.clone()
}

/// A path among the arguments of a program whose arguments are known. A word that only may be a
/// path is taken for one: what an invariant protects is not read by any other name either.
fn forbidden_word(rule: &HardDenyRule, command: &LocatedCommand<'_>) -> Option<String> {
    let covered = |PathArgument { path_use: used, locations: places }: &&PathArgument<'_>| {
        let power = Capabilities::of(match used.access {
            PathAccess::Write => Capability::FsWrite,
            PathAccess::Delete => Capability::FsDelete,
            PathAccess::Change => Capability::FsWrite,
            PathAccess::Read | PathAccess::ReadTree => Capability::FsRead,
        });
        let tree = used.access != PathAccess::Read;
        places.iter().flatten().any(|(path, fact)| {
            rule.capabilities.intersects(implied_capabilities(power, *fact))
                && (covers(rule, path, *fact) || tree && covers_beneath(rule, path, *fact))
        })
    };
    command.path_arguments().find(covered).map(|word| format!("`{}`", word.path_use.path))
}

/// What whoever has this power over a file comes to have: a file that has another name, which is protected,
/// comes apart when it is changed, and then no such name leads to its text (ADR 42).
fn implied_capabilities(capabilities: Capabilities, fact: Option<&PathFact>) -> Capabilities {
    let is_shared = fact.is_some_and(|fact| fact.alias.is_some());
    if is_shared && capabilities.intersects(Capabilities::CHANGES) {
        capabilities.with(Capability::FsRead)
    } else {
        capabilities
    }
}

/// Whether the rule protects whatever is in a folder: `**/.ssh/**` and the folder `.ssh`.
fn covers_beneath(rule: &HardDenyRule, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    let real = fact.and_then(real_path).unwrap_or(path);
    [path, real].into_iter().any(|folder| rule.covers(&child_placeholder(folder)))
}

fn forbidden_path(rule: &HardDenyRule, input: &PolicyInput<'_>) -> Option<String> {
    let power = match input.action {
        Action::Run { .. } => Capabilities::of(Capability::FsMeta),
        Action::Git { .. } => Capabilities::of(Capability::FsMeta).with(Capability::FsRead),
        _ => input
            .facts
            .paths
            .iter()
            .fold(input.capabilities(), |path, fact| implied_capabilities(path, Some(fact))),
    };
    if !rule.capabilities.intersects(power) {
        return None;
    }
    // Whoever asks a repository about a folder asks about all that is in it.
    let tree = matches!(input.action, Action::Git { .. });
    let named = input.action.named_paths();
    let covered = |target: &&&PathTarget| {
        let Some(path) = target.inside() else { return false };
        let fact = input.facts.path_fact(path);
        covers(rule, path, fact) || tree && covers_beneath(rule, path, fact)
    };
    if let Some(target) = named.iter().find(covered) {
        let path = target.inside()?;
        let by = led(rule, path, input.facts.path_fact(path));
        let by = by.map(|name| format!(", to which `{name}` leads")).unwrap_or_default();
        return Some(format!("`{}`{by}", target.asked));
    }
    // What is in a folder goes with it; which of it is protected is not told.
    let inner = |fact: &PathFact| {
        covers(rule, &fact.path, Some(fact))
            || fact.kind == FileKind::Link && covers_beneath(rule, &fact.path, Some(fact))
    };
    let Action::Delete { path: target, .. } = input.action else { return None };
    (target.inside().is_some() && input.facts.paths.iter().any(inner))
        .then(|| format!("`{}` is or holds something protected", target.asked))
}

/// Whether the rule protects a path, by its text, by where it leads, or by what is there.
fn covers(rule: &HardDenyRule, path: &WorkspacePath, fact: Option<&PathFact>) -> bool {
    if rule.id == HardDenyRule::RUNTIME_FILES && fact.is_some_and(|fact| fact.is_capsule_store) {
        return true;
    }
    let real = fact.and_then(real_path);
    let alias = fact.and_then(|fact| fact.alias.as_ref());
    let others = fact.map_or(&[][..], |fact| &fact.protected_names);
    let mut names = [Some(path), real, alias].into_iter().flatten().chain(others);
    names.any(|name| rule.covers(name) || rule.could_match(name.as_str()))
}

/// The name by which the host comes to a path, if the rule protects it for that one alone.
fn led<'f>(
    rule: &HardDenyRule,
    path: &WorkspacePath,
    fact: Option<&'f PathFact>,
) -> Option<&'f WorkspacePath> {
    let fact = fact.filter(|fact| {
        !rule.covers(path) && !real_path(fact).is_some_and(|path| rule.covers(path))
    })?;
    fact.protected_names.iter().find(|name| rule.covers(name))
}
