//! The Model Context Protocol: messages, revisions, and what the server answers.

mod connection;
mod elicitation;
mod host;
mod http;
mod http_request;
mod kept_results;
mod listeners;
mod message;
mod offer;
mod outlet;
mod progress;
mod reception;
mod revision;
mod server;
mod stdio;
mod tool_list;

pub use host::{CallAnswer, McpHost, PolicyWatch};
pub use http::{HttpDoor, serve_http};
pub use http_request::head_bytes;
pub use server::McpServer;
pub use stdio::{serve_lines, serve_stdio};
