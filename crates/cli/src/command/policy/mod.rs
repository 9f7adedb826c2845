//! `capsule policy`: check; what else authors have stands in files of its own.

mod batch;
pub(super) mod diff;
pub(super) mod explain;
pub(super) mod fmt;
pub(super) mod learn;
mod past;
mod replace;
pub(super) mod show;

use std::rc::Rc;
use std::sync::Arc;

use capsule_core::diagnostic::{Diagnostics, Severity};
use capsule_core::escape;
use capsule_core::limits;
use capsule_core::policy::{Policy, PolicyLayer};
use capsule_core::units::counted;
use capsule_runtime::{
    Authored, CATALOGUE, Cancel, Commands, Hush, Law, Live, Machine, check_claims, lint,
    policy_schema, runs_unconfined,
};
use serde_json::{Value, json};

use crate::args::PolicyArg;
use crate::command::open_store;
use crate::command::policy::past::Calls;
use crate::diagnostic;
use crate::failure::Failure;
use crate::screen::{BAD, GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// Hands that look and never act: what a call would be judged by.
pub(super) fn judging_hands(law: &Law, around: &Surroundings) -> Live {
    hands_with(law, around, Commands::off())
}

fn hands_with(law: &Law, around: &Surroundings, commands: Commands) -> Live {
    let machine = Machine::new(&law.policy, &around.store, Box::new(Surroundings::variable));
    Live::new(
        Rc::clone(&law.workspace),
        &law.policy,
        commands,
        Rc::new(machine),
        Cancel::default(),
        Rc::new(Hush),
    )
}

/// The same for whoever asks what would happen here: where commands may run without a sandbox, that
/// depends on whether this machine has one, so it is asked.
pub(super) fn asking_hands(law: &Law, around: &Surroundings) -> Live {
    match runs_unconfined(&law.policy) {
        true => hands_with(law, around, Commands::default()),
        false => judging_hands(law, around),
    }
}

/// The texts that a policy was read from, each behind how its place is shown.
fn texts(law: &Law) -> Vec<(&str, &str)> {
    let own = (law.text.name.as_str(), law.text.text.as_str());
    let under = law.extended.iter().map(|own| (own.name.as_str(), own.text.as_str()));
    std::iter::once(own).chain(under).collect()
}

/// The layers of a law, each with its text behind how its place is shown.
fn layers(law: &Law) -> impl Iterator<Item = ((&str, &str), &PolicyLayer)> {
    let texts = law.layers.iter().map(|own| (own.text.name.as_str(), own.text.text.as_str()));
    texts.zip(&law.policy.layers)
}

/// What is wrong with a text, or probably not meant, of what it says itself.
fn notes(policy: &Arc<Policy>, text: &str, warnings: &Diagnostics) -> Diagnostics {
    let mut problems = check_claims(policy);
    problems.extend(warnings.iter().cloned());
    problems.extend(lint(policy));
    // What another text hands on is not this author's to change.
    problems.retain(|note| note.span.start <= text.len());
    problems
}

/// `policy check`.
pub(crate) fn check(
    args: &PolicyArg,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    let law = match around.law(args, None) {
        Err(Failure::Texts(text, problems)) if screen.json => {
            screen.say_json(&json!({
                "ok": false,
                "problems": diagnostic::to_json(&text, &problems),
            }))?;
            return Ok(2);
        }
        other => other?,
    };
    let mut all = vec![(&law.text, notes(&law.alone(), &law.text.text, &law.warnings))];
    for (layer, bound) in law.layers.iter().zip(&law.policy.layers) {
        all.push((&layer.text, notes(&bound.policy, &layer.text.text, &layer.warnings)));
    }
    if let Some((_, own)) = all.first_mut() {
        own.extend(unused(args, &law, around, screen)?);
    }
    all.iter_mut().for_each(|(_, notes)| notes.sort_by_key(|note| note.span.start));
    let problems = || all.iter().flat_map(|(_, notes)| notes);
    let wrong = problems().any(|problem| problem.severity == Severity::Error);
    if screen.json {
        let told = all.iter().filter_map(|(text, notes)| match diagnostic::to_json(text, notes) {
            Value::Array(told) => Some(told),
            _ => None,
        });
        let files = law.layers.iter().map(|own| own.text.name.as_str());
        screen.say_json(&json!({
            "ok": !wrong,
            "layers": files.collect::<Vec<_>>(),
            "problems": told.flatten().collect::<Vec<_>>(),
        }))?;
        return Ok(if wrong { 2 } else { 0 });
    }
    for (text, notes) in all.iter().filter(|(_, notes)| !notes.is_empty()) {
        screen.complain(&diagnostic::render(text, notes, screen));
    }
    let policies = || law.policy.self_and_layers();
    let rules = policies().flat_map(|own| own.tools.values());
    let examples: usize = rules.map(|rule| rule.examples.len()).sum();
    let tests: usize = policies().map(|own| own.tests.len()).sum();
    let (style, word) = if wrong { (BAD, "✖ wrong") } else { (GOOD, "✔ ok") };
    screen.say(&format!(
        "{style}{word}{style:#} {} · {} · {} · {} · {}",
        escape::line(&law.policy.name),
        counted(law.policy.tools.len(), "tool"),
        counted(examples, "example"),
        counted(tests, "test"),
        counted(problems().count(), "note")
    ))?;
    for layer in &law.layers {
        let (word, name) = (layer.kind.keyword(), escape::line(&layer.text.name).into_owned());
        screen.say(&format!("  {HINT}layer{HINT:#} {word} · {name}"))?;
    }
    Ok(if wrong { 2 } else { 0 })
}

/// What the last runs under this policy did not need. The policy works as written, so a store that
/// cannot be read is no reason to say that it is wrong.
fn unused(
    args: &PolicyArg,
    law: &Law,
    around: &Surroundings,
    screen: &Screen,
) -> Result<Diagnostics, Failure> {
    if law.file.is_none() || !around.store.exists() {
        return Ok(Diagnostics::new());
    }
    let gathered = || -> Result<(usize, Calls), Failure> {
        let store = open_store(around, screen)?;
        let runs = store.runs_under((&law.place(), &law.policy.name), limits::POLICY_RUNS)?;
        let mut calls = Calls::default();
        for run in &runs {
            calls.add(&store, run)?;
        }
        Ok((runs.len(), calls))
    };
    let (runs, calls) = match gathered() {
        Ok(gathered) => gathered,
        Err(why) => {
            why.show(screen);
            screen.complain("what the last runs needed is not looked at");
            return Ok(Diagnostics::new());
        }
    };
    if runs < limits::POLICY_RUNS_MIN {
        return Ok(Diagnostics::new());
    }
    let authored = Authored::of(law, args.profile.as_deref())
        .map_err(|problems| Failure::Texts(law.text.clone(), problems))?;
    let told = format!("the {} of the last {runs} runs", counted(calls.past.len(), "call"));
    Ok(authored.not_needed(&calls.past, &told))
}

/// `policy schema`.
pub(crate) fn schema(screen: &Screen) -> Result<u8, Failure> {
    screen.say_json(&policy_schema(CATALOGUE))?;
    Ok(0)
}
