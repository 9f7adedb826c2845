//! What a command line could cost: how risky it is, and whether it can be brought back.

use crate::policy::decide::Case;
use crate::programs::{CommandLine, Effect, Effects, Use};
use crate::risk::Risk;

/// What is known of the program says how much it could cost; an unknown one could do anything that
/// the walls let it.
pub(super) fn risk(line: &CommandLine<'_>) -> Risk {
    let effects = line.effects();
    match effects.within(Effects::of(Effect::Reads)) && line.inner.is_empty() {
        true => Risk::Low,
        false => Risk::Medium,
    }
}

/// Whether what it does cannot be brought back.
pub(super) fn is_irreversible(line: &CommandLine<'_>) -> bool {
    line.effects().meets(IRREVERSIBLE)
}

/// Whether it names something outside of the workspace to change or to remove, of which nothing is kept.
pub(super) fn changes_outside(case: &Case<'_>, line: &CommandLine<'_>) -> bool {
    let lines = line.all();
    let mut words =
        lines.iter().flat_map(|line| line.readings()).flat_map(|reading| &reading.paths);
    words.any(|used| {
        !used.guessed
            && matches!(used.usage, Use::Write | Use::Change | Use::Delete)
            && case.action.argument(used, case.facts).is_err()
    })
}

/// What cannot be brought back: by no undo record, and by nobody on this machine.
const IRREVERSIBLE: Effects = Effects::of(Effect::Publishes)
    .with(Effect::System)
    .with(Effect::Destroys)
    .with(Effect::Secrets);
