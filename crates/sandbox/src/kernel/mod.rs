//! The kernel calls that no safe interface offers. All unsafe code of the house is in this folder.

#![allow(unsafe_code, reason = "the kernel calls here have no safe interface; see each block")]

mod confine;
mod ipc;
mod lookup;
mod process;
mod signal;
mod words;

pub(crate) use confine::{
    attach_filter, landlock_abi, make_writable, set_mount_attributes, unshare,
};
pub(crate) use ipc::remove_all_items;
pub(crate) use lookup::by_own_means;
pub(crate) use process::{
    Alone, Birth, CloneRequest, LeaveOnDrop, Left, Program, TAKEN_IN, close_range, copy, end_all,
    give_birth, give_plain_birth, inherited_socket, kill_children, kill_everyone_else, leave,
    memory_of_children, start_program, wait_for,
};
pub(crate) use signal::{default_signals, die_with_parent, outlive_no_parent};
pub(crate) use words::{Words, forget_words, words};

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
