//! A program with nothing around it, on a machine that can hold nothing.

use std::ffi::OsString;

use capsule_core::code::Code;
use capsule_core::confinement::{Enforcement, SandboxTier};
use capsule_core::lifecycle::UnconfinedPermit;
use capsule_core::outcome::{CodedError, Outcome};
use capsule_sandbox::{Launch, run_unconfined};

use super::environment::{PRIVATE, variables};
use super::outcome::outcome;
use super::run::{Runner, Watch, sandbox_problem};
use crate::commands::view;

/// Runs it. It works in the workspace itself, which nothing hides from it and nothing collects.
pub(super) fn run(runner: &Runner, leave: &UnconfinedPermit<'_>) -> Outcome {
    if runner.staging.is_some() {
        let why = "what nothing confines cannot be staged";
        return Outcome::failed(CodedError::new(Code::SandboxFailed, why));
    }
    let environment = variables(leave.environment, runner.host.as_ref());
    let set = |name: &str| environment.iter().any(|(own, _)| own == name);
    let private = PRIVATE.into_iter().filter(|name| !set(name)).map(OsString::from).collect();
    let launch = Launch {
        stages: runner.stages.iter().map(|own| own.stage(&environment)).collect(),
        private,
        cwd: runner.cwd.clone(),
        stdin: runner.stdin.clone(),
        limits: *leave.limits,
        writes: false,
        direct: None,
        masks: Vec::new(),
        last: true,
    };
    let seen =
        view(&runner.workspace, runner.host.as_ref(), SandboxTier::default(), None, Vec::new());
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let why = format!("the workspace cannot be opened: {error}");
            return Outcome::failed(CodedError::new(Code::SandboxFailed, why));
        }
    };
    match run_unconfined(leave, seen, launch, &mut Watch::plain(runner)) {
        Ok((exit, bounds)) => {
            let ended = outcome(exit, leave.limits, leave.clamped);
            let output = ended.output.with("unconfined", true);
            Outcome { output, enforcement: Enforcement::Unconfined { limits: bounds }, ..ended }
        }
        Err(error) => Outcome::failed(sandbox_problem(&runner.stages, &error)),
    }
}
