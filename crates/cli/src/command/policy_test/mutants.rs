//! `policy test --mutate`: whether an example or test notices when a rule is another one.

use capsule_authoring::{EditablePolicy, Mutant, MutantResult, TooManyMutants, assertions};
use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_runtime::BoundPolicy;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::screen::{ERROR, HINT, SUCCESS, Screen};

/// Shows those that nothing noticed, and gives all for programs, with the number of the former.
pub(super) fn run(
    authored: &EditablePolicy<'_>,
    bound: &BoundPolicy,
    screen: &Screen,
) -> Result<(Value, usize), Failure> {
    let mutants = authored.mutants(&assertions(&bound.policy)).map_err(too_many_failure)?;
    let made: Vec<&Mutant> =
        mutants.iter().filter(|mutant| mutant.result != MutantResult::Invalid).collect();
    let survivors: Vec<&&Mutant> =
        made.iter().filter(|mutant| mutant.result == MutantResult::Survived).collect();
    if !screen.json {
        for Mutant { rule, description: words, location: place, .. } in &survivors {
            let line = format!("{rule}: {words}  {}", place.shown);
            screen.print_line(&format!("{ERROR}survived{ERROR:#} {}", escape::line(&line)))?;
        }
        let noticed = made.len() - survivors.len();
        let (style, word) = if survivors.is_empty() { (SUCCESS, "✔") } else { (ERROR, "✖") };
        let of = made.len();
        screen.print_line(&format!(
            "{style}{word} mutants{style:#}  {noticed} of {of} were noticed"
        ))?;
        if !survivors.is_empty() {
            let code = Code::PolicyMutant;
            let next = code.next_step();
            screen.print_line(&format!("  {HINT}{code}{HINT:#}: {next}"))?;
        }
    }
    let rows = mutants.iter().map(|mutant| {
        let fate = match mutant.result {
            MutantResult::Killed => "noticed",
            MutantResult::Survived => "survived",
            MutantResult::Invalid => "unreadable",
        };
        let code = (mutant.result == MutantResult::Survived).then_some(Code::PolicyMutant);
        let Mutant { rule, description: words, location: place, .. } = mutant;
        json!({ "rule": rule, "change": words, "at": place.shown, "fate": fate, "code": code })
    });
    let told = json!({
        "mutants": made.len(),
        "noticed": made.len() - survivors.len(),
        "survived": survivors.len(),
        "rows": rows.collect::<Vec<_>>(),
    });
    Ok((told, survivors.len()))
}

fn too_many_failure(TooManyMutants(number): TooManyMutants) -> Failure {
    let most = limits::POLICY_MUTANTS;
    let message = format!("the policy can be changed in {number} ways, and {most} are tried");
    let hint = "split the policy, or let one extend the other";
    CodedError::new(Code::Usage, message).with_suggestion(hint).into()
}
