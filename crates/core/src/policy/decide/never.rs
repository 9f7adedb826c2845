//! Invariants first: nothing lifts one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, Facts, Place};
use crate::capability::{Capabilities, Capability};
use crate::code::Code;
use crate::path::WorkspacePath;
use crate::policy::decide::{Case, Finding, because};
use crate::policy::model::{Never, Policy};
use crate::programs::{self, Command, Reading};

pub(super) fn check(policy: &Policy, case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let command = match case.action {
        Action::Run { argv, .. } => Some(CommandLine::of(argv, case.facts)),
        _ => None,
    };
    for (rules, code) in [(&policy.never, Code::Never), (&policy.base_denials, Code::BaseDenied)] {
        found.extend(rules.iter().filter_map(|rule| broken(rule, code, case, command.as_ref())));
    }
    found
}

/// A command line, read once for all rules.
struct CommandLine<'c> {
    argv: &'c [String],
    /// The names that the program goes by: as typed, and what that leads to on disk.
    names: Vec<&'c str>,
    knowledge: Option<Command>,
    reading: Reading,
}

impl<'c> CommandLine<'c> {
    fn of(argv: &'c [String], facts: &'c Facts) -> Self {
        let base = programs::base_name;
        let typed = argv.first().map(|word| base(word));
        let mut names: Vec<&str> = typed.into_iter().collect();
        if let Some(program) = &facts.program {
            names.extend([base(&program.path), base(&program.real)]);
        }
        let knowledge = typed.and_then(programs::known);
        let reading = Reading::of(argv, knowledge.as_ref(), false);
        Self { argv, names, knowledge, reading }
    }
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
    let matches = rule
        .argv
        .iter()
        .any(|pattern| pattern.matches(&command.names, command.argv, command.knowledge.as_ref()));
    matches.then(|| format!("`{}`", shown_program(command)))
}

fn shown_program(command: &CommandLine<'_>) -> String {
    let levels: Vec<&str> =
        command.reading.levels.iter().map(|level| level.name.as_str()).collect();
    levels.join(" ")
}

/// A path among the arguments of a program whose arguments are known.
fn forbidden_word(rule: &Never, case: &Case<'_>, command: &CommandLine<'_>) -> Option<String> {
    command.reading.paths.iter().find_map(|used| {
        let power = match used.written {
            true => Capability::FsWrite,
            false => Capability::FsRead,
        };
        let path = case.action.argument(&used.path).ok()?;
        covers(rule, case.facts, &path, Capabilities::of(power)).then(|| format!("`{}`", used.path))
    })
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
    let real = match fact.map(|fact| &fact.real) {
        Some(Place::Inside(real)) => Some(real),
        _ => None,
    };
    let alias = fact.and_then(|fact| fact.alias.as_ref());
    [Some(path), real, alias].into_iter().flatten().any(|name| rule.covers(name))
}
