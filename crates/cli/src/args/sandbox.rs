//! The arguments of `sandbox`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// `sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// How the program is confined
    #[arg(long, value_name = "BACKEND", default_value = "namespaces")]
    pub(crate) backend: SandboxBackendArg,
    /// The policy of an agent with a proxy or staged changes, and of the chat that runs without CMD: a file, or
    /// builtin:NAME
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// The network of the program
    #[arg(long, value_name = "NETWORK", default_value = "open")]
    pub(crate) network: SandboxNetworkArg,
    /// Pass a variable, beside the API keys and settings of known model providers; may be given several times
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Give it no /tmp
    #[arg(long)]
    pub(crate) no_tmp: bool,
    /// Give it a copy of the workspace: its changes wait until you apply them
    #[arg(long)]
    pub(crate) staged: bool,
    /// The program and its arguments [default: capsule chat]
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

/// How a program is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxBackendArg {
    /// By namespaces of the kernel
    Namespaces,
    /// In a container of Docker
    Docker,
}

/// The network of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxNetworkArg {
    /// All that the host reaches, its own loopback included
    Open,
    /// None but a loopback of its own
    None,
    /// The hosts that the policy names, each recorded, through a proxy
    Proxy,
}
