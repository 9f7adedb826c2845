//! Mounts staged changes by the run's executor.

use std::os::fd::OwnedFd;

use capsule_core::confinement::SandboxTier;
use capsule_sandbox::StagingMount;
use capsule_workspace::{MountError, MountStaging, StagingArea, Workspace};

use crate::command::runner::CommandRunner;
use crate::host::ToolHost;

/// The run's executor, which shows commands a workspace with its changes.
#[derive(Clone, Copy)]
pub struct SandboxMount<'m> {
    /// The executor.
    pub commands: &'m CommandRunner,
    /// What names the programs that commands see.
    pub host: &'m dyn ToolHost,
    /// The weakest confinement that is enough.
    pub floor: SandboxTier,
}

impl MountStaging for SandboxMount<'_> {
    fn mount(
        &self,
        workspace: &Workspace,
        area: StagingArea,
    ) -> Result<Option<OwnedFd>, MountError> {
        let staging = match area {
            StagingArea::Overlay { changes, work } => StagingMount::Overlay { changes, work },
            StagingArea::Copied(copy) => StagingMount::Copied(copy),
        };
        self.commands.enter_staged(workspace, self.host, self.floor, staging)
    }
}

/// Stages in a copy, which a whole agent sees in place of the workspace.
#[derive(Clone, Copy, Debug)]
pub struct CopyMount;

impl MountStaging for CopyMount {
    fn mount(&self, _: &Workspace, area: StagingArea) -> Result<Option<OwnedFd>, MountError> {
        match area {
            StagingArea::Overlay { .. } => {
                Err(MountError::Overlay("a whole agent works in a copy".to_owned()))
            }
            StagingArea::Copied(_) => Ok(None),
        }
    }
}
