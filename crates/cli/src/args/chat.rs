//! The arguments of `chat`.

use std::path::PathBuf;

use clap::Args;

use crate::args::{LayerArg, PolicyArg, UnattendedArg};

/// `chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// The folder that the model works in [default: the policy's, else the current folder]
    pub(crate) path: Option<PathBuf>,
    /// The task, in place of a conversation at the terminal; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) task: Option<String>,
    /// Show a chat with a scripted model, over a sample workspace that is made in PATH or a temporary folder
    #[arg(long, conflicts_with_all = ["task", "model", "session"])]
    pub(crate) demo: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
    #[command(flatten)]
    pub(crate) ask: UnattendedArg,
    /// The model, as its server names it
    #[arg(long, value_name = "MODEL", env = "CAPSULE_MODEL")]
    pub(crate) model: Option<String>,
    /// Work in this open session, and leave it open
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// A file for the model, from wherever it is, with the first message; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    pub(crate) attach: Vec<PathBuf>,
    /// The most requests to the model
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_requests: Option<u64>,
    /// The most tokens, as far as the server counts them
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_tokens: Option<u64>,
    /// The most that the model may cost, in US dollars such as `0.50`, by the prices in providers.yaml
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<String>,
    /// The longest time, such as `10m`
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_time: Option<String>,
}
