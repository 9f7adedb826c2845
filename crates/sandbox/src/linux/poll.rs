//! Waiting until a descriptor has something to say, for a while or for ever.

use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of these is ready, at most so long, or for ever. Tells how many are.
///
/// # Errors
/// The kernel's reason; `INTR` where a signal came first.
pub(crate) fn wait(files: &mut [PollFd<'_>], at_most: Option<Duration>) -> Result<usize, Errno> {
    let at_most = at_most.map(|time| Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    poll(files, at_most.as_ref())
}
