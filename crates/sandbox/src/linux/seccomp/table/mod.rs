//! The table of system calls: what a command may ask of the kernel, as data with reasons.
//!
//! A call that stands in no file is answered with `ENOSYS`, so that programs take the older way;
//! one that stands in `forbidden` is answered with `EPERM`.

pub(crate) use memory::UNMAPPED_MEMORY;
pub(crate) use network::LOCAL_SOCKETS;
pub(crate) use setuid_bits::SETUID_CALLS;

pub(crate) mod agent;
mod files;
mod forbidden;
mod ipc;
pub(crate) mod landlock_only;
mod legacy;
mod memory;
mod network;
mod process;
mod setuid_bits;
mod time;

use crate::linux::seccomp::rule::Call;

/// Every row.
pub(crate) fn rows() -> impl Iterator<Item = &'static Call> {
    [
        files::CALLS,
        memory::CALLS,
        process::CALLS,
        time::CALLS,
        ipc::CALLS,
        network::CALLS,
        legacy::CALLS,
        forbidden::CALLS,
    ]
    .into_iter()
    .flatten()
}
