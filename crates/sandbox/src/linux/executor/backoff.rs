//! How long to wait after each sample of a command, so that sampling stays cheap.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Looks, and tells how long to leave it then: what takes long to look at is looked at less often, so that
/// looking does not itself become what takes the time. On a busy machine only what it takes of a processor is
/// counted: who keeps others waiting must not be looked at less for it.
pub(super) fn time_with_backoff<T>(look: impl FnOnce() -> T) -> (T, Duration) {
    let before = thread_cpu_time();
    let looked = look();
    (looked, thread_cpu_time().saturating_sub(before) * 4)
}

/// How long this thread has had a processor.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
