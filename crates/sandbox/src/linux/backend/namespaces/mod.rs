//! Walls out of namespaces: users, mounts, network and host name once a run; processes, mounts and
//! queues once a call. Landlock and seccomp stand behind them.
//!
//! In order: [`probe`](mod@probe) makes what belongs to the run and an empty root with the system's folders in
//! it ([`root`]); [`Ground::enter`] puts the workspace into it and goes there ([`view`]);
//! [`View::spawn`] makes the first process of a call, which builds the rest and starts the program
//! ([`first`]).

mod accounts;
mod agent;
mod cgroup_files;
mod direct_writes;
mod generated_files;
mod git_files;
mod hidden_paths;
mod host_directories;
mod init_process;
mod isolate;
mod machine_files;
mod memory_file_system;
mod overlay;
mod probe;
mod root;
mod run_sandbox;
mod shared_tmp;
mod spawn;
mod toolchains;
mod workspace_mount;

pub(crate) use agent::serve as serve_agent;
pub(crate) use probe::{
    MissingLayer, PreparedNamespaces, UnavailableNamespaces, prepare, setup_error_reason,
    setup_error_text,
};
pub(crate) use run_sandbox::NamespaceSandbox;
