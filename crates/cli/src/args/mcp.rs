//! The arguments of the MCP server.

use clap::{Args, Subcommand};

use crate::args::{LayerArg, PolicyArg};

/// `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the tools of a policy to an MCP client, over standard input and output
    Serve(McpServeArgs),
}

/// `mcp serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct McpServeArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArg,
    #[command(flatten)]
    pub(crate) layer: LayerArg,
}
