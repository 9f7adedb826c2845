//! The Model Context Protocol: messages, revisions, and what the server answers.

mod connection;
mod elicitation;
mod message;
mod outlet;
mod progress;
mod reception;
mod revision;
mod server;
mod stdio;
mod tool_list;

pub use server::{CallAnswer, McpHost, McpServer};
pub use stdio::serve_stdio;
