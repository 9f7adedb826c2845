//! What a command line could cost: how risky it is, and whether it can be brought back.

use crate::policy::decide::policy_input::PolicyInput;
use crate::risk::Risk;
use capsule_command::specs::{CommandLine, Effect, Effects, PathAccess};

/// What is known of the program says how much it could cost; an unknown one could do anything that
/// the walls let it.
pub(super) fn risk(line: &CommandLine<'_>) -> Risk {
    let effects = line.effects();
    match effects.is_subset_of(Effects::of(Effect::Reads)) && line.nested.is_empty() {
        true => Risk::Low,
        false => Risk::Medium,
    }
}

/// Whether what it does cannot be brought back.
pub(super) fn is_irreversible(line: &CommandLine<'_>) -> bool {
    line.effects().intersects(IRREVERSIBLE)
}

/// Whether it names something outside of the workspace to change or to remove, of which nothing is kept.
pub(super) fn changes_outside(case: &PolicyInput<'_>, line: &CommandLine<'_>) -> bool {
    let lines = line.with_nested();
    let mut words =
        lines.iter().flat_map(|line| line.parsed_argvs()).flat_map(|reading| &reading.paths);
    words.any(|used| {
        !used.guessed
            && matches!(used.access, PathAccess::Write | PathAccess::Change | PathAccess::Delete)
            && case.action.resolve_path_argument(used, case.facts).is_err()
    })
}

/// What cannot be brought back: by no undo record, and by nobody on this machine.
const IRREVERSIBLE: Effects = Effects::of(Effect::Publishes)
    .with(Effect::System)
    .with(Effect::Destroys)
    .with(Effect::Secrets);
