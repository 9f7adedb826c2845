//! What tests need again and again: a workspace that goes away, the binary with surroundings of
//! its own, a run that was recorded, rows that are tried side by side, and a server on loopback.
//!
//! A test kit may panic: that is how a test says that it failed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panics")]

mod binary;
mod history;
mod model;
mod mounted;
mod nightly;
mod program;
pub mod recorded_run;
mod rows;
mod server;
mod server_process;

pub use binary::{Capsule, CommandOutput};
pub use history::History;
pub use model::{ModelFormat, ModelServer, ModelTurn, results_of_calls};
pub use mounted::Mounted;
pub use nightly::{Numbers, is_nightly};
pub use program::write_program;
pub use rows::run_in_parallel;
pub use server::{HttpRequest, HttpServer};
pub use server_process::ServerProcess;
