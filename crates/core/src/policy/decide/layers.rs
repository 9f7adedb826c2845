//! A policy and the layers over it: each judges by itself, and the strictest counts.

use alloc::sync::Arc;

use crate::action::Action;
use crate::decision::{Decision, Verdict};
use crate::policy::decide::check::PolicyInput;
use crate::policy::decide::judgement::Judgement;
use crate::policy::decide::{call, command_list};
use crate::policy::model::Policy;
use crate::policy::restrictions::Restrictions;

/// Decides a case, by the policy and by everything that tightens it.
#[must_use]
pub fn decide(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    apply_layers(policy, input, decide_unlayered(policy, input))
}

/// Decides a case by a policy without its layers.
fn decide_unlayered(policy: &Arc<Policy>, input: &PolicyInput<'_>) -> Judgement {
    match input.action {
        Action::Command { steps, .. } => command_list::decide(policy, input, steps),
        _ => call::decide_single(policy, input),
    }
}

/// What the layers make of a judgement that was made without them.
fn apply_layers(policy: &Arc<Policy>, input: &PolicyInput<'_>, judgement: Judgement) -> Judgement {
    policy.layers.iter().fold(judgement, |held, layer| match held.decision.verdict {
        // Nothing is stricter.
        Verdict::Deny => held,
        _ => {
            let mut asked = decide_unlayered(&layer.policy, input);
            asked.trace.subject.clone_from(&layer.location);
            stricter_of(held, asked, policy)
        }
    })
}

/// The stricter of two decisions, and what both allow. Of two that are equally strict the policy's
/// own is told.
fn stricter_of(judgement: Judgement, layer: Judgement, top: &Arc<Policy>) -> Judgement {
    // What a call needs by what it means is the policy's word: by a layer it can only do less. What a
    // layer says that it needs besides, it needs.
    let capabilities = judgement.decision.capabilities.union(layer.named_capabilities);
    let named = judgement.named_capabilities.union(layer.named_capabilities);
    let risk = judgement.decision.risk.max(layer.decision.risk);
    let decided = match layer.decision.verdict > judgement.decision.verdict {
        true => layer.decision,
        false => judgement.decision,
    };
    let bounds = match decided.verdict {
        Verdict::Deny => Restrictions::Nothing,
        _ => judgement.restrictions.intersect(layer.restrictions, top),
    };
    let mut trace = judgement.trace;
    trace.layers.push(layer.trace);
    Judgement {
        decision: Decision { capabilities, risk, ..decided },
        restrictions: bounds,
        trace,
        named_capabilities: named,
    }
}
