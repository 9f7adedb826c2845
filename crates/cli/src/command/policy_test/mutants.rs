//! `policy test --mutate`: whether an example or test notices when a rule is another one.

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::{Authored, Fate, Law, Mutant, TooManyMutants, claims};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::screen::{BAD, GOOD, HINT, Screen};

/// Shows those that nothing noticed, and gives all for programs, with the number of the former.
pub(super) fn run(
    authored: &Authored<'_>,
    law: &Law,
    screen: &Screen,
) -> Result<(Value, usize), Failure> {
    let mutants = authored.mutants(&claims(&law.policy)).map_err(too_many)?;
    let made: Vec<&Mutant> = mutants.iter().filter(|own| own.fate != Fate::Unreadable).collect();
    let survivors: Vec<&&Mutant> = made.iter().filter(|own| own.fate == Fate::Survived).collect();
    if !screen.json {
        for Mutant { rule, words, place, .. } in &survivors {
            let line = format!("{rule}: {words}  {}", place.at);
            screen.say(&format!("{BAD}survived{BAD:#} {}", escape::line(&line)))?;
        }
        let noticed = made.len() - survivors.len();
        let (style, word) = if survivors.is_empty() { (GOOD, "✔") } else { (BAD, "✖") };
        let of = made.len();
        screen.say(&format!("{style}{word} mutants{style:#}  {noticed} of {of} were noticed"))?;
        if !survivors.is_empty() {
            let code = Code::PolicyMutant;
            let next = code.next_step();
            screen.say(&format!("  {HINT}{code}{HINT:#}: {next}"))?;
        }
    }
    let rows = mutants.iter().map(|own| {
        let fate = match own.fate {
            Fate::Noticed => "noticed",
            Fate::Survived => "survived",
            Fate::Unreadable => "unreadable",
        };
        let code = (own.fate == Fate::Survived).then_some(Code::PolicyMutant);
        let Mutant { rule, words, place, .. } = own;
        json!({ "rule": rule, "change": words, "at": place.at, "fate": fate, "code": code })
    });
    let told = json!({
        "mutants": made.len(),
        "noticed": made.len() - survivors.len(),
        "survived": survivors.len(),
        "rows": rows.collect::<Vec<_>>(),
    });
    Ok((told, survivors.len()))
}

fn too_many(TooManyMutants(number): TooManyMutants) -> Failure {
    let most = limits::POLICY_MUTANTS;
    let message = format!("the policy can be changed in {number} ways, and {most} are tried");
    let hint = "split the policy, or let one extend the other";
    CodedError::new(Code::Usage, message).with_suggestion(hint).into()
}
