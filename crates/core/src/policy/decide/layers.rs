//! A policy and the layers over it: each judges by itself, and the strictest counts.

use alloc::sync::Arc;

use crate::decision::{Decision, Verdict};
use crate::policy::bounds::Bounds;
use crate::policy::decide::{Case, Judgement, alone};
use crate::policy::model::Policy;

/// What the layers make of a judgement that was made without them.
pub(super) fn tightened(policy: &Arc<Policy>, case: &Case<'_>, own: Judgement) -> Judgement {
    policy.layers.iter().fold(own, |held, layer| match held.decision.verdict {
        // Nothing is stricter.
        Verdict::Deny => held,
        _ => {
            let mut asked = alone(&layer.policy, case);
            asked.trace.about.clone_from(&layer.place);
            strictest(held, asked, policy)
        }
    })
}

/// The stricter of two decisions, and what both allow. Of two that are equally strict the policy's
/// own is told.
fn strictest(own: Judgement, layer: Judgement, top: &Arc<Policy>) -> Judgement {
    // What a call needs by what it means is the policy's word: by a layer it can only do less. What a
    // layer says that it needs besides, it needs.
    let capabilities = own.decision.capabilities.union(layer.named);
    let named = own.named.union(layer.named);
    let risk = own.decision.risk.max(layer.decision.risk);
    let decided = match layer.decision.verdict > own.decision.verdict {
        true => layer.decision,
        false => own.decision,
    };
    let bounds = match decided.verdict {
        Verdict::Deny => Bounds::Nothing,
        _ => own.bounds.within(layer.bounds, top),
    };
    let mut trace = own.trace;
    trace.layers.push(layer.trace);
    Judgement { decision: Decision { capabilities, risk, ..decided }, bounds, trace, named }
}
