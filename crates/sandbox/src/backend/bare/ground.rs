//! What can be kept of a command where nothing holds it.

use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, ResourceLimit, SandboxLayer, SandboxStatus, SandboxTier,
};
use rustix::io::Errno;
use rustix::thread::set_no_new_privs;

use crate::backend::first::{Built, First, Paths, Streams};
use crate::backend::place::open_again;
use crate::backend::plain::{self, Bound as Bind, Seat, processes};
use crate::backend::{Probe, bounds, mountinfo, rlimits};
use crate::executor::cgroup::Cgroups;
use crate::executor::sample;
use crate::kernel;
use crate::protocol::{Enter, Failed, Refusal, Run, Step};

/// What belongs to the run of one program, before the workspace is known.
pub(crate) struct Ground {
    cgroups: Cgroups,
}

/// What the program is given.
pub(crate) struct View {
    pub(in crate::backend) seat: Seat,
}

/// Prepares what can be kept, and says by what means. No layer is held.
pub(crate) fn prepare() -> Probe {
    let cgroups = Cgroups::create(&mountinfo::own());
    let prepared = shed();
    let detail = match &prepared {
        Ok(()) => String::new(),
        Err(errno) => std::io::Error::from(*errno).to_string(),
    };
    let layer = |layer: &SandboxLayer| LayerStatus {
        layer: *layer,
        level: EnforcementLevel::Missing,
        detail: detail.clone(),
    };
    let mut bounds =
        bounds::all(&cgroups, processes(), (EnforcementLevel::Weaker, "added up every 50 ms"));
    for own in &mut bounds {
        // It may end whoever watches it, and leave a group that it was put into.
        let watched = [
            ResourceLimit::Time,
            ResourceLimit::Cpu,
            ResourceLimit::Memory,
            ResourceLimit::Processes,
        ]
        .contains(&own.limit);
        if watched && own.level == EnforcementLevel::Held {
            own.level = EnforcementLevel::Weaker;
        }
    }
    let layers = SandboxLayer::ALL.iter().map(layer).collect();
    let ground = prepared.ok().map(|()| super::super::Ground::Bare(Ground { cgroups }));
    Probe { walls: SandboxStatus { tier: SandboxTier::Landlock, layers, limits: bounds }, ground }
}

/// Gives up what this process has and no command needs.
fn shed() -> Result<(), Errno> {
    if !sample::can() {
        // Nor could what is left of a call be found and ended.
        return Err(Errno::OPNOTSUPP);
    }
    set_no_new_privs(true)?;
    rlimits::set_fixed()?;
    plain::shed()
}

impl Ground {
    /// Remembers the workspace. Nothing in it can be hidden, and nothing laid over it.
    ///
    /// # Errors
    /// The step that failed.
    pub(crate) fn enter(self, enter: &Enter) -> Result<View, Refusal> {
        if enter.staging.is_some() || !enter.masks.is_empty() {
            return Err(Failed { step: Step::Staging, errno: Errno::OPNOTSUPP }.into());
        }
        let workspace = open_again(&enter.workspace, Step::WorkspaceMoved)?;
        Ok(View { seat: Seat::take(self.cgroups, workspace)? })
    }
}

impl View {
    /// Starts a program.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub(crate) fn spawn(
        &mut self,
        Paths { masks, direct }: Paths<'_>,
        run: &Run,
        built: Built,
        streams: &Streams,
    ) -> Result<First, Refusal> {
        if direct.is_some() || built.writes || !masks.is_empty() {
            // What is asked for could not be held.
            return Err(Failed { step: Step::Direct, errno: Errno::OPNOTSUPP }.into());
        }
        self.seat.spawn(run, streams, |seat, ends| {
            // Those that are left without a parent come to the first process, until there are none.
            let end = |()| kernel::end_all(kernel::kill_children);
            plain::live(seat, &ends, Bind::Nowhere, || Ok(()), end)
        })
    }
}
