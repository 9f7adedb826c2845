//! The names of files that stand beside their place until they take it.

/// The beginning of the names of files that are applied.
pub(crate) const APPLY_PREFIX: &str = ".capsule-apply-";
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
