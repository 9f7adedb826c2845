//! What the beginning of a run says of the sandbox of its commands.

use capsule_core::capability::{Capabilities, Capability};
use capsule_core::confinement::{SandboxFailure, SandboxStatus, SandboxTier};
use capsule_core::journal::NoSandbox;

use crate::backend::LiveBackend;
use crate::bound_policy::BoundPolicy;
use crate::run::RunOpening;
use crate::unconfined::allows_unconfined;

/// The walls that commands will stand behind; only a run with commands needs to know.
pub(super) fn sandbox_status(
    backend: &LiveBackend,
    needs: Capabilities,
) -> Option<Result<SandboxStatus, SandboxFailure>> {
    needs.contains(Capability::ProcExec).then(|| backend.sandbox_status()).flatten()
}

/// The first layer that a sandbox of any kind would need.
pub(super) fn missing_layer(status: &SandboxStatus) -> String {
    match status.missing_layer(SandboxTier::Basic).or(status.missing_layer(SandboxTier::Full)) {
        Some(gap) => format!("no {}: {}", gap.layer.name(), gap.detail),
        None => "the machine has none".into(),
    }
}

/// What is said where there are none. Commands may run there only if the machine itself said so.
fn unconfined_text(bound: &BoundPolicy, gone: Result<SandboxStatus, SandboxFailure>) -> NoSandbox {
    let answered = gone.is_ok();
    let why = match gone {
        Err(failure) => failure.reason().clone(),
        Ok(status) => missing_layer(&status),
    };
    NoSandbox { why, unconfined: answered && allows_unconfined(&bound.policy) }
}

/// Notes the sandbox of the commands in the opening of a run, or why there is none.
pub(super) fn note_sandbox(
    opening: &mut RunOpening<'_>,
    bound: &BoundPolicy,
    status: Option<Result<SandboxStatus, SandboxFailure>>,
) {
    match status {
        Some(Ok(status)) if status.meets(SandboxTier::Basic) => {
            opening.sandbox_status = Some(status)
        }
        Some(gone) => opening.unconfined = Some(unconfined_text(bound, gone)),
        None => {}
    }
}
