//! Running of commands: what they are, what they see, what they may change, and what they come to.

pub(crate) mod background;
pub(crate) mod certificates;
pub(crate) mod code_files;
mod direct_write;
pub(crate) mod environment;
pub(crate) mod expand;
pub(crate) mod operation;
pub(crate) mod outcome;
pub(crate) mod program;
pub(crate) mod root_names;
pub(crate) mod runner;
mod unchanged;
mod unconfined;
