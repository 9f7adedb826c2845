//! An executor that is a copy of this process, and not this program started anew.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::{sockets, text};
use crate::{SandboxError, executor, kernel};

/// Makes the copy; gives its number, and the socket on which it is spoken to.
///
/// # Errors
/// The kernel refused, or this process has more than one thread.
pub(super) fn make() -> Result<(Pid, OwnedFd), SandboxError> {
    let failed = |errno: Errno| SandboxError::Start { reason: text(errno) };
    let (here, there) = sockets()?;
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    let all = sched_getaffinity(None).map_err(failed)?;
    let Some(child) = kernel::copy().map_err(failed)? else {
        drop((here, write));
        // The other end is closed once the copy was sent away. From then on it, and every command, may
        // use all processors.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&read, &mut [0; 1]));
        let _ = sched_setaffinity(None, &all);
        executor::serve_as_copy(there)
    };
    // Where two go on after a birth, the kernel leaves both on one processor for some milliseconds,
    // also where another one is idle, as long as that is a virtual one.
    let mut others = all;
    others.unset(sched_getcpu());
    if others.count() > 0 {
        let _ = sched_setaffinity(Some(child), &others);
    }
    drop(write);
    Ok((child, here))
}
