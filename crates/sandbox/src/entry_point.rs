//! The points at which a program enters this crate.

#[cfg(target_os = "linux")]
use crate::{doctor, executor, kernel, supervise::UNCONFINED};

/// The hidden first argument: a program that finds it must call [`executor_main`] before anything
/// else, and end with what that returns.
pub const EXECUTOR_ARGUMENT: &str = "__capsule-executor";

/// Has names of hosts looked up in the machine's own file and by DNS, and users in the machine's own
/// file, without loading what else the machine is set up for into this process. To be called before
/// anything is looked up; only the first call does something.
pub fn use_builtin_name_lookup() {
    #[cfg(target_os = "linux")]
    kernel::use_builtin_resolvers();
}

/// The whole life of an executor.
#[cfg(target_os = "linux")]
#[must_use]
pub fn executor_main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(2);
    match words.next() {
        Some(word) if word == doctor::PROBE_ARGUMENT => doctor::run_probe(words),
        Some(word) if word == UNCONFINED => executor::serve_unconfined(),
        _ => executor::serve(),
    }
}
