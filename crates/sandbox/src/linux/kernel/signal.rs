//! Signals, and dying with one's parent.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::checked;

/// How long the executor may go on after its parent has gone, in seconds, to clean up.
const EXIT_GRACE_SECONDS: u32 = 2;

/// The signals of Linux, numbered from 1.
const SIGNALS: libc::c_int = 64;

/// The parent that the executor serves.
static PARENT: AtomicI32 = AtomicI32::new(0);

/// Gives every signal its default meaning and lets all of them through. A program that starts
/// another passes on what it ignores, and Rust ignores `SIGPIPE`: a command would then not end when
/// nobody reads its output.
///
/// # Errors
/// The kernel refused.
pub(crate) fn reset_signals() -> Result<(), Errno> {
    // The kernel's own call: the C library keeps some signals to itself, and has a program that it
    // starts ignore them.
    let default = [0_u64; 4];
    for signal in 1..=SIGNALS {
        // SAFETY: needs a pointer to the kernel's `sigaction`, of at most 32 bytes. All zeroes is
        // the default action, no flags and an empty mask, so no handler is set that could run.
        // Signals that may not be set (9, 19) are answered with an error, which is fine. The test
        // `signals_are_as_in_a_fresh_process` would break.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null::<libc::c_void>(),
                size_of::<u64>(),
            )
        };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: writes a whole set to the place it is given, which is large enough.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: reads the set that the call before has written; the third argument may be null.
    let result =
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    checked(result.into()).map(|_| ())
}

/// Asks for `SIGKILL` when the parent ends.
///
/// # Errors
/// The kernel refused.
pub(crate) fn die_with_parent() -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))
}

/// Ends this process soon after its parent has ended.
///
/// The kernel's signal comes when the parent *thread* ends, and a runtime may well start the
/// executor in one thread and use it from another. So it is not `SIGKILL` but a signal whose
/// handler looks whether the parent process is still the same. If not, the closed socket ends the
/// executor in order (it takes its control groups along); the alarm is there in case it cannot.
///
/// # Errors
/// The kernel refused.
pub(crate) fn outlive_no_parent(parent: Option<Pid>) -> Result<(), Errno> {
    PARENT.store(parent.map_or(0, |pid| pid.as_raw_nonzero().get()), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = on_alarm;
    // SAFETY: the handler only calls functions that may be called in one (getppid, alarm) and
    // reads an atomic. The test `executor_outlives_the_thread_that_started_it` would break.
    let previous = unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
    if previous == libc::SIG_ERR {
        return Err(super::last_error());
    }
    set_parent_process_death_signal(Some(Signal::TERM))
}

extern "C" fn on_alarm(_signal: libc::c_int) {
    // SAFETY: takes nothing, cannot fail, and may be called in a handler.
    let parent = unsafe { libc::getppid() };
    if parent != PARENT.load(Ordering::Relaxed) {
        // SAFETY: takes a number and may be called in a handler; SIGALRM ends the process.
        unsafe { libc::alarm(EXIT_GRACE_SECONDS) };
    }
}

/// A descriptor that can be read when a child of this process has ended or stopped. The signal itself waits, and
/// does so in what this process starts, until that lets it through.
///
/// # Errors
/// The kernel refused.
pub(crate) fn child_signals() -> Result<OwnedFd, Errno> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: writes a whole set to the place it is given, which is large enough.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: changes a set that the call before has written.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: reads that set; the third argument may be null.
    let result = unsafe { libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
    checked(result.into())?;
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: reads that set, and makes a new descriptor because the first argument is -1.
    let made = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
    checked(made.into())?;
    // SAFETY: the kernel has just made it, and no other owner exists.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}
