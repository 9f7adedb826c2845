//! The word that a command may begin, from the deciding process past the executor to the first process of
//! the call.
//!
//! It is a counter of the kernel's, of which all three have a descriptor. At 0 the command waits. The
//! deciding process then puts the time into it, at which the command's own time begins. The first process
//! only looks whether it is more than 0, and so may the executor at any time afterwards.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// The word, said or not.
#[derive(Debug)]
pub(crate) struct StartGate(OwnedFd);

impl StartGate {
    /// One that is not said.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// Says it. Once.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn open(&self) -> Result<(), Errno> {
        rustix::io::write(&self.0, &monotonic_nanos().to_ne_bytes()).map(drop)
    }

    /// How long ago it was said, if it was. For a moment nobody else would find it said, so it is asked
    /// only when whoever waits for it has had time to see it, and sees it then once more.
    pub(crate) fn time_since_open(&self) -> Option<Duration> {
        let mut bytes = [0; size_of::<u64>()];
        rustix::io::read(&self.0, &mut bytes).ok()?;
        let said = u64::from_ne_bytes(bytes);
        let _ = rustix::io::write(&self.0, &bytes);
        Some(Duration::from_nanos(monotonic_nanos().saturating_sub(said)))
    }
}

impl AsFd for StartGate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for StartGate {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

/// The machine's own time in nanoseconds, which nobody sets.
fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    // What cannot be is read as the first moment there was: never as a word that was not said.
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanos.unwrap_or(0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};

    fn is_said(begin: &StartGate) -> bool {
        let mut files = [PollFd::new(begin, PollFlags::IN)];
        crate::linux::poll::wait(&mut files, Some(Duration::ZERO)).unwrap() > 0
    }

    #[test]
    fn it_is_said_once_and_seen_by_everybody() {
        let begin = StartGate::new().unwrap();
        let other = StartGate::from(begin.0.try_clone().unwrap());
        assert!(!is_said(&begin) && other.time_since_open().is_none());
        assert!(!is_said(&begin), "asking does not say it");
        begin.open().unwrap();
        assert!(is_said(&other) && is_said(&begin));
        std::thread::sleep(Duration::from_millis(20));
        let since = other.time_since_open().unwrap();
        assert!(since >= Duration::from_millis(20) && since < Duration::from_secs(60), "{since:?}");
        assert!(is_said(&other) && begin.time_since_open().unwrap() >= since);
    }
}
