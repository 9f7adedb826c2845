//! What is known about programs: which of their options take a value, which words are paths, what
//! reads, writes, sends, or starts something else.
//!
//! The knowledge is data, one file a program under `crates/command/programs/`, with a reason beside
//! whatever is not plain reading. It refines a decision and never replaces the sandbox: a program
//! that is not known is judged by its words alone, and what a program does when it runs is held by
//! the walls around it.

mod argument_effects;
mod argument_paths;
mod argv_parser;
mod command_line;
mod command_spec;
mod effect;
mod embedded;
mod level_end;
mod module;
mod packed;
mod parsed_argv;
mod path_use;
mod registry;
mod spec_keys;
mod spec_parser;
mod toolchain;

pub use argument_paths::is_endless_device;
pub use command_line::{CommandLine, base_name, is_system_program};
pub use command_spec::{
    ANY_SUBCOMMAND, ArgKind, CommandSpec, NamedEffect, OptionSpec, OptionStyle, matches_wildcard,
};
pub use effect::combined_effects;
pub use effect::{Effect, EffectSpec, Effects, MatchedEffect};
pub use embedded::effects_of_text;
pub use parsed_argv::{CommandLevel, ParsedArgv, ParsedFlag};
pub use path_use::{PathAccess, PathOrigin, PathUse};
pub use registry::{find_spec, program_names};
