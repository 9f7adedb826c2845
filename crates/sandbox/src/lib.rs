//! `sandbox` confines: it runs one command behind walls, and says which walls held.
//!
//! The deciding process holds an [`Executor`], a small process of its own per run, and sends it
//! plain orders over a socket. The executor makes the namespaces and the view of the run once, and
//! for each call a first process, which builds the rest, raises Landlock and seccomp, and starts the
//! program. Nothing here decides anything. If a wall cannot be built, the command is not run. A program
//! runs without walls only by [`run_unconfined`], which asks for a leave that no confined call has, and
//! only through an executor that was started for that and can do nothing else.
//!
//! Read in this order: [`Executor`], then `protocol` (what is said over the socket), `executor` (who
//! listens), `backend` (the walls: `namespaces` from the outside in, and
//! `landlock` for machines without them), `seccomp` (the table of system
//! calls), and `kernel` (all unsafe code).

mod entry_point;
mod error;
mod launch;
pub mod remove_tree;

#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
mod executor;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod poll;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(not(target_os = "linux"))]
mod unsupported_os;

#[cfg(target_os = "linux")]
pub use entry_point::executor_main;
pub use entry_point::{EXECUTOR_ARGUMENT, use_builtin_name_lookup};
pub use error::SandboxError;
pub use launch::{
    CapturedOutput, CommandResult, CommandWatcher, DirectWrites, Executable, FileIdentity,
    GIT_CONFIG_PATH, GitFiles, HiddenPath, Launch, LaunchStage, OutputKind, RedirectTarget,
    RepositoryMount, SandboxView, StagingMount, StandardStream, StreamRedirect, Termination,
    ToolchainMount,
};

#[cfg(not(target_os = "linux"))]
pub use unsupported_os::{Executor, executor_main, run_unconfined};

#[cfg(target_os = "linux")]
pub use backend::system::{is_system_path, mount_conflict, taken};
#[cfg(target_os = "linux")]
pub use supervise::{Executor, PreparedCommand, RunningCommand, run_unconfined};
