//! By what means each bound holds.

use capsule_core::confinement::{Bound, BoundHeld, Hold};

use crate::executor::cgroup::Cgroups;
use crate::executor::sample;

/// The private `/tmp`, where it is a file system of its own.
pub(super) const TMP_SIZE: (Hold, &str) = (Hold::Held, "size of the file system");

/// All of them. `processes` is the means where no control group bounds them.
pub(super) fn all(cgroups: &Cgroups, processes: BoundHeld, tmp: (Hold, &str)) -> Vec<BoundHeld> {
    let by = |bound, (hold, detail): (Hold, &str)| BoundHeld { bound, hold, detail: detail.into() };
    let held = |bound, detail| by(bound, (Hold::Held, detail));
    let memory = match cgroups.memory_means() {
        Some(means) => (Hold::Held, means),
        None if sample::can() => (Hold::Weaker, "sampled every 50 ms"),
        None => (Hold::Missing, "no control group, and processes cannot be listed"),
    };
    let processor = match cgroups.processor_means() {
        Some(means) => (Hold::Held, means),
        None if sample::can() => (Hold::Weaker, "rlimit of each process, and added up"),
        None => (Hold::Weaker, "rlimit of each process alone"),
    };
    vec![
        held(Bound::Time, "the tree is killed by its first process"),
        by(Bound::Cpu, processor),
        by(Bound::Memory, memory),
        cgroups.processes_means().map_or(processes, |means| held(Bound::Processes, means)),
        held(Bound::FileSize, "rlimit"),
        held(Bound::OpenFiles, "rlimit"),
        held(Bound::Output, "counted while it is read"),
        by(Bound::Tmp, tmp),
    ]
}
