//! What can be held without namespaces.

use capsule_core::confinement::{
    EnforcementLevel, LayerStatus, NOT_TRIED, SandboxLayer, SandboxStatus, SandboxTier,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::linux::backend::namespaces::{MissingLayer, UnavailableNamespaces, setup_error_text};
use crate::linux::backend::no_namespaces::{self, process_limit_status};
use crate::linux::backend::{limit_status, rlimits};
use crate::linux::executor::cgroup::Cgroups;
use crate::linux::executor::sample;
use crate::linux::kernel;
use crate::linux::landlock::SCOPE_ABI;
use crate::linux::protocol::{AtStep as _, SetupError, Step};
use crate::linux::seccomp;

/// What belongs to a run and not to a call, before the workspace is known.
pub(crate) struct PreparedLandlock {
    pub(super) abi: i32,
    pub(super) cgroups: Cgroups,
    /// The filter that each command gets.
    pub(super) filter: seccomp::Filter,
}

/// Prepares, and says what can be held, after namespaces could not be had.
pub(crate) fn prepare(unable: UnavailableNamespaces) -> (SandboxStatus, Option<PreparedLandlock>) {
    let UnavailableNamespaces { gap, abi, cgroups } = unable;
    let prepared = build_filter(abi, &cgroups);
    let held = |layer| layer_status(layer, &gap, abi, prepared.as_ref().err());
    let status = SandboxStatus {
        tier: SandboxTier::Basic,
        layers: SandboxLayer::ALL.iter().map(|layer| held(*layer)).collect(),
        limits: limit_status::limit_statuses(
            &cgroups,
            process_limit_status(),
            (EnforcementLevel::Weaker, "added up every 50 ms"),
        ),
    };
    (status, prepared.ok().map(|(abi, filter)| PreparedLandlock { abi, cgroups, filter }))
}

fn build_filter(
    abi: Result<i32, Errno>,
    cgroups: &Cgroups,
) -> Result<(i32, seccomp::Filter), MissingLayer> {
    let gap =
        |layer| move |failed: SetupError| MissingLayer { layer, detail: setup_error_text(failed) };
    let abi = abi.at(Step::Landlock).map_err(gap(SandboxLayer::AccessRules))?;
    if abi < SCOPE_ABI {
        let detail =
            format!("abi {abi} keeps no signal inside, so it cannot stand alone (Linux 6.12 can)");
        return Err(MissingLayer { layer: SandboxLayer::AccessRules, detail });
    }
    if !sample::is_supported() {
        // Nor could what is left of a call be found and ended.
        let detail = "processes cannot be listed (CONFIG_PROC_CHILDREN)".to_owned();
        return Err(MissingLayer { layer: SandboxLayer::AccessRules, detail });
    }
    drop_privileges().at(Step::Capabilities).map_err(gap(SandboxLayer::NoCapabilities))?;
    rlimits::set_fixed().at(Step::Limits).map_err(gap(SandboxLayer::NoCapabilities))?;
    let filters = seccomp::executor_filter().and_then(|large| {
        let small = seccomp::command_filter(seccomp::FilterOptions {
            controls_local_sockets: false,
            memory_is_counted: cgroups.memory_mechanism().is_some(),
            namespaces: false,
        })?;
        Ok((large, small))
    });
    let attached = filters.map_err(|seccomp::TooLong| Errno::TOOBIG).and_then(|(large, small)| {
        kernel::attach_filter(&large)?;
        Ok(small)
    });
    let small = attached.at(Step::Filter).map_err(gap(SandboxLayer::CallFilter))?;
    Ok((abi, small))
}

/// Gives up what this process has and commands must not have.
fn drop_privileges() -> Result<(), Errno> {
    // Other processes of the same user cannot look into this one, nor into its copies.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    no_namespaces::drop_privileges()
}

fn layer_status(
    layer: SandboxLayer,
    above: &MissingLayer,
    abi: Result<i32, Errno>,
    missing: Option<&MissingLayer>,
) -> LayerStatus {
    let (hold, detail) = match (layer, missing) {
        (_, Some(gap)) if gap.layer == layer => (EnforcementLevel::Missing, gap.detail.clone()),
        (_, _) if above.layer == layer => (EnforcementLevel::Missing, above.detail.clone()),
        (SandboxLayer::AccessRules, _) => match abi {
            Ok(abi) => (EnforcementLevel::Held, format!("abi {abi}")),
            Err(errno) => (
                EnforcementLevel::Missing,
                setup_error_text(SetupError { step: Step::Landlock, errno }),
            ),
        },
        (SandboxLayer::NoNewPrivileges, _) => (EnforcementLevel::Held, String::new()),
        (SandboxLayer::CallFilter, None) => {
            (EnforcementLevel::Held, format!("{} calls judged", seccomp::covered_syscalls()))
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
