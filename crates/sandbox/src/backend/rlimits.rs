//! Limits of a process: only ever lowered.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sets limits of this process and of those that it starts: each resource with the number at which
/// the kernel warns or refuses, and the one up to which the process may raise it. A limit of the
/// user's own that is lower stays.
///
/// # Errors
/// The kernel refused one; those before it hold.
pub(super) fn lower(limits: &[(Resource, u64, u64)]) -> Result<(), Errno> {
    for (resource, soft, hard) in limits.iter().copied() {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
