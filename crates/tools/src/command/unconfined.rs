//! A program with nothing around it, on a machine that can hold nothing.

use capsule_base::code::Code;
use capsule_core::confinement::{Enforcement, SandboxTier};
use capsule_core::lifecycle::UnconfinedPermit;
use capsule_core::outcome::{CodedError, Outcome};
use capsule_sandbox::{Executor, Launch, SandboxBackend as _};

use super::environment::{unset_private_variables, variables};
use super::operation::{CommandOperation, OutputWatcher, sandbox_problem};
use super::outcome::exit_outcome;
use crate::command::runner::sandbox_view;

impl CommandOperation {
    /// Runs it. It works in the workspace itself, which nothing hides from it and nothing collects.
    pub(super) fn run_unconfined_command(&self, leave: &UnconfinedPermit<'_>) -> Outcome {
        if self.staging.is_some() {
            let why = "what nothing confines cannot be staged";
            return Outcome::failed(CodedError::new(Code::SandboxFailed, why));
        }
        let environment = variables(leave.environment, self.host.as_ref(), (None, None), false);
        let launch = Launch {
            stages: self.stages.iter().map(|stage| stage.to_stage(&environment)).collect(),
            private_directory_variables: unset_private_variables(&environment),
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
            limits: *leave.limits,
            writes: false,
            direct: None,
            hidden: Vec::new(),
            is_last: true,
            ignores_tmp_links: false,
        };
        let seen = sandbox_view(
            &self.workspace,
            self.host.as_ref(),
            SandboxTier::default(),
            None,
            Vec::new(),
        );
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                let why = format!("the workspace cannot be opened: {error}");
                return Outcome::failed(CodedError::new(Code::SandboxFailed, why));
            }
        };
        match Executor::run_unconfined(leave, seen, launch, &mut OutputWatcher::for_display(self)) {
            Ok((exit, bounds)) => {
                let ended = exit_outcome(exit, leave.limits, leave.clamped);
                let output = ended.output.with("unconfined", true);
                Outcome { output, enforcement: Enforcement::Unconfined { limits: bounds }, ..ended }
            }
            Err(error) => Outcome::failed(sandbox_problem(&self.stages, &error)),
        }
    }
}
