//! The names of files that stand beside their place until they take it.

use crate::change_path::split_parent;

/// The beginning of the names of files that are applied.
const APPLY_PREFIX: &str = ".capsule-apply-";
/// The beginning of the names of files that an undo brings back.
const UNDO_PREFIX: &str = ".capsule-undo-";

/// The name of an unfinished file of a run that applies changes.
pub(crate) fn apply_name(run: &str) -> String {
    format!("{APPLY_PREFIX}{run}.tmp")
}

/// The name of an unfinished file of a run that undoes changes.
pub(crate) fn undo_name(run: &str) -> String {
    format!("{UNDO_PREFIX}{run}.tmp")
}

/// Whether the name of a path is one that applying of changes uses itself.
#[must_use]
pub fn has_apply_name(path: &str) -> bool {
    split_parent(path).1.starts_with(APPLY_PREFIX)
}
