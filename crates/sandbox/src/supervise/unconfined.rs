//! One program that nothing confines, through an executor of its own.

use std::ffi::OsStr;
use std::path::Path;

use capsule_core::confinement::LimitStatus;
use capsule_core::lifecycle::UnconfinedPermit;

use super::Executor;
use crate::{CommandResult, CommandWatcher, EXECUTOR_ARGUMENT, Launch, SandboxError, SandboxView};

/// The second hidden argument: the executor confines nothing, and serves one program.
pub(crate) const UNCONFINED: &str = "unconfined";

/// Runs one program with nothing around it, within the limits of the leave: with a fresh environment,
/// none of our descriptors, no terminal and no privileges. Gives how it ended, and by what means each
/// limit was kept; the walls of the end are all missing.
///
/// # Errors
/// It was not started, or its end is not known.
pub fn run_unconfined(
    leave: &UnconfinedPermit<'_>,
    view: SandboxView,
    launch: Launch,
    watch: &mut dyn CommandWatcher,
) -> Result<(CommandResult, Vec<LimitStatus>), SandboxError> {
    let [_] = launch.stages.as_slice() else {
        return Err(SandboxError::Launch { problem: "only one program can run unconfined" });
    };
    let program = Path::new("/proc/self/exe");
    let words = [OsStr::new(EXECUTOR_ARGUMENT), OsStr::new(UNCONFINED)];
    let mut executor = Executor::start_with(program, &words)?;
    executor.is_unconfined = true;
    executor.enter(view)?;
    let exit = executor.run(Launch { limits: *leave.limits, ..launch }, watch)?;
    let bounds = exit.sandbox_status.limits.clone();
    Ok((exit, bounds))
}
