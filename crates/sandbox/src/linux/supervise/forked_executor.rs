//! An executor that is a copy of this process, and not this program started anew.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::SandboxError;
use crate::linux::{executor, kernel};

/// What makes the loader keep more in a process than the program: libraries of the user, and copies of
/// these variables (`ld.so(8)`). A program that is started anew, without them, has none of that.
const LOADER_VARIABLES: [&str; 5] =
    ["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PROFILE", "GLIBC_TUNABLES"];

/// Makes a copy of this process, for a program that has done nothing so far: in its memory the copy has
/// whatever this process has, but for the words and the environment that the kernel gave it, which it
/// overwrites. Gives its number, and the socket on which it is spoken to: the first of the two.
///
/// # Errors
/// The kernel refused or does not say where the words of this process are, this process has more than
/// one thread, or the loader was told to put more into it.
pub(super) fn fork_executor(
    (here, there): (OwnedFd, OwnedFd),
) -> Result<(Pid, OwnedFd), SandboxError> {
    let failed =
        |errno: Errno| SandboxError::Start { reason: std::io::Error::from(errno).to_string() };
    if LOADER_VARIABLES.iter().any(|name| std::env::var_os(name).is_some()) {
        return Err(SandboxError::Start {
            reason: "this process may hold more than itself".into(),
        });
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    let words = kernel::argument_memory().map_err(failed)?;
    let all = sched_getaffinity(None).map_err(failed)?;
    let mut others = all;
    others.unset(sched_getcpu());
    let Some(child) = kernel::fork_copy().map_err(failed)? else {
        drop((here, write));
        if others.count() > 0 {
            // The other end is closed once the copy was sent away.
            let _ = rustix::io::retry_on_intr(|| rustix::io::read(&read, &mut [0; 1]));
            restore_affinity(&all);
        }
        executor::serve_forked(there, words)
    };
    // Where two go on after a birth, the kernel leaves both on one processor for some milliseconds,
    // also where another one is idle, as long as that is a virtual one.
    if others.count() > 0 {
        let _ = sched_setaffinity(Some(child), &others);
    }
    drop(write);
    Ok((child, here))
}

/// Lets this process, and every command, use the processors that it could use before: all that there
/// are and will be, unless the user chose some.
fn restore_affinity(before: &CpuSet) {
    let mut every = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| every.set(processor));
    let now = sched_setaffinity(None, &every).and_then(|()| sched_getaffinity(None));
    if now.as_ref() != Ok(before) {
        let _ = sched_setaffinity(None, before);
    }
}
