//! What holds the commands of a run, in its header.

use capsule_core::confinement::{LayerHeld, Tier, Walls};
use capsule_core::escape;
use capsule_core::journal::Bare;

use crate::console::{BAD, CARE, GOOD};

/// What stands where the walls would.
pub(super) fn bare(bare: &Bare) -> [String; 2] {
    let then = match bare.unconfined {
        true => "nothing confines the commands that may run here",
        false => "commands are refused",
    };
    let why = escape::line(&bare.why);
    [format!("sandbox    {BAD}✖ none{BAD:#}: {then}"), format!("           {why}")]
}

/// The walls that commands stand behind.
pub(super) fn walls(walls: &Walls) -> String {
    let own = |gap: &&LayerHeld| walls.tier.layers().contains(&gap.layer);
    let gaps: Vec<&str> = walls.gaps().filter(own).map(|gap| gap.layer.name()).collect();
    let words = match walls.tier {
        Tier::Namespaces => "namespaces landlock seccomp",
        Tier::Landlock => {
            return format!("sandbox    {CARE}⚠ weaker{CARE:#} landlock seccomp · no namespaces");
        }
    };
    if gaps.is_empty() {
        format!("sandbox    {GOOD}✔ held{GOOD:#} {words} · no network")
    } else {
        format!("sandbox    {CARE}⚠ weaker{CARE:#} {words} · missing: {}", gaps.join(", "))
    }
}
