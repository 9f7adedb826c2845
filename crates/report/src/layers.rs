//! What a run was judged by, as its header shows it: the policy, and what tightened it.

use capsule_core::escape;
use capsule_core::journal::{LayerOpened, RunOpened};

use crate::console::CARE;

/// The policy, what tightened it, and what is not there any more.
pub(crate) fn judged_by(opened: &RunOpened) -> Vec<String> {
    let digest = opened.policy.sha256.short();
    let since = match &opened.policy_since {
        Some(label) => format!("unchanged since {label}"),
        None => String::from("new, or changed since the last run"),
    };
    let policy = format!("policy     {} {digest} · {since}", escape::line(&opened.policy_name));
    let told = |own: &LayerOpened| {
        let since = match (&own.since, &own.before) {
            (Some(label), _) => format!("unchanged since {label}"),
            (None, Some(before)) => format!("{CARE}changed{CARE:#}, was {}", before.short()),
            (None, None) => String::from("first run with it"),
        };
        let (word, digest) = (own.layer.keyword(), own.document.sha256.short());
        format!("layer      {word} {digest} · {since}")
    };
    let gone = opened.layer_gone.as_ref().map(|own| {
        format!("layer      {CARE}workspace {} is gone{CARE:#}, as accepted", own.sha256.short())
    });
    let layers = opened.layers.iter().map(told);
    std::iter::once(policy).chain(layers).chain(gone).collect()
}
