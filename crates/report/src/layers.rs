//! What a run was judged by, as its header shows it: the policy, and what tightened it.

use capsule_base::escape;
use capsule_core::journal::{LayerOpened, RunOpened};

use crate::style::WARNING;

/// The policy, what tightened it, and what is not there any more.
pub(crate) fn policy_lines(opened: &RunOpened) -> Vec<String> {
    let digest = opened.policy.sha256.short();
    let since = match &opened.policy_since {
        Some(label) => format!("unchanged since {label}"),
        None => String::from("new, or changed since the last run"),
    };
    let policy = format!("policy     {} {digest} · {since}", escape::line(&opened.policy_name));
    let told = |item: &LayerOpened| {
        let since = match (&item.since, &item.before) {
            (Some(label), _) => format!("unchanged since {label}"),
            (None, Some(before)) => format!("{WARNING}changed{WARNING:#}, was {}", before.short()),
            (None, None) => String::from("first run with it"),
        };
        let (word, digest) = (item.layer.keyword(), item.document.sha256.short());
        format!("layer      {word} {digest} · {since}")
    };
    let gone = opened.layer_gone.as_ref().map(|gone| {
        format!(
            "layer      {WARNING}workspace {} is gone{WARNING:#}, as accepted",
            gone.sha256.short()
        )
    });
    let layers = opened.layers.iter().map(told);
    std::iter::once(policy).chain(layers).chain(gone).collect()
}
