//! Which programs a rule is proposed for: those that are known, do little, and start nothing.

use capsule_base::code::Code;
use capsule_command::specs::{CommandLine, Effect, Effects};
use capsule_core::action::Facts;
use capsule_core::decision::{Decision, Verdict};
use capsule_core::policy::{CommandRule, ExecRule, Policy, PolicyInput};

use super::missing_rule::{MissingRule, RuleSubject, named_denial};
use crate::lint::INTERPRETERS;

/// What a command may do for a rule to be proposed that allows it.
const ALLOWABLE_EFFECTS: Effects = Effects::of(Effect::Reads).with(Effect::Opens);
/// The same where a person was asked already.
const APPROVED_EFFECTS: Effects = ALLOWABLE_EFFECTS.with(Effect::Writes);
/// What it may do for a rule to be proposed that asks.
const ASKABLE_EFFECTS: Effects = APPROVED_EFFECTS.with(Effect::Deletes).with(Effect::Runs);

/// That a command line can be judged by its program's name and subcommand.
///
/// # Errors
/// Says why it cannot, or why nothing is proposed.
pub(super) fn check_learnable(
    argv: &[String],
    facts: &Facts,
    said: &Decision,
) -> Result<(), String> {
    let line = CommandLine::parse(argv, facts.program.as_ref(), false);
    let Some(name) = argv.first() else { return Err(said.reason.clone()) };
    let shown = line.display_name();
    if name.contains('/') {
        return Err(format!("`{name}` is a file that can be any program"));
    }
    if line.names.iter().any(|name| INTERPRETERS.contains(&name.as_str())) {
        return Err(format!("`{name}` runs any program text that it is given"));
    }
    if !line.parsed_argvs().any(|reading| reading.known()) {
        return Err(format!("`{name}` is not known, so what it does is not known"));
    }
    let starts = line
        .interpretations
        .iter()
        .any(|(known, _)| known.is_some_and(|spec| spec.starts_others()));
    if starts || !line.nested.is_empty() {
        return Err(format!("`{name}` starts other programs"));
    }
    let stays = line.effects().iter().find(|effect| !ASKABLE_EFFECTS.contains(*effect));
    match stays {
        Some(effect) => Err(format!("`{shown}` {}", effect.description())),
        None => Ok(()),
    }
}

/// The program with its subcommands, and the word that it may have.
pub(super) fn missing_program_rule(
    policy: &Policy,
    case: &PolicyInput<'_>,
    argv: &[String],
    said: &Decision,
) -> Result<MissingRule, String> {
    let line = CommandLine::parse(argv, case.facts.program.as_ref(), false);
    let names = command_names(&line, argv)?;
    let exec = policy.exec_rule(case.tool);
    let rule = exec
        .and_then(|exec| exec.programs.iter().find(|program| Some(&program.name) == argv.first()));
    match said.code {
        Code::NoRule | Code::ExecNotAllowed | Code::ExecSubcommand | Code::Asked => {}
        Code::RuleDenied
            if is_default_denial(exec, rule.map(|rule| &rule.command), &names, said) => {}
        Code::RuleDenied => return Err(named_denial(said)),
        _ => return Err(said.reason.clone()),
    }
    let does = line.effects();
    let shown = names.join(" ");
    let word = match said.verdict {
        Verdict::Deny if does.is_subset_of(ALLOWABLE_EFFECTS) => Verdict::Allow,
        Verdict::Deny => Verdict::Ask,
        _ if does.is_subset_of(APPROVED_EFFECTS) => Verdict::Allow,
        _ => {
            let more = does
                .iter()
                .find(|effect| !APPROVED_EFFECTS.contains(*effect))
                .map_or("", Effect::description);
            return Err(format!("`{shown}` {more}, which stays a question"));
        }
    };
    Ok(MissingRule { subject: RuleSubject::Program(names), verdict: word })
}

/// The names of a program and of its subcommands, as far as they are known.
fn command_names(line: &CommandLine<'_>, argv: &[String]) -> Result<Vec<String>, String> {
    let reading = line.parsed_argvs().find(|argv| argv.known());
    let levels = reading.map(|argv| argv.levels.as_slice()).unwrap_or_default();
    let name = argv.first().cloned().unwrap_or_default();
    let inner = levels.iter().skip(1);
    if let Some(level) = inner.clone().find(|level| !level.known) {
        return Err(format!("`{name} {}` is not known, so what it does is not known", level.name));
    }
    let names: Vec<String> =
        std::iter::once(name.clone()).chain(inner.map(|level| level.name.clone())).collect();
    let has_more = line
        .interpretations
        .iter()
        .any(|(known, _)| known.is_some_and(|known| !known.subcommands.is_empty()));
    match names.len() == 1 && has_more {
        true => Err(format!("`{name}` is many programs in one, and none of them is named")),
        false => Ok(names),
    }
}

/// Whether a denial is about all that is left over, and not about this by name.
fn is_default_denial(
    exec: Option<&ExecRule>,
    rule: Option<&CommandRule>,
    names: &[String],
    said: &Decision,
) -> bool {
    let by = said.rule.as_deref().unwrap_or_default();
    if let Some((_, effect)) = by.split_once("/effects.") {
        let words = exec.and_then(|exec| exec.effects.as_ref());
        let named = |item: &&capsule_core::policy::EffectRule| {
            item.verdicts.iter().any(|(candidate, ..)| candidate.name() == effect)
        };
        return !words.as_ref().is_some_and(named);
    }
    let Some(mut rule) = rule else { return false };
    for name in names.iter().skip(1) {
        match rule.subcommands.iter().find(|(text, _)| text == name) {
            Some((_, inner)) => rule = inner,
            None => return rule.subcommands.iter().any(|(text, _)| text == "*"),
        }
    }
    false
}
