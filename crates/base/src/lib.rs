//! Plain values: codes, digests, diagnostics, limits, paths, globs, addresses, units and YAML.
//!
//! No value here knows a policy, and nothing here opens a file, starts a process, reads the environment,
//! the clock or randomness.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod code;
mod command_status;
mod confusable_characters;
mod confusables;
pub mod diagnostic;
pub mod digest;
pub mod escape;
pub mod exit;
pub mod glob;
pub mod json;
pub mod limits;
pub mod net;
pub mod path;
pub mod path_aliases;
pub mod process_stat;
pub mod root_names;
pub mod spelling;
pub mod suggestion;
pub mod units;
pub mod url;
mod words;
pub mod yaml;
