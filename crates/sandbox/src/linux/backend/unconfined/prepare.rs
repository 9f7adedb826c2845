//! What can be kept of a command where nothing holds it.

use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, ResourceLimit, SandboxLayer, SandboxStatus, SandboxTier,
};
use rustix::io::Errno;
use rustix::thread::set_no_new_privs;

use crate::linux::backend::host_path::reopen;
use crate::linux::backend::init_process::{CommandPaths, InitOptions, InitProcess, Streams};
use crate::linux::backend::no_namespaces::{
    self, CallResources, ProgramConfinement as Bind, process_limit_status,
};
use crate::linux::backend::{Probe, limit_status, mountinfo, rlimits};
use crate::linux::executor::cgroup::Cgroups;
use crate::linux::executor::sample;
use crate::linux::kernel;
use crate::linux::protocol::{CommandMessage, EnterRequest, ExecutorError, SetupError, Step};

/// What belongs to the run of one program, before the workspace is known.
pub(crate) struct PreparedUnconfined {
    cgroups: Cgroups,
}

/// What the program is given.
pub(crate) struct UnconfinedRun {
    pub(in crate::linux::backend) resources: CallResources,
}

/// Prepares what can be kept, and says by what means. No layer is held.
pub(crate) fn prepare() -> Probe {
    let cgroups = Cgroups::create(&mountinfo::process_mounts());
    let prepared = drop_privileges();
    let detail = match &prepared {
        Ok(()) => String::new(),
        Err(errno) => std::io::Error::from(*errno).to_string(),
    };
    let layer = |layer: &SandboxLayer| LayerStatus {
        layer: *layer,
        level: EnforcementLevel::Missing,
        detail: detail.clone(),
    };
    let mut bounds = limit_status::limit_statuses(
        &cgroups,
        process_limit_status(),
        (EnforcementLevel::Weaker, "added up every 50 ms"),
    );
    for status in &mut bounds {
        // It may end whoever watches it, and leave a group that it was put into.
        let watched = [
            ResourceLimit::Time,
            ResourceLimit::Cpu,
            ResourceLimit::Memory,
            ResourceLimit::Processes,
        ]
        .contains(&status.limit);
        if watched && status.level == EnforcementLevel::Held {
            status.level = EnforcementLevel::Weaker;
        }
    }
    let layers = SandboxLayer::ALL.iter().map(layer).collect();
    let ground = prepared
        .ok()
        .map(|()| super::super::PreparedBackend::Unconfined(PreparedUnconfined { cgroups }));
    Probe {
        status: SandboxStatus { tier: SandboxTier::Basic, layers, limits: bounds },
        prepared: ground,
    }
}

/// Gives up what this process has and no command needs.
fn drop_privileges() -> Result<(), Errno> {
    if !sample::is_supported() {
        // Nor could what is left of a call be found and ended.
        return Err(Errno::OPNOTSUPP);
    }
    set_no_new_privs(true)?;
    rlimits::set_fixed()?;
    no_namespaces::drop_privileges()
}

impl PreparedUnconfined {
    /// Remembers the workspace. Nothing in it can be hidden, and nothing laid over it.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn enter(self, enter: &EnterRequest) -> Result<UnconfinedRun, ExecutorError> {
        if enter.staging.is_some() || !enter.hidden.is_empty() {
            return Err(SetupError { step: Step::Staging, errno: Errno::OPNOTSUPP }.into());
        }
        let workspace = reopen(&enter.workspace, Step::WorkspaceMoved)?;
        Ok(UnconfinedRun { resources: CallResources::create(self.cgroups, workspace)? })
    }
}

impl UnconfinedRun {
    /// Starts a program.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        CommandPaths { hidden: masks, direct }: CommandPaths<'_>,
        run: &CommandMessage,
        built: InitOptions,
        streams: &Streams,
    ) -> Result<InitProcess, ExecutorError> {
        if direct.is_some() || built.writes || !masks.is_empty() {
            // What is asked for could not be held.
            return Err(SetupError { step: Step::Direct, errno: Errno::OPNOTSUPP }.into());
        }
        self.resources.spawn(run, streams, |resources, ends| {
            // Those that are left without a parent come to the first process, until there are none.
            let end = |()| kernel::kill_and_reap_all(kernel::kill_children);
            no_namespaces::run_init(resources, &ends, Bind::Unconfined, || Ok(()), end)
        })
    }
}
