//! What holds the commands of a run, in its header.

use capsule_core::confinement::{Hold, LayerHeld, Tier, Walls};
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
    let gaps: Vec<&LayerHeld> = walls.gaps().filter(own).collect();
    let words = match walls.tier {
        Tier::Namespaces => "namespaces landlock seccomp",
        Tier::Landlock => {
            return format!("sandbox    {CARE}⚠ weaker{CARE:#} landlock seccomp · no namespaces");
        }
    };
    if gaps.is_empty() {
        format!("sandbox    {GOOD}✔ held{GOOD:#} {words} · no network")
    } else {
        format!("sandbox    {CARE}⚠ weaker{CARE:#} {words}{}", told(&gaps))
    }
}

/// What is missing, what is weaker, and what nobody tried.
fn told(gaps: &[&LayerHeld]) -> String {
    let kind = |gap: &LayerHeld| match gap.hold {
        Hold::Missing if gap.was_tried() => "missing",
        Hold::Missing => "not tried",
        Hold::Weaker | Hold::Held => "in part",
    };
    let mut words = String::new();
    for wanted in ["missing", "in part", "not tried"] {
        let names = gaps.iter().filter(|gap| kind(gap) == wanted).map(|gap| gap.layer.name());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            words.push_str(&format!(" · {wanted}: {}", names.join(", ")));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use capsule_core::confinement::{Layer, NOT_TRIED};

    use super::*;

    #[test]
    fn what_nobody_tried_is_not_said_to_be_missing() {
        let gap = |layer, hold, detail: &str| LayerHeld { layer, hold, detail: detail.into() };
        let gaps = [
            gap(Layer::UserNamespace, Hold::Missing, "EPERM"),
            gap(Layer::MountNamespace, Hold::Missing, &format!("{NOT_TRIED}, without the other")),
            gap(Layer::Landlock, Hold::Weaker, "abi 3"),
        ];
        let told = told(&gaps.iter().collect::<Vec<_>>());
        let names = [Layer::UserNamespace, Layer::Landlock, Layer::MountNamespace].map(Layer::name);
        let [missing, part, untried] = names;
        assert_eq!(told, format!(" · missing: {missing} · in part: {part} · not tried: {untried}"));
    }
}
