//! `serve` listens: a server of the Model Context Protocol (MCP), whose tools are those of the policy.
//!
//! A client is untrusted, and so is the model behind it. A call leaves this crate through [`McpHost`], which takes it
//! down the one path; there is no other way from here to a tool. Every message is bounded before it is read, and has one
//! reading. The server blocks: the transport has a thread, and calls are made one after another on the thread that
//! serves.

mod mcp;

pub use mcp::{
    CallAnswer, HttpDoor, McpHost, McpServer, PolicyWatch, head_bytes, serve_http, serve_lines,
    serve_stdio,
};
