//! The commands of `capsule policy`, and what several of them need: a backend and the texts of a policy.

mod batch;
pub(super) mod check;
pub(super) mod diff;
pub(super) mod explain;
pub(super) mod fmt;
pub(super) mod learn;
mod recorded_calls;
mod replace;
pub(super) mod show;

use std::rc::Rc;

use capsule_core::policy::PolicyLayer;
use capsule_runtime::{
    BoundPolicy, Cancel, CommandRunner, LiveBackend, NullSink, SystemHost, allows_unconfined,
};

use crate::context::CliContext;

/// A backend that looks and never acts: it finds the facts by which a call would be judged.
pub(super) fn judging_backend(bound: &BoundPolicy, ctx: &CliContext) -> LiveBackend {
    backend_with(bound, ctx, CommandRunner::disabled())
}

fn backend_with(bound: &BoundPolicy, ctx: &CliContext, commands: CommandRunner) -> LiveBackend {
    let machine = SystemHost::new(bound, &ctx.store, Box::new(CliContext::variable));
    LiveBackend::new(
        Rc::clone(&bound.workspace),
        &bound.policy,
        commands,
        Rc::new(machine),
        Cancel::default(),
        Rc::new(NullSink),
    )
}

/// The same for whoever asks what would happen here: where commands may run without a sandbox, that
/// depends on whether this machine has one, so it is asked.
pub(super) fn probing_backend(bound: &BoundPolicy, ctx: &CliContext) -> LiveBackend {
    match allows_unconfined(&bound.policy) {
        true => backend_with(bound, ctx, CommandRunner::default()),
        false => judging_backend(bound, ctx),
    }
}

/// The texts that a policy was read from, each behind how its place is shown.
pub(crate) fn policy_texts(bound: &BoundPolicy) -> Vec<(&str, &str)> {
    let item = (bound.text.name.as_str(), bound.text.text.as_str());
    let under = bound.extended.iter().map(|policy| (policy.name.as_str(), policy.text.as_str()));
    std::iter::once(item).chain(under).collect()
}

/// The layers of a law, each with its text behind how its place is shown.
fn policy_layers(bound: &BoundPolicy) -> impl Iterator<Item = ((&str, &str), &PolicyLayer)> {
    let texts =
        bound.layers.iter().map(|layer| (layer.text.name.as_str(), layer.text.text.as_str()));
    texts.zip(bound.policy.layers())
}
