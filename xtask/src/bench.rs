//! Measures, against references in the same run. The measuring is done by a workspace of its own,
//! so that what is compared with is not built by those who only want the binary.

use std::path::Path;

use crate::{TaskResult, cargo, dist};

/// The measures that start the binary.
const BINARY_MEASURES: &[&str] =
    &["P1", "P2", "P4", "P9", "P10", "P11", "P12", "P13", "P14", "P18"];

/// Builds the binary where a measure needs it, and measures.
///
/// # Errors
/// When something does not build, or a measure could not be taken.
pub(crate) fn run(root: &Path, options: &[&str]) -> TaskResult<bool> {
    let target = cargo::target_directory(root)?;
    if needs_binary(options) {
        dist::build(root)?;
    }
    let mut measure = cargo::command(root);
    measure.args(["run", "--release", "--quiet", "--manifest-path", "bench/Cargo.toml"]);
    // Beside the folder of the main workspace, so that nothing is built into the repository.
    measure.arg("--target-dir").arg(target.join("bench"));
    measure.arg("--").arg("--folder").arg(&target).args(options);
    let status = measure.status().map_err(|error| format!("{measure:?}: {error}"))?;
    Ok(status.success())
}

/// Whether the measures that are wanted start the binary.
fn needs_binary(options: &[&str]) -> bool {
    let only = options.iter().position(|option| *option == "--only");
    match only.and_then(|at| options.get(at + 1)) {
        Some(list) => list.split(',').any(|id| BINARY_MEASURES.contains(&id)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_built_only_where_it_is_measured() {
        assert!(needs_binary(&["--quick"]));
        assert!(needs_binary(&["--only", "P3,P4"]));
        assert!(!needs_binary(&["--only", "P3,P5", "--quick"]));
    }
}
