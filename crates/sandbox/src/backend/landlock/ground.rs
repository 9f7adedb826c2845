//! What can be held without namespaces.

use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, NOT_TRIED, SandboxLayer, SandboxStatus, SandboxTier,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::backend::namespaces::{Gap, Unable, explain};
use crate::backend::plain::{self, processes};
use crate::backend::{bounds, rlimits};
use crate::executor::cgroup::Cgroups;
use crate::executor::sample;
use crate::kernel;
use crate::landlock::SCOPES;
use crate::protocol::{At as _, Failed, Step};
use crate::seccomp;

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) struct Ground {
    pub(super) abi: i32,
    pub(super) cgroups: Cgroups,
    /// The filter that each command gets.
    pub(super) filter: seccomp::Filter,
}

/// Prepares, and says what can be held, after namespaces could not be had.
pub(crate) fn prepare(unable: Unable) -> (SandboxStatus, Option<Ground>) {
    let Unable { gap, abi, cgroups } = unable;
    let prepared = raise(abi, &cgroups);
    let held = |layer| held(layer, &gap, abi, prepared.as_ref().err());
    let walls = SandboxStatus {
        tier: SandboxTier::Landlock,
        layers: SandboxLayer::ALL.iter().map(|layer| held(*layer)).collect(),
        limits: bounds::all(
            &cgroups,
            processes(),
            (EnforcementLevel::Weaker, "added up every 50 ms"),
        ),
    };
    (walls, prepared.ok().map(|(abi, filter)| Ground { abi, cgroups, filter }))
}

fn raise(abi: Result<i32, Errno>, cgroups: &Cgroups) -> Result<(i32, seccomp::Filter), Gap> {
    let gap = |layer| move |failed: Failed| Gap { layer, detail: explain(failed) };
    let abi = abi.at(Step::Landlock).map_err(gap(SandboxLayer::Landlock))?;
    if abi < SCOPES {
        let detail =
            format!("abi {abi} keeps no signal inside, so it cannot stand alone (Linux 6.12 can)");
        return Err(Gap { layer: SandboxLayer::Landlock, detail });
    }
    if !sample::can() {
        // Nor could what is left of a call be found and ended.
        let detail = "processes cannot be listed (CONFIG_PROC_CHILDREN)".to_owned();
        return Err(Gap { layer: SandboxLayer::Landlock, detail });
    }
    shed().at(Step::Capabilities).map_err(gap(SandboxLayer::NoCapabilities))?;
    rlimits::set_fixed().at(Step::Limits).map_err(gap(SandboxLayer::NoCapabilities))?;
    let filters = seccomp::executor().and_then(|large| {
        let small = seccomp::command(seccomp::Circumstances {
            sockets_are_judged: false,
            memory_is_counted: cgroups.memory_means().is_some(),
            namespaces: false,
        })?;
        Ok((large, small))
    });
    let attached = filters.map_err(|seccomp::TooLong| Errno::TOOBIG).and_then(|(large, small)| {
        kernel::attach_filter(&large)?;
        Ok(small)
    });
    let small = attached.at(Step::Filter).map_err(gap(SandboxLayer::Seccomp))?;
    Ok((abi, small))
}

/// Gives up what this process has and commands must not have.
fn shed() -> Result<(), Errno> {
    // Other processes of the same user cannot look into this one, nor into its copies.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    plain::shed()
}

fn held(
    layer: SandboxLayer,
    above: &Gap,
    abi: Result<i32, Errno>,
    own: Option<&Gap>,
) -> LayerStatus {
    let (hold, detail) = match (layer, own) {
        (_, Some(gap)) if gap.layer == layer => (EnforcementLevel::Missing, gap.detail.clone()),
        (_, _) if above.layer == layer => (EnforcementLevel::Missing, above.detail.clone()),
        (SandboxLayer::Landlock, _) => match abi {
            Ok(abi) => (EnforcementLevel::Held, format!("abi {abi}")),
            Err(errno) => {
                (EnforcementLevel::Missing, explain(Failed { step: Step::Landlock, errno }))
            }
        },
        (SandboxLayer::NoNewPrivileges, _) => (EnforcementLevel::Held, String::new()),
        (SandboxLayer::Seccomp, None) => {
            (EnforcementLevel::Held, format!("{} calls judged", seccomp::judged()))
        }
        (SandboxLayer::NoCapabilities, None) => (EnforcementLevel::Held, String::new()),
        (_, Some(gap)) => {
            (EnforcementLevel::Missing, format!("{NOT_TRIED}, without {}", gap.layer.name()))
        }
        (_, None) => {
            (EnforcementLevel::Missing, format!("{NOT_TRIED}, without the {}", above.layer.name()))
        }
    };
    LayerStatus { layer, level: hold, detail }
}
