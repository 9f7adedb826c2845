//! `sandbox` confines: it runs one command in a sandbox, and says which layers of it held.
//!
//! The deciding process holds an [`Executor`], a small process of its own per run, and sends it
//! plain requests over a socket. The executor makes the namespaces and the view of the run once, and
//! for each call a first process, which builds the rest, raises Landlock and seccomp, and starts the
//! program. Nothing here decides anything. If a layer cannot be built, the command is not run. A program
//! runs without a sandbox only by [`SandboxBackend::run_unconfined`], which asks for a permit that no confined
//! call has, and only through an executor that was started for that and can do nothing else.
//!
//! What a system must offer is the trait [`SandboxBackend`]. `linux` implements it; every other system has
//! `unsupported_os`, which refuses every command. The feature `unsupported-os` chooses that one on Linux.

mod agent;
mod backend;
mod error;
mod launch;
pub mod remove_tree;
mod system;

#[cfg(all(target_os = "linux", not(feature = "unsupported-os")))]
mod linux;
#[cfg(any(not(target_os = "linux"), feature = "unsupported-os"))]
mod unsupported_os;

pub use agent::{AgentEvent, AgentLaunch, AgentMount, AgentNetwork, WORKSPACE_MOUNT};
pub use backend::{SandboxBackend, SelfTestResult};
pub use error::SandboxError;
pub use launch::{
    CapturedOutput, CommandListeners, CommandResult, CommandWatcher, DirectWrites, Executable,
    FileIdentity, GIT_CONFIG_PATH, GitFiles, HiddenPath, Launch, LaunchStage, OutputKind,
    RedirectTarget, RepositoryMount, SandboxView, StagingMount, StandardDevice, StandardStream,
    StreamRedirect, Termination, ToolchainMount,
};
#[cfg(all(target_os = "linux", not(feature = "unsupported-os")))]
pub use linux::{Executor, PreparedCommand, RunningAgent, RunningCommand};
pub use system::{make_named_pipe, open_place};
#[cfg(any(not(target_os = "linux"), feature = "unsupported-os"))]
pub use unsupported_os::{Executor, PreparedCommand, RunningAgent, RunningCommand};

/// The hidden first argument: a program that finds it must call [`SandboxBackend::executor_main`] before
/// anything else, and end with what that returns.
pub const EXECUTOR_ARGUMENT: &str = "__capsule-executor";
