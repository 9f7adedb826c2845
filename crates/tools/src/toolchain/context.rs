//! The surroundings in which toolchains are looked for, and the reason why one is not shown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_core::policy::Policy;

/// The surroundings in which toolchains are looked for.
pub struct ToolchainContext<'c> {
    /// The user's home directory.
    pub home: &'c Path,
    /// The user's variables.
    pub variable: &'c dyn Fn(&str) -> Option<OsString>,
    /// The workspace, where there is one.
    pub workspace: Option<&'c Path>,
    /// Capsule's own files, which no toolchain may hold.
    pub runtime_files: &'c [PathBuf],
    /// Whether directories may be named by path: not in a policy that came with the workspace.
    pub allows_paths: bool,
    /// The base policy alone, bound to the root of the file system; directories are judged by it.
    pub base_policy: &'c dyn Fn() -> Option<Policy>,
}

/// Why an entry shows nothing.
pub(super) struct Refusal {
    pub(super) is_error: bool,
    pub(super) message: String,
    pub(super) hint: String,
}

impl Refusal {
    pub(super) fn error(message: String, hint: &str) -> Self {
        Self { is_error: true, message, hint: hint.to_owned() }
    }

    pub(super) fn note(message: String, hint: &str) -> Self {
        Self { is_error: false, message, hint: hint.to_owned() }
    }
}
