//! The kernel calls that no safe interface offers. All unsafe code of the house is in this folder.

#![allow(unsafe_code, reason = "the kernel calls here have no safe interface; see each block")]

mod confine;
mod ipc;
mod name_lookup;
mod network;
mod process;
mod process_arguments;
mod signal;

pub(crate) use confine::{
    attach_filter, landlock_abi, make_writable, set_mount_attributes, unshare,
};
pub(crate) use ipc::remove_all_items;
pub(crate) use name_lookup::use_builtin_resolvers;
pub(crate) use network::raise_loopback;
pub(crate) use process::{
    CloneRequest, ExecRequest, ExitOnDrop, ForkResult, LeftoverProcesses, REAPED_PER_KILL,
    SignalIsolation, children_peak_memory, clone_process, close_range, exit_now, fork_copy,
    fork_into_cgroup, inherited_socket, kill_and_reap_all, kill_children, kill_namespace,
    start_program, wait_for,
};
pub(crate) use process_arguments::{ArgumentMemory, argument_memory, erase_arguments};
pub(crate) use signal::{child_signals, die_with_parent, outlive_no_parent, reset_signals};

use std::io;

use rustix::io::Errno;

/// The result of a raw kernel call, as the C library reports it.
fn checked(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result == -1 { Err(last_error()) } else { Ok(result) }
}

fn last_error() -> Errno {
    errno(&io::Error::last_os_error())
}

/// The kernel's reason for an error of the library's.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
