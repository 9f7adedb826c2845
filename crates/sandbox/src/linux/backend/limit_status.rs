//! By what means each bound holds.

use capsule_core::confinement::{EnforcementLevel, LimitStatus, ResourceLimit};

use crate::linux::executor::cgroup::Cgroups;
use crate::linux::executor::sample;

/// The private `/tmp`, where it is a file system of its own.
pub(super) const TMP_SIZE: (EnforcementLevel, &str) =
    (EnforcementLevel::Held, "size of the file system");

/// All of them. `processes` is the means where no control group bounds them.
pub(super) fn limit_statuses(
    cgroups: &Cgroups,
    processes: LimitStatus,
    tmp: (EnforcementLevel, &str),
) -> Vec<LimitStatus> {
    let by = |bound, (hold, detail): (EnforcementLevel, &str)| LimitStatus {
        limit: bound,
        level: hold,
        detail: detail.into(),
    };
    let held = |bound, detail| by(bound, (EnforcementLevel::Held, detail));
    let memory = match cgroups.memory_mechanism() {
        Some(means) => (EnforcementLevel::Held, means),
        None if sample::is_supported() => (EnforcementLevel::Weaker, "sampled every 50 ms"),
        None => (EnforcementLevel::Missing, "no control group, and processes cannot be listed"),
    };
    let processor = match cgroups.cpu_mechanism() {
        Some(means) => (EnforcementLevel::Held, means),
        None if sample::is_supported() => {
            (EnforcementLevel::Weaker, "rlimit of each process, and added up")
        }
        None => (EnforcementLevel::Weaker, "rlimit of each process alone"),
    };
    vec![
        held(ResourceLimit::Time, "the tree is killed by its first process"),
        by(ResourceLimit::Cpu, processor),
        by(ResourceLimit::Memory, memory),
        cgroups
            .process_mechanism()
            .map_or(processes, |means| held(ResourceLimit::Processes, means)),
        held(ResourceLimit::FileSize, "rlimit"),
        held(ResourceLimit::OpenFiles, "rlimit"),
        held(ResourceLimit::Output, "counted while it is read"),
        by(ResourceLimit::Tmp, tmp),
    ]
}
