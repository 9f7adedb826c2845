//! What the backends share that make no namespaces: nothing of the host can be put elsewhere there, so
//! commands see its own paths, write into a folder that is thrown away, and are counted from outside.
//!
//! A [`Seat`] is what a call needs whatever walls are around it: its control group, its folder, the
//! workspace. It starts the first process of a call ([`first`]), which raises the walls of its backend
//! and carries out the order.

mod call_resources;
mod init_process;
mod private_tmp;

pub(super) use call_resources::{CallResources, drop_privileges, process_limit_status};
pub(super) use init_process::{InitSockets, ProgramConfinement, run_init};
pub(crate) use private_tmp::PrivateTmp;
