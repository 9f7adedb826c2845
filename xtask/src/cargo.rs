//! What cargo says about the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::TaskResult;

/// The packages of the workspace and where they are built, without their dependencies' own.
///
/// # Errors
/// When cargo cannot be asked.
pub(crate) fn metadata(root: &Path) -> TaskResult<Value> {
    let output = command(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {}", words.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The folder that everything is built into.
///
/// # Errors
/// When cargo cannot be asked.
pub(crate) fn target_directory(root: &Path) -> TaskResult<PathBuf> {
    let metadata = metadata(root)?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    folder.map(PathBuf::from).ok_or_else(|| "cargo metadata names no target folder".to_owned())
}

/// The cargo that started this task, in the repository.
pub(crate) fn command(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What the outer cargo set for this package is not meant for the inner one.
    command.current_dir(root).env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_PKG_NAME");
    command
}

/// Runs a command to its end, its output on our screen.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> TaskResult<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
