//! The arguments of the MCP server.

use clap::{Args, Subcommand};

use crate::args::{LayerArg, PolicyArg};

/// `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the tools of a policy to an MCP client, over standard input and output or HTTP
    Serve(McpServeArgs),
}

/// `mcp serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct McpServeArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
    /// Serve over HTTP at this address of loopback instead, `127.0.0.1:0` for any free port; its URL and token go to standard
    /// error
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Write the token into a new file that only you can read, and not to standard error
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<std::path::PathBuf>,
}
