//! Reads command lines: the subset of the shell's language, and what programs do with their arguments.
//!
//! No policy is known here: what a command line does is one question, whether it may is another, which
//! `capsule-core` answers.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod argv;
pub mod endless_output;
pub mod program;
pub mod shell_syntax;
pub mod specs;
pub mod steps;
pub mod variables;
