//! The backend of Linux.
//!
//! Read in this order: `supervise` (the deciding process's side), then `protocol` (what is said over the
//! socket), `executor` (the process that listens), `backend` (the layers: `namespaces` from the outside in,
//! and `landlock` for machines without them), `seccomp` (the table of system calls), and `kernel` (all
//! unsafe code).

mod backend;
mod doctor;
mod executor;
mod kernel;
mod landlock;
mod poll;
mod protocol;
mod seccomp;
mod supervise;

pub use supervise::{Executor, PreparedCommand, RunningAgent, RunningCommand};
