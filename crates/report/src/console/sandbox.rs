//! What holds the commands of a run, in its header.

use capsule_base::escape;
use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, NetworkAccess, SandboxStatus, SandboxTier,
};
use capsule_core::journal::NoSandbox;

use crate::style::{ERROR, SUCCESS, WARNING};

/// What stands where the walls would.
pub(super) fn unconfined_lines(bare: &NoSandbox) -> [String; 2] {
    let then = match bare.unconfined {
        true => "nothing confines the commands that may run here",
        false => "commands are refused",
    };
    let why = escape::line(&bare.why);
    [format!("sandbox    {ERROR}✖ none{ERROR:#}: {then}"), format!("           {why}")]
}

/// The walls that commands stand behind.
pub(super) fn sandbox_status_text(status: &SandboxStatus, network: NetworkAccess) -> String {
    let item = |gap: &&LayerStatus| status.tier.layers().contains(&gap.layer);
    let gaps: Vec<&LayerStatus> = status.gaps().filter(item).collect();
    let words = match status.tier {
        SandboxTier::Full => "namespaces landlock seccomp",
        SandboxTier::Basic => {
            return format!(
                "sandbox    {WARNING}⚠ weaker{WARNING:#} landlock seccomp · no namespaces"
            );
        }
    };
    if gaps.is_empty() {
        format!("sandbox    {SUCCESS}✔ held{SUCCESS:#} {words} · {}", network_text(network))
    } else {
        format!("sandbox    {WARNING}⚠ weaker{WARNING:#} {words}{}", gaps_text(&gaps))
    }
}

/// The network of commands, in a few words.
#[must_use]
pub const fn network_text(network: NetworkAccess) -> &'static str {
    match network {
        NetworkAccess::None => "no network",
        NetworkAccess::Proxy => "network by proxy",
    }
}

/// What is missing, what is weaker, and what nobody tried.
fn gaps_text(gaps: &[&LayerStatus]) -> String {
    let kind = |gap: &LayerStatus| match gap.level {
        EnforcementLevel::Missing if gap.was_tried() => "missing",
        EnforcementLevel::Missing => "not tried",
        EnforcementLevel::Weaker | EnforcementLevel::Held => "in part",
    };
    let mut words = String::new();
    for wanted in ["missing", "in part", "not tried"] {
        let names = gaps.iter().filter(|gap| kind(gap) == wanted).map(|gap| gap.layer.name());
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            words.push_str(&format!(" · {wanted}: {}", names.join(", ")));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use capsule_core::confinement::{NOT_TRIED, SandboxLayer};

    use super::*;

    #[test]
    fn what_nobody_tried_is_not_said_to_be_missing() {
        let gap =
            |layer, hold, detail: &str| LayerStatus { layer, level: hold, detail: detail.into() };
        let gaps = [
            gap(SandboxLayer::SeparateUsers, EnforcementLevel::Missing, "EPERM"),
            gap(
                SandboxLayer::SeparateFiles,
                EnforcementLevel::Missing,
                &format!("{NOT_TRIED}, without the other"),
            ),
            gap(SandboxLayer::AccessRules, EnforcementLevel::Weaker, "abi 3"),
        ];
        let told = gaps_text(&gaps.iter().collect::<Vec<_>>());
        let names =
            [SandboxLayer::SeparateUsers, SandboxLayer::AccessRules, SandboxLayer::SeparateFiles]
                .map(SandboxLayer::name);
        let [missing, part, untried] = names;
        assert_eq!(told, format!(" · missing: {missing} · in part: {part} · not tried: {untried}"));
    }
}
