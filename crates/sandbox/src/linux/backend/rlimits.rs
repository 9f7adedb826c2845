//! Limits of a process: only ever lowered.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The only limit on core files that is also heeded where the system has them sent to a program: a
/// crash would have a process of the host's root look at what a command prepared.
pub(super) const NO_CORE: u64 = 1;
/// Memory that may be kept from being paged out.
const LOCKED_BYTES: u64 = 65_536;
/// Bytes in queues by name.
const QUEUE_BYTES: u64 = 819_200;
/// Signals and timers that may wait for the processes of a call.
const PENDING_SIGNALS: u64 = 1_024;
/// The stack of a process, and how far it may raise it.
const STACK_BYTES: (u64, u64) = (8 << 20, 64 << 20);

/// Sets the limits that are the same for every command.
///
/// # Errors
/// The kernel refused one.
pub(super) fn set_fixed() -> Result<(), Errno> {
    lower_limits(&[
        (Resource::Core, NO_CORE, NO_CORE),
        (Resource::Memlock, LOCKED_BYTES, LOCKED_BYTES),
        (Resource::Msgqueue, QUEUE_BYTES, QUEUE_BYTES),
        (Resource::Sigpending, PENDING_SIGNALS, PENDING_SIGNALS),
        (Resource::Stack, STACK_BYTES.0, STACK_BYTES.1),
        (Resource::Nice, 0, 0),
        (Resource::Rtprio, 0, 0),
    ])
}

/// The number up to which this process may raise a limit.
pub(super) fn hard_limit(resource: Resource) -> u64 {
    getrlimit(resource).maximum.unwrap_or(u64::MAX)
}

/// Sets limits of this process and of those that it starts: each resource with the number at which
/// the kernel warns or refuses, and the one up to which the process may raise it. A limit of the
/// user's own that is lower stays.
///
/// # Errors
/// The kernel refused one; those before it hold.
pub(super) fn lower_limits(limits: &[(Resource, u64, u64)]) -> Result<(), Errno> {
    for (resource, soft, hard) in limits.iter().copied() {
        let most = hard_limit(resource);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
