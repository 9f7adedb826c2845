//! How much processor time a command takes in sum, and when that could be too much.
//!
//! The kernel bounds it for each process alone (`RLIMIT_CPU`). The sum is asked for and nothing is
//! sampled: of one second that is left, two processors use up no more than half in a quarter of it, so
//! that is when it is looked at again. A short command is never looked at.

use std::time::{Duration, Instant};

use capsule_core::confinement::ProcessLimits;
use rustix::io::Errno;
use rustix::thread::sched_getaffinity;

use super::backoff::time_with_backoff;
use super::sample;
use crate::linux::backend::{InitProcess, RunSandbox};
use crate::linux::protocol::{AtStep as _, SetupError, Step};

/// Until then a command is short, and what it takes of each processor is not worth a look. What a control
/// group counted before it began is asked for then, so so much may be missed.
const SHORT_COMMAND: Duration = Duration::from_millis(20);
/// The least between two looks.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// The most between two looks: processors may come, and a command may use more of them than the executor was
/// given.
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// How much more than one process all together may have: one that takes all by itself is to learn so from
/// the kernel, and has the time that the kernel leaves it from then on, until it ends it.
const EXTRA_TIME: Duration = Duration::from_secs(2);

/// The processor time of one command.
pub(super) struct CpuUsage {
    /// What all its processes may have together.
    limit: Duration,
    /// When to look.
    next_check: Option<Instant>,
    baseline: Option<CpuBaseline>,
}

/// What is known of the machine as soon as a command is no longer short.
struct CpuBaseline {
    processors: u32,
    /// What was counted before the command began.
    used_before: Duration,
}

impl CpuUsage {
    /// Of a command that begins now.
    pub(super) fn start(limits: &ProcessLimits) -> Self {
        // The kernel counts in whole seconds.
        let most = Duration::from_secs(limits.cpu_ms.div_ceil(1_000)).saturating_add(EXTRA_TIME);
        Self { limit: most, next_check: Instant::now().checked_add(SHORT_COMMAND), baseline: None }
    }

    /// How long nothing can be exceeded; none if it need not be looked at any more.
    pub(super) fn time_to_next_check(&self) -> Option<Duration> {
        self.next_check.map(|next| next.saturating_duration_since(Instant::now()))
    }

    /// Looks, if it is time to: whether it had more than it may.
    ///
    /// # Errors
    /// What was taken cannot be read.
    pub(super) fn check(
        &mut self,
        view: &RunSandbox,
        first: &InitProcess,
    ) -> Result<bool, SetupError> {
        if self.next_check.is_none_or(|next| Instant::now() < next) {
            return Ok(false);
        }
        self.next_check = None;
        let (counted, rest) = time_with_backoff(|| measure(view, first));
        let Some(counted) = counted? else { return Ok(false) };
        let known = self.baseline.get_or_insert_with(|| CpuBaseline {
            processors: available_processors(),
            used_before: if view.has_served() { counted } else { Duration::ZERO },
        });
        let left = self.limit.saturating_sub(counted.saturating_sub(known.used_before));
        if !left.is_zero() {
            let pause = (left / known.processors).clamp(MIN_INTERVAL, MAX_INTERVAL).max(rest);
            self.next_check = Instant::now().checked_add(pause);
        }
        Ok(left.is_zero())
    }
}

/// What the kernel counts for the command's group, else for its processes; none where it lists neither.
fn measure(view: &RunSandbox, first: &InitProcess) -> Result<Option<Duration>, SetupError> {
    if let Some(counted) = view.counted_processor_time() {
        return counted.map(Some).at(Step::Processor);
    }
    match sample::cpu_time_of_tree(first.pid()) {
        Ok(counted) => Ok(Some(counted)),
        Err(Errno::ACCESS) if !sample::is_supported() => Ok(None),
        Err(errno) => Err(SetupError { step: Step::Processor, errno }),
    }
}

/// How many processors the executor may use at once; a command that asks for more is found out at the next look.
fn available_processors() -> u32 {
    sched_getaffinity(None).map_or(u32::MAX, |all| all.count()).max(1)
}
